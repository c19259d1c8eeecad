//! Three servers over one database, with one agent whose model says what the test tells it.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use holdpoint_core::json::CanonicalJson;
use holdpoint_core::message::Content;
use holdpoint_runtime::Runtime;
use holdpoint_runtime::agent::Agent;
use holdpoint_runtime::ports::model::{Delta, DeltaSink, Model, ModelFault, ModelReply, ModelRequest, ProposedCall};
use holdpoint_runtime::ports::tool::{RunTool, Tool, ToolContext, ToolFailure};
use holdpoint_server::agents::{Catalogue, ServedAgent};
use holdpoint_server::{Running, ServerConfig, serve};
use serde_json::Value;
use tokio::sync::{Mutex, Semaphore, mpsc};

use crate::database::{Database, Kind};

/// Waits for something that must come.
pub async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), what).await.expect("it comes in time")
}

pub struct Cluster {
    pub servers: [Instance; 3],
    pub effects: Arc<Effects>,
    lines: mpsc::UnboundedSender<Line>,
    // After the servers.
    _database: Database,
}

/// One server.
pub struct Instance {
    running: Running,
    http: reqwest::Client,
}

enum Line {
    Say(String),
    Reply(ModelReply),
}

struct Speaker(Mutex<mpsc::UnboundedReceiver<Line>>);

#[async_trait]
impl Model for Speaker {
    async fn reply(&self, _: ModelRequest, deltas: DeltaSink) -> Result<ModelReply, ModelFault> {
        let mut lines = self.0.lock().await;
        loop {
            match lines.recv().await.expect("the test goes on") {
                Line::Say(text) => deltas.tell(Delta::Text(text)),
                Line::Reply(reply) => return Ok(reply),
            }
        }
    }

    fn name(&self) -> &str {
        "speaker"
    }
}

/// What the tools did. `pay` is held and ends at once, `wait` runs until it is cancelled.
pub struct Effects {
    pub paid: Semaphore,
    pub waiting: Semaphore,
    pub cancelled: Semaphore,
}

struct Doing(Arc<Effects>);

#[async_trait]
impl RunTool for Doing {
    async fn run(&self, context: ToolContext, _: CanonicalJson) -> Result<Content, ToolFailure> {
        if context.tool.as_str() == "pay" {
            self.0.paid.add_permits(1);
        } else {
            self.0.waiting.add_permits(1);
            context.cancelled.cancelled().await;
            self.0.cancelled.add_permits(1);
        }
        Ok(Content::Text("done".to_owned()))
    }
}

impl Cluster {
    pub async fn over(kind: Kind) -> Self {
        let database = Database::new(kind).await;
        let (lines, told) = mpsc::unbounded_channel();
        let gate = || Semaphore::new(0);
        let effects = Arc::new(Effects { paid: gate(), waiting: gate(), cancelled: gate() });
        let tool = |name: &str| {
            Tool::builder(name).needs_approval(name == "pay").runner(Doing(effects.clone())).build().unwrap()
        };
        let model = Arc::new(Speaker(Mutex::new(told)));
        let agent = Agent::builder("desk").model(model).tool(tool("pay")).tool(tool("wait")).build().unwrap();
        let mut servers = Vec::new();
        for _ in 0..3 {
            let runtime = Runtime::builder(database.store().await).build();
            let catalogue = Catalogue::of([ServedAgent::new("desk", agent.graph().unwrap())]);
            let config = ServerConfig::solo("127.0.0.1:0".parse().unwrap());
            let running = serve(config, runtime, catalogue).await.unwrap();
            servers.push(Instance { running, http: reqwest::Client::builder().no_proxy().build().unwrap() });
        }
        let knows_all = |server: &Instance| server.running.app().runtime().instances_elsewhere() == 2;
        soon(async {
            while !servers.iter().all(knows_all) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
        let servers = servers.try_into().unwrap_or_else(|_| panic!("three were made"));
        Self { servers, effects, lines, _database: database }
    }

    pub fn say(&self, text: &str) {
        self.lines.send(Line::Say(text.to_owned())).unwrap();
    }

    pub fn reply(&self, text: &str) {
        self.lines.send(Line::Reply(ModelReply { text: Some(text.to_owned()), ..ModelReply::default() })).unwrap();
    }

    /// The model asks for a tool.
    pub fn call(&self, tool: &str) {
        let call = ProposedCall { id: format!("call-{tool}"), tool: tool.to_owned(), arguments: "{}".to_owned() };
        self.lines.send(Line::Reply(ModelReply { calls: vec![call], ..ModelReply::default() })).unwrap();
    }
}

impl Instance {
    pub fn request(&self, method: &str, path: &str) -> reqwest::RequestBuilder {
        self.http.request(method.parse().unwrap(), format!("http://{}{path}", self.running.address()))
    }

    pub async fn get(&self, path: &str) -> Value {
        answer(self.request("GET", path)).await
    }

    pub async fn post(&self, path: &str, body: Value) -> Value {
        answer(self.request("POST", path).json(&body)).await
    }
}

async fn answer(request: reqwest::RequestBuilder) -> Value {
    let response = soon(request.send()).await.unwrap();
    let (status, body) = (response.status(), response.text().await.unwrap());
    assert!(status.is_success(), "{status}: {body}");
    serde_json::from_str(&body).unwrap()
}

/// A stream that is read frame by frame, with a short line for each; words in a row are one.
pub struct Reading {
    response: reqwest::Response,
    unread: String,
    pub seen: Vec<String>,
}

impl Reading {
    pub async fn begin(request: reqwest::RequestBuilder) -> Self {
        let response = soon(request.header("accept", "text/event-stream").send()).await.unwrap();
        assert_eq!(response.status().as_u16(), 200);
        Self { response, unread: String::new(), seen: Vec::new() }
    }

    /// Reads on to the first frame of this event; gives its data.
    pub async fn until(&mut self, event: &str) -> Value {
        loop {
            let (name, data) = self.next().await;
            if name == event {
                return data;
            }
        }
    }

    /// Reads on until these are the last words.
    pub async fn until_said(&mut self, words: &str) {
        while self.seen.last().is_none_or(|last| *last != format!("says: {words}")) {
            self.next().await;
        }
    }

    async fn next(&mut self) -> (String, Value) {
        loop {
            while let Some((block, rest)) = self.unread.split_once("\n\n") {
                let (frame, rest) = (self::frame(block), rest.to_owned());
                self.unread = rest;
                if let Some((id, event, data)) = frame {
                    self.note(id, &event, &data);
                    return (event, data);
                }
            }
            let chunk = soon(self.response.chunk()).await.unwrap().expect("the stream goes on");
            self.unread.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }

    fn note(&mut self, id: Option<String>, event: &str, data: &Value) {
        match (event, self.seen.last_mut()) {
            ("delta", Some(last)) if last.starts_with("says: ") => last.push_str(data["text"].as_str().unwrap()),
            ("delta", _) => self.seen.push(format!("says: {}", data["text"].as_str().unwrap())),
            _ => self.seen.push(format!("{} {event}", id.unwrap_or_default())),
        }
    }
}

fn frame(block: &str) -> Option<(Option<String>, String, Value)> {
    let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned);
    let data = serde_json::from_str(&field("data: ")?).unwrap();
    Some((field("id: "), field("event: ").unwrap_or_default(), data))
}
