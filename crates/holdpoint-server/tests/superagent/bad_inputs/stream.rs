//! Bad messages.

use holdpoint_server::limits::Limits;
use holdpoint_testkit::model_server::{Answer as Reply, Gate};
use serde_json::json;

use super::{STREAM, check_bodies, check_error, hold, is_alive, row};
use crate::world::{Answer, Reading, World, saying};

#[tokio::test]
async fn bad_bodies_of_stream_are_refused() {
    let world = World::start().await;
    let with_session = |session: &str| saying("approval-agent", session, "hi").to_string();
    let session_rule = "session_id must be 1 to 128 of A-Z a-z 0-9 . _ : -";
    let mut rows = vec![
        row(1, "", 400, "empty_body", "send a JSON object with agent_id, session_id, message"),
        row(1, " \n", 400, "empty_body", "empty"),
        row(2, "{", 400, "invalid_json", "line 1, column 2"),
        row(2, "not json", 400, "invalid_json", "line 1, column 1"),
        row(2, r#"{"message":"a"} trailing"#, 400, "invalid_json", "line 1"),
        row(2, b"\xef\xbb\xbf{\"message\":\"a\"}".to_vec(), 400, "invalid_json", "line 1, column 1"),
        row(2, r#"{"message":NaN}"#, 400, "invalid_json", "line 1"),
        row(2, r#"{"message":"a","message":"b"}"#, 400, "invalid_json", "twice"),
        row(2, r#"{"message":"a",}"#, 400, "invalid_json", "line 1"),
        row(2, "[".repeat(100_000), 400, "invalid_json", "deeper"),
        row(2, "null", 400, "invalid_type", "a JSON object"),
        row(2, "[]", 400, "invalid_type", "a JSON object"),
        row(4, r#"{"session_id":"s","message":"hi"}"#, 400, "missing_field", "agent_id is required"),
        row(4, r#"{"agent_id":"","session_id":"s","message":"hi"}"#, 400, "missing_field", "agent_id is required"),
        row(6, saying("nobody", "s", "hi").to_string(), 404, "agent_not_found", "\"nobody\""),
        row(6, saying("../etc\u{202e}", "s", "hi").to_string(), 404, "agent_not_found", "⟦U+202E⟧"),
        row(6, saying(&"x".repeat(10_000), "s", "hi").to_string(), 404, "agent_not_found", "xxxx"),
        row(8, r#"{"agent_id":5,"session_id":"s","message":"hi"}"#, 400, "invalid_type", "agent_id must be a string"),
        row(8, r#"{"agent_id":{},"session_id":"s","message":"hi"}"#, 400, "invalid_type", "agent_id must be a string"),
        row(8, r#"{"agent_id":"a","session_id":5,"message":"hi"}"#, 400, "invalid_type", "session_id must be a string"),
        row(
            8,
            r#"{"agent_id":"a","session_id":"s","message":["hi"]}"#,
            400,
            "invalid_type",
            "message must be a string",
        ),
        row(9, r#"{"agent_id":"approval-agent","session_id":"s"}"#, 400, "missing_field", "message is required"),
        row(9, r#"{"agent_id":"approval-agent","message":null}"#, 400, "missing_field", "message is required"),
        row(9, r#"{"agent_id":"approval-agent","message":""}"#, 400, "empty_message", "message must not be empty"),
        row(
            9,
            r#"{"agent_id":"approval-agent","message":" \n\t "}"#,
            400,
            "empty_message",
            "message must not be empty",
        ),
        row(10, saying("approval-agent", "s", &"x".repeat(2 << 20)).to_string(), 413, "payload_too_large", "262144"),
        row(11, r#"{"agent_id":"approval-agent","message":"\ud83d"}"#, 400, "invalid_json", "surrogate"),
        row(11, b"{\"agent_id\":\"approval-agent\",\"message\":\"\xff\"}".to_vec(), 400, "invalid_json", "UTF-8"),
        row(12, r#"{"message":"hi","auto_approve":true}"#, 400, "unknown_field", "\"auto_approve\""),
        row(12, r#"{"message":"hi","review_configs":[]}"#, 400, "unknown_field", "\"review_configs\""),
    ];
    for session in ["", "a/b", "a b", "a\r\nb", "a\0b", "..", "x/../y", "日本", &"x".repeat(129)] {
        rows.push(row(7, with_session(session), 400, "invalid_session_id", session_rule));
    }
    check_bodies(&world, STREAM, rows).await;
    is_alive(&world).await;
}

#[tokio::test]
async fn a_missing_session_means_the_default_one() {
    // Row 5: the protocol has a default where others would refuse.
    let world = World::start().await;
    world.model.push(Reply::text("Please confirm."));
    let answer = world.post(STREAM, json!({"agent_id": "approval-agent", "message": "hi"})).await;
    assert_eq!(answer.interrupt()["session_id"], json!("default"));
    assert_eq!(world.state("approval-agent", "default").await["interrupted"], json!(true));
}

#[tokio::test]
async fn a_session_that_waits_or_is_under_way_takes_no_message() {
    let world = World::start().await;
    hold(&world, "approval-agent", "held").await;
    let gate = Gate::closed();
    world.model.push(Reply::tokens(["One"]).and_gate(&gate));
    let request = world.request("POST", STREAM).json(&saying("approval-agent", "moving", "go"));
    let mut reading = Reading::begin(request).await;
    assert_eq!(reading.next().await.unwrap(), "One");
    let rows = vec![
        row(13, saying("approval-agent", "held", "hi").to_string(), 409, "interrupt_pending", "held_1"),
        row(14, saying("approval-agent", "moving", "hi").to_string(), 409, "run_in_progress", "run_"),
    ];
    check_bodies(&world, STREAM, rows).await;
    gate.open();
}

#[tokio::test]
async fn more_streams_than_one_caller_may_hold_are_refused_and_told_when_to_come_back() {
    let limits = Limits { streams_per_caller: 2, ..Limits::default() };
    let world = World::start_with(None, limits).await;
    let gate = Gate::closed();
    world.model.script({
        let gate = gate.clone();
        move |_| Reply::tokens(["One"]).and_gate(&gate)
    });
    let begin = |session: &str| world.request("POST", STREAM).json(&saying("plain-agent", session, "go"));
    let mut open = vec![Reading::begin(begin("one")).await, Reading::begin(begin("two")).await];
    let before = world.everything().await;
    let answer = Answer::to(begin("three")).await;
    check_error(&answer, 429, "too_many_streams", "2", "row 19");
    assert!(answer.header("retry-after").is_some());
    assert_eq!(world.everything().await, before, "nothing was started");
    gate.open();
    for reading in &mut open {
        while reading.next().await.is_some() {}
    }
    drop(open);
    is_alive_with_script(&world).await;
}

async fn is_alive_with_script(world: &World) {
    let answer = world.say("plain-agent", "alive", "are you?").await;
    assert_eq!(answer.said(), "One");
}
