//! Every example that the protocol's pages print, out of runs that do just what the page shows.

use std::time::Duration;

use holdpoint_testkit::model_server::Answer as Reply;
use serde_json::{Value, json};

use crate::client::{Client, is, is_block, until_asked};
use crate::examples::{check, check_example, example};
use crate::stage::{Stage, message};

/// The trade of the examples.
fn trade() -> Value {
    example("approval-request.start")["content_block"]["actions"][0]["args"].clone()
}

/// A run of the trader that looks up a price and then waits for leave to trade, so that the request is the fifth block;
/// gives back what was told.
async fn held_trade(stage: &Stage, client: &mut Client) -> Vec<Value> {
    stage.model.push(Reply::text("Để tôi xem giá.").and_call("get_quote", json!({"symbol": "VNM"})));
    stage.model.push(Reply::empty().and_call_as("toolu_01XyzAbc", "execute_trade", trade().to_string()));
    client.send(&message("trader", "abc-123", "Mua 100 VNM")).await;
    until_asked(client).await
}

/// Sends a decision, and reads to the end of the run.
async fn decide(stage: &Stage, client: &mut Client, command: &Value) -> Vec<Value> {
    stage.model.push(Reply::text("Xong."));
    client.send(command).await;
    let read = client.until(|event| event["type"] == "message_stop" || event["type"] == "error").await;
    assert_eq!(read.last().unwrap()["type"], "message_stop", "{read:?}");
    read
}

/// The events of the block of this kind: start, deltas, stop.
fn block(events: &[Value], kind: &str) -> Vec<Value> {
    let begin = events.iter().position(|event| is_block(event, kind));
    let begin = begin.unwrap_or_else(|| panic!("no {kind} in {events:?}"));
    let (index, id) = (&events[begin]["index"], &events[begin]["message_id"]);
    let of_block = |event: &&Value| {
        let is_of_stream = event["type"].as_str().is_some_and(|kind| kind.starts_with("content_block_"));
        is_of_stream && &event["index"] == index && &event["message_id"] == id
    };
    let mut found = Vec::new();
    for event in events[begin..].iter().filter(of_block) {
        found.push(event.clone());
        if event["type"] == "content_block_stop" {
            break;
        }
    }
    found
}

/// What was decided, as everybody is told.
fn decisions(events: &[Value]) -> Value {
    block(events, "approval_result")[1]["delta"]["decisions"].clone()
}

/// What reached the tool that trades.
fn traded(stage: &Stage) -> Vec<Value> {
    let bodies = stage.tools.calls();
    let bodies = bodies.iter().map(|body| serde_json::from_str::<Value>(body).unwrap());
    bodies.filter(|body| body.get("quantity").is_some()).collect()
}

#[tokio::test]
async fn a_request_and_its_approval_are_told_as_the_page_prints_them() {
    let stage = Stage::solo().await;
    let mut client = stage.connect().await;
    let told = held_trade(&stage, &mut client).await;
    let [start, stop] = &block(&told, "approval_request")[..] else { panic!("start and stop expected: {told:?}") };
    check_example("approval-request.start", start);
    check_example("approval-request.stop", stop);
    assert_eq!(traded(&stage), Vec::<Value>::new(), "nothing runs before it is approved");
    let told = decide(&stage, &mut client, &example("approve.command")).await;
    let [start, delta, stop] = &block(&told, "approval_result")[..] else { panic!("three events expected: {told:?}") };
    check_example("approval-result.start", start);
    check_example("approval-result.delta", delta);
    check_example("approval-result.stop", stop);
    assert_eq!(traded(&stage), [trade()]);
}

#[tokio::test]
async fn the_command_to_reject_is_taken_as_printed_and_nothing_runs() {
    let stage = Stage::solo().await;
    let mut client = stage.connect().await;
    held_trade(&stage, &mut client).await;
    let command = example("reject.command");
    let told = decide(&stage, &mut client, &command).await;
    assert_eq!(decisions(&told), command["decisions"]);
    assert_eq!(block(&told, "tool_result")[0]["content_block"]["status"], "rejected");
    assert_eq!(traded(&stage), Vec::<Value>::new());
}

