//! What agents' files can change about the protocol, and what a command means that comes twice or at a bad time.

use holdpoint_testkit::model_server::Answer as Reply;
use serde_json::{Value, json};

use crate::client::{Client, is, is_block, until_asked};
use crate::stage::{Stage, message};

fn trade(symbol: &str) -> Value {
    json!({"symbol": symbol})
}

/// A run of an agent that waits with one trade.
async fn held(stage: &Stage, agent: &str) -> Client {
    let mut client = stage.connect().await;
    stage.model.push(Reply::call("execute_trade", trade("VNM")));
    client.send(&message(agent, "s", "Mua")).await;
    until_asked(&mut client).await;
    client
}

fn approval(decisions: Value) -> Value {
    json!({"type": "approval", "session_id": "s", "approval_key": "s_1", "decisions": decisions})
}

/// A command under a name.
fn named(mut command: Value, name: &str) -> Value {
    command["request_id"] = json!(name);
    command
}

/// Everything that the model was told in its last call.
fn last_told(stage: &Stage) -> String {
    Value::Array(stage.model.last_request().messages().to_vec()).to_string()
}

#[tokio::test]
async fn a_message_under_the_same_name_starts_one_run() {
    let stage = Stage::solo().await;
    let mut client = stage.connect().await;
    stage.model.script(|_| Reply::text("Chào."));
    let command = named(message("trader", "s", "Xin chào"), "m1");
    client.send(&command).await;
    let first = client.until(is("message_stop")).await;
    assert_eq!((&first[0]["type"], &first[0]["request_id"]), (&json!("message_start"), &json!("m1")));
    let again = client.ask(&command, "message_start").await;
    assert_eq!(again, first[0], "the same answer");
    let other = client.ask(&named(message("trader", "s", "Khác"), "m1"), "message_start").await;
    assert_eq!(other["error"]["code"], "bad_command", "a name stands for one command: {other}");
    assert_eq!(stage.model.requests().len(), 1);
}

#[tokio::test]
async fn a_decision_under_the_same_name_gets_the_same_answer_and_any_other_is_too_late() {
    let stage = Stage::solo().await;
    let mut client = held(&stage, "explicit").await;
    stage.model.push(Reply::text("Xong."));
    let command = named(approval(json!([{"type": "approve"}])), "d1");
    let first = client.ask(&command, "approval_resolved").await;
    assert_eq!((&first["type"], &first["request_id"]), (&json!("approval_resolved"), &json!("d1")), "{first}");
    client.until(is("message_stop")).await;
    assert_eq!(client.ask(&command, "approval_resolved").await, first);
    let mut elsewhere = stage.connect().await;
    assert_eq!(elsewhere.ask(&command, "approval_resolved").await, first);
    for name in ["d2", "d3"] {
        let late = client.ask(&named(command.clone(), name), "approval_resolved").await;
        assert_eq!((&late["error"]["code"], &late["request_id"]), (&json!("already_decided"), &json!(name)), "{late}");
    }
    assert_eq!(stage.tools.calls().len(), 1);
}

#[tokio::test]
async fn a_message_while_somebody_is_asked_is_refused_and_names_the_key() {
    let stage = Stage::solo().await;
    let mut client = held(&stage, "explicit").await;
    let refused = client.ask(&message("explicit", "s", "Nhanh lên"), "message_start").await;
    assert_eq!(refused["error"]["code"], "session_busy", "{refused}");
    assert!(refused["error"]["message"].as_str().unwrap().contains("s_1"), "{refused}");
    assert_eq!(stage.model.requests().len(), 1);
}

#[tokio::test]
async fn a_message_to_another_agent_waits_for_what_is_asked_in_the_session() {
    let stage = Stage::solo().await;
    let mut client = held(&stage, "explicit").await;
    for agent in ["trader", "queue", "supersede"] {
        let refused = client.ask(&message(agent, "s", "Nhanh lên"), "message_start").await;
        assert_eq!(refused["error"]["code"], "session_busy", "{agent}: {refused}");
        assert!(refused["error"]["message"].as_str().unwrap().contains("s_1"), "{refused}");
    }
    assert_eq!(stage.model.requests().len(), 1);
    stage.model.push(Reply::text("Xong."));
    client.send(&approval(json!([{"type": "approve"}]))).await;
    client.until(is("message_stop")).await;
    stage.model.push(Reply::text("Chào."));
    client.send(&message("trader", "s", "Chào")).await;
    client.until(is("message_stop")).await;
}

