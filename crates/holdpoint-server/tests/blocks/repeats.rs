//! A command that is sent again under its name: at the same time, after a restart, or over another way in.

use holdpoint_testkit::model_server::Answer as Reply;
use serde_json::{Value, json};

use crate::client::{Client, is, until_asked};
use crate::stage::{Stage, message};

fn named(mut command: Value, name: &str) -> Value {
    command["request_id"] = json!(name);
    command
}

fn approve(session: &str) -> Value {
    json!({"type": "approval", "session_id": session, "approval_key": format!("{session}_1"),
        "decisions": [{"type": "approve"}]})
}

/// How often the model was told this in its last call.
fn told(stage: &Stage, words: &str) -> usize {
    Value::Array(stage.model.last_request().messages().to_vec()).to_string().matches(words).count()
}

#[tokio::test]
async fn after_a_death_the_same_commands_get_the_same_answers_and_nothing_is_done_twice() {
    let mut stage = Stage::solo().await;
    let mut client = stage.connect().await;
    let trade = json!({"symbol": "VNM", "quantity": 1});
    stage.model.push(Reply::call("execute_trade", trade));
    let ask = named(message("trader", "s", "Mua"), "c1");
    client.send(&ask).await;
    let started = until_asked(&mut client).await.remove(0);
    stage.model.push(Reply::text("Xong."));
    let decide = named(approve("s"), "c2");
    let decided = client.ask(&decide, "approval_resolved").await;
    client.until(is("message_stop")).await;
    stage.kill_and_start().await;
    assert_eq!(answer(stage.connect().await, ask.clone()).await, started);
    assert_eq!(answer(stage.connect().await, decide.clone()).await, decided);
    assert_eq!(stage.command("s", &ask).await.json(), started);
    assert_eq!(stage.command("s", &decide).await.json(), decided);
    assert_eq!(stage.tools.calls().len(), 1);
    assert_eq!(stage.model.requests().len(), 2);
}

#[tokio::test]
async fn a_message_that_is_queued_twice_under_one_name_is_said_once_also_after_a_death() {
    let mut stage = Stage::solo().await;
    let mut client = stage.connect().await;
    stage.model.push(Reply::call("execute_trade", json!({"symbol": "VNM"})));
    client.send(&message("queue", "s", "Mua")).await;
    until_asked(&mut client).await;
    let more = named(message("queue", "s", "Và báo cho Lan"), "q1");
    let queued = client.ask(&more, "message_queued").await;
    assert_eq!((&queued["type"], &queued["request_id"]), (&json!("message_queued"), &json!("q1")), "{queued}");
    assert_eq!(client.ask(&more, "message_queued").await, queued);
    stage.kill_and_start().await;
    let mut again = stage.connect().await;
    assert_eq!(again.ask(&more, "message_queued").await, queued);
    let other = again.ask(&named(message("queue", "s", "Khác"), "q1"), "message_queued").await;
    assert_eq!(other["error"]["code"], "bad_command", "{other}");
    stage.model.push(Reply::text("Xong."));
    again.send(&approve("s")).await;
    again.until(is("message_stop")).await;
    assert_eq!(told(&stage, "Và báo cho Lan"), 1);
}

/// The answer to a command: what carries its name. What happens in the session is told beside it.
async fn answer(mut client: Client, command: Value) -> Value {
    client.send(&command).await;
    client.until(|event| event["request_id"] == command["request_id"]).await.pop().unwrap()
}

#[tokio::test]
async fn the_same_message_sent_many_times_at_once_starts_one_run_and_each_is_answered_alike() {
    let stage = Stage::solo().await;
    stage.model.script(|_| Reply::text("Chào."));
    let command = named(message("trader", "s", "Xin chào"), "once");
    let mut asking = tokio::task::JoinSet::new();
    for _ in 0..8 {
        asking.spawn(answer(stage.connect().await, command.clone()));
        let request = stage.request("POST", "/api/v1/sessions/s/commands").json(&command);
        asking.spawn(async move { request.send().await.unwrap().json().await.unwrap() });
    }
    let answers = asking.join_all().await;
    assert_eq!(answers[0]["type"], "message_start", "{answers:?}");
    assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:?}");
    let mut last = stage.connect().await;
    last.subscribe("s", 0).await;
    last.until(is("message_stop")).await;
    assert_eq!(stage.model.requests().len(), 1);
}