#[tokio::test]
async fn the_command_to_edit_is_taken_as_printed_and_just_that_runs() {
    let stage = Stage::solo().await;
    let mut client = stage.connect().await;
    held_trade(&stage, &mut client).await;
    let command = example("edit.command");
    let told = decide(&stage, &mut client, &command).await;
    assert_eq!(decisions(&told), command["decisions"]);
    assert_eq!(traded(&stage), [command["decisions"][0]["edited_action"]["args"].clone()]);
}

#[tokio::test]
async fn a_persons_words_reach_the_model_beside_the_result_and_change_no_argument() {
    let stage = Stage::solo().await;
    let mut client = stage.connect().await;
    held_trade(&stage, &mut client).await;
    let command = example("approve-with-words.command");
    let told = decide(&stage, &mut client, &command).await;
    assert_eq!(decisions(&told), command["decisions"]);
    assert_eq!(traded(&stage), [trade()]);
    let asked = stage.model.last_request();
    assert!(asked.last_user().contains(command["user_edit_content"].as_str().unwrap()), "{:?}", asked.messages());
    assert!(asked.messages().iter().any(|message| message["tool_call_id"] == "toolu_01XyzAbc"), "beside the result");
}

/// A run of the trader that waits with two trades.
async fn held_pair(stage: &Stage, client: &mut Client) -> Vec<Value> {
    let trade = |symbol: &str| json!({"symbol": symbol, "quantity": 100, "side": "buy", "price": 82000});
    stage.model.push(Reply::call("execute_trade", trade("VNM")).and_call("execute_trade", trade("FPT")));
    client.send(&message("trader", "abc-123", "Mua cả hai")).await;
    until_asked(client).await
}

#[tokio::test]
async fn two_actions_are_one_request_and_are_decided_in_order() {
    let stage = Stage::solo().await;
    let mut client = stage.connect().await;
    let told = held_pair(&stage, &mut client).await;
    let request = &block(&told, "approval_request")[0]["content_block"];
    assert_eq!(request["actions"].as_array().unwrap().len(), 2, "{request}");
    assert_eq!(request["review_configs"].as_array().unwrap().len(), 2, "{request}");
    let mut command = example("approve.command");
    command["decisions"] = example("two-actions.decisions")["decisions"].clone();
    let told = decide(&stage, &mut client, &command).await;
    assert_eq!(decisions(&told), command["decisions"]);
    let traded = traded(&stage);
    assert_eq!(traded.len(), 1);
    assert_eq!(traded[0]["symbol"], "VNM");
}

#[tokio::test]
async fn missing_decisions_are_filled_with_the_first_and_the_whole_list_is_shown() {
    let stage = Stage::solo().await;
    let mut client = stage.connect().await;
    held_pair(&stage, &mut client).await;
    let told = decide(&stage, &mut client, &example("approve.command")).await;
    assert_eq!(decisions(&told), json!([{"type": "approve"}, {"type": "approve", "implied": true}]));
    assert_eq!(traded(&stage).len(), 2);
}

#[tokio::test]
async fn a_request_that_nobody_answers_ends_as_the_page_prints_it() {
    let stage = Stage::solo().await;
    let mut client = stage.connect().await;
    held_trade(&stage, &mut client).await;
    stage.model.push(Reply::text("Không ai trả lời."));
    stage.clock.advance(Duration::from_secs(299));
    assert_eq!(client.ask(&json!({"type": "ping"}), "pong").await["type"], "pong", "not before its time");
    stage.clock.advance(Duration::from_secs(1));
    let told = client.until(is("message_stop")).await;
    let [start, stop] = &block(&told, "approval_timeout")[..] else { panic!("start and stop expected: {told:?}") };
    check_example("approval-timeout.start", start);
    check_example("approval-timeout.stop", stop);
    let resolved = told.iter().find(|event| event["type"] == "approval_resolved").unwrap();
    assert_eq!(resolved["outcome"], "expired");
    assert_eq!(traded(&stage), Vec::<Value>::new());
}

/// What the model asks for in the example of a question.
fn questions() -> Value {
    example("question.delta")["delta"]["action_requests"][0]["args"].clone()
}

