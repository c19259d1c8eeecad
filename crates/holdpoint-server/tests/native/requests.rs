//! Approval as a service: ask, wait, act.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::routing::post;
use bytes::Bytes;
use holdpoint_core::time::Timestamp;
use holdpoint_runtime::ports::clock::{Clock as _, SystemClock};
use holdpoint_server::requests::CallbackSettings;
use holdpoint_server::webhooks::{WebhookSecret, verify};
use holdpoint_tools::http::AddressGuard;
use http::{HeaderMap, StatusCode};
use serde_json::{Value, json};

use crate::world::{Answer, Reading, Setup, World, text};

const SECRET: &str = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz";

fn secret() -> WebhookSecret {
    WebhookSecret::parse(&SECRET.to_owned().into()).unwrap()
}

/// Callbacks to this machine, tried again a minute later.
fn callbacks() -> CallbackSettings {
    let guard = AddressGuard::new().any_port().allow("127.0.0.1").unwrap();
    CallbackSettings {
        guard,
        backoff: |attempts, _| (attempts < 4).then_some(Duration::from_secs(60)),
        ..CallbackSettings::new(secret())
    }
}

async fn with_callbacks() -> World {
    World::with(Setup { callbacks: Some(callbacks), ..Setup::default() }).await
}

async fn ask(world: &World, body: Value) -> Value {
    world.post("/api/v1/requests", body).await.expect(201)
}

fn pause_of(request: &Value) -> String {
    text(&request["pause"], "id").to_owned()
}

async fn read(world: &World, request: &Value) -> Value {
    world.get(&format!("/api/v1/requests/{}", text(request, "id"))).await.expect(200)
}

#[tokio::test]
async fn a_request_waits_for_a_person_and_tells_what_they_approved() {
    let world = World::solo().await;
    let answer = world
        .post(
            "/api/v1/requests",
            json!({"agent": "release-bot", "tool": "deploy", "args": {"version": "1.2"}, "context": "Friday release"}),
        )
        .await;
    let request = answer.expect(201);
    assert_eq!(answer.header("location"), Some(format!("/api/v1/requests/{}", text(&request, "id")).as_str()));
    assert_eq!((&request["status"], &request["decided_by"]), (&json!("pending"), &json!(null)));
    let pause = &request["pause"];
    assert_eq!(
        (&pause["agent"], &pause["tool"], &pause["args"]),
        (&json!("release-bot"), &json!("deploy"), &json!({"version": "1.2"}))
    );
    assert_eq!((&pause["reason"], &pause["request_id"]), (&json!("Friday release"), &request["id"]));
    world.decide(&pause_of(&request), json!({"decision": "approve"})).await.expect(200);
    let settled = read(&world, &request).await;
    assert_eq!((&settled["status"], &settled["decided_by"]), (&json!("approved"), &json!("local")));
    assert_eq!(
        (&settled["args"], &settled["decided_at"]),
        (&json!({"version": "1.2"}), &json!(crate::world::BEGINNING))
    );
}

#[tokio::test]
async fn each_decision_has_an_outcome_of_its_own() {
    let world = World::solo().await;
    for (decision, status, args, message) in [
        (
            json!({"decision": "approve_edited", "args": {"version": "1.3"}}),
            "approved",
            json!({"version": "1.3"}),
            json!(null),
        ),
        (json!({"decision": "deny", "message": "not today"}), "denied", json!({"version": "1.2"}), json!("not today")),
        (json!({"decision": "deny"}), "denied", json!({"version": "1.2"}), json!("Tool execution was not approved.")),
        (
            json!({"decision": "respond", "content": "I did it by hand"}),
            "answered",
            json!({"version": "1.2"}),
            json!("I did it by hand"),
        ),
    ] {
        let request = ask(&world, json!({"agent": "bot", "tool": "deploy", "args": {"version": "1.2"}})).await;
        world.decide(&pause_of(&request), decision).await.expect(200);
        let settled = read(&world, &request).await;
        assert_eq!((&settled["status"], &settled["args"], &settled["message"]), (&json!(status), &args, &message));
    }
}

