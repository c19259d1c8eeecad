//! The same request under the same key is one request.

use serde_json::{Value, json};

use crate::world::{Answer, Reading, World, first_pause, text};

async fn start(world: &World, who: &str, key: &str, body: Value) -> Answer {
    let request = world.request_by(who, "POST", "/api/v1/runs?wait=30").header("idempotency-key", key);
    Answer::to(request.json(&body)).await
}

async fn decide(world: &World, who: &str, key: &str, pause: &str, body: Value) -> Answer {
    let request = world.request_by(who, "POST", &format!("/api/v1/pauses/{pause}/decide?wait=30"));
    Answer::to(request.header("idempotency-key", key).json(&body)).await
}

#[tokio::test]
async fn a_start_that_is_sent_again_starts_nothing_new() {
    let world = World::with_keys().await;
    let body = json!({"agent_id": "mailer", "input": "ana"});
    let first = start(&world, "agnes", "k-1", body.clone()).await.expect(201);
    let again = start(&world, "agnes", "k-1", body.clone()).await.expect(200);
    assert_eq!(first, again);
    let others = start(&world, "otto", "k-1", body.clone()).await.expect(201);
    assert_ne!(others["run_id"], first["run_id"]);
    let another = start(&world, "agnes", "k-2", body).await.expect(201);
    assert_ne!(another["run_id"], first["run_id"]);
}

#[tokio::test]
async fn a_key_stands_for_one_request_only() {
    let world = World::with_keys().await;
    start(&world, "agnes", "k-1", json!({"agent_id": "mailer", "input": "ana"})).await.expect(201);
    for other in [
        json!({"agent_id": "mailer", "input": "eve"}),
        json!({"agent_id": "talker", "input": "ana"}),
        json!({"agent_id": "mailer", "input": "ana", "session_id": "s-1"}),
    ] {
        start(&world, "agnes", "k-1", other).await.refuses(422, "idempotency_key_reused");
    }
}

#[tokio::test]
async fn a_start_that_is_sent_many_times_at_once_starts_one_run() {
    let world = World::with_keys().await;
    let sending = (0..16).map(|_| start(&world, "agnes", "k-1", json!({"agent_id": "mailer", "input": "ana"})));
    let answers = futures_util::future::join_all(sending).await;
    let first = answers[0].json()["run_id"].clone();
    for answer in answers {
        assert!([200, 201].contains(&answer.status), "{}", answer.body);
        assert_eq!(answer.json()["run_id"], first);
    }
    let listed = world.get_by("adam", "/api/v1/runs").await.expect(200);
    assert_eq!(listed["runs"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn of_different_requests_under_one_key_at_once_only_one_is_taken() {
    let world = World::with_keys().await;
    let sending = (0..16)
        .map(|number| start(&world, "agnes", "k-1", json!({"agent_id": "mailer", "input": format!("n{number}")})));
    let answers = futures_util::future::join_all(sending).await;
    let taken: Vec<&Answer> = answers.iter().filter(|answer| answer.status == 201).collect();
    assert_eq!(taken.len(), 1);
    for other in answers.iter().filter(|answer| answer.status != 201) {
        other.refuses(422, "idempotency_key_reused");
    }
}

#[tokio::test]
async fn a_decision_that_is_sent_again_gets_the_first_answer_again() {
    let world = World::with_keys().await;
    let pause = first_pause(&start(&world, "agnes", "k-1", json!({"agent_id": "mailer", "input": "eve"})).await.json());
    let approve = json!({"decision": "approve"});
    let first = decide(&world, "ana", "d-1", &pause, approve.clone()).await.expect(200);
    let again = decide(&world, "ana", "d-1", &pause, approve.clone()).await.expect(200);
    assert_eq!(first, again);
    decide(&world, "ana", "d-2", &pause, approve.clone()).await.refuses(409, "already_decided");
    decide(&world, "ben", "d-1", &pause, approve).await.refuses(409, "already_decided");
    decide(&world, "ana", "d-1", &pause, json!({"decision": "deny"})).await.refuses(422, "idempotency_key_reused");
    assert_eq!(world.effects.sent().len(), 1);
}

#[tokio::test]
async fn a_key_that_is_none_is_refused() {
    let world = World::solo().await;
    for bad in ["", " ", &"x".repeat(256)] {
        let request = world.request("POST", "/api/v1/runs").header("idempotency-key", bad);
        let answer = Answer::to(request.json(&json!({"agent_id": "talker", "input": "x"}))).await;
        answer.refuses(400, "invalid_header");
    }
}

#[tokio::test]
async fn a_stream_that_was_lost_is_had_again_whole_under_the_same_key() {
    let world = World::with_keys().await;
    let ask = || {
        let request = world.request_by("agnes", "POST", "/api/v1/runs").header("idempotency-key", "k-1");
        request.json(&json!({"agent_id": "mailer", "input": "eve"}))
    };
    let stored = |frames: Vec<crate::world::Frame>| -> Vec<crate::world::Frame> {
        frames.into_iter().filter(|frame| frame.event != "delta").collect()
    };
    let first = stored(Reading::begin(ask()).await.rest().await);
    let again = stored(Reading::begin(ask()).await.rest().await);
    assert_eq!(first, again);
    let last = again.last().unwrap();
    assert_eq!((last.event.as_str(), text(&last.data, "status")), ("run.stopped", "paused"));
}
