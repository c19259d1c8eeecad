//! A server over agents from files, with a model and tools on loopback, that can be killed and started again.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use holdpoint_config::{FixedEnvironment, ServerFlags, load_server};
use holdpoint_core::time::Timestamp;
use holdpoint_runtime::Runtime;
use holdpoint_runtime::ports::tool::Deadline;
use holdpoint_runtime::settings::Settings;
use holdpoint_server::access::Credentials;
use holdpoint_server::limits::Limits;
use holdpoint_server::{Running, ServerConfig, serve};
use holdpoint_stores::sqlite::SqliteStore;
use holdpoint_testkit::clock::TestClock;
use holdpoint_testkit::model_server::ModelServer;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::agents;
use crate::client::Client;
use crate::tool_server::ToolServer;

/// When every stage begins.
pub const BEGINNING: i64 = 1_794_744_000_000;

/// How a stage is set up.
#[derive(Default)]
pub struct Setup {
    /// Whether callers show keys; see [`agents::key`].
    pub has_keys: bool,
    /// What callers show instead.
    pub credentials: Option<Arc<dyn Fn() -> Credentials + Send + Sync>>,
    pub limits: Option<Limits>,
    /// Whether who began a run may decide what it asks.
    pub requester_may_not_approve: bool,
}

/// A server, its model, its tools, and the time.
pub struct Stage {
    pub model: ModelServer,
    pub tools: ToolServer,
    pub clock: TestClock,
    files: BTreeMap<String, String>,
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

impl Stage {
    /// A server of one person.
    pub async fn solo() -> Self {
        Self::with(Setup::default()).await
    }

    /// A server whose callers show keys.
    pub async fn with_keys() -> Self {
        Self::with(Setup { has_keys: true, ..Setup::default() }).await
    }

    pub async fn with(setup: Setup) -> Self {
        let mut stage = Self {
            model: ModelServer::start(),
            tools: ToolServer::start().await,
            clock: TestClock::at(Timestamp::from_millis(BEGINNING)),
            files: agents::files(),
            folder: tempfile::tempdir().unwrap(),
            setup,
            server: None,
            http: reqwest::Client::builder().no_proxy().build().unwrap(),
        };
        stage.serve().await;
        stage
    }

    async fn serve(&mut self) {
        let threads = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let address: SocketAddr = "127.0.0.1:0".parse().unwrap();
        let config = ServerConfig {
            credentials: match &self.setup.credentials {
                Some(credentials) => Some(credentials()),
                None => self.setup.has_keys.then(agents::credentials),
            },
            limits: self.setup.limits.clone().unwrap_or_default(),
            requester_may_approve: !self.setup.requester_may_not_approve,
            stop_grace: Duration::from_secs(5),
            ..ServerConfig::solo(address)
        };
        let store = SqliteStore::open(self.folder.path().join("holdpoint.db"), self.clock.shared()).unwrap();
        let runtime = Runtime::builder(Arc::new(store)).settings(settings()).build();
        let catalogue = agents::catalogue(self.folder.path(), &self.files, &self.model.base_url(), &self.tools.url);
        let running = threads.spawn(async move { serve(config, runtime, catalogue).await }).await.unwrap().unwrap();
        self.server = Some(Server { threads, running });
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

    /// As [`Stage::kill_and_start`], with other bounds.
    pub async fn restart_with(&mut self, limits: Limits) {
        self.setup.limits = Some(limits);
        self.kill_and_start().await;
    }

    /// As [`Stage::kill_and_start`], with a file that is new or has changed.
    pub async fn replace_file(&mut self, path: &str, text: &str) {
        self.files.insert(path.to_owned(), text.to_owned());
        self.kill_and_start().await;
    }

    /// As [`Stage::kill_and_start`], without a file.
    pub async fn remove_file(&mut self, path: &str) {
        self.files.remove(path);
        self.kill_and_start().await;
    }

    pub fn running(&self) -> &Running {
        &self.server.as_ref().unwrap().running
    }

    pub fn address(&self) -> SocketAddr {
        self.running().address()
    }

    /// A connection that was greeted.
    pub async fn connect(&self) -> Client {
        Client::connect(self.address(), None).await
    }

    /// As [`Stage::connect`], by one of the callers who show keys.
    pub async fn connect_by(&self, who: &str) -> Client {
        Client::connect(self.address(), Some(&agents::key(who))).await
    }

    /// A request that is still to be sent.
    pub fn request(&self, method: &str, path: &str) -> reqwest::RequestBuilder {
        self.http.request(method.parse().unwrap(), format!("http://{}{path}", self.address()))
    }

    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        Answer::to(self.request("POST", path).json(body)).await
    }

    pub async fn get(&self, path: &str) -> Answer {
        Answer::to(self.request("GET", path)).await
    }

    /// A command over HTTP.
    pub async fn command(&self, session: &str, body: &Value) -> Answer {
        self.post(&commands_path(session), body).await
    }

    /// What the session's history says, message by message.
    pub async fn history(&self, session: &str) -> Vec<Value> {
        let answer = self.get(&format!("/api/v1/sessions/{session}/history")).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        serde_json::from_str(&answer.body).unwrap_or_else(|error| panic!("{error}: {}", answer.body))
    }

    /// The first events that the twin of the stream over HTTP tells after a number.
    pub async fn server_sent(&self, session: &str, after: u64, count: usize) -> Vec<Value> {
        let path = format!("/api/v1/sessions/{session}/blocks?after={after}");
        let mut response = self.request("GET", &path).send().await.unwrap();
        assert_eq!(response.status().as_u16(), 200);
        let mut text = String::new();
        let mut events: Vec<Value> = Vec::new();
        let deadline = tokio::time::Instant::now() + Duration::from_secs(30);
        // The first says how the session stands.
        while events.len() < count + 1 {
            let chunk = tokio::time::timeout_at(deadline, response.chunk()).await.expect("the frames in time");
            text.push_str(std::str::from_utf8(&chunk.unwrap().expect("more frames")).unwrap());
            while let Some((frame, rest)) = text.split_once("\n\n") {
                let data = frame.lines().find_map(|line| line.strip_prefix("data: "));
                events.extend(data.map(|data| serde_json::from_str::<Value>(data).unwrap()));
                text = rest.to_owned();
            }
        }
        events.remove(0);
        events
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

impl Drop for Stage {
    fn drop(&mut self) {
        if let Some(server) = self.server.take() {
            drop(server.running);
            server.threads.shutdown_background();
        }
    }
}

/// The deadlines that the program has without any settings.
fn settings() -> Settings {
    let config = load_server(&FixedEnvironment::empty(), &ServerFlags::default()).config.unwrap();
    Settings {
        pause_deadline: config.pause_deadline,
        question_deadline: config.question_deadline.map_or(Deadline::Never, Deadline::After),
        ..Settings::default()
    }
}

/// Where a session's commands are posted.
pub fn commands_path(session: &str) -> String {
    format!("/api/v1/sessions/{session}/commands")
}

/// A message to an agent.
pub fn message(agent: &str, session: &str, content: &str) -> Value {
    json!({"type": "message", "agent_id": agent, "session_id": session, "content": content})
}

/// A whole answer to a request.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub body: String,
}

impl Answer {
    pub async fn to(request: reqwest::RequestBuilder) -> Self {
        let response = request.send().await.unwrap();
        Self { status: response.status().as_u16(), body: response.text().await.unwrap() }
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }
}