#[tokio::test]
async fn a_request_expires_or_is_cancelled() {
    let world = World::solo().await;
    let request = ask(&world, json!({"agent": "bot", "tool": "deploy", "args": {}, "timeout_seconds": 60})).await;
    assert_eq!(request["pause"]["expires_at"], "2026-11-15T09:31:00.000Z");
    world.clock.advance(Duration::from_secs(60));
    let settled = world.get(&format!("/api/v1/requests/{}?wait=30", text(&request, "id"))).await.expect(200);
    assert_eq!((&settled["status"], &settled["decided_by"]), (&json!("expired"), &json!(null)));
    let request = ask(&world, json!({"agent": "bot", "tool": "deploy", "args": {}})).await;
    let run = text(&request["pause"], "run_id");
    world.post(&format!("/api/v1/runs/{run}/cancel"), json!({"reason": "no longer needed"})).await.expect(200);
    let settled = read(&world, &request).await;
    assert_eq!((&settled["status"], &settled["message"]), (&json!("cancelled"), &json!("no longer needed")));
}

#[tokio::test]
async fn whoever_asks_waits_by_long_poll_or_stream() {
    let world = World::solo().await;
    let request = ask(&world, json!({"agent": "bot", "tool": "deploy", "args": {}})).await;
    let path = format!("/api/v1/requests/{}", text(&request, "id"));
    let mut stream = Reading::begin(world.request("GET", &path)).await;
    let pending = stream.next().await.unwrap();
    assert_eq!((pending.event.as_str(), &pending.data["status"]), ("request", &json!("pending")));
    let (polling, pause) = (format!("{path}?wait=30"), pause_of(&request));
    let (polled, decided) = tokio::join!(world.get(&polling), world.decide(&pause, json!({"decision": "approve"})));
    decided.expect(200);
    assert_eq!(polled.expect(200)["status"], "approved");
    let settled = stream.rest().await;
    assert_eq!((settled.len(), &settled[0].data["status"]), (1, &json!("approved")));
}

#[tokio::test]
async fn a_request_that_is_sent_again_is_the_same_request() {
    let world = World::with_keys().await;
    let send = async |who: &str, body: Value| {
        let request = world.request_by(who, "POST", "/api/v1/requests").header("idempotency-key", "k-1");
        Answer::to(request.json(&body)).await
    };
    let body = json!({"agent": "bot", "tool": "deploy", "args": {"n": 1}, "timeout_seconds": 60});
    let first = send("agnes", body.clone()).await.expect(201);
    assert_eq!(send("agnes", body.clone()).await.expect(200), first);
    assert_ne!(send("otto", body).await.expect(201)["id"], first["id"]);
    for other in [
        json!({"agent": "bot", "tool": "deploy", "args": {"n": 2}, "timeout_seconds": 60}),
        json!({"agent": "bot", "tool": "deploy", "args": {"n": 1}, "timeout_seconds": 61}),
        json!({"agent": "boy", "tool": "deploy", "args": {"n": 1}, "timeout_seconds": 60}),
    ] {
        send("agnes", other).await.refuses(422, "idempotency_key_reused");
    }
}

#[tokio::test]
async fn only_those_who_are_named_may_decide() {
    let world = World::with_keys().await;
    let body = json!({"agent": "bot", "tool": "deploy", "args": {}, "approvers": ["ana", "role:admin"]});
    let request = world.post_by("agnes", "/api/v1/requests", body).await.expect(201);
    let (pause, approve) = (pause_of(&request), json!({"decision": "approve"}));
    world.decide_by("ben", &pause, approve.clone()).await.refuses(403, "not_an_approver");
    world.decide_by("agnes", &pause, approve.clone()).await.refuses(403, "forbidden");
    world.decide_by("adam", &pause, approve).await.expect(200);
    world.get_by("otto", &format!("/api/v1/requests/{}", text(&request, "id"))).await.refuses(404, "not_found");
}

