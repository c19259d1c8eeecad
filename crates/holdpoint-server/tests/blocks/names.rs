//! A name stands for one command. What says something else under a name that was used is refused, and nothing is done.

use holdpoint_testkit::model_server::Answer as Reply;
use serde_json::{Value, json};

use crate::client::{Client, is, until_asked};
use crate::stage::{Stage, message};

fn trade(symbol: &str) -> Value {
    json!({"symbol": symbol, "quantity": 1})
}

fn approve(session: &str, number: u32, name: &str) -> Value {
    json!({"type": "approval", "session_id": session, "approval_key": format!("{session}_{number}"),
        "decisions": [{"type": "approve"}], "request_id": name})
}

/// Has an agent wait with these calls, in a session of this name.
async fn held(stage: &Stage, client: &mut Client, agent: &str, session: &str, reply: Reply) {
    stage.model.push(reply);
    client.send(&message(agent, session, "Mua")).await;
    until_asked(client).await;
}

/// Sends a command both ways, and sees that it is refused since its name was used, and that nothing changes.
async fn is_refused(stage: &Stage, client: &mut Client, command: &Value) {
    let before = stage.everything().await;
    let session = command["session_id"].as_str().unwrap();
    for told in [client.ask(command, "approval_resolved").await, stage.command(session, command).await.json()] {
        assert_eq!(told["error"]["code"], "bad_command", "{command} -> {told}");
        assert_eq!(told["request_id"], command["request_id"], "{told}");
        let sentence = told["error"]["message"].as_str().unwrap();
        assert!(sentence.contains("request_id") && sentence.contains("another command"), "{sentence}");
    }
    assert_eq!(stage.everything().await, before, "{command} changed something");
}

#[tokio::test]
async fn a_name_that_decided_one_request_does_not_decide_another_also_after_a_death() {
    let mut stage = Stage::solo().await;
    let mut client = stage.connect().await;
    held(&stage, &mut client, "trader", "s", Reply::call("execute_trade", trade("VNM"))).await;
    stage.model.push(Reply::call("execute_trade", trade("FPT")));
    let first = client.ask(&approve("s", 1, "c1"), "approval_resolved").await;
    assert_eq!(first["type"], "approval_resolved", "{first}");
    until_asked(&mut client).await;
    is_refused(&stage, &mut client, &approve("s", 2, "c1")).await;
    held(&stage, &mut client, "trader", "other", Reply::call("execute_trade", trade("VNM"))).await;
    is_refused(&stage, &mut client, &approve("other", 1, "c1")).await;
    stage.kill_and_start().await;
    let mut again = stage.connect().await;
    is_refused(&stage, &mut again, &approve("s", 2, "c1")).await;
    assert_eq!(again.ask(&approve("s", 1, "c1"), "approval_resolved").await, first, "the first is still answered");
    assert_eq!(stage.tools.calls().len(), 1);
    stage.model.push(Reply::text("Xong."));
    assert_eq!(again.ask(&approve("s", 2, "c2"), "approval_resolved").await["type"], "approval_resolved");
    again.until(is("message_stop")).await;
    assert_eq!(stage.tools.calls().len(), 2);
}

#[tokio::test]
async fn another_decision_other_words_or_other_answers_under_the_same_name_are_another_command() {
    let stage = Stage::solo().await;
    let mut client = stage.connect().await;
    let two = Reply::call("execute_trade", trade("VNM")).and_call("execute_trade", trade("FPT"));
    held(&stage, &mut client, "trader", "s", two).await;
    stage.model.push(Reply::text("Xong."));
    let mut command = approve("s", 1, "c1");
    command["decisions"] = json!([{"type": "approve"}, {"type": "reject", "message": "Không"}]);
    command["user_edit_content"] = json!("Nhanh lên");
    let first = client.ask(&command, "approval_resolved").await;
    client.until(is("message_stop")).await;
    for (field, value) in [
        ("decisions", json!([{"type": "approve"}])),
        ("decisions", json!([{"type": "reject"}, {"type": "reject", "message": "Không"}])),
        ("decisions", json!([{"type": "approve"}, {"type": "reject", "message": "Thôi"}])),
        (
            "decisions",
            json!([{"type": "edit", "edited_action": {"name": "execute_trade", "args": trade("VNM")}},
            {"type": "reject", "message": "Không"}]),
        ),
        ("user_edit_content", json!("Chậm thôi")),
        ("user_edit_content", json!("")),
    ] {
        let mut other = command.clone();
        other[field] = value;
        is_refused(&stage, &mut client, &other).await;
    }
    assert_eq!(client.ask(&command, "approval_resolved").await, first);

    let questions = json!({"questions": [{"question": "Which?", "options": [{"label": "red"}, {"label": "blue"}]}]});
    held(&stage, &mut client, "asker", "q", Reply::call("ask_user_question", questions)).await;
    stage.model.push(Reply::text("Red."));
    let mut answer = json!({"type": "approval", "session_id": "q", "approval_key": "q_1", "request_id": "c2",
        "answers": {"Which?": "red"}});
    let first = client.ask(&answer, "approval_resolved").await;
    client.until(is("message_stop")).await;
    assert_eq!(client.ask(&answer, "approval_resolved").await, first);
    answer["answers"] = json!({"Which?": "blue"});
    is_refused(&stage, &mut client, &answer).await;
}

