//! A model provider on loopback: speaks chat completions, responses and messages, says what a test tells it to say, and
//! remembers what it was asked. It lives on a thread of its own, so it serves async tests, plain ones and other
//! processes alike.

mod answer;
mod asked;
mod wire;

use std::collections::VecDeque;
use std::convert::Infallible;
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::serve::ListenerExt as _;
use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use tokio::sync::{oneshot, watch};

pub use answer::{Answer, Gate};
pub use asked::Asked;

use answer::{Kind, Said, Step};
use wire::Wire;

/// A model provider for tests.
///
/// ```
/// use holdpoint_testkit::model_server::{Answer, ModelServer};
/// use serde_json::json;
///
/// let server = ModelServer::start();
/// server.push(Answer::call("get_weather", json!({"location": "Oakland"})));
/// server.push(Answer::text("It is sunny in Oakland."));
/// println!("OPENAI_BASE_URL={}", server.base_url());
/// ```
///
/// Answers that were [pushed](ModelServer::push) are given first, one for each request. After them, or without any, the
/// [script](ModelServer::script) answers each request by what is in it. Without either it answers 500 and says so.
pub struct ModelServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

type Script = Arc<dyn Fn(&Asked) -> Answer + Send + Sync>;

struct Shared {
    state: Mutex<State>,
    /// How many requests arrived.
    arrived: watch::Sender<usize>,
    /// Tells two replies and two calls apart.
    numbers: AtomicU64,
}

#[derive(Default)]
struct State {
    pushed: VecDeque<Answer>,
    script: Option<Script>,
    asked: Vec<Asked>,
}

/// The largest request that is read.
const REQUEST_BYTES_MAX: usize = 64 << 20;

impl ModelServer {
    /// Starts a server on a free port of 127.0.0.1. Dropping it ends it, with every connection.
    ///
    /// # Panics
    /// There is no free port.
    pub fn start() -> Self {
        Self::start_at("127.0.0.1:0")
    }

    /// Starts a server at a given address, such as that of one that was dropped before.
    ///
    /// # Panics
    /// The address cannot be listened at.
    pub fn start_at(address: &str) -> Self {
        let listener = TcpListener::bind(address).expect("the address of a test server is free");
        listener.set_nonblocking(true).expect("a listener can be made non-blocking");
        let address = listener.local_addr().expect("a listener has an address");
        let shared =
            Arc::new(Shared { state: Mutex::default(), arrived: watch::Sender::new(0), numbers: AtomicU64::new(0) });
        let (stop, stopped) = oneshot::channel();
        let serving = shared.clone();
        let thread = std::thread::spawn(move || serve(listener, serving, stopped));
        Self { address, shared, stop: Some(stop), thread: Some(thread) }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its address without a path: `http://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Its address as clients of OpenAI are given it: `http://127.0.0.1:PORT/v1`.
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Gives this answer to one request, after those that were pushed before.
    pub fn push(&self, answer: Answer) {
        self.state().pushed.push_back(answer);
    }

    /// Answers each request for which nothing was pushed by what is in it.
    pub fn script(&self, script: impl Fn(&Asked) -> Answer + Send + Sync + 'static) {
        self.state().script = Some(Arc::new(script));
    }

    /// What it was asked, oldest first.
    pub fn requests(&self) -> Vec<Asked> {
        self.state().asked.clone()
    }

    /// What it was asked last.
    ///
    /// # Panics
    /// It was not asked anything.
    pub fn last_request(&self) -> Asked {
        self.state().asked.last().cloned().expect("the model server was asked")
    }

    /// Ends when it was asked so many times since its start.
    pub async fn wait_for_requests(&self, count: usize) {
        let mut arrived = self.shared.arrived.subscribe();
        // The sender lives as long as the server.
        arrived.wait_for(|arrived| *arrived >= count).await.ok();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state()
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed) + 1
    }

