//! A server that can be stopped, killed and started again, and a client that reads chunks.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::response::IntoResponse as _;
use holdpoint_core::time::Timestamp;
use holdpoint_runtime::Runtime;
use holdpoint_runtime::settings::Settings;
use holdpoint_server::access::{Credentials, Role};
use holdpoint_server::limits::Limits;
use holdpoint_server::protocols::mastra::Prefix;
use holdpoint_server::{Running, ServerConfig};
use holdpoint_stores::sqlite::SqliteStore;
use holdpoint_testkit::clock::TestClock;
use holdpoint_testkit::model_server::ModelServer;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::agents;
use crate::common::{Blocks, Files, Served, ToolServer, catalogue, everything, keys};

/// A server, its model, its tools, and the time.
pub struct World {
    pub model: ModelServer,
    pub tools: ToolServer,
    pub clock: TestClock,
    /// Agents, by path; a change counts from the next start on.
    pub files: Files,
    /// The name of the variable in which agents find their tools; it too counts from the next start on.
    pub tools_variable: &'static str,
    folder: TempDir,
    setup: Setup,
    server: Option<Served>,
    http: reqwest::Client,
}

/// How a server is set up.
pub struct Setup {
    pub prefix: &'static str,
    pub settings: Settings,
}

impl Default for Setup {
    fn default() -> Self {
        let settings = Settings { pause_deadline: Some(Duration::from_secs(300)), ..Settings::default() };
        Self { prefix: "/api", settings }
    }
}

impl World {
    /// A server of one person.
    pub async fn start() -> Self {
        Self::start_with(None, Setup::default()).await
    }

    pub async fn start_with(credentials: Option<Credentials>, setup: Setup) -> Self {
        let model = ModelServer::start();
        model.script(agents::reply);
        let mut world = Self {
            model,
            tools: ToolServer::answering(done).await,
            clock: TestClock::at(Timestamp::from_millis(1_794_768_833_000)),
            files: agents::files(),
            tools_variable: "TOOLS",
            folder: tempfile::tempdir().unwrap(),
            setup,
            server: None,
            http: reqwest::Client::builder().no_proxy().build().unwrap(),
        };
        world.serve(credentials).await;
        world
    }

    /// Starts a server over what is stored.
    async fn serve(&mut self, credentials: Option<Credentials>) {
        let address: SocketAddr = "127.0.0.1:0".parse().unwrap();
        let config = match credentials {
            None => ServerConfig::solo(address),
            Some(credentials) => ServerConfig::with_credentials(address, credentials),
        };
        // Races in these tests are many requests at once.
        let limits = Limits { requests_per_second: 100_000, requests_burst: 100_000, ..Limits::default() };
        let config = ServerConfig { limits, mastra_prefix: Prefix::new(self.setup.prefix).unwrap(), ..config };
        let store = SqliteStore::open(self.folder.path().join("holdpoint.db"), self.clock.shared()).unwrap();
        let runtime = Runtime::builder(Arc::new(store)).settings(self.setup.settings.clone()).build();
        let environment = agents::environment(&self.model.base_url(), self.tools_variable, &self.tools.url);
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

    /// A request that is still to be sent.
    pub fn request(&self, method: &str, path: &str) -> reqwest::RequestBuilder {
        let url = format!("http://{}{}{path}", self.running().address(), self.setup.prefix);
        self.http.request(method.parse().unwrap(), url)
    }

    pub async fn post(&self, path: &str, body: Value) -> Answer {
        Answer::to(self.request("POST", path).json(&body)).await
    }

    pub async fn get(&self, path: &str) -> Answer {
        Answer::to(self.request("GET", path)).await
    }

    /// Says something to the file agent.
    pub async fn say(&self, message: &str) -> Answer {
        self.post("/agents/file-agent/stream", json!({ "messages": message })).await
    }

    /// A run of the file agent that waits: its name, and the names of the calls that wait.
    #[track_caller]
    pub fn held(&self, message: &str) -> impl Future<Output = (String, Vec<String>)> {
        let saying = self.request("POST", "/agents/file-agent/stream").json(&json!({ "messages": message }));
        async move {
            let answer = Answer::to(saying).await;
            (answer.run(), answer.waiting())
        }
    }

    pub async fn approve(&self, run: &str, call: &str) -> Answer {
        self.post("/agents/file-agent/approve-tool-call", deciding(run, call)).await
    }

    pub async fn decline(&self, run: &str, call: &str, reason: &str) -> Answer {
        let body = json!({"runId": run, "toolCallId": call, "reason": reason});
        self.post("/agents/file-agent/decline-tool-call", body).await
    }

    /// What waits of the file agent.
    pub async fn suspended(&self) -> Value {
        self.get("/agents/file-agent/suspended-runs").await.json()
    }

    /// Everything that was ever written, to see that nothing was.
    pub async fn everything(&self) -> String {
        everything(self.running().app().runtime()).await
    }
}

/// What the tools answer.
fn done(body: &str) -> axum::response::Response {
    Json(json!({"done": serde_json::from_str::<Value>(body).unwrap()})).into_response()
}

pub fn deciding(run: &str, call: &str) -> Value {
    json!({"runId": run, "toolCallId": call})
}

/// Credentials for the programs `ana` and `ben`, and for `carla` who approves; and their keys.
pub fn credentials() -> (Credentials, [String; 3]) {
    keys([("ana", Role::Agent), ("ben", Role::Agent), ("carla", Role::Approver)])
}

/// A whole answer.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub content_type: String,
    pub body: String,
}

