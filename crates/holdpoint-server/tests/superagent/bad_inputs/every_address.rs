//! What no address takes: other types, methods and formats, foreign pages, and a store that is down.

use std::sync::Arc;

use holdpoint_core::time::Timestamp;
use holdpoint_testkit::clock::TestClock;
use holdpoint_testkit::power_loss::PowerLoss;
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use serde_json::json;

use super::{RESUME, STATE, STREAM, check_error, hold, is_alive};
use crate::world::{Answer, BEGINNING, World, saying};

#[tokio::test]
async fn other_types_methods_and_formats_are_refused() {
    let world = World::start().await;
    let body = saying("approval-agent", "s", "hi").to_string();
    for path in [STREAM, RESUME, "/api/v1/chat/abort", "/api/v2/chat/stream"] {
        // Row 3 (and row 19 of resume).
        for kind in [Some("text/plain"), Some("application/x-www-form-urlencoded"), Some("multipart/form-data"), None] {
            let request = world.request("POST", path).body(body.clone());
            let request = kind.into_iter().fold(request, |request, kind| request.header(CONTENT_TYPE, kind));
            let answer = Answer::to(request).await;
            check_error(&answer, 415, "unsupported_media_type", "application/json", &format!("{path} {kind:?}"));
        }
        // Row 18.
        for method in ["GET", "PUT", "DELETE", "PATCH"] {
            let answer = Answer::to(world.request(method, path)).await;
            check_error(&answer, 405, "method_not_allowed", "POST", &format!("{method} {path}"));
            assert_eq!(answer.header("allow"), Some("POST"), "{method} {path}");
        }
    }
    for path in [STREAM, RESUME] {
        let request = world.request("POST", path).header(ACCEPT, "image/png").header(CONTENT_TYPE, "application/json");
        let answer = Answer::to(request.body(body.clone())).await;
        check_error(&answer, 406, "not_acceptable", "text/event-stream", path);
    }
    // Row 16 of interrupt_state.
    for method in ["POST", "DELETE"] {
        let answer = Answer::to(world.request(method, STATE)).await;
        check_error(&answer, 405, "method_not_allowed", "GET", method);
        assert_eq!(answer.header("allow"), Some("GET,HEAD"), "{method}");
    }
    is_alive(&world).await;
}

#[tokio::test]
async fn requests_meant_for_others_or_sent_by_foreign_pages_are_refused() {
    let world = World::start().await;
    let before = world.everything().await;
    let body = saying("approval-agent", "s", "hi");
    for (header, value, status, code) in [
        ("host", "evil.example", 421, "bad_host"),
        ("origin", "https://evil.example", 403, "bad_origin"),
        ("origin", "null", 403, "bad_origin"),
        ("sec-fetch-site", "cross-site", 403, "bad_origin"),
    ] {
        for (method, path) in [("POST", STREAM), ("POST", RESUME), ("GET", STATE), ("GET", "/api/v2/agents")] {
            let answer = Answer::to(world.request(method, path).header(header, value).json(&body)).await;
            check_error(&answer, status, code, "", &format!("{method} {path} {header}: {value}"));
        }
    }
    assert_eq!(world.everything().await, before);
    is_alive(&world).await;
}

#[tokio::test]
async fn a_store_that_is_down_is_told_and_nothing_is_guessed() {
    let clock = TestClock::at(Timestamp::from_millis(BEGINNING));
    let store = Arc::new(PowerLoss::new(clock.shared()));
    let world = World::start_over_store(store.clone()).await;
    hold(&world, "approval-agent", "s").await;
    let asked = world.model.requests().len();
    // From here on the store answers nothing.
    store.restart();
    let body = json!({"agent_id": "approval-agent", "session_id": "s", "input": {"confirm": true}});
    for (row, answer) in [
        ("stream, row 20", world.say("approval-agent", "other", "hi").await),
        ("resume", world.post(RESUME, body).await),
        ("state, row 20", world.get(&format!("{STATE}?agent_id=approval-agent&session_id=s")).await),
    ] {
        check_error(&answer, 503, "store_unavailable", "", row);
        assert!(answer.header("retry-after").is_some(), "{row}");
    }
    assert_eq!(world.model.requests().len(), asked, "nothing was started");
}