#[tokio::test]
async fn what_cannot_be_asked_for_is_refused() {
    let world = World::solo().await;
    for body in [
        json!({"tool": "deploy", "args": {}}),
        json!({"agent": "bot", "args": {}}),
        json!({"agent": "bot", "tool": "deploy"}),
        json!({"agent": "", "tool": "deploy", "args": {}}),
        json!({"agent": "a/b", "tool": "deploy", "args": {}}),
        json!({"agent": "bot", "tool": "de ploy", "args": {}}),
        json!({"agent": "bot", "tool": "holdpoint.callback", "args": {}}),
        json!({"agent": "bot", "tool": "deploy", "args": []}),
        json!({"agent": "bot", "tool": "deploy", "args": "x"}),
        json!({"agent": "bot", "tool": "deploy", "args": {}, "approvers": []}),
        json!({"agent": "bot", "tool": "deploy", "args": {}, "approvers": [""]}),
        json!({"agent": "bot", "tool": "deploy", "args": {}, "timeout_seconds": 0}),
        json!({"agent": "bot", "tool": "deploy", "args": {}, "timeout_seconds": -1}),
        json!({"agent": "bot", "tool": "deploy", "args": {}, "context": "x".repeat(2049)}),
        json!({"agent": "bot", "tool": "deploy", "args": {}, "approve": true}),
    ] {
        world.post("/api/v1/requests", body).await.refuses(400, "invalid_request");
    }
    let callback = json!({"agent": "bot", "tool": "deploy", "args": {}, "callback_url": "https://hooks.example/"});
    world.post("/api/v1/requests", callback).await.refuses(422, "callback_refused");
    assert_eq!(world.everything().await, "");
}

