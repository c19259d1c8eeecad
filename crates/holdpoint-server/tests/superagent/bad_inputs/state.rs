//! Bad questions about what a session waits for.

use std::time::Duration;

use holdpoint_server::limits::Limits;
use holdpoint_testkit::model_server::Answer as Reply;
use serde_json::json;

use super::{STATE, check_error, hold, is_alive, raw_get};
use crate::world::{Answer, World};

#[tokio::test]
async fn bad_questions_about_the_state_are_refused() {
    let world = World::start().await;
    hold(&world, "approval-agent", "s").await;
    let before = world.everything().await;
    let long = format!("agent_id=approval-agent&session_id={}", "x".repeat(10_000));
    for (number, query, status, code) in [
        (1, "", 400, "missing_field"),
        (2, "?session_id=s", 400, "missing_field"),
        (3, "?agent_id=approval-agent", 400, "missing_field"),
        (4, "?agent_id=&session_id=", 400, "missing_field"),
        (4, "?agent_id=approval-agent&session_id=", 400, "invalid_session_id"),
        (5, "?agent_id=approval-agent&session_id=a&session_id=b", 400, "duplicate_parameter"),
        (6, "?agent_id=approval-agent&session_id=%ZZ", 400, "invalid_encoding"),
        (6, "?agent_id=%C3%28&session_id=s", 400, "invalid_encoding"),
        (7, "?agent_id=approval-agent&session_id=a%00", 400, "invalid_session_id"),
        (7, "?agent_id=approval-agent&session_id=a%0d%0aX-Evil:1", 400, "invalid_session_id"),
        (8, &format!("?{long}"), 414, "uri_too_long"),
        (9, "?agent_id=approval-agent&session_id=s&debug=1", 400, "unknown_parameter"),
        (10, "?agent_id=nobody&session_id=s", 404, "agent_not_found"),
    ] {
        // Sent as it is: a client of a library would mend some of it.
        let answer = raw_get(&world, &format!("{STATE}{query}")).await;
        check_error(&answer, status, code, "", &format!("row {number}: {}", &query[..query.len().min(80)]));
    }
    assert_eq!(world.everything().await, before);
    is_alive(&world).await;
}

#[tokio::test]
async fn what_does_not_wait_looks_the_same_whether_it_exists_or_not() {
    let world = World::start().await;
    // Rows 11 to 13 and 15.
    world.model.push(Reply::text("Hi."));
    world.say("approval-agent", "known", "hi").await.frames();
    hold(&world, "approval-agent", "expired").await;
    world.clock.advance(Duration::from_secs(301));
    let mut answers = Vec::new();
    for (agent, session) in [
        ("plain-agent", "s"),
        ("approval-agent", "known"),
        ("approval-agent", "unknown"),
        ("approval-agent", "expired"),
    ] {
        let answer = world.get(&format!("{STATE}?agent_id={agent}&session_id={session}")).await;
        assert_eq!((answer.status, answer.body.as_str()), (200, r#"{"interrupted":false}"#), "{agent} {session}");
        assert_eq!(answer.header("cache-control"), Some("no-store"));
        answers.push(answer);
    }
    // Row 18.
    let request = world.request("GET", &format!("{STATE}?agent_id=approval-agent&session_id=s"));
    let answer = Answer::to(request.header("if-none-match", "W/\"garbage, *")).await;
    assert_eq!((answer.status, answer.json()), (200, json!({"interrupted": false})));
    // HEAD is GET without the body.
    let request = world.request("HEAD", &format!("{STATE}?agent_id=approval-agent&session_id=s"));
    assert_eq!(Answer::to(request).await.status, 200);
}

#[tokio::test]
async fn a_question_of_a_hundred_kilobytes_is_too_long() {
    let world = World::start().await;
    let answer = raw_get(&world, &format!("{STATE}?session_id={}", "x".repeat(100_000))).await;
    assert!(matches!(answer.status, 414 | 431), "{}", answer.status);
    is_alive(&world).await;
}

#[tokio::test]
async fn polling_too_fast_is_slowed_down() {
    let limits = Limits { requests_per_second: 1, requests_burst: 5, ..Limits::default() };
    let world = World::start_with(None, limits).await;
    let mut last = None;
    for _ in 0..50 {
        let answer = world.get(&format!("{STATE}?agent_id=approval-agent&session_id=s")).await;
        if answer.status != 200 {
            last = Some(answer);
            break;
        }
    }
    let answer = last.expect("a limit that is reached");
    check_error(&answer, 429, "rate_limited", "", "row 19");
    assert!(answer.header("retry-after").is_some());
}
