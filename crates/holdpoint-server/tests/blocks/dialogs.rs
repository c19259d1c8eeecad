//! A client that knows only what the protocol's pages say shows the right dialogs, and what it sends is taken.

use std::time::Duration;

use holdpoint_testkit::model_server::Answer as Reply;
use serde_json::{Value, json};

use crate::client::{Client, is, is_block, until_asked};
use crate::sample_client::{Screen, render_history};
use crate::stage::{Stage, message};

/// A person before a screen.
struct Person {
    client: Client,
    screen: Screen,
}

impl Person {
    /// Says something, and sees what the agent asks.
    async fn say(stage: &Stage, agent: &str, content: &str) -> Self {
        let mut client = stage.connect().await;
        client.send(&message(agent, "s", content)).await;
        let mut person = Self { client, screen: Screen::of("s") };
        person.see().await;
        person
    }

    /// Sees the next request.
    async fn see(&mut self) {
        let told = until_asked(&mut self.client).await;
        self.screen.handle_all(&told);
    }

    /// Sends what the dialog sends, and watches up to the end of the run.
    async fn send(&mut self, command: &Value) {
        self.client.send(command).await;
        let told = self.client.until(|event| event["type"] == "message_stop" || event["type"] == "error").await;
        assert_eq!(told.last().unwrap()["type"], "message_stop", "{told:?}");
        self.screen.handle_all(&told);
    }
}

fn trade(symbol: &str, quantity: u32) -> Value {
    json!({"symbol": symbol, "quantity": quantity})
}

/// What reached the tools, as JSON.
fn effects(stage: &Stage) -> Vec<Value> {
    stage.tools.calls().iter().map(|body| serde_json::from_str(body).unwrap()).collect()
}

const ONE_TRADE: &str = r#"# Xác nhận hành động
## execute_trade
{
  "quantity": 100,
  "symbol": "VNM"
}
(x) Phê duyệt  ( ) Từ chối
[Xác nhận]"#;

#[tokio::test]
async fn an_approval_shows_what_would_run_and_its_result() {
    let stage = Stage::solo().await;
    stage.model.push(Reply::call("execute_trade", trade("VNM", 100)));
    let mut person = Person::say(&stage, "trader", "Mua").await;
    assert_eq!(person.screen.render(), ONE_TRADE);
    stage.model.push(Reply::text("Xong."));
    let command = person.screen.approval().submit();
    person.send(&command).await;
    assert_eq!(person.screen.render(), "Đã phê duyệt");
    assert_eq!(effects(&stage), [trade("VNM", 100)]);
}

#[tokio::test]
async fn one_of_two_actions_is_rejected() {
    let stage = Stage::solo().await;
    let calls = Reply::call("execute_trade", trade("VNM", 100)).and_call("execute_trade", trade("FPT", 7));
    stage.model.push(calls);
    let mut person = Person::say(&stage, "trader", "Mua cả hai").await;
    person.screen.approval().choose(1, "reject");
    let shown = person.screen.render();
    assert!(shown.ends_with("\"symbol\": \"FPT\"\n}\n( ) Phê duyệt  (x) Từ chối\n[Xác nhận]"), "{shown}");
    stage.model.push(Reply::text("Xong."));
    let command = person.screen.approval().submit();
    person.send(&command).await;
    assert_eq!(person.screen.render(), "Đã phê duyệt, Đã từ chối");
    assert_eq!(effects(&stage), [trade("VNM", 100)]);
}

#[tokio::test]
async fn an_edit_shows_and_runs_the_changed_arguments() {
    let stage = Stage::solo().await;
    stage.model.push(Reply::call("execute_trade", trade("VNM", 100)));
    let mut person = Person::say(&stage, "trader", "Mua").await;
    person.screen.approval().edit(0, trade("VNM", 50));
    assert!(person.screen.render().contains("\"quantity\": 50,"), "{}", person.screen.render());
    stage.model.push(Reply::text("Xong."));
    let command = person.screen.approval().submit();
    person.send(&command).await;
    assert_eq!(person.screen.render(), "Đã sửa");
    assert_eq!(effects(&stage), [trade("VNM", 50)]);
}

#[tokio::test]
async fn nobody_answers_and_the_dialog_goes() {
    let stage = Stage::solo().await;
    stage.model.push(Reply::call("execute_trade", trade("VNM", 100)));
    let mut person = Person::say(&stage, "trader", "Mua").await;
    stage.model.push(Reply::text("Không ai trả lời."));
    stage.clock.advance(Duration::from_secs(300));
    let told = person.client.until(is("message_stop")).await;
    person.screen.handle_all(&told);
    assert_eq!(person.screen.render(), "Hết thời gian chờ");
    assert_eq!(effects(&stage), Vec::<Value>::new());
}