#[tokio::test]
async fn arguments_are_shown_and_told_to_the_digit() {
    let world = World::solo().await;
    let body = r#"{"agent":"bot","tool":"pay","args":{"account":12345678901234567890123,"rate":1.10}}"#;
    let request = world.request("POST", "/api/v1/requests").header("content-type", "application/json").body(body);
    let answer = Answer::to(request).await;
    assert_eq!(answer.status, 201, "{}", answer.body);
    assert!(answer.body.contains(r#""args":{"account":1.2345678901234567890123e+22,"rate":1.1}"#), "{}", answer.body);
}

#[tokio::test]
async fn a_request_waits_through_a_restart() {
    let mut world = World::solo().await;
    let request = ask(&world, json!({"agent": "bot", "tool": "deploy", "args": {"n": 1}})).await;
    world.restart().await;
    assert_eq!(read(&world, &request).await, request);
    world.decide(&pause_of(&request), json!({"decision": "approve"})).await.expect(200);
    assert_eq!(read(&world, &request).await["status"], "approved");
    let run = text(&request["pause"], "run_id").to_owned();
    assert_eq!(world.get(&format!("/api/v1/runs/{run}?wait=30")).await.expect(200)["status"], "done");
}

/// A server that is called back: what it was sent, and what it answers.
#[derive(Clone, Default)]
struct Receiver(Arc<Inbox>);

#[derive(Default)]
struct Inbox {
    messages: Mutex<Vec<(HeaderMap, Bytes)>>,
    answers: Mutex<Vec<StatusCode>>,
    arrived: tokio::sync::Notify,
}

impl Receiver {
    /// Listens; answers with these statuses in turn, then with 200.
    async fn start(answers: &[u16]) -> (Self, String) {
        let receiver = Self::default();
        *receiver.0.answers.lock().unwrap() =
            answers.iter().rev().map(|status| StatusCode::from_u16(*status).unwrap()).collect();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let router = Router::new().route("/hook", post(Self::take)).with_state(receiver.clone());
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        (receiver, url)
    }

    async fn take(State(receiver): State<Self>, headers: HeaderMap, body: Bytes) -> StatusCode {
        receiver.0.messages.lock().unwrap().push((headers, body));
        receiver.0.arrived.notify_one();
        receiver.0.answers.lock().unwrap().pop().unwrap_or(StatusCode::OK)
    }

    /// The messages, once there are so many.
    async fn messages(&self, count: usize) -> Vec<(HeaderMap, Bytes)> {
        let waiting = async {
            loop {
                let messages = self.0.messages.lock().unwrap().clone();
                if messages.len() >= count {
                    return messages;
                }
                self.0.arrived.notified().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(30), waiting).await.expect("a callback in time")
    }

    /// The messages, once there are so many; while none comes, time passes: a server that looked just before the clock was
    /// moved on rests until it looks again. It passes slowly enough for whoever tells to keep its lease.
    async fn later_messages(&self, world: &World, count: usize) -> Vec<(HeaderMap, Bytes)> {
        let passing = async {
            loop {
                tokio::time::sleep(Duration::from_millis(200)).await;
                world.clock.advance(Duration::from_secs(1));
            }
        };
        tokio::select! {
            messages = self.messages(count) => messages,
            () = passing => unreachable!("time passes without an end"),
        }
    }
}

/// How a callback stands once it is written down that the first attempt did not arrive: who dies before that makes it again.
async fn tried_once(world: &World, request: &Value) -> Value {
    let begin = std::time::Instant::now();
    loop {
        let callback = read(world, request).await["callback"].clone();
        if callback["next_at"] != json!(null) {
            return callback;
        }
        assert!(begin.elapsed() < Duration::from_secs(60), "{callback}");
        tokio::task::yield_now().await;
    }
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers[name].to_str().unwrap()
}

#[track_caller]
fn check_signature(world: &World, headers: &HeaderMap, body: &Bytes) {
    let now: Timestamp = world.clock.now();
    let (id, at, signature) = ("webhook-id", "webhook-timestamp", "webhook-signature");
    verify(&secret(), header(headers, id), header(headers, at), header(headers, signature), body, now).unwrap();
    let changed = [body, &b" "[..]].concat();
    assert!(
        verify(&secret(), header(headers, id), header(headers, at), header(headers, signature), &changed, now).is_err()
    );
    assert_ne!(SystemClock.now(), now);
}

#[tokio::test]
async fn whoever_asks_is_called_back_with_a_signed_message_whatever_was_decided() {
    let world = with_callbacks().await;
    for (decision, status) in [
        (json!({"decision": "approve_edited", "args": {"n": 2}}), "approved"),
        (json!({"decision": "deny", "message": "no"}), "denied"),
        (json!({"decision": "respond", "content": "done"}), "answered"),
    ] {
        let (receiver, url) = Receiver::start(&[]).await;
        let request =
            ask(&world, json!({"agent": "bot", "tool": "deploy", "args": {"n": 1}, "callback_url": url})).await;
        assert_eq!(request["callback"], json!({"status": "pending", "attempts": 0, "next_at": null}));
        world.decide(&pause_of(&request), decision).await.expect(200);
        let (headers, body) = receiver.messages(1).await.remove(0);
        check_signature(&world, &headers, &body);
        let told: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!((&told["type"], &told["data"]["status"]), (&json!("request.settled"), &json!(status)));
        assert_eq!(told["data"]["id"], request["id"]);
        let run = text(&request["pause"], "run_id").to_owned();
        world.get(&format!("/api/v1/runs/{run}?wait=30")).await.expect(200);
        let settled = read(&world, &request).await;
        assert_eq!(settled["callback"], json!({"status": "delivered", "attempts": 1, "next_at": null}));
        assert_eq!(settled["args"], told["data"]["args"]);
    }
}

#[tokio::test]
async fn an_expiry_is_called_back_too() {
    let world = with_callbacks().await;
    let (receiver, url) = Receiver::start(&[]).await;
    let body = json!({"agent": "bot", "tool": "deploy", "args": {}, "timeout_seconds": 60, "callback_url": url});
    ask(&world, body).await;
    world.clock.advance(Duration::from_secs(60));
    let (headers, body) = receiver.later_messages(&world, 1).await.remove(0);
    check_signature(&world, &headers, &body);
    let told: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(told["data"]["status"], "expired");
}

#[tokio::test]
async fn a_cancellation_is_called_back_too_also_by_another_server() {
    let mut world = with_callbacks().await;
    let (receiver, url) = Receiver::start(&[500]).await;
    let request = ask(&world, json!({"agent": "bot", "tool": "deploy", "args": {"n": 1}, "callback_url": url})).await;
    let run = text(&request["pause"], "run_id").to_owned();
    let cancel = format!("/api/v1/runs/{run}/cancel");
    world.post(&cancel, json!({"reason": "no longer needed"})).await.expect(200);
    let (headers, body) = receiver.messages(1).await.remove(0);
    check_signature(&world, &headers, &body);
    let told: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!((&told["type"], &told["data"]["status"]), (&json!("request.settled"), &json!("cancelled")));
    assert_eq!((&told["data"]["id"], &told["data"]["message"]), (&request["id"], &json!("no longer needed")));
    world.post(&cancel, json!({})).await.refuses(409, "run_finished");
    tried_once(&world, &request).await;
    world.kill_and_start().await;
    let messages = receiver.later_messages(&world, 2).await;
    assert_eq!(header(&messages[0].0, "webhook-id"), header(&messages[1].0, "webhook-id"));
    // Another run tells it, which is over when the second attempt is written down.
    let runs = world.get("/api/v1/runs").await.expect(200);
    let teller = runs["runs"].as_array().unwrap().iter().find(|other| text(other, "run_id") != run).unwrap();
    world.get(&format!("/api/v1/runs/{}?wait=30", text(teller, "run_id"))).await.expect(200);
    let settled = read(&world, &request).await;
    assert_eq!(settled["callback"], json!({"status": "delivered", "attempts": 2, "next_at": null}));
    assert_eq!(settled["status"], "cancelled");
    assert_eq!(receiver.messages(2).await.len(), 2);
}

#[tokio::test]
async fn a_cancelled_request_whose_asker_wants_no_call_needs_no_second_run() {
    let world = with_callbacks().await;
    let request = ask(&world, json!({"agent": "bot", "tool": "deploy", "args": {}})).await;
    let run = text(&request["pause"], "run_id").to_owned();
    world.post(&format!("/api/v1/runs/{run}/cancel"), json!({})).await.expect(200);
    assert_eq!(world.get("/api/v1/runs").await.expect(200)["runs"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_callback_that_does_not_arrive_is_tried_again_also_by_another_server_and_has_one_id() {
    let mut world = with_callbacks().await;
    let (receiver, url) = Receiver::start(&[500, 503]).await;
    let request = ask(&world, json!({"agent": "bot", "tool": "deploy", "args": {}, "callback_url": url})).await;
    let path = format!("/api/v1/pauses/{}/decide", pause_of(&request));
    world.post(&path, json!({"decision": "approve"})).await.expect(200);
    receiver.messages(1).await;
    let callback = tried_once(&world, &request).await;
    assert_eq!(callback, json!({"status": "pending", "attempts": 1, "next_at": "2026-11-15T09:31:00.000Z"}));
    world.restart().await;
    world.clock.advance(Duration::from_secs(120));
    receiver.later_messages(&world, 2).await;
    world.kill_and_start().await;
    world.clock.advance(Duration::from_secs(120));
    let messages = receiver.later_messages(&world, 3).await;
    let ids: Vec<&str> = messages.iter().map(|(headers, _)| header(headers, "webhook-id")).collect();
    assert!(ids.windows(2).all(|pair| pair[0] == pair[1]), "{ids:?}");
    check_signature(&world, &messages[2].0, &messages[2].1);
    let run = text(&request["pause"], "run_id").to_owned();
    assert_eq!(world.get(&format!("/api/v1/runs/{run}?wait=30")).await.expect(200)["status"], "done");
    let callback = read(&world, &request).await["callback"].clone();
    assert_eq!((&callback["status"], &callback["next_at"]), (&json!("delivered"), &json!(null)));
}

#[tokio::test]
async fn a_receiver_that_wants_no_more_is_left_alone() {
    let world = with_callbacks().await;
    let (receiver, url) = Receiver::start(&[410]).await;
    let request = ask(&world, json!({"agent": "bot", "tool": "deploy", "args": {}, "callback_url": url})).await;
    world.decide(&pause_of(&request), json!({"decision": "deny"})).await.expect(200);
    receiver.messages(1).await;
    let run = text(&request["pause"], "run_id").to_owned();
    assert_eq!(world.get(&format!("/api/v1/runs/{run}?wait=30")).await.expect(200)["status"], "done");
    assert_eq!(read(&world, &request).await["callback"]["status"], "failed");
}

#[tokio::test]
async fn addresses_that_must_not_be_asked_are_refused() {
    let world = with_callbacks().await;
    for url in [
        "http://169.254.169.254/latest",
        "http://10.0.0.1/",
        "http://[::1]/",
        "ftp://a.example/",
        "nonsense",
        "http://u:p@127.0.0.1/",
    ] {
        let body = json!({"agent": "bot", "tool": "deploy", "args": {}, "callback_url": url});
        world.post("/api/v1/requests", body).await.refuses(422, "callback_refused");
    }
}
