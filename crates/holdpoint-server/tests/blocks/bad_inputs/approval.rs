//! Bad decisions.

use std::time::Duration;

use holdpoint_server::limits::Limits;
use holdpoint_testkit::model_server::Answer as Reply;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use super::{check_error, check_rows, row};
use crate::agents::key;
use crate::client::{Client, is, until_asked};
use crate::stage::{Answer, Setup, Stage, commands_path, message};

fn trade(symbol: &str) -> Value {
    json!({"symbol": symbol, "quantity": 100})
}

/// A session of the trader that waits with two trades.
async fn hold_two(stage: &Stage, client: &mut Client, session: &str) -> Value {
    let reply = Reply::empty().and_call_as("one", "execute_trade", trade("VNM").to_string());
    stage.model.push(reply.and_call_as("two", "execute_trade", trade("FPT").to_string()));
    client.send(&message("trader", session, "Mua")).await;
    let told = until_asked(client).await;
    let start = told.iter().rev().find(|event| event["type"] == "content_block_start");
    start.unwrap()["content_block"].clone()
}

fn decide(decisions: Value) -> Value {
    json!({"type": "approval", "session_id": "s", "approval_key": "s_1", "decisions": decisions})
}

/// Decisions, the first of which edits the first action in this way.
fn edit(edited: Value) -> Value {
    decide(json!([{"type": "edit", "edited_action": edited}, {"type": "approve"}]))
}

/// An edit with this price, digit for digit.
fn price(number: &str) -> String {
    let args = json!({"symbol": "VNM", "quantity": 5, "price": "here"});
    edit(json!({"name": "execute_trade", "args": args})).to_string().replace("\"here\"", number)
}

fn with(name: &str, value: Value) -> Value {
    let mut command = decide(json!([{"type": "approve"}]));
    command[name] = value;
    command
}

fn without(name: &str) -> Value {
    let mut command = decide(json!([{"type": "approve"}]));
    command.as_object_mut().unwrap().remove(name);
    command
}

