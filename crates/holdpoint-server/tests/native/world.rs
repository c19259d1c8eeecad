//! A server that can be stopped, killed and started again, and clients of it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use holdpoint_core::ids::ActorId;
use holdpoint_core::input::SupersedeInput;
use holdpoint_core::message::Content;
use holdpoint_core::time::Timestamp;
use holdpoint_runtime::Runtime;
use holdpoint_runtime::ports::notifier::{Notifier, NotifyRule};
use holdpoint_runtime::ports::store::Store;
use holdpoint_runtime::settings::Settings;
use holdpoint_server::access::{ApiKey, ApiKeys, Credentials, Role};
use holdpoint_server::limits::Limits;
use holdpoint_server::metrics::Metrics;
use holdpoint_server::requests::CallbackSettings;
use holdpoint_server::serve::serve_with;
use holdpoint_server::{Running, ServerConfig};
use holdpoint_stores::sqlite::SqliteStore;
use holdpoint_testkit::clock::TestClock;
use reqwest::header::HeaderMap;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::agents::{self, Effects};

/// When every world begins.
pub const BEGINNING: &str = "2026-11-15T09:30:00.000Z";

/// How a server is set up.
#[derive(Default)]
pub struct Setup {
    /// Whether callers show keys; see [`key`].
    pub has_keys: bool,
    pub credentials: Option<Credentials>,
    pub limits: Option<Limits>,
    pub requester_may_not_approve: bool,
    pub origins: Vec<String>,
    pub callbacks: Option<fn() -> CallbackSettings>,
    /// Who is told of which pauses.
    pub notifiers: Vec<(NotifyRule, Arc<dyn Notifier>)>,
    /// Another store than an SQLite file.
    pub store: Option<Arc<dyn Store>>,
}

/// A server, its tools, and the time.
pub struct World {
    pub effects: Effects,
    pub clock: TestClock,
    folder: TempDir,
    setup: Setup,
    server: Option<Server>,
    http: reqwest::Client,
}

/// A server on threads of its own, so that it can be killed.
struct Server {
    threads: tokio::runtime::Runtime,
    running: Running,
}

/// The key of one of the callers below.
pub fn key(name: &str) -> String {
    format!("hpk_key-of-{name}")
}

/// Callers of every role: `ana`, `ben` and `cem` approve (the first two for the treasury), `adam` administers, `audrey`
/// audits, `agnes` and `otto` are agents, `zoe` is both an agent and an approver.
fn credentials() -> Credentials {
    let made = |name: &str, roles: &[Role], groups: &[&str]| {
        let actor = ActorId::new(name).unwrap();
        let mut made = ApiKey::new(actor, &ApiKey::digest(&key(name)), roles.iter().copied()).unwrap();
        made.groups = groups.iter().map(|group| (*group).to_owned()).collect();
        made
    };
    let keys = vec![
        made("ana", &[Role::Approver], &["treasury"]),
        made("ben", &[Role::Approver], &["treasury"]),
        made("cem", &[Role::Approver], &[]),
        made("adam", &[Role::Admin], &[]),
        made("audrey", &[Role::Auditor], &[]),
        made("agnes", &[Role::Agent], &[]),
        made("otto", &[Role::Agent], &[]),
        made("zoe", &[Role::Agent, Role::Approver], &[]),
    ];
    Credentials { keys: ApiKeys::new(keys).unwrap(), jwt: None }
}

impl World {
    /// A server of one person.
    pub async fn solo() -> Self {
        Self::with(Setup::default()).await
    }

    /// A server whose callers show keys.
    pub async fn with_keys() -> Self {
        Self::with(Setup { has_keys: true, ..Setup::default() }).await
    }

    pub async fn with(setup: Setup) -> Self {
        let mut world = Self {
            effects: Effects::default(),
            clock: TestClock::at(BEGINNING.parse::<Timestamp>().unwrap()),
            folder: tempfile::tempdir().unwrap(),
            setup,
            server: None,
            http: reqwest::Client::builder().no_proxy().build().unwrap(),
        };
        world.serve().await;
        world
    }

