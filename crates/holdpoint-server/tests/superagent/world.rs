//! A server that can be stopped, killed and started again, and a client that reads what it says.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use holdpoint_core::time::Timestamp;
use holdpoint_runtime::Runtime;
use holdpoint_runtime::ports::store::Store;
use holdpoint_server::access::Credentials;
use holdpoint_server::limits::Limits;
use holdpoint_server::{Running, ServerConfig};
use holdpoint_stores::sqlite::SqliteStore;
use holdpoint_testkit::clock::TestClock;
use holdpoint_testkit::model_server::ModelServer;
use reqwest::header::HeaderMap;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::agents;
use crate::common::{Blocks, Files, Served, ToolServer, catalogue, everything};

/// When every world begins: the time that the protocol's own examples show.
pub const BEGINNING: i64 = 1_746_000_000_000;

/// A server, its model, its tools, and the time.
pub struct World {
    pub model: ModelServer,
    pub tools: ToolServer,
    pub clock: TestClock,
    /// Agents and policies, by path; a change counts from the next start on.
    pub files: Files,
    folder: TempDir,
    limits: Limits,
    /// Another store than the file in the folder.
    store: Option<Arc<dyn Store>>,
    server: Option<Served>,
    http: reqwest::Client,
}

impl World {
    /// A server of one person.
    pub async fn start() -> Self {
        Self::start_with(None, Limits::default()).await
    }

    pub async fn start_with(credentials: Option<Credentials>, limits: Limits) -> Self {
        Self::start_over(None, credentials, limits).await
    }

    /// A server of one person over another store than an SQLite file.
    pub async fn start_over_store(store: Arc<dyn Store>) -> Self {
        Self::start_over(Some(store), None, Limits::default()).await
    }

    /// A server whose callers show credentials, with one more policy.
    pub async fn start_with_policy(credentials: Credentials, policy: &str) -> Self {
        let mut world = Self::new(None, Limits::default()).await;
        world.files.insert("policies/more.yaml".to_owned(), policy.to_owned());
        world.serve(Some(credentials)).await;
        world
    }

    async fn start_over(store: Option<Arc<dyn Store>>, credentials: Option<Credentials>, limits: Limits) -> Self {
        let mut world = Self::new(store, limits).await;
        world.serve(credentials).await;
        world
    }

    /// Everything but the server.
    async fn new(store: Option<Arc<dyn Store>>, limits: Limits) -> Self {
        Self {
            model: ModelServer::start(),
            tools: ToolServer::start().await,
            clock: TestClock::at(Timestamp::from_millis(BEGINNING)),
            files: agents::files(),
            folder: tempfile::tempdir().unwrap(),
            limits,
            store,
            server: None,
            http: reqwest::Client::builder().no_proxy().build().unwrap(),
        }
    }

    /// Starts a server over what is stored.
    async fn serve(&mut self, credentials: Option<Credentials>) {
        let address: SocketAddr = "127.0.0.1:0".parse().unwrap();
        let config = match credentials {
            None => ServerConfig::solo(address),
            Some(credentials) => ServerConfig::with_credentials(address, credentials),
        };
        let config = ServerConfig { limits: self.limits.clone(), ..config };
        let file = || SqliteStore::open(self.folder.path().join("holdpoint.db"), self.clock.shared()).unwrap();
        let store = self.store.clone().unwrap_or_else(|| Arc::new(file()));
        let runtime = Runtime::builder(store).build();
        let environment = agents::environment(&self.model.base_url(), &self.tools.url);
        let catalogue = catalogue(self.folder.path(), &self.files, environment);
        self.server = Some(Served::start(config, runtime, catalogue).await);
    }

    /// Stops the server in good order, and starts another one over what is stored.
    pub async fn restart(&mut self) {
        self.server.take().unwrap().stop().await;
        self.serve(None).await;
    }

    /// Kills the server in the middle of whatever it does, and starts another one over what is stored. The dead one's
    /// leases have run out.
    pub async fn kill_and_start(&mut self) {
        self.server.take().unwrap().kill().await;
        self.clock.advance(Duration::from_secs(60));
        self.serve(None).await;
    }

