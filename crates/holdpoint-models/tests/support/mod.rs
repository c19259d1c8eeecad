//! What the tests over real connections share: requests, listeners, clocks, and servers that are no servers.
#![allow(dead_code, clippy::unwrap_used)] // Each test file uses its own part.

use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use holdpoint_core::ids::{FramePath, ToolName};
use holdpoint_core::message::Item;
use holdpoint_core::time::Timestamp;
use holdpoint_models::HttpSettings;
use holdpoint_models::anthropic::{Anthropic, AnthropicSettings};
use holdpoint_models::openai::{OpenAi, OpenAiSettings};
use holdpoint_runtime::ports::clock::Clock;
use holdpoint_runtime::ports::model::{Delta, DeltaSink, Model, ModelFault, ModelReply, ModelRequest, OfferedTool};
use serde_json::{Value, json};
use tokio::sync::watch;

pub const KEY: &str = "sk-test-0123456789-do-not-tell";

/// A request with one tool, whose name providers refuse.
pub fn request(text: &str) -> ModelRequest {
    let tool = OfferedTool {
        name: ToolName::new("files.read").unwrap(),
        description: "Reads a file.".to_owned(),
        schema: json!({"type": "object", "properties": {"path": {"type": "string"}}}),
    };
    ModelRequest {
        run: "run_0198c0ffee007000800000000000beef".parse().unwrap(),
        frame: FramePath::root(),
        turn: 1,
        agent: "Helper".parse().unwrap(),
        instructions: "You help.".into(),
        items: Arc::new([Arc::new(Item::User(text.into()))]),
        tools: Arc::new([tool]),
        settings: Arc::new(Value::Null),
    }
}

/// The three protocols, each with a model behind it.
pub fn models(url: &str, http: &HttpSettings, clock: &Arc<dyn Clock>) -> Vec<(&'static str, Arc<dyn Model>)> {
    let openai = openai(url, http, clock);
    vec![
        ("chat", Arc::new(openai.chat("m"))),
        ("responses", Arc::new(openai.responses("m"))),
        ("messages", Arc::new(anthropic(url, http, clock).messages("m"))),
    ]
}

pub fn openai(url: &str, http: &HttpSettings, clock: &Arc<dyn Clock>) -> OpenAi {
    let settings = OpenAiSettings {
        base_url: url.to_owned(),
        api_key: Some(KEY.into()),
        http: http.clone(),
        ..OpenAiSettings::default()
    };
    OpenAi::with_clock(settings, clock.clone()).unwrap()
}

pub fn anthropic(url: &str, http: &HttpSettings, clock: &Arc<dyn Clock>) -> Anthropic {
    let settings = AnthropicSettings { base_url: url.to_owned(), api_key: Some(KEY.into()), http: http.clone() };
    Anthropic::with_clock(settings, clock.clone()).unwrap()
}

/// What was told, and a way to wait for it.
#[derive(Clone)]
pub struct Told {
    deltas: Arc<Mutex<Vec<Delta>>>,
    count: watch::Sender<usize>,
}

impl Told {
    pub fn new() -> Self {
        Self { deltas: Arc::default(), count: watch::Sender::new(0) }
    }

    pub fn sink(&self) -> DeltaSink {
        let told = self.clone();
        DeltaSink::new(move |delta| {
            told.deltas.lock().unwrap().push(delta);
            told.count.send_modify(|count| *count += 1);
        })
    }

    pub async fn wait_for(&self, count: usize) {
        self.count.subscribe().wait_for(|told| *told >= count).await.unwrap();
    }

    pub fn all(&self) -> Vec<Delta> {
        self.deltas.lock().unwrap().clone()
    }

    pub fn text(&self) -> String {
        let text = |delta: &Delta| if let Delta::Text(text) = delta { Some(text.clone()) } else { None };
        self.all().iter().filter_map(text).collect()
    }
}

pub async fn ask(model: &Arc<dyn Model>) -> Result<ModelReply, ModelFault> {
    model.reply(request("hello"), DeltaSink::none()).await
}

/// A clock by which waits between attempts are over at once, and written down, while time-outs never come.
#[derive(Clone, Default)]
pub struct Waits(Arc<Mutex<Vec<Duration>>>);

/// Time-outs that [`Waits`] takes for such.
pub fn patient() -> HttpSettings {
    let never = Duration::from_secs(1_000_000);
    HttpSettings { first_byte_timeout: never, idle_timeout: never, total_timeout: never, ..HttpSettings::default() }
}

impl Waits {
    pub fn clock(&self) -> Arc<dyn Clock> {
        Arc::new(self.clone())
    }

    pub fn take(&self) -> Vec<Duration> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

impl Clock for Waits {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(0)
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        if duration >= Duration::from_secs(1_000_000) {
            return Box::pin(std::future::pending());
        }
        self.0.lock().unwrap().push(duration);
        Box::pin(std::future::ready(()))
    }
}

/// A server that says these bytes to everybody who connects, whatever is asked, and then hangs or goes.
pub struct RawServer {
    pub address: SocketAddr,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum After {
    Hang,
    Close,
}

impl RawServer {
    pub fn start(bytes: &[u8], after: After) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let bytes = bytes.to_vec();
        std::thread::spawn(move || {
            let mut kept = Vec::new();
            for stream in listener.incoming() {
                use std::io::{Read as _, Write as _};
                let Ok(mut stream) = stream else { return };
                // Something of the request is read first, so that closing does not reset the connection.
                let mut some = [0; 16 << 10];
                if stream.read(&mut some).is_err() {
                    continue;
                }
                stream.write_all(&bytes).ok();
                if after == After::Hang {
                    kept.push(stream);
                }
            }
        });
        Self { address }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

/// An address where nobody listens.
pub fn nobody() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}