#[tokio::test]
async fn a_message_that_is_queued_reaches_the_model_after_the_decision() {
    let stage = Stage::solo().await;
    let mut client = held(&stage, "queue").await;
    let queued = client.ask(&message("queue", "s", "Và báo cho Lan"), "message_queued").await;
    assert_eq!(queued["type"], "message_queued", "{queued}");
    assert_eq!(stage.model.requests().len(), 1, "the run still waits");
    stage.model.push(Reply::text("Xong."));
    client.send(&approval(json!([{"type": "approve"}]))).await;
    client.until(is("message_stop")).await;
    assert!(last_told(&stage).contains("Và báo cho Lan"));
    assert_eq!(stage.tools.calls().len(), 1);
}

#[tokio::test]
async fn a_message_that_supersedes_denies_what_waits_and_the_model_learns_that_nothing_ran() {
    let stage = Stage::solo().await;
    let mut client = held(&stage, "supersede").await;
    stage.model.push(Reply::text("Vậy thôi."));
    client.send(&message("supersede", "s", "Đừng mua nữa")).await;
    let told = client.until(|event| event["type"] == "message_stop" || event["type"] == "error").await;
    let resolved = told.iter().find(|event| event["type"] == "approval_resolved");
    assert_eq!(resolved.unwrap_or_else(|| panic!("{told:?}"))["outcome"], "superseded");
    assert!(last_told(&stage).contains("Đừng mua nữa"), "{}", last_told(&stage));
    assert_eq!(stage.model.last_request().tool_results().len(), 1);
    assert_eq!(stage.tools.calls(), Vec::<String>::new());
}

#[tokio::test]
async fn words_beside_an_approval_make_the_model_revise_where_the_file_says_so() {
    let stage = Stage::solo().await;
    let mut client = held(&stage, "revise").await;
    stage.model.push(Reply::call("execute_trade", trade("FPT")));
    let mut command = approval(json!([{"type": "approve"}]));
    command["user_edit_content"] = json!("Mua FPT thay vào đó");
    client.send(&command).await;
    let told = until_asked(&mut client).await;
    let request = told.iter().rev().find(|event| is_block(event, "approval_request")).unwrap();
    assert_eq!(request["content_block"]["actions"][0]["args"], trade("FPT"));
    assert!(last_told(&stage).contains("Mua FPT thay vào đó"));
    assert_eq!(stage.tools.calls(), Vec::<String>::new(), "the first call did not run");
}

#[tokio::test]
async fn a_tool_that_wants_a_decision_for_each_call_is_never_filled_in() {
    let stage = Stage::solo().await;
    let mut client = stage.connect().await;
    stage.model.push(Reply::call("execute_trade", trade("VNM")).and_call("execute_trade", trade("FPT")));
    client.send(&message("explicit", "s", "Mua")).await;
    until_asked(&mut client).await;
    let refused = client.ask(&approval(json!([{"type": "approve"}])), "approval_resolved").await;
    assert_eq!(refused["error"]["code"], "bad_decisions", "{refused}");
    assert_eq!(stage.tools.calls(), Vec::<String>::new());
}

#[tokio::test]
async fn what_a_nested_agent_asks_says_who_asks_and_is_decided_like_any_other() {
    let stage = Stage::solo().await;
    let mut client = stage.connect().await;
    stage.model.push(Reply::empty().and_call_as("call_outer", "trader", json!({"input": "Mua VNM"}).to_string()));
    stage.model.push(Reply::call("execute_trade", json!({"symbol": "VNM", "quantity": 1})));
    client.send(&message("desk", "s", "Mua")).await;
    let told = until_asked(&mut client).await;
    let request = &told.iter().find(|event| is_block(event, "approval_request")).unwrap()["content_block"];
    assert_eq!(request["subagent"]["name"], "trader", "{request}");
    assert_eq!(request["subagent"]["path"], json!(["call_outer"]), "{request}");
    stage.model.push(Reply::text("Đã mua."));
    stage.model.push(Reply::text("Xong."));
    client.send(&approval(json!([{"type": "approve"}]))).await;
    client.until(is("message_stop")).await;
    assert_eq!(stage.tools.calls().len(), 1);
}