    pub fn running(&self) -> &Running {
        self.server.as_ref().unwrap().running()
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

    pub async fn post(&self, path: &str, body: Value) -> Answer {
        Answer::to(self.request("POST", path).json(&body)).await
    }

    pub async fn get(&self, path: &str) -> Answer {
        Answer::to(self.request("GET", path)).await
    }

    /// Says something to an agent, in the legacy mode.
    pub async fn say(&self, agent: &str, session: &str, message: &str) -> Answer {
        self.post("/api/v1/chat/stream", saying(agent, session, message)).await
    }

    /// Says something to an agent, in the A2UI mode.
    pub async fn say_a2ui(&self, agent: &str, session: &str, message: &str) -> Answer {
        self.post("/api/v1/chat/stream?a2ui=true", saying(agent, session, message)).await
    }

    pub async fn resume(&self, agent: &str, session: &str, input: Value) -> Answer {
        let body = json!({"agent_id": agent, "session_id": session, "input": input});
        self.post("/api/v1/chat/resume", body).await
    }

    pub async fn resume_a2ui(&self, agent: &str, session: &str, input: Value) -> Answer {
        let body = json!({"agent_id": agent, "session_id": session, "input": input});
        self.post("/api/v1/chat/resume?a2ui=true", body).await
    }

    pub async fn abort(&self, agent: &str, session: &str) -> Value {
        self.post("/api/v1/chat/abort", json!({"agent_id": agent, "session_id": session})).await.json()
    }

    /// What `interrupt_state` says.
    pub async fn state(&self, agent: &str, session: &str) -> Value {
        let path = format!("/api/v1/chat/interrupt_state?agent_id={agent}&session_id={session}");
        let answer = self.get(&path).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        answer.json()
    }

    /// Everything that was ever written, to see that nothing was.
    pub async fn everything(&self) -> String {
        everything(self.running().app().runtime()).await
    }
}

/// The body of a message.
pub fn saying(agent: &str, session: &str, message: &str) -> Value {
    json!({"agent_id": agent, "session_id": session, "message": message})
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

    /// The stable code of an error.
    pub fn code(&self) -> String {
        self.json()["code"].as_str().unwrap_or_default().to_owned()
    }

    /// The data of the frames, as a reader by the standard puts it together.
    #[track_caller]
    pub fn frames(&self) -> Vec<String> {
        assert_eq!(self.status, 200, "{}", self.body);
        self.body.split("\n\n").filter(|block| !block.is_empty()).map(data).collect()
    }

    /// The frames of the A2UI mode: type and data.
    #[track_caller]
    pub fn events(&self) -> Vec<(String, Value)> {
        let event = |frame: String| {
            let mut frame: Value = serde_json::from_str(&frame).unwrap();
            (frame["type"].as_str().unwrap().to_owned(), frame["data"].take())
        };
        self.frames().into_iter().map(event).collect()
    }

    /// What was said in the legacy mode, put together: without the interrupt and the end.
    #[track_caller]
    pub fn said(&self) -> String {
        let is_said = |frame: &String| !frame.starts_with('\0') && frame != "[DONE]";
        self.frames().into_iter().filter(is_said).collect()
    }

    /// The state that the legacy mode's interrupt carries.
    #[track_caller]
    pub fn interrupt(&self) -> Value {
        let frames = self.frames();
        let [.., interrupt, done] = &frames[..] else { panic!("an interrupt expected: {frames:?}") };
        assert_eq!(done, "[DONE]");
        serde_json::from_str(interrupt.strip_prefix("\0INTERRUPT:").expect("an interrupt before the end")).unwrap()
    }
}

fn data(block: &str) -> String {
    let lines: Vec<&str> = block.split('\n').filter_map(|line| line.strip_prefix("data: ")).collect();
    lines.join("\n")
}

/// An answer that is read frame by frame.
pub struct Reading(Blocks);

impl Reading {
    pub async fn begin(request: reqwest::RequestBuilder) -> Self {
        Self(Blocks::begin(request).await)
    }

    /// The data of the next frame; `None` at the end.
    pub async fn next(&mut self) -> Option<String> {
        self.0.next().await.map(|block| data(&block))
    }
}