#[tokio::test]
async fn bad_decisions_are_refused_and_the_pause_is_untouched() {
    let stage = Stage::solo().await;
    let mut client = stage.connect().await;
    hold_two(&stage, &mut client, "s").await;
    let approve = json!({"type": "approve"});
    let trade = json!({"name": "execute_trade", "args": trade("VNM")});
    let args = |args: Value| edit(json!({"name": "execute_trade", "args": args}));
    let rows = vec![
        row(1, "approve please", "bad_json", "column 1"),
        row(1, "", "bad_json", ""),
        row(1, "{\"type\":\"approval\",}", "bad_json", ""),
        row(2, json!([decide(json!([approve]))]), "bad_command", "object"),
        row(2, "\"approve\"", "bad_command", "object"),
        row(2, "null", "bad_command", "object"),
        row(3, with("type", json!("aproval")), "bad_command", "aproval"),
        row(3, without("type"), "bad_command", "type"),
        row(3, with("type", json!(5)), "bad_command", "type"),
        row(4, without("approval_key"), "bad_command", "approval_key"),
        row(4, with("approval_key", json!(1)), "bad_command", "approval_key"),
        row(5, with("approval_key", json!("s_2")), "unknown_approval_key", ""),
        row(5, with("approval_key", json!("s_1 ")), "unknown_approval_key", ""),
        row(5, with("approval_key", json!("s_01")), "unknown_approval_key", ""),
        row(5, with("approval_key", json!("x".repeat(10_000))), "unknown_approval_key", ""),
        row(7, without("decisions"), "bad_decisions", "decisions"),
        row(7, with("decisions", Value::Null), "bad_decisions", "decisions"),
        row(8, with("answers", json!({"Q": "A"})), "bad_command", "either"),
        row(9, decide(json!([])), "bad_decisions", "decisions"),
        row(9, decide(json!({"type": "approve"})), "bad_decisions", "decisions"),
        row(10, decide(json!([approve, approve, approve])), "bad_decisions", "2"),
        row(12, decide(json!([{"type": "APPROVE"}])), "bad_decisions", "approve, reject, edit"),
        row(12, decide(json!([{"type": "yes"}])), "bad_decisions", "approve, reject, edit"),
        row(12, decide(json!([{"type": true}])), "bad_decisions", "type"),
        row(12, decide(json!(["approve"])), "bad_decisions", "decisions[0]"),
        row(12, decide(json!([approve, {}])), "bad_decisions", "decisions[1]"),
        row(12, decide(json!([approve, null])), "bad_decisions", "decisions[1]"),
        row(12, decide(json!([{"type": "run_again"}])), "bad_decisions", "allowed: approve"),
        row(12, decide(json!([{"type": "respond", "message": "done"}])), "bad_decisions", "allowed: approve"),
        row(12, decide(json!([{"type": "happened", "message": "done"}])), "bad_decisions", "allowed: approve"),
        row(14, decide(json!([{"type": "edit"}, approve])), "bad_decisions", "edited_action"),
        row(14, decide(json!([{"type": "approve", "edited_action": trade}])), "bad_decisions", "edited_action"),
        row(14, decide(json!([{"type": "edit", "edited_action": trade}])), "bad_decisions", "edit"),
        row(15, edit(json!({"name": "get_quote", "args": {"symbol": "VNM"}})), "not_allowed", "execute_trade"),
        row(16, args(json!({"symbol": "VNM", "quantity": "fifty"})), "invalid_args", "quantity"),
        row(16, args(json!({"symbol": "VNM", "quantity": -5})), "invalid_args", "quantity"),
        row(16, args(json!({"symbol": "VNM", "quantity": 5, "fast": true})), "invalid_args", "fast"),
        row(16, args(json!({"quantity": 5})), "invalid_args", "symbol"),
        row(16, args(json!([1])), "invalid_args", ""),
        row(
            16,
            args(json!({})).to_string().replace("\"args\":{}", "\"args\":{\"symbol\":\"VNM\",\"quantity\":1e999999}"),
            "bad_json",
            "",
        ),
        // What the policy would not let run, and what a screen cannot show.
        row(16, args(json!({"symbol": "VNM", "quantity": 10_001})), "invalid_args", "at most 10000 at once"),
        row(16, args(json!({"symbol": "V\u{0}M", "quantity": 5})), "invalid_args", "U+0000"),
        // Numbers that a tool would not be given as they were sent, or that a page would have changed.
        row(25, price("9007199254740993"), "invalid_args", "9007199254740993"),
        row(25, price("-9007199254740992"), "invalid_args", "-9007199254740992"),
        row(25, price("18446744073709551615"), "invalid_args", "18446744073709551615"),
        row(25, price("18446744073709551616"), "invalid_args", "18446744073709551616"),
        row(25, price("-9223372036854775809"), "invalid_args", "-9223372036854775809"),
        row(25, price("1e400"), "invalid_args", "decisions[0].edited_action.args: 1e+400"),
        row(25, price("1e-400"), "invalid_args", "exactly"),
        row(25, price("0.1000000000000000055511151231257827"), "invalid_args", "exactly"),
        row(
            18,
            decide(json!([])).to_string().replace("[]", r#"[{"type":"reject","type":"approve"}]"#),
            "bad_json",
            "twice",
        ),
        row(18, r#"{"type":"approval","type":"ping"}"#, "bad_json", "twice"),
        row(19, "[".repeat(200), "bad_json", "deeper"),
        // Beside the twenty: a stale screen, a field that is misspelt, and words that are too many or hide something.
        row(21, decide(json!([{"type": "approve", "tool_use_id": "two"}])), "bad_decisions", "tool_use_id"),
        row(21, decide(json!([{"type": "approve", "args_sha256": "0".repeat(64)}])), "bad_decisions", ""),
        row(22, with("decision", json!("approve")), "bad_command", "decision"),
        row(22, decide(json!([{"type": "approve", "editedAction": trade}])), "bad_decisions", "editedAction"),
        row(23, with("user_edit_content", json!("x".repeat(20_000))), "too_large", "user_edit_content"),
        row(23, with("user_edit_content", json!(5)), "bad_command", "user_edit_content"),
        row(23, with("user_edit_content", json!("a\u{0}b")), "bad_command", "U+0000"),
        row(23, decide(json!([{"type": "reject", "message": "a\u{1b}[2J"}])), "bad_decisions", "U+001B"),
        row(24, with("request_id", json!("x".repeat(1_000))), "bad_command", "request_id"),
    ];
    check_rows(&stage, &mut client, "s", rows).await;
    // Over a socket nothing else says which session is meant.
    let told = client.ask(&without("session_id"), "approval_resolved").await;
    super::check_error(&told, "bad_command", "session_id", "4");
    assert_eq!(stage.tools.calls(), Vec::<String>::new());
    stage.model.push(Reply::text("Xong."));
    client.send(&decide(json!([approve, {"type": "reject"}]))).await;
    client.until(is("message_stop")).await;
    assert_eq!(stage.tools.calls().len(), 1, "the pause could still be decided");
}

#[tokio::test]
async fn a_key_of_another_session_is_not_known_there() {
    let stage = Stage::solo().await;
    let mut client = stage.connect().await;
    hold_two(&stage, &mut client, "s").await;
    hold_two(&stage, &mut client, "other").await;
    let crossed = json!({"type": "approval", "session_id": "other", "approval_key": "s_1",
        "decisions": [{"type": "approve"}]});
    check_rows(&stage, &mut client, "other", vec![row(6, crossed, "unknown_approval_key", "")]).await;
    let nowhere = json!({"type": "approval", "session_id": "nowhere", "approval_key": "nowhere_1",
        "decisions": [{"type": "approve"}]});
    check_rows(&stage, &mut client, "nowhere", vec![row(6, nowhere, "unknown_session", "")]).await;
    // The address and the body must name the same session.
    let answer = stage.command("other", &decide(json!([{"type": "approve"}]))).await;
    check_error(&answer.json(), "bad_command", "session_id", "row 6");
    assert_eq!(stage.tools.calls(), Vec::<String>::new());
}

#[tokio::test]
async fn fewer_decisions_than_actions_are_refused_where_each_wants_its_own() {
    let stage = Stage::solo().await;
    let mut client = stage.connect().await;
    let trade = |symbol: &str| json!({"symbol": symbol});
    stage.model.push(Reply::call("execute_trade", trade("VNM")).and_call("execute_trade", trade("FPT")));
    client.send(&message("strict-trader", "s", "Mua")).await;
    until_asked(&mut client).await;
    let rows = vec![row(11, decide(json!([{"type": "approve"}])), "bad_decisions", "one for each")];
    check_rows(&stage, &mut client, "s", rows).await;
    assert_eq!(stage.tools.calls(), Vec::<String>::new());
}

#[tokio::test]
async fn what_is_no_longer_open_says_how_it_ended() {
    let stage = Stage::solo().await;
    let mut client = stage.connect().await;
    hold_two(&stage, &mut client, "s").await;
    stage.model.push(Reply::text("Xong."));
    client.send(&decide(json!([{"type": "reject"}]))).await;
    client.until(is("message_stop")).await;
    for decision in ["approve", "reject"] {
        let rows = vec![row(17, decide(json!([{"type": decision}])), "already_decided", "")];
        check_rows(&stage, &mut client, "s", rows).await;
        let told = client.ask(&decide(json!([{"type": decision}])), "error").await;
        let details = &told["error"]["details"];
        assert_eq!(details["decided_by"], "local", "{told}");
        assert!(details["decided_at"].is_string() && details["outcome"].is_string(), "{told}");
    }
    hold_two(&stage, &mut client, "late").await;
    stage.model.push(Reply::text("Muộn."));
    stage.clock.advance(Duration::from_secs(300));
    client.until(is("message_stop")).await;
    let late = json!({"type": "approval", "session_id": "late", "approval_key": "late_1",
        "decisions": [{"type": "approve"}]});
    check_rows(&stage, &mut client, "late", vec![row(17, &late, "expired", "")]).await;
    let told = client.ask(&late, "error").await;
    assert_eq!(told["error"]["details"]["outcome"], "expired", "{told}");
    hold_two(&stage, &mut client, "gone").await;
    client.send(&json!({"type": "cancel", "session_id": "gone"})).await;
    let told = client.until(is("message_stop")).await;
    assert_eq!(told.last().unwrap()["stop_reason"], "cancelled");
    let gone = json!({"type": "approval", "session_id": "gone", "approval_key": "gone_1",
        "decisions": [{"type": "approve"}]});
    check_rows(&stage, &mut client, "gone", vec![row(17, gone, "already_decided", "withdrawn")]).await;
    assert_eq!(stage.tools.calls(), Vec::<String>::new());
}

#[tokio::test]
async fn who_may_not_decide_is_told_so_and_who_may_not_know_is_told_nothing() {
    let stage = Stage::with_keys().await;
    let mut owner = stage.connect_by("agnes").await;
    hold_two(&stage, &mut owner, "s").await;
    let before = stage.everything().await;
    let command = decide(json!([{"type": "approve"}]));
    for (who, code) in [("audrey", "not_allowed"), ("agnes", "not_allowed"), ("otto", "unknown_session")] {
        let mut client = stage.connect_by(who).await;
        check_error(&client.ask(&command, "error").await, code, "", who);
        let request = stage.request("POST", &commands_path("s")).bearer_auth(key(who)).json(&command);
        check_error(&Answer::to(request).await.json(), code, "", who);
    }
    assert_eq!(stage.everything().await, before);
    stage.model.push(Reply::text("Xong."));
    let mut ana = stage.connect_by("ana").await;
    ana.send(&command).await;
    let told = owner.until(is("message_stop")).await;
    let resolved = told.iter().find(|event| event["type"] == "approval_resolved").unwrap();
    assert_eq!((&resolved["decided_by"], resolved.get("request_id")), (&json!("ana"), None));
}

#[tokio::test]
async fn who_began_the_run_cannot_approve_it_where_two_are_wanted() {
    let setup = Setup { has_keys: true, requester_may_not_approve: true, ..Setup::default() };
    let stage = Stage::with(setup).await;
    let mut zoe = stage.connect_by("zoe").await;
    hold_two(&stage, &mut zoe, "s").await;
    let command = decide(json!([{"type": "approve"}]));
    let before = stage.everything().await;
    check_error(&zoe.ask(&command, "error").await, "not_allowed", "", "row 20");
    let request = stage.request("POST", &commands_path("s")).bearer_auth(key("zoe")).json(&command);
    check_error(&Answer::to(request).await.json(), "not_allowed", "", "row 20");
    assert_eq!(stage.everything().await, before);
    stage.model.push(Reply::text("Xong."));
    stage.connect_by("ana").await.send(&command).await;
    zoe.until(is("message_stop")).await;
    assert_eq!(stage.tools.calls().len(), 2);
}

#[tokio::test]
async fn commands_that_come_too_fast_are_refused_and_the_connection_lives() {
    let limits = Limits { requests_per_second: 1, requests_burst: 5, ..Limits::default() };
    let stage = Stage::with(Setup { limits: Some(limits), ..Setup::default() }).await;
    let mut client = stage.connect().await;
    hold_two(&stage, &mut client, "s").await;
    let before = stage.everything().await;
    let mut codes = Vec::new();
    for _ in 0..50 {
        let told = client.ask(&with("approval_key", json!("s_2")), "error").await;
        codes.push(told["error"]["code"].as_str().unwrap().to_owned());
    }
    assert!(codes.iter().all(|code| code == "unknown_approval_key" || code == "overloaded"), "{codes:?}");
    assert_eq!(codes[0], "unknown_approval_key");
    assert!(codes.iter().any(|code| code == "overloaded"), "row 20");
    assert_eq!(stage.everything().await, before);
    // The connection lives, and a ping is answered as soon as there is room for one.
    while client.ask(&json!({"type": "ping"}), "pong").await["type"] != "pong" {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test]
async fn pings_and_what_cannot_be_read_count_as_commands_do() {
    let limits = Limits { requests_per_second: 1, requests_burst: 5, ..Limits::default() };
    let stage = Stage::with(Setup { limits: Some(limits), ..Setup::default() }).await;
    let frames = [
        Message::text(json!({"type": "ping", "request_id": "p"}).to_string()),
        Message::text("approve please"),
        Message::binary(vec![1, 2, 3]),
    ];
    // Each connection is counted too.
    let mut clients = [stage.connect().await, stage.connect().await, stage.connect().await];
    for ((frame, name), client) in frames.into_iter().zip([Some("p"), None, None]).zip(&mut clients) {
        let mut told = Vec::new();
        for _ in 0..20 {
            client.send_frame(frame.clone()).await;
            told.push(client.next().await);
        }
        let refused: Vec<&Value> = told.iter().filter(|told| told["error"]["code"] == "overloaded").collect();
        assert!(refused.len() > 5, "{frame:?}: {told:?}");
        assert!(refused.iter().all(|told| told.get("request_id").and_then(Value::as_str) == name), "{refused:?}");
    }
}

#[tokio::test]
async fn pings_of_the_socket_itself_that_come_too_fast_end_the_connection() {
    let limits = Limits { requests_per_second: 1, requests_burst: 5, ..Limits::default() };
    let stage = Stage::with(Setup { limits: Some(limits), ..Setup::default() }).await;
    let mut client = stage.connect().await;
    for _ in 0..20 {
        client.send_frame(Message::Ping(Vec::new().into())).await;
    }
    let code = loop {
        if let Err(code) = client.try_next().await {
            break code;
        }
    };
    assert_eq!(code, Some(4013));
}

#[tokio::test]
async fn a_message_with_a_nul_is_refused() {
    let stage = Stage::solo().await;
    let mut client = stage.connect().await;
    for content in [json!("a\u{0}b"), json!([{"type": "text", "text": "a"}, {"type": "text", "text": "\u{0}"}])] {
        let told =
            client.ask(&json!({"type": "message", "agent_id": "trader", "content": content}), "message_start").await;
        assert_eq!(told["error"]["code"], "bad_command", "{told}");
        assert!(told["error"]["message"].as_str().unwrap().contains("U+0000"), "{told}");
    }
    assert_eq!(stage.model.requests().len(), 0);
}

#[tokio::test]
async fn who_has_not_said_who_they_are_may_not_say_much_else() {
    let stage = Stage::with_keys().await;
    let mut client = stage.connect().await;
    for _ in 0..40 {
        client.send(&json!({"type": "ping"})).await;
    }
    let mut pongs = 0;
    let code = loop {
        match client.try_next().await {
            Ok(event) => pongs += usize::from(event["type"] == "pong"),
            Err(code) => break code,
        }
    };
    assert_eq!(code, Some(4001));
    assert!((1..40).contains(&pongs), "{pongs}");
}

#[tokio::test]
async fn what_needs_two_people_cannot_be_edited_by_one_and_counts_each_once() {
    let stage = Stage::with_keys().await;
    let mut owner = stage.connect_by("agnes").await;
    stage.model.push(Reply::call("transfer", json!({"amount": 5})));
    owner.send(&message("treasurer", "s", "Send 5")).await;
    let told = until_asked(&mut owner).await;
    let request = &told.iter().rev().find(|event| event["type"] == "content_block_start").unwrap()["content_block"];
    assert_eq!(request["pause"]["approvals_needed"], 2, "{request}");
    let allowed = &request["pause"]["allowed_decisions"][0];
    assert!(!allowed.as_array().unwrap().contains(&json!("edit")), "{allowed}");
    let mut ana = stage.connect_by("ana").await;
    let edit = decide(json!([{"type": "edit", "edited_action": {"name": "transfer", "args": {"amount": 6}}}]));
    check_error(&ana.ask(&edit, "error").await, "not_allowed", "", "row 13");
    let approve = decide(json!([{"type": "approve"}]));
    let voted = ana.ask(&approve, "approval_voted").await;
    assert_eq!((&voted["type"], &voted["approvals_missing"]), (&json!("approval_voted"), &json!(1)), "{voted}");
    let again = ana.ask(&approve, "approval_voted").await;
    assert_eq!(again, voted, "one person counts once");
    assert_eq!(stage.tools.calls(), Vec::<String>::new());
    stage.model.push(Reply::text("Sent."));
    let mut ben = stage.connect_by("ben").await;
    ben.send(&approve).await;
    owner.until(is("message_stop")).await;
    assert_eq!(stage.tools.calls().len(), 1);
}