fn questions() -> Value {
    json!({"questions": [
        {"question": "Mục tiêu nào?", "header": "Mục tiêu", "multiSelect": false,
         "options": [{"label": "Cổ tức", "description": "Đều đặn"}, {"label": "Tăng trưởng"}]},
        {"question": "Ngành nào?", "multiSelect": true,
         "options": [{"label": "Ngân hàng"}, {"label": "Thép (Steel)"}, {"label": "Điện"}]},
        {"question": "Kỳ hạn?", "multiSelect": false, "options": [{"label": "1 năm"}, {"label": "3 năm"}]},
        {"question": "Ghi chú?", "multiSelect": false, "options": [{"label": "Không có"}]},
    ]})
}

#[tokio::test]
async fn questions_show_their_options_and_take_one_choice_several_other_words_or_none() {
    let stage = Stage::solo().await;
    stage.model.push(Reply::call("ask_user_question", questions()));
    let mut person = Person::say(&stage, "planner", "Tư vấn").await;
    let dialog = person.screen.question();
    dialog.choose(0, 1);
    dialog.choose(0, 0);
    dialog.choose(1, 0);
    dialog.choose(1, 1);
    dialog.write(2, "Sáu tháng");
    let shown = person.screen.render();
    let first = "# Mục tiêu\nMục tiêu nào?\n(x) Cổ tức – Đều đặn\n( ) Tăng trưởng\n( ) Khác";
    assert!(shown.starts_with(first), "{shown}");
    assert!(shown.contains("Ngành nào?\n[x] Ngân hàng\n[x] Thép (Steel)\n[ ] Điện\n[ ] Khác"), "{shown}");
    assert_eq!(shown.matches(": ____").count(), 4, "each has a line to write in: {shown}");
    stage.model.push(Reply::text("Cảm ơn!"));
    let command = person.screen.question().submit();
    let answers = json!({
        "Mục tiêu nào?": "Cổ tức", "Ngành nào?": "Ngân hàng, Thép (Steel)", "Kỳ hạn?": "Sáu tháng",
        "Ghi chú?": "[No preference]",
    });
    assert_eq!(command["answers"], answers);
    person.send(&command).await;
    let told = &stage.model.last_request().tool_results()[0].1;
    for words in ["Cổ tức", "Ngân hàng", "Thép (Steel)", "Sáu tháng", "[No preference]"] {
        assert!(told.contains(words), "{words} is not in {told}");
    }
    let page = render_history(&stage.history("s").await);
    let expected = "Tư vấn\n│ Mục tiêu nào?\n│ Cổ tức\n│ Ngành nào?\n│ Ngân hàng, Thép (Steel)\n│ Kỳ hạn?\n\
                    │ Sáu tháng\n│ Ghi chú?\n│ [No preference]\nCảm ơn!";
    assert_eq!(page, expected);
}

#[tokio::test]
async fn a_page_that_is_loaded_anew_shows_the_question_that_still_waits_and_can_answer_it() {
    let stage = Stage::solo().await;
    stage.model.push(Reply::call("ask_user_question", questions()));
    let person = Person::say(&stage, "planner", "Tư vấn").await;
    let first = person.screen.render();
    person.client.vanish();
    assert_eq!(render_history(&stage.history("s").await), "Tư vấn\n? chưa trả lời");
    let mut client = stage.connect().await;
    let open = client.subscribe("s", 0).await;
    assert_eq!((&open["status"], &open["open"]), (&json!("waiting"), &json!(["s_1"])));
    let mut person = Person { client, screen: Screen::of("s") };
    person.see().await;
    assert_eq!(person.screen.render(), first);
    stage.model.push(Reply::text("Cảm ơn!"));
    let command = person.screen.question().submit();
    person.send(&command).await;
}

#[tokio::test]
async fn two_requests_one_after_the_other_are_two_dialogs() {
    let stage = Stage::solo().await;
    let reply = Reply::call("execute_trade", trade("VNM", 1)).and_call("ask_user_question", questions());
    stage.model.push(reply);
    let mut person = Person::say(&stage, "trader", "Mua và hỏi").await;
    // Questions come first, each as a request of its own.
    let answer = person.screen.question().submit();
    assert_eq!(answer["approval_key"], "s_1");
    let told = person.client.until(|event| is_block(event, "approval_request")).await;
    person.screen.handle_all(&told);
    let approve = person.screen.approval().submit();
    assert_eq!(approve["approval_key"], "s_2");
    stage.model.push(Reply::text("Xong."));
    person.client.send(&answer).await;
    person.send(&approve).await;
    assert_eq!(person.screen.render(), "Đã phê duyệt");
    assert_eq!(effects(&stage), [trade("VNM", 1)]);
}