impl Answer {
    pub async fn to(request: reqwest::RequestBuilder) -> Self {
        let response = request.send().await.unwrap();
        let content_type = response.headers()["content-type"].to_str().unwrap().to_owned();
        Self { status: response.status().as_u16(), content_type, body: response.text().await.unwrap() }
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        assert_eq!(self.content_type, "application/json", "{}", self.body);
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    /// The status and the stable code of an error.
    #[track_caller]
    pub fn refusal(&self) -> (u16, String) {
        let body = self.json();
        assert!(!body["error"].as_str().unwrap().is_empty(), "{body}");
        (self.status, body["code"].as_str().unwrap_or_default().to_owned())
    }

    /// The chunks, read as the client reads them: each is one line after `data: `, and `[DONE]` is the last.
    #[track_caller]
    pub fn chunks(&self) -> Vec<Value> {
        assert_eq!((self.status, self.content_type.as_str()), (200, "text/event-stream"), "{}", self.body);
        let frames: Vec<&str> = self.body.split("\n\n").collect();
        let [chunks @ .., done, ""] = &frames[..] else { panic!("no end: {}", self.body) };
        assert_eq!(*done, "data: [DONE]");
        let chunk = |frame: &&str| serde_json::from_str(frame.strip_prefix("data: ").unwrap()).unwrap();
        let chunks: Vec<Value> = chunks.iter().filter(|frame| !frame.starts_with(": ")).map(chunk).collect();
        for chunk in &chunks {
            assert_eq!(chunk["from"], json!("AGENT"), "{chunk}");
            assert!(chunk["runId"].is_string() && chunk["payload"].is_object(), "{chunk}");
        }
        chunks
    }

    /// The types of the chunks, each run of the same one once.
    #[track_caller]
    pub fn types(&self) -> Vec<String> {
        let mut types: Vec<String> =
            self.chunks().iter().map(|chunk| chunk["type"].as_str().unwrap().to_owned()).collect();
        types.dedup();
        types
    }

    /// The payloads of all chunks of a type.
    #[track_caller]
    pub fn payloads(&self, kind: &str) -> Vec<Value> {
        let chunks = self.chunks();
        chunks.into_iter().filter(|chunk| chunk["type"] == kind).map(|mut chunk| chunk["payload"].take()).collect()
    }

    /// The run's name, the same in all chunks.
    #[track_caller]
    pub fn run(&self) -> String {
        let mut names: Vec<String> =
            self.chunks().iter().map(|chunk| chunk["runId"].as_str().unwrap().to_owned()).collect();
        names.dedup();
        let [name] = &names[..] else { panic!("one run expected: {names:?}") };
        name.clone()
    }

    /// The names of the calls that wait for an approval.
    #[track_caller]
    pub fn waiting(&self) -> Vec<String> {
        let name = |payload: Value| payload["toolCallId"].as_str().unwrap().to_owned();
        self.payloads("tool-call-approval").into_iter().map(name).collect()
    }

    /// What was said, put together.
    #[track_caller]
    pub fn text(&self) -> String {
        self.payloads("text-delta").iter().map(|payload| payload["text"].as_str().unwrap()).collect()
    }
}

/// An answer that is read chunk by chunk.
pub struct Reading(Blocks);

impl Reading {
    pub async fn begin(request: reqwest::RequestBuilder) -> Self {
        Self(Blocks::begin(request).await)
    }

    /// The next chunk; `None` at `[DONE]` or the end.
    pub async fn next(&mut self) -> Option<Value> {
        loop {
            match self.0.next().await?.strip_prefix("data: ") {
                None => {}
                Some("[DONE]") => return None,
                Some(json) => return Some(serde_json::from_str(json).unwrap()),
            }
        }
    }

    /// Reads on to a chunk of this type.
    pub async fn until(&mut self, kind: &str) -> Value {
        loop {
            let chunk = self.next().await.unwrap_or_else(|| panic!("the stream ended before {kind}"));
            if chunk["type"] == kind {
                return chunk;
            }
        }
    }
}
