//! Signed requests to a system of somebody's own: what is in them, and what happens when it is not there.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use axum::Router;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use bytes::Bytes;
use holdpoint_core::time::Timestamp;
use holdpoint_runtime::ports::notifier::NoticeKind;
use holdpoint_server::notifiers::webhook::{BadWebhook, Webhook};
use holdpoint_server::webhooks::{ID_HEADER, SIGNATURE_HEADER, TIMESTAMP_HEADER, WebhookClient, WebhookSecret, verify};
use holdpoint_tools::http::{AddressGuard, Lookup};
use serde_json::{Value, json};
use tokio::net::TcpSocket;

use crate::world::World;

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// A system that is told. Its port is its own from the beginning; it is there from when it opens.
struct Receiver {
    address: SocketAddr,
    socket: Mutex<Option<TcpSocket>>,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    got: Mutex<Vec<(HeaderMap, Bytes)>>,
    /// What it answers in place of 204.
    answers: Mutex<VecDeque<u16>>,
}

impl Receiver {
    fn closed() -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        Self { address: socket.local_addr().unwrap(), socket: Mutex::new(Some(socket)), shared: Arc::default() }
    }

    fn answering(answers: &[u16]) -> Self {
        let receiver = Self::closed();
        receiver.shared.answers.lock().unwrap().extend(answers);
        receiver.open();
        receiver
    }

    fn open(&self) {
        let listener = self.socket.lock().unwrap().take().unwrap().listen(64).unwrap();
        let shared = self.shared.clone();
        let take = move |headers: HeaderMap, body: Bytes| {
            shared.got.lock().unwrap().push((headers, body));
            let status = shared.answers.lock().unwrap().pop_front().unwrap_or(204);
            async move { StatusCode::from_u16(status).unwrap() }
        };
        let app = Router::new().route("/in", post(take));
        tokio::spawn(async move { axum::serve(listener, app).await });
    }

    fn webhook(&self) -> Webhook {
        let guard = AddressGuard::new().any_port().allow("127.0.0.1").unwrap();
        Webhook::new(&format!("http://{}/in", self.address), &SECRET.to_owned().into(), guard).unwrap()
    }

    fn got(&self) -> Vec<Told> {
        self.shared.got.lock().unwrap().iter().map(|(headers, body)| Told::of(headers, body)).collect()
    }
}

/// A request as it arrived.
#[derive(Debug)]
struct Told {
    id: String,
    time: String,
    signature: String,
    body: Bytes,
}

impl Told {
    fn of(headers: &HeaderMap, body: &Bytes) -> Self {
        assert_eq!(headers["content-type"], "application/json");
        let header = |name: &str| headers[name].to_str().unwrap().to_owned();
        let (id, time, signature) = (header(ID_HEADER), header(TIMESTAMP_HEADER), header(SIGNATURE_HEADER));
        Self { id, time, signature, body: body.clone() }
    }

    /// As a receiver does it.
    #[track_caller]
    fn verified(&self, now: Timestamp) -> Value {
        let secret = WebhookSecret::parse(&SECRET.to_owned().into()).unwrap();
        assert_eq!(verify(&secret, &self.id, &self.time, &self.signature, &self.body, now), Ok(()));
        serde_json::from_slice(&self.body).unwrap()
    }
}

#[tokio::test]
async fn a_system_is_told_that_a_pause_opened_and_ended_with_the_pause_itself_and_can_verify_it() {
    let receiver = Receiver::answering(&[]);
    let world = World::telling(receiver.webhook()).await;
    let pause = world.ask("mailer", "ana").await;
    let open = world.pause(&pause).await;
    world.settle(&pause, json!({"decision": "approve_edited", "args": {"to": "eve"}})).await;
    let ended = world.pause(&pause).await;
    let got = receiver.got();
    let [opened, settled] = got.as_slice() else { panic!("{got:?}") };
    assert_eq!(
        (opened.id.as_str(), settled.id.as_str()),
        (format!("{pause}-opened-ops").as_str(), format!("{pause}-settled-ops").as_str())
    );
    let body = opened.verified(world.clock.now());
    assert_eq!(body, json!({"type": "pause.opened", "timestamp": open["created_at"], "data": open}));
    assert_eq!((&body["data"]["status"], &body["data"]["args"]["to"]), (&json!("open"), &json!("ana")));
    let body = settled.verified(world.clock.now());
    assert_eq!(body, json!({"type": "pause.settled", "timestamp": ended["decision"]["at"], "data": ended}));
    // What runs is told beside what was asked for.
    assert_eq!(
        (&body["data"]["args"]["to"], &body["data"]["decision"]["args"]),
        (&json!("ana"), &json!({"to": "eve"}))
    );
    assert!(!String::from_utf8_lossy(&opened.body).contains(SECRET));
}