    fn choose(&self, asked: &Asked) -> Answer {
        let mut state = self.state();
        let pushed = state.pushed.pop_front();
        let script = state.script.clone();
        state.asked.push(asked.clone());
        let count = state.asked.len();
        // The script runs without the lock: it may panic, and it may look at the server.
        drop(state);
        self.arrived.send_replace(count);
        match (pushed, script) {
            (Some(answer), _) => answer,
            (None, Some(script)) => script(asked),
            (None, None) => Answer::error(500, "the test's model server has no answer for this request"),
        }
    }
}

fn serve(listener: TcpListener, shared: Arc<Shared>, stopped: oneshot::Receiver<()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime can be built");
    runtime.block_on(async move {
        let listener = tokio::net::TcpListener::from_std(listener).expect("the listener is non-blocking");
        let app = axum::Router::new().fallback(move |request: Request| {
            let shared = shared.clone();
            async move { answer(&shared, request).await }
        });
        // Tokens leave as they come, as they do from real models' servers.
        let listener = listener.tap_io(|stream| _ = stream.set_nodelay(true));
        tokio::select! {
            _ = axum::serve(listener, app) => {}
            _ = stopped => {}
        }
    });
    // With the runtime end its connections, also those that hang.
    runtime.shutdown_background();
}

async fn answer(shared: &Arc<Shared>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let path = parts.uri.path().to_owned();
    let Some(wire) = Wire::of(parts.method.as_str(), &path) else {
        return (StatusCode::NOT_FOUND, format!("no model is at {} {path}", parts.method)).into_response();
    };
    let body = axum::body::to_bytes(body, REQUEST_BYTES_MAX).await.unwrap_or_default();
    let Ok(body) = serde_json::from_slice(&body) else {
        return (StatusCode::BAD_REQUEST, wire.error(400, "the request is not JSON").to_string()).into_response();
    };
    let asked = Asked::new(&parts, body);
    let answer = shared.choose(&asked);
    let mut response = match answer.kind {
        Kind::Said(said) => speak(wire, shared, &asked, said),
        Kind::Status { status, body } => {
            let body = body.unwrap_or_else(|message| wire.error(status, &message).to_string());
            let status = StatusCode::from_u16(status).expect("an answer has a status of HTTP");
            (status, [(header::CONTENT_TYPE, "application/json")], body).into_response()
        }
        Kind::Raw { content_type, chunks, end } => {
            let chunks = stream::iter(chunks.into_iter().map(Step::Raw).chain(end));
            let body = Body::from_stream(chunks.then(perform).boxed());
            ([(header::CONTENT_TYPE, content_type)], body).into_response()
        }
    };
    for (name, value) in answer.headers {
        let value = HeaderValue::from_str(&value).expect("an answer has headers of HTTP");
        response.headers_mut().insert(name, value);
    }
    response
}

fn speak(wire: Wire, shared: &Shared, asked: &Asked, said: Said) -> Response {
    let number = shared.number();
    if said.is_plain || !asked.wants_stream() {
        let body = wire.whole(asked, number, &said).to_string();
        return ([(header::CONTENT_TYPE, "application/json")], body).into_response();
    }
    let frames = wire.frames(asked, number, said);
    let body: BoxStream<'static, Result<String, Cut>> = stream::iter(frames).then(perform).boxed();
    let headers = [(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-cache")];
    (headers, Body::from_stream(body)).into_response()
}

/// The connection ends in the middle of an answer.
#[derive(Debug, Clone, Copy)]
struct Cut;

impl std::fmt::Display for Cut {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the answer is cut here")
    }
}

impl std::error::Error for Cut {}

async fn perform(step: Step) -> Result<String, Cut> {
    match step {
        Step::Raw(text) => Ok(text),
        Step::Gate(gate) => {
            gate.pass().await;
            Ok(String::new())
        }
        Step::Wait(duration) => {
            tokio::time::sleep(duration).await;
            Ok(String::new())
        }
        Step::Hang => {
            let never: Infallible = std::future::pending().await;
            match never {}
        }
        // What was said before leaves first: the connection is flushed when its body is not ready.
        Step::Cut => {
            tokio::task::yield_now().await;
            Err(Cut)
        }
        Step::Text(_) | Step::Thinking(_) | Step::Call { .. } => Ok(String::new()),
    }
}