    async fn serve(&mut self) {
        let threads = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let address: SocketAddr = "127.0.0.1:0".parse().unwrap();
        let credentials = self.setup.credentials.take().or_else(|| self.setup.has_keys.then(credentials));
        let config = ServerConfig {
            credentials,
            limits: self.setup.limits.clone().unwrap_or_default(),
            requester_may_approve: !self.setup.requester_may_not_approve,
            origins: self.setup.origins.clone(),
            callbacks: self.setup.callbacks.map(|callbacks| callbacks()),
            notifiers: self.setup.notifiers.clone(),
            stop_grace: Duration::from_secs(5),
            ..ServerConfig::solo(address)
        };
        let file = || SqliteStore::open(self.folder.path().join("holdpoint.db"), self.clock.shared()).unwrap();
        let store = self.setup.store.clone().unwrap_or_else(|| Arc::new(file()));
        let metrics = Metrics::default();
        let notify = self.setup.notifiers.iter().map(|(rule, _)| rule.clone()).collect();
        let settings = Settings { notify, ..Settings::default() };
        let runtime = Runtime::builder(store).settings(settings).observer(Arc::new(metrics.clone())).build();
        let catalogue = agents::catalogue(&self.effects);
        let serving = threads.spawn(async move { serve_with(config, runtime, catalogue, metrics).await });
        self.server = Some(Server { running: serving.await.unwrap().unwrap(), threads });
    }

    /// Stops the server in good order, and starts another one over what is stored.
    pub async fn restart(&mut self) {
        self.stop().await;
        self.serve().await;
    }

    /// Starts another server over what is stored.
    pub async fn serve_again(&mut self) {
        self.serve().await;
    }

    /// Stops the server in good order.
    pub async fn stop(&mut self) {
        let server = self.server.take().unwrap();
        server.threads.spawn(server.running.stop()).await.unwrap();
        server.threads.shutdown_background();
    }

    /// Stops the server, changes its file behind its back, and starts another one over it.
    pub async fn meddle(&mut self, sql: &str) {
        self.stop().await;
        let file = rusqlite::Connection::open(self.folder.path().join("holdpoint.db")).unwrap();
        assert_eq!(file.execute(sql, []).unwrap(), 1, "{sql}");
        drop(file);
        self.serve().await;
    }

    /// Kills the server in the middle of whatever it does, and starts another one over what is stored. The dead one's
    /// leases have run out.
    pub async fn kill_and_start(&mut self) {
        let server = self.server.take().unwrap();
        drop(server.running);
        let threads = server.threads;
        tokio::task::spawn_blocking(move || threads.shutdown_timeout(Duration::from_secs(5))).await.unwrap();
        self.clock.advance(Duration::from_secs(60));
        self.serve().await;
    }

    pub fn running(&self) -> &Running {
        &self.server.as_ref().unwrap().running
    }

    pub fn address(&self) -> SocketAddr {
        self.running().address()
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address())
    }

    /// A request that is still to be sent.
    pub fn request(&self, method: &str, path: &str) -> reqwest::RequestBuilder {
        self.http.request(method.parse().unwrap(), self.url(path))
    }

    /// As [`World::request`], by one of the callers.
    pub fn request_by(&self, who: &str, method: &str, path: &str) -> reqwest::RequestBuilder {
        self.request(method, path).bearer_auth(key(who))
    }

    pub async fn get(&self, path: &str) -> Answer {
        Answer::to(self.request("GET", path)).await
    }

    pub async fn post(&self, path: &str, body: Value) -> Answer {
        Answer::to(self.request("POST", path).json(&body)).await
    }

    pub async fn get_by(&self, who: &str, path: &str) -> Answer {
        Answer::to(self.request_by(who, "GET", path)).await
    }

    /// Asks until that is too fast: a slow machine asks slowly.
    pub async fn until_too_fast(&self, who: Option<&str>) -> Answer {
        for _ in 0..50 {
            let answer = match who {
                Some(who) => self.get_by(who, "/api/v1/agents").await,
                None => self.get("/api/v1/agents").await,
            };
            if answer.status != 200 {
                return answer;
            }
        }
        panic!("50 in a row are not too fast");
    }

    pub async fn post_by(&self, who: &str, path: &str, body: Value) -> Answer {
        Answer::to(self.request_by(who, "POST", path).json(&body)).await
    }

    /// Starts a run and waits for its first stop.
    pub async fn start(&self, agent: &str, input: &str) -> Value {
        let answer = self.post("/api/v1/runs?wait=30", json!({"agent_id": agent, "input": input})).await;
        answer.expect(201)
    }

    /// Starts a run whose mail was approved and is on its way: it is sent, and waits for the gate.
    pub async fn start_sending(&self) -> Value {
        let before = self.effects.sent().len();
        let run = self.start("doubter", "ana").await;
        let path = format!("/api/v1/pauses/{}/decide", first_pause(&run));
        self.post(&path, json!({"decision": "approve"})).await.expect(200);
        while self.effects.sent().len() == before {
            tokio::task::yield_now().await;
        }
        run
    }

    /// As [`World::start`], by one of the callers.
    pub async fn start_by(&self, who: &str, agent: &str, input: &str) -> Value {
        self.post_by(who, "/api/v1/runs?wait=30", json!({"agent_id": agent, "input": input})).await.expect(201)
    }

    /// Decides a pause, and waits for what follows.
    pub async fn decide(&self, pause: &str, body: Value) -> Answer {
        self.post(&format!("/api/v1/pauses/{pause}/decide?wait=30"), body).await
    }

    pub async fn decide_by(&self, who: &str, pause: &str, body: Value) -> Answer {
        self.post_by(who, &format!("/api/v1/pauses/{pause}/decide?wait=30"), body).await
    }

    /// Sends a message into a run in place of deciding what it waits for.
    pub async fn supersede(&self, run: &Value) {
        let message = SupersedeInput {
            content: Content::Text("something else".to_owned()),
            by: ActorId::new("ana").unwrap(),
            via: None,
            request: None,
        };
        let run = text(run, "run_id").parse().unwrap();
        self.running().app().runtime().supersede(run, message).await.unwrap();
    }

    /// Everything that was ever written, to see that nothing was.
    pub async fn everything(&self) -> String {
        let runtime = self.running().app().runtime();
        let mut all = String::new();
        for row in runtime.list_runs(&Default::default()).await.unwrap().runs {
            all += &format!("{row:?}\n{:?}\n", runtime.read_journal(row.run).await.unwrap());
        }
        all
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if let Some(server) = self.server.take() {
            drop(server.running);
            server.threads.shutdown_background();
        }
    }
}