#[tokio::test]
async fn a_system_is_told_that_nobody_decided_in_time() {
    let receiver = Receiver::answering(&[]);
    let world = World::telling(receiver.webhook()).await;
    let pause = world.ask("brief", "ana").await;
    world.clock.advance(Duration::from_secs(61));
    world.delivered(&pause, NoticeKind::Settled).await;
    let got = receiver.got();
    let [opened, settled] = got.as_slice() else { panic!("{got:?}") };
    let data = &opened.verified(world.clock.now())["data"];
    assert_eq!((&data["status"], &data["expires_at"]), (&json!("open"), &json!("2026-11-15T09:31:00.000Z")));
    let body = settled.verified(world.clock.now());
    assert_eq!((&body["type"], &body["data"]["status"]), (&json!("pause.settled"), &json!("expired")));
}

#[tokio::test]
async fn a_system_that_answers_badly_is_told_again_under_the_same_name() {
    let receiver = Receiver::answering(&[500, 429, 302]);
    let world = World::telling(receiver.webhook()).await;
    let pause = world.ask("mailer", "ana").await;
    assert_eq!(world.notice(&pause, NoticeKind::Opened).await.unwrap().attempts, 4);
    let got = receiver.got();
    assert_eq!(got.len(), 4);
    for told in &got {
        assert_eq!((told.id.as_str(), &told.body), (format!("{pause}-opened-ops").as_str(), &got[0].body));
        told.verified(world.clock.now());
    }
    // Each attempt is signed for its own time.
    assert!(got[3].time > got[0].time && got[3].signature != got[0].signature, "{got:?}");
}

#[tokio::test]
async fn a_system_that_is_down_is_told_when_it_is_up() {
    let receiver = Receiver::closed();
    let world = World::telling(receiver.webhook()).await;
    let pause = world.open("mailer", "ana").await;
    world.notice_when(&pause, NoticeKind::Opened, |notice| notice.attempts >= 3).await;
    receiver.open();
    world.delivered(&pause, NoticeKind::Opened).await;
    let got = receiver.got();
    let [told] = got.as_slice() else { panic!("{got:?}") };
    assert_eq!(told.verified(world.clock.now())["data"]["id"], json!(pause));
}

#[tokio::test]
async fn a_system_that_wants_no_more_is_left_alone() {
    let receiver = Receiver::answering(&[410]);
    let world = World::telling(receiver.webhook()).await;
    let pause = world.open("mailer", "ana").await;
    assert_eq!(
        world.given_up(&pause, NoticeKind::Opened).await,
        "the receiver answered 410: it wants no more of these"
    );
    assert_eq!(receiver.got().len(), 1);
    assert_eq!(world.pause(&pause).await["status"], "open");
}

/// Every name is this machine's.
struct Here;

#[async_trait]
impl Lookup for Here {
    async fn lookup(&self, _: &str) -> std::io::Result<Vec<IpAddr>> {
        Ok(vec!["127.0.0.1".parse().unwrap()])
    }
}

#[tokio::test]
async fn a_private_address_is_not_called_unless_the_operator_says_so() {
    let receiver = Receiver::answering(&[]);
    for url in ["https://127.0.0.1/in", "https://[::1]/in", "https://10.0.0.1/in", "http://hook.example/in"] {
        let refused = Webhook::new(url, &SECRET.to_owned().into(), WebhookClient::guard());
        assert!(matches!(refused.err(), Some(BadWebhook::Forbidden(_))), "{url}");
    }
    // A name tells only when it is looked up.
    let url = format!("https://hook.example:{}/in", receiver.address.port());
    let webhook = Webhook::new(&url, &SECRET.to_owned().into(), WebhookClient::guard().lookup(Here)).unwrap();
    let world = World::telling(webhook).await;
    let pause = world.open("mailer", "ana").await;
    let why = world.given_up(&pause, NoticeKind::Opened).await;
    assert_eq!(why, "the address is loopback, which may not be asked");
    assert!(receiver.got().is_empty());
}
