//! Who may do what here: credentials, sessions of others, and calls that their requester may not approve.

use holdpoint_testkit::model_server::Answer as Reply;
use serde_json::{Value, json};

use crate::agents::credentials;
use crate::world::{Answer, World, saying};
use holdpoint_server::limits::Limits;

async fn post(world: &World, key: &str, path: &str, body: Value) -> Answer {
    Answer::to(world.request("POST", path).bearer_auth(key).json(&body)).await
}

async fn state(world: &World, key: &str, session: &str) -> Answer {
    let path = format!("/api/v1/chat/interrupt_state?agent_id=approval-agent&session_id={session}");
    Answer::to(world.request("GET", &path).bearer_auth(key)).await
}

fn resuming(session: &str) -> Value {
    json!({"agent_id": "approval-agent", "session_id": session, "input": {"confirm": true}})
}

#[tokio::test]
async fn without_a_credential_nothing_is_answered() {
    let (credentials, keys) = credentials();
    let world = World::start_with(Some(credentials), Limits::default()).await;
    let body = saying("approval-agent", "s", "hi");
    for (method, path) in [
        ("POST", "/api/v1/chat/stream"),
        ("POST", "/api/v2/chat/resume"),
        ("GET", "/api/v1/chat/interrupt_state?agent_id=approval-agent&session_id=s"),
        ("POST", "/api/v1/chat/abort"),
        ("GET", "/api/v2/agents"),
    ] {
        for key in [None, Some("hpk_revoked"), Some("garbage")] {
            let request = world.request(method, path).json(&body);
            let answer = Answer::to(key.into_iter().fold(request, |request, key| request.bearer_auth(key))).await;
            assert_eq!((answer.status, answer.code().as_str()), (401, "unauthenticated"), "{method} {path} {key:?}");
            assert!(answer.header("www-authenticate").is_some());
            assert!(answer.json()["error"].is_string());
        }
    }
    world.model.push(Reply::text("Hi."));
    assert_eq!(post(&world, &keys.ana, "/api/v1/chat/stream", body).await.said(), "Hi.");
}

#[tokio::test]
async fn a_session_of_somebody_else_is_not_there() {
    let (credentials, keys) = credentials();
    let world = World::start_with(Some(credentials), Limits::default()).await;
    world.model.push(Reply::text("Please confirm."));
    post(&world, &keys.ana, "/api/v1/chat/stream", saying("approval-agent", "anas", "go")).await.interrupt();
    let before = world.everything().await;
    for (path, body) in [
        ("/api/v1/chat/stream", saying("approval-agent", "anas", "hi")),
        ("/api/v1/chat/resume", resuming("anas")),
        ("/api/v1/chat/abort", json!({"agent_id": "approval-agent", "session_id": "anas"})),
    ] {
        let answer = post(&world, &keys.ben, path, body).await;
        assert_eq!((answer.status, answer.code().as_str()), (404, "session_not_found"), "{path}: {}", answer.body);
    }
    assert_eq!(state(&world, &keys.ben, "anas").await.json(), json!({"interrupted": false}));
    assert_eq!(state(&world, &keys.ana, "anas").await.json()["interrupted"], json!(true));
    assert_eq!(world.everything().await, before);
}

#[tokio::test]
async fn who_may_see_may_not_therefore_decide() {
    let (credentials, keys) = credentials();
    let world = World::start_with(Some(credentials), Limits::default()).await;
    world.model.push(Reply::text("Please confirm."));
    post(&world, &keys.ana, "/api/v1/chat/stream", saying("approval-agent", "s", "go")).await.interrupt();
    assert_eq!(state(&world, &keys.auditor, "s").await.json()["interrupted"], json!(true));
    let before = world.everything().await;
    let answer = post(&world, &keys.auditor, "/api/v1/chat/resume", resuming("s")).await;
    assert_eq!((answer.status, answer.code().as_str()), (403, "forbidden"), "{}", answer.body);
    assert_eq!(world.everything().await, before);
    // An agent's key may answer what its own words ask, and not approve its own calls.
    world.model.push(Reply::text("Done."));
    assert_eq!(post(&world, &keys.ana, "/api/v1/chat/resume", resuming("s")).await.said(), "Done.");
    world.model.push(Reply::empty().and_call_as("c1", "deploy", r#"{"version": "2.0"}"#));
    post(&world, &keys.ana, "/api/v1/chat/stream", saying("tool-agent", "t", "go")).await.interrupt();
    let body = json!({"agent_id": "tool-agent", "session_id": "t", "input": {"confirm": true}});
    let answer = post(&world, &keys.ana, "/api/v1/chat/resume", body.clone()).await;
    assert_eq!((answer.status, answer.code().as_str()), (403, "forbidden"), "{}", answer.body);
    assert!(world.tools.calls().is_empty());
    world.model.push(Reply::text("Deployed."));
    assert_eq!(post(&world, &keys.approver, "/api/v1/chat/resume", body).await.said(), "Deployed.");
    let decided_by = world.everything().await;
    assert!(decided_by.contains("carla"), "who decided is recorded");
}

#[tokio::test]
async fn where_two_must_approve_the_first_is_told_that_it_still_waits() {
    let (credentials, keys) = credentials();
    let policy = r#"
rules:
  - { name: two-people, match: { tool: deploy }, verdict: hold, quorum: 2, approvers: ["role:approver"] }
"#;
    let world = World::start_with_policy(credentials, policy).await;
    world.model.push(Reply::empty().and_call_as("c1", "deploy", r#"{"version": "2.0"}"#));
    post(&world, &keys.ana, "/api/v1/chat/stream", saying("tool-agent", "t", "go")).await.interrupt();
    let body = json!({"agent_id": "tool-agent", "session_id": "t", "input": {"confirm": true}});
    let first = post(&world, &keys.approver, "/api/v1/chat/resume", body.clone()).await;
    first.interrupt();
    assert!(world.tools.calls().is_empty());
    world.model.push(Reply::text("Deployed."));
    assert_eq!(post(&world, &keys.second, "/api/v1/chat/resume", body).await.said(), "Deployed.");
    assert_eq!(world.tools.calls().len(), 1);
}