/// A run of the planner that notes something and then asks, so that the question is the fourth block.
async fn asked(stage: &Stage, client: &mut Client, session: &str, questions: &Value) -> Vec<Value> {
    stage.model.push(Reply::text("Tôi ghi lại.").and_call("write_todos", json!({"title": "Chuẩn bị"})));
    stage.model.push(Reply::call("ask_user_question", questions.clone()));
    client.send(&message("planner", session, "Tư vấn cho tôi")).await;
    until_asked(client).await
}

#[tokio::test]
async fn a_question_is_told_as_the_page_prints_it_and_stands_outside_the_group() {
    let stage = Stage::solo().await;
    let mut client = stage.connect().await;
    let told = asked(&stage, &mut client, "session-id", &questions()).await;
    let events = block(&told, "approval_request");
    let [start, delta, stop] = &events[..] else { panic!("three events expected: {told:?}") };
    check_example("question.start", start);
    check_example("question.delta", delta);
    check_example("question.stop", stop);
    let kinds: Vec<&str> = told.iter().filter_map(|event| event["type"].as_str()).collect();
    let end = kinds.iter().position(|kind| *kind == "group_end").expect("the group is closed");
    let start = told.iter().position(|event| is_block(event, "approval_request")).unwrap();
    assert!(end < start, "{kinds:?}");
    let of_question = |event: &&Value| {
        ["tool_use", "tool_result"].iter().any(|kind| is_block(event, kind))
            && event["content_block"]["name"] == "ask_user_question"
    };
    assert_eq!(told.iter().find(of_question), None);
}

#[tokio::test]
async fn a_question_without_an_option_for_other_words_gets_the_one_that_the_page_prints() {
    let stage = Stage::solo().await;
    let mut client = stage.connect().await;
    let mut bare = example("question");
    bare["options"].as_array_mut().unwrap().pop();
    let told = asked(&stage, &mut client, "session-id", &json!({"questions": [bare]})).await;
    let delta = &block(&told, "approval_request")[1]["delta"];
    let mut question = delta["action_requests"][0]["args"]["questions"][0].clone();
    let mut other = question["options"].as_array_mut().unwrap().pop().unwrap();
    // What it means may be said, as the longer examples do.
    other.as_object_mut().unwrap().remove("description");
    check_example("other-option", &other);
    check(&bare, &question, "the question is otherwise as the model asked it");
}

#[tokio::test]
async fn a_whole_question_of_the_page_is_asked_as_it_is() {
    let stage = Stage::solo().await;
    let mut client = stage.connect().await;
    let told = asked(&stage, &mut client, "session-id", &json!({"questions": [example("question")]})).await;
    let delta = &block(&told, "approval_request")[1]["delta"];
    check_example("question", &delta["action_requests"][0]["args"]["questions"][0]);
}

#[tokio::test]
async fn the_answers_are_taken_as_printed_and_history_shows_the_resolved_question() {
    let stage = Stage::solo().await;
    let mut client = stage.connect().await;
    let resolved = example("resolved-question.history");
    let mut questions = resolved["content"][0]["actionRequests"][0]["args"].clone();
    questions.as_object_mut().unwrap().remove("answers");
    asked(&stage, &mut client, "abc-123", &questions).await;
    let command = example("answer.command");
    decide(&stage, &mut client, &command).await;
    let result = &stage.model.last_request().tool_results()[0].1;
    for (question, answer) in command["answers"].as_object().unwrap() {
        assert!(result.contains(question) && result.contains(answer.as_str().unwrap()), "{result}");
    }
    let history = stage.history("abc-123").await;
    let shown = history.iter().find(|message| message["content"][0]["type"] == "approval_request");
    check_example("resolved-question.history", shown.unwrap_or_else(|| panic!("{history:?}")));
}

/// Asks one question with these options and answers it; gives back what the model was told.
async fn answered(question: &str, options: &[&str], multi_select: bool, answers: &Value) -> String {
    let stage = Stage::solo().await;
    let mut client = stage.connect().await;
    let options: Vec<Value> = options.iter().map(|label| json!({"label": label})).collect();
    let question = json!({"question": question, "multiSelect": multi_select, "options": options});
    asked(&stage, &mut client, "abc-123", &json!({"questions": [question]})).await;
    let mut command = example("answer.command");
    command["answers"] = answers.clone();
    decide(&stage, &mut client, &command).await;
    let history = stage.history("abc-123").await;
    let shown = history.iter().find(|message| message["content"][0]["type"] == "approval_request").unwrap();
    assert_eq!(shown["content"][0]["submittedAnswers"], *answers);
    stage.model.last_request().tool_results()[0].1.clone()
}