#[tokio::test]
async fn tools_are_shown_outside_groups_or_not_at_all_as_their_display_says() {
    let stage = Stage::solo().await;
    let mut client = stage.connect().await;
    stage.model.push(Reply::call("remember", json!({"note": "bí mật"})).and_call("show_chart", trade("VNM")));
    stage.model.push(Reply::text("Đây."));
    client.send(&message("desk", "s", "Cho xem")).await;
    let told = client.until(is("message_stop")).await;
    let named = |name: &str| told.iter().filter(|event| event["content_block"]["name"] == name).count();
    assert_eq!((named("remember"), named("show_chart")), (0, 2), "{told:?}");
    assert!(!Value::Array(told.clone()).to_string().contains("bí mật"), "{told:?}");
    let mut is_grouped = false;
    for event in &told {
        is_grouped = match event["type"].as_str() {
            Some("group_start") => true,
            Some("group_end") => false,
            _ => is_grouped,
        };
        assert!(!(is_grouped && event["content_block"]["name"] == "show_chart"), "{told:?}");
    }
    assert_eq!(stage.tools.calls().len(), 2);
}

#[tokio::test]
async fn the_option_for_other_words_is_in_the_language_of_the_question() {
    let stage = Stage::solo().await;
    let mut client = stage.connect().await;
    let languages = [
        ("Which one?", "Other"),
        ("Bạn muốn cái nào?", "Khác"),
        ("どれにしますか?", "その他"),
        ("您要哪一个?", "其他"),
    ];
    for (number, (question, label)) in languages.into_iter().enumerate() {
        let session = format!("s{number}");
        let questions = json!({"questions": [{"question": question, "options": [{"label": "1"}]}]});
        stage.model.push(Reply::call("ask_user_question", questions));
        client.send(&message("asker", &session, "?")).await;
        let told = until_asked(&mut client).await;
        let delta = told.iter().find(|event| event["delta"]["action_requests"].is_array()).unwrap();
        let option = &delta["delta"]["action_requests"][0]["args"]["questions"][0]["options"][1];
        assert_eq!((&option["label"], &option["input"]), (&json!(label), &json!(true)), "{delta}");
    }
}

/// What each call of the model was told, as text.
fn told_each(stage: &Stage) -> Vec<String> {
    stage.model.requests().iter().map(|asked| Value::Array(asked.messages().to_vec()).to_string()).collect()
}

#[tokio::test]
async fn words_beside_a_decision_reach_the_nested_agent_that_asked() {
    let stage = Stage::solo().await;
    let mut client = stage.connect().await;
    stage.model.push(Reply::call("trader", json!({"input": "Mua VNM"})));
    stage.model.push(Reply::call("execute_trade", json!({"symbol": "VNM", "quantity": 1})));
    client.send(&message("desk", "s", "Mua")).await;
    until_asked(&mut client).await;
    stage.model.push(Reply::text("Đã mua."));
    stage.model.push(Reply::text("Xong."));
    let mut command = approval(json!([{"type": "approve"}]));
    command["user_edit_content"] = json!("Giá dưới 80 thôi");
    client.send(&command).await;
    let told = client.until(|event| event["type"] == "message_stop" || event["type"] == "error").await;
    assert_eq!(told.last().unwrap()["stop_reason"], "end_turn", "{told:?}");
    let each = told_each(&stage);
    let heard: Vec<bool> = each.iter().map(|told| told.contains("Giá dưới 80 thôi")).collect();
    // The desk asks the trader, which trades and is told; the desk itself only reads what the trader says.
    assert_eq!(heard, [false, false, true, false], "{each:?}");
    assert_eq!(stage.tools.calls().len(), 1);
}

#[tokio::test]
async fn words_beside_a_decision_are_kept_where_no_model_will_be_asked_again() {
    let stage = Stage::solo().await;
    let mut client = held(&stage, "brief").await;
    let mut command = named(approval(json!([{"type": "approve"}])), "n1");
    command["user_edit_content"] = json!("Cảm ơn");
    client.send(&command).await;
    let told = client.until(|event| event["type"] == "message_stop" || event["type"] == "error").await;
    assert_eq!(told.last().unwrap()["stop_reason"], "max_turns", "{told:?}");
    let resolved = told.iter().find(|event| event["type"] == "approval_resolved").unwrap();
    assert_eq!((&resolved["outcome"], &resolved["request_id"]), (&json!("decided"), &json!("n1")));
    assert_eq!(stage.tools.calls().len(), 1, "what was approved ran");
    let history = Value::Array(stage.history("s").await).to_string();
    assert!(history.contains("Cảm ơn"), "{history}");
    assert_eq!(client.ask(&command, "approval_resolved").await, *resolved, "and once more");
}