/// The first pause of a run.
#[track_caller]
pub fn first_pause(run: &Value) -> String {
    run["pauses"][0]["id"].as_str().unwrap_or_else(|| panic!("a pause expected: {run}")).to_owned()
}

/// A text member.
#[track_caller]
pub fn text<'a>(value: &'a Value, member: &str) -> &'a str {
    value[member].as_str().unwrap_or_else(|| panic!("{member} expected: {value}"))
}

/// A whole answer.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: String,
}

impl Answer {
    pub async fn to(request: reqwest::RequestBuilder) -> Self {
        let response = request.send().await.unwrap();
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        Self { status, headers, body: response.text().await.unwrap() }
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    /// The body, where the status is this one.
    #[track_caller]
    pub fn expect(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.body);
        self.json()
    }

    /// Checks that this is a problem document with this status and code.
    #[track_caller]
    pub fn refuses(&self, status: u16, code: &str) -> Value {
        assert_eq!((self.status, self.json()["code"].as_str()), (status, Some(code)), "{}", self.body);
        assert_eq!(self.header("content-type"), Some("application/problem+json"));
        let problem = self.json();
        assert_eq!(problem["status"], status);
        for member in ["type", "title", "detail"] {
            assert!(problem[member].as_str().is_some_and(|text| !text.is_empty()), "{member}: {problem}");
        }
        problem
    }
}

/// One frame of a stream.
#[derive(Debug, Clone, PartialEq)]
pub struct Frame {
    pub id: Option<u64>,
    pub event: String,
    pub data: Value,
}

/// A stream that is read frame by frame.
pub struct Reading {
    response: reqwest::Response,
    unread: String,
}

impl Reading {
    pub async fn begin(request: reqwest::RequestBuilder) -> Self {
        let response = request.header("accept", "text/event-stream").send().await.unwrap();
        assert_eq!(response.status().as_u16(), 200, "{:?}", response.headers());
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self { response, unread: String::new() }
    }

    /// The next frame that is more than a comment; `None` at the end.
    pub async fn next(&mut self) -> Option<Frame> {
        loop {
            while let Some((block, rest)) = self.unread.split_once("\n\n") {
                let (frame, rest) = (read(block), rest.to_owned());
                self.unread = rest;
                if frame.is_some() {
                    return frame;
                }
            }
            let chunk = tokio::time::timeout(Duration::from_secs(30), self.response.chunk()).await;
            let chunk = chunk.expect("a frame in time").unwrap()?;
            self.unread.push_str(std::str::from_utf8(&chunk).expect("frames are written whole"));
        }
    }

    /// Reads on to the first frame of this event.
    pub async fn until(&mut self, event: &str) -> Frame {
        loop {
            let frame = self.next().await.unwrap_or_else(|| panic!("{event} expected before the end"));
            if frame.event == event {
                return frame;
            }
        }
    }

    /// Everything up to the end.
    pub async fn rest(&mut self) -> Vec<Frame> {
        let mut frames = Vec::new();
        while let Some(frame) = self.next().await {
            frames.push(frame);
        }
        frames
    }
}

fn read(block: &str) -> Option<Frame> {
    let field = |name: &str| {
        let lines: Vec<&str> = block.lines().filter_map(|line| line.strip_prefix(name)).collect();
        (!lines.is_empty()).then(|| lines.join("\n"))
    };
    let data = field("data: ")?;
    Some(Frame {
        id: field("id: ").map(|id| id.parse().unwrap()),
        event: field("event: ").unwrap_or_default(),
        data: serde_json::from_str(&data).unwrap(),
    })
}