#[tokio::test]
async fn several_choices_are_joined_as_printed() {
    let answers = example("several-choices.answers")["answers"].clone();
    let options = ["Ngân hàng", "Thép (Steel)", "Bất động sản"];
    let result = answered("Nhóm ngành quan tâm?", &options, true, &answers).await;
    assert!(result.contains("Ngân hàng") && result.contains("Thép (Steel)"), "{result}");
}

#[tokio::test]
async fn a_question_that_was_skipped_is_answered_as_printed() {
    let answers = example("skip.answers")["answers"].clone();
    let result = answered("Câu hỏi bị bỏ qua?", &["Có", "Không"], false, &answers).await;
    assert!(result.contains("[No preference]"), "{result}");
}

/// A run that thinks, notes and asks, twice; then it sums up.
async fn run_of_two_questions(stage: &Stage, client: &mut Client, session: &str) {
    let ask = |question: &str, answer: &str| {
        let options =
            json!([{"label": answer}, {"label": "Khác", "description": "Nhập giá trị tùy chỉnh", "input": true}]);
        let question = json!({"question": question, "header": "?", "multiSelect": false, "options": options});
        Reply::call("ask_user_question", json!({"questions": [question]}))
    };
    let note = |number: u32| {
        let title = json!({"title": format!("Chuẩn bị câu hỏi lần {number}")});
        Reply::empty().and_thinking("...").and_call_as(format!("tc-{number}"), "write_todos", title.to_string())
    };
    for reply in [note(1), ask("Q1", "A1"), note(2), ask("Q2", "A2"), Reply::text("Cảm ơn! Tổng kết...")] {
        stage.model.push(reply);
    }
    client.send(&message("planner", session, "hãy hỏi 2 lần")).await;
    for number in [1, 2] {
        until_asked(client).await;
        let answers = json!({format!("Q{number}"): format!("A{number}")});
        let key = format!("{session}_{number}");
        let command = json!({"type": "approval", "session_id": session, "approval_key": key, "answers": answers});
        client.send(&command).await;
    }
    client.until(is("message_stop")).await;
}

#[tokio::test]
async fn the_history_of_two_questions_is_the_one_that_the_page_prints() {
    let stage = Stage::solo().await;
    let mut client = stage.connect().await;
    run_of_two_questions(&stage, &mut client, "two").await;
    let mut history = stage.history("two").await;
    // The page writes "..." for a question's wording.
    for message in &mut history {
        for action in
            message.pointer_mut("/content/0/actionRequests").and_then(Value::as_array_mut).into_iter().flatten()
        {
            let questions = action["args"]["questions"].as_array_mut().expect("questions");
            assert!(questions.len() == 1 && questions[0]["question"].is_string(), "{questions:?}");
            questions[0] = json!("...");
        }
    }
    check_example("two-questions.history", &Value::Array(history));
}

#[tokio::test]
async fn an_ordinary_approval_stands_in_its_group_in_the_history_open_and_then_with_its_decisions() {
    let stage = Stage::solo().await;
    let mut client = stage.connect().await;
    held_trade(&stage, &mut client).await;
    let find = |history: Vec<Value>| {
        let place = history.iter().position(|message| message["content"][0]["type"] == "approval_request").unwrap();
        (history[place].clone(), history)
    };
    let (open, _) = find(stage.history("abc-123").await);
    let block = &open["content"][0];
    assert_eq!((&block["isResolved"], &block["approval_key"]), (&json!(false), &json!("abc-123_1")), "{open}");
    assert_eq!(block["actionRequests"][0]["args"], trade());
    let command = example("edit.command");
    decide(&stage, &mut client, &command).await;
    let (resolved, history) = find(stage.history("abc-123").await);
    let block = &resolved["content"][0];
    assert_eq!((&block["isResolved"], &block["submittedDecisions"]), (&json!(true), &command["decisions"]));
    assert_eq!(resolved["display_type"], "group_item", "{history:#?}");
    let last = history.last().unwrap();
    assert_eq!((&last["content"][0]["text"], &last["content"][0]["is_final"]), (&json!("Xong."), &json!(true)));
}