#[tokio::test]
async fn the_same_decision_sent_many_times_at_once_is_one_and_any_other_is_too_late() {
    let stage = Stage::solo().await;
    let mut client = stage.connect().await;
    stage.model.push(Reply::call("execute_trade", json!({"symbol": "VNM", "quantity": 1})));
    client.send(&message("trader", "s", "Mua")).await;
    until_asked(&mut client).await;
    stage.model.push(Reply::text("Xong."));
    let mut deciding = tokio::task::JoinSet::new();
    for number in 0..12 {
        let name = if number % 3 == 0 { format!("other-{number}") } else { "same".to_owned() };
        deciding.spawn(answer(stage.connect().await, named(approve("s"), &name)));
    }
    let (won, lost): (Vec<Value>, Vec<Value>) =
        deciding.join_all().await.into_iter().partition(|answer| answer["type"] == "approval_resolved");
    let is_one_command = won.iter().all(|answer| *answer == won[0]);
    let count = if won[0]["request_id"] == "same" { 8 } else { 1 };
    assert!(is_one_command && won.len() == count, "{won:?}");
    assert!(lost.iter().all(|answer| answer["error"]["code"] == "already_decided"), "{lost:?}");
    client.until(is("message_stop")).await;
    assert_eq!(stage.tools.calls().len(), 1);
}

#[tokio::test]
async fn words_of_ones_own_answer_a_question_that_only_had_options() {
    let stage = Stage::solo().await;
    let mut client = stage.connect().await;
    let questions = json!({"questions": [{"question": "Which?", "options": [{"label": "red"}, {"label": "blue"}]}]});
    stage.model.push(Reply::call("ask_user_question", questions));
    client.send(&message("asker", "s", "?")).await;
    until_asked(&mut client).await;
    stage.model.push(Reply::text("Green it is."));
    let answer =
        json!({"type": "approval", "session_id": "s", "approval_key": "s_1", "answers": {"Which?": "dark green"}});
    client.send(&answer).await;
    let told = client.until(|event| event["type"] == "message_stop" || event["type"] == "error").await;
    assert_eq!(told.last().unwrap()["type"], "message_stop", "{told:?}");
    assert!(stage.model.last_request().tool_results()[0].1.contains("dark green"));
}

#[tokio::test]
async fn who_sends_a_message_again_on_a_new_connection_is_shown_what_followed() {
    let stage = Stage::solo().await;
    let mut first = stage.connect().await;
    stage.model.push(Reply::call("execute_trade", json!({"symbol": "VNM", "quantity": 1})));
    let command = named(json!({"type": "message", "agent_id": "trader", "content": "Mua"}), "once");
    first.send(&command).await;
    let seen = until_asked(&mut first).await;
    let mut second = stage.connect().await;
    second.send(&command).await;
    let again = until_asked(&mut second).await;
    let numbers = |events: &[Value]| events.iter().filter_map(|event| event["seq"].as_u64()).collect::<Vec<_>>();
    assert_eq!(numbers(&again), numbers(&seen), "{again:?}");
    assert_eq!(again[0]["request_id"], "once", "{again:?}");
    stage.model.push(Reply::text("Xong."));
    let session = seen[0]["session_id"].as_str().unwrap();
    first.send(&approve(session)).await;
    let (told, learnt) = (first.until(is("message_stop")).await, second.until(is("message_stop")).await);
    assert_eq!(numbers(&told), numbers(&learnt));
    assert_eq!(stage.tools.calls().len(), 1);
}

#[tokio::test]
async fn the_same_message_sent_at_once_shows_each_event_once_to_everybody() {
    let stage = Stage::solo().await;
    stage.model.script(|_| Reply::text("Chào."));
    let command = named(message("trader", "s", "Xin chào"), "once");
    let mut asking = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let (mut client, command) = (stage.connect().await, command.clone());
        asking.spawn(async move {
            client.send(&command).await;
            let told = client.until(is("message_stop")).await;
            told.iter().filter_map(|event| event["seq"].as_u64()).collect::<Vec<_>>()
        });
    }
    for numbers in asking.join_all().await {
        assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
    }
}

#[tokio::test]
async fn a_message_that_was_queued_is_known_by_its_name_however_many_runs_came_since() {
    let stage = Stage::solo().await;
    let mut client = stage.connect().await;
    stage.model.push(Reply::call("execute_trade", json!({"symbol": "VNM", "quantity": 1})));
    client.send(&message("queue", "s", "Mua")).await;
    until_asked(&mut client).await;
    let more = named(message("queue", "s", "Và báo cho Lan"), "more");
    let first = client.ask(&more, "message_queued").await;
    assert_eq!(first["type"], "message_queued", "{first}");
    stage.model.script(|_| Reply::text("Xong."));
    client.send(&approve("s")).await;
    client.until(is("message_stop")).await;
    for number in 0..22 {
        client.send(&message("queue", "s", &format!("Và {number}"))).await;
        client.until(is("message_stop")).await;
    }
    assert_eq!(client.ask(&more, "message_queued").await, first);
    let mut other = more.clone();
    other["content"] = json!("Khác");
    assert_eq!(client.ask(&other, "message_queued").await["error"]["code"], "bad_command");
}
