//! Badly filled-in forms.

use std::time::Duration;

use holdpoint_testkit::model_server::Answer as Reply;
use serde_json::{Value, json};

use super::{RESUME, check_bodies, check_error, hold, is_alive, row};
use crate::world::World;

#[tokio::test]
async fn bad_bodies_of_resume_are_refused_and_the_pause_stays_as_it_was() {
    let world = World::start().await;
    hold(&world, "form-agent", "s").await;
    let with = |input: Value| json!({"agent_id": "form-agent", "session_id": "s", "input": input}).to_string();
    let boolean = "input.confirm must be true or false (a JSON boolean)";
    let mut rows = vec![
        row(1, "", 400, "empty_body", "agent_id, session_id, input"),
        row(1, "{\"input\":", 400, "invalid_json", "line 1"),
        row(1, r#"{"input":{"confirm":false,"confirm":true}}"#, 400, "invalid_json", "twice"),
        row(2, r#"{"session_id":"s","input":{"confirm":true}}"#, 400, "missing_field", "agent_id is required"),
        row(2, r#"{"agent_id":"form-agent","input":{}}"#, 400, "missing_field", "session_id is required"),
        row(2, r#"{"input":{"confirm":true}}"#, 400, "missing_field", "agent_id and session_id are required"),
        row(3, r#"{"agent_id":"nobody","session_id":"s","input":{}}"#, 404, "agent_not_found", "\"nobody\""),
        row(
            4,
            r#"{"agent_id":"plain-agent","session_id":"s","input":{"confirm":true}}"#,
            404,
            "interrupt_not_supported",
            "no interrupt section",
        ),
        row(
            5,
            r#"{"agent_id":"form-agent","session_id":"other","input":{"confirm":true}}"#,
            409,
            "no_pending_interrupt",
            "nothing waits",
        ),
        row(9, r#"{"agent_id":"form-agent","session_id":"s"}"#, 400, "missing_field", "input is required"),
        row(11, with(json!({})), 400, "missing_input", "input.confirm is required (confirm)"),
        row(11, with(json!({"confirm": null})), 400, "missing_input", "input.confirm is required (confirm)"),
        row(
            13,
            with(json!({"confirm": true, "force": true})),
            400,
            "unknown_input",
            "\"force\" is not asked for; fields: confirm, region, comment",
        ),
        row(
            13,
            r#"{"agent_id":"form-agent","session_id":"s","input":{"confirm":true},"auto":1}"#,
            400,
            "unknown_field",
            "\"auto\"",
        ),
        row(
            14,
            with(json!({"confirm": true, "region": "mars"})),
            400,
            "invalid_option",
            "input.region must be one of: eu, us",
        ),
        row(14, with(json!({"confirm": true, "region": 1})), 400, "invalid_input", "input.region must be a string"),
        row(15, with(json!({"confirm": true, "comment": "x".repeat(20_000)})), 400, "too_long", "16384"),
        row(15, with(json!({"confirm": true, "comment": "a\0b"})), 400, "control_character", "input.comment"),
        row(15, with(json!({"confirm": true, "comment": "x".repeat(300_000)})), 413, "payload_too_large", "262144"),
        row(
            16,
            r#"{"agent_id":"approval-agent","session_id":"s","input":{"confirm":true}}"#,
            409,
            "no_pending_interrupt",
            "nothing waits",
        ),
    ];
    for input in ["true", "\"yes\"", "[]", "null", "1"] {
        let body = format!(r#"{{"agent_id":"form-agent","session_id":"s","input":{input}}}"#);
        rows.push(row(10, body, 400, "invalid_type", "input must be an object"));
    }
    for confirm in [json!("true"), json!(1), json!("yes"), json!([]), json!({})] {
        rows.push(row(12, with(json!({"confirm": confirm})), 400, "invalid_input", boolean));
    }
    check_bodies(&world, RESUME, rows).await;
    assert_eq!(world.state("form-agent", "s").await["interrupted"], json!(true));
    assert_eq!(world.model.requests().len(), 1, "the model was not asked again");
    is_alive(&world).await;
}

#[tokio::test]
async fn what_was_settled_says_how() {
    let world = World::start().await;
    // Row 5: never; row 6: resumed before; row 7: expired.
    let resume = |session: &'static str| world.resume("approval-agent", session, json!({"confirm": true}));
    assert_eq!(resume("never").await.json()["reason"], json!("none"));
    hold(&world, "approval-agent", "resumed").await;
    world.model.push(Reply::text("Done."));
    resume("resumed").await.frames();
    let again = resume("resumed").await;
    check_error(&again, 409, "no_pending_interrupt", "2025-04-30T08:00:00", "row 6");
    assert_eq!(again.json()["reason"], json!("already_resumed"));
    hold(&world, "approval-agent", "expired").await;
    world.clock.advance(Duration::from_secs(300));
    let late = resume("expired").await;
    check_error(&late, 409, "no_pending_interrupt", "2025-04-30T08:05:00", "row 7");
    assert_eq!(late.json()["reason"], json!("expired"));
}