#[tokio::test]
async fn a_name_of_a_message_is_no_name_for_a_decision_and_the_other_way_round() {
    let mut stage = Stage::solo().await;
    let mut client = stage.connect().await;
    stage.model.push(Reply::call("execute_trade", trade("VNM")));
    let mut start = message("trader", "s", "Mua");
    start["request_id"] = json!("m1");
    client.send(&start).await;
    until_asked(&mut client).await;
    is_refused(&stage, &mut client, &approve("s", 1, "m1")).await;
    is_refused(&stage, &mut client, &json!({"type": "cancel", "session_id": "s", "request_id": "m1"})).await;
    stage.model.push(Reply::text("Xong."));
    client.ask(&approve("s", 1, "d1"), "approval_resolved").await;
    client.until(is("message_stop")).await;
    let mut more = message("trader", "s", "Bán");
    more["request_id"] = json!("d1");
    is_refused(&stage, &mut client, &more).await;
    stage.kill_and_start().await;
    let mut again = stage.connect().await;
    is_refused(&stage, &mut again, &more).await;
    is_refused(&stage, &mut again, &json!({"type": "cancel", "session_id": "s", "request_id": "m1"})).await;
}

#[tokio::test]
async fn an_approval_among_several_keeps_its_name_while_others_are_missing() {
    let stage = Stage::with_keys().await;
    let mut owner = stage.connect_by("agnes").await;
    stage.model.push(Reply::call("transfer", json!({"amount": 5})));
    owner.send(&message("treasurer", "s", "Send 5")).await;
    until_asked(&mut owner).await;
    let mut ana = stage.connect_by("ana").await;
    let vote = approve("s", 1, "v1");
    let voted = ana.ask(&vote, "approval_voted").await;
    assert_eq!((&voted["type"], &voted["approvals_missing"]), (&json!("approval_voted"), &json!(1)), "{voted}");
    let mut reject = vote.clone();
    reject["decisions"] = json!([{"type": "reject"}]);
    let before = stage.everything().await;
    assert_eq!(ana.ask(&reject, "approval_resolved").await["error"]["code"], "bad_command");
    assert_eq!(stage.everything().await, before);
    assert_eq!(ana.ask(&vote, "approval_voted").await, voted);
    // The same name is somebody else's own.
    stage.model.push(Reply::text("Sent."));
    stage.connect_by("ben").await.send(&vote).await;
    owner.until(is("message_stop")).await;
    assert_eq!(stage.tools.calls().len(), 1);
    // What it came to then is its answer for ever.
    assert_eq!(ana.ask(&vote, "approval_voted").await, voted);
    assert!(voted["message_id"].is_string(), "{voted}");
}

#[tokio::test]
async fn what_contradicts_a_decision_of_another_door_is_another_command() {
    let stage = Stage::solo().await;
    let mut client = stage.connect().await;
    let two = Reply::call("execute_trade", trade("VNM")).and_call("execute_trade", trade("FPT"));
    held(&stage, &mut client, "trader", "s", two).await;
    let open = stage.get("/api/v1/pauses").await.json();
    let vnm = open["pauses"].as_array().unwrap().iter().find(|pause| pause["args"]["symbol"] == "VNM").unwrap();
    let path = format!("/api/v1/pauses/{}/decide", vnm["id"].as_str().unwrap());
    assert_eq!(stage.post(&path, &json!({"decision": "deny"})).await.status, 200);
    stage.model.push(Reply::text("Xong."));
    let mut command = approve("s", 1, "c1");
    command["decisions"] = json!([{"type": "reject"}, {"type": "approve"}]);
    let first = client.ask(&command, "approval_resolved").await;
    assert_eq!(first["type"], "approval_resolved", "{first}");
    client.until(is("message_stop")).await;
    let mut other = command.clone();
    other["decisions"] = json!([{"type": "approve"}, {"type": "approve"}]);
    is_refused(&stage, &mut client, &other).await;
    assert_eq!(client.ask(&command, "approval_resolved").await, first);
}

#[tokio::test]
async fn a_cancel_under_its_name_ends_what_it_ended_and_nothing_else_also_after_a_death() {
    let mut stage = Stage::solo().await;
    let mut client = stage.connect().await;
    held(&stage, &mut client, "trader", "s", Reply::call("execute_trade", trade("VNM"))).await;
    let cancel = json!({"type": "cancel", "session_id": "s", "request_id": "x1"});
    let first = client.ask(&cancel, "message_stop").await;
    assert_eq!((&first["stop_reason"], &first["request_id"]), (&json!("cancelled"), &json!("x1")), "{first}");
    held(&stage, &mut client, "trader", "s", Reply::call("execute_trade", trade("FPT"))).await;
    stage.kill_and_start().await;
    let mut again = stage.connect().await;
    let before = stage.everything().await;
    assert_eq!(again.ask(&cancel, "message_stop").await, first);
    assert_eq!(stage.command("s", &cancel).await.json(), first);
    is_refused(&stage, &mut again, &approve("s", 2, "x1")).await;
    assert_eq!(stage.everything().await, before, "the run that waits now was not meant");
}
