//! Slack on loopback: the Web API as far as holdpoint uses it, with Slack's limits, and people who click. It keeps what
//! was posted, misbehaves when a test tells it to, and remembers what it was asked. It lives on a thread of its own, so it
//! serves async tests, plain ones and other processes alike.

mod click;
mod limits;
mod workspace;

use std::collections::VecDeque;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use futures_util::stream;
use serde_json::{Value, json};
use tokio::sync::{oneshot, watch};

pub use click::{Click, Signed, sign};
pub use workspace::{Message, Posted};

use workspace::Workspace;

/// The largest request that is read.
const REQUEST_BYTES_MAX: usize = 4 << 20;

/// Slack for tests.
///
/// Every request is answered as Slack would, unless a [`Trouble`] was [pushed](SlackServer::push) for it.
pub struct SlackServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// What goes wrong with one request.
#[derive(Debug, Clone)]
pub enum Trouble {
    /// 429: not before so many seconds.
    RateLimited(u64),
    /// `ok: false` with this error.
    Error(&'static str),
    /// This status, without a body.
    Status(u16),
    /// The connection breaks before anything was done.
    CutBefore,
    /// It is done, and the connection breaks before the answer.
    CutAfter,
    /// No answer comes, and nothing is done.
    Hang,
    /// It is done, and no answer comes.
    HangAfter,
    /// An answer that is not JSON.
    Nonsense,
}

/// What was asked.
#[derive(Debug, Clone)]
pub struct Call {
    /// Such as `chat.postMessage`.
    pub method: String,
    /// The header `Authorization`.
    pub authorization: String,
    /// The body.
    pub body: Value,
}

struct Shared {
    state: Mutex<State>,
    /// How many requests were answered.
    changed: watch::Sender<u64>,
}

#[derive(Default)]
struct State {
    troubles: VecDeque<Trouble>,
    calls: Vec<Call>,
    workspace: Workspace,
}

impl SlackServer {
    /// Starts on a free port of 127.0.0.1. Dropping it ends it, with every connection.
    ///
    /// # Panics
    /// There is no free port.
    pub fn start() -> Self {
        Self::start_at("127.0.0.1:0")
    }

    /// Starts at a given address, such as that of one that was dropped before.
    ///
    /// # Panics
    /// The address cannot be listened at.
    pub fn start_at(address: &str) -> Self {
        let listener = TcpListener::bind(address).expect("the address of a test server is free");
        listener.set_nonblocking(true).expect("a listener can be made non-blocking");
        let address = listener.local_addr().expect("a listener has an address");
        let shared = Arc::new(Shared { state: Mutex::default(), changed: watch::Sender::new(0) });
        let (stop, stopped) = oneshot::channel();
        let serving = shared.clone();
        let thread = std::thread::spawn(move || serve(listener, serving, stopped));
        Self { address, shared, stop: Some(stop), thread: Some(thread) }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address of its Web API.
    pub fn base_url(&self) -> String {
        format!("http://{}/api", self.address)
    }

    /// Lets this happen to one request, after those that were pushed before.
    pub fn push(&self, trouble: Trouble) {
        self.shared.state().troubles.push_back(trouble);
    }

    /// What it was asked, oldest first.
    pub fn calls(&self) -> Vec<Call> {
        self.shared.state().calls.clone()
    }

    /// What it was asked of one method, oldest first.
    pub fn calls_of(&self, method: &str) -> Vec<Call> {
        self.calls().into_iter().filter(|call| call.method == method).collect()
    }

    /// The messages of all channels as they stand now, oldest first.
    pub fn messages(&self) -> Vec<Message> {
        self.shared.state().workspace.messages.clone()
    }

    /// What single people were told, oldest first.
    pub fn ephemerals(&self) -> Vec<Posted> {
        self.shared.state().workspace.ephemerals.clone()
    }

    /// The modals that were opened, oldest first.
    pub fn views(&self) -> Vec<Value> {
        self.shared.state().workspace.views.clone()
    }

    /// Ends when what is there fits.
    ///
    /// # Panics
    /// It does not within a minute.
    pub async fn until<T>(&self, what: &str, find: impl Fn(&Self) -> Option<T>) -> T {
        let mut changed = self.shared.changed.subscribe();
        let waiting = async {
            loop {
                if let Some(found) = find(self) {
                    return found;
                }
                // The sender lives as long as the server.
                changed.changed().await.ok();
            }
        };
        match tokio::time::timeout(Duration::from_secs(60), waiting).await {
            Ok(found) => found,
            Err(_) => panic!("{what} never came: {:#?}", self.calls()),
        }
    }

    /// As [`SlackServer::until`], without a runtime.
    ///
    /// # Panics
    /// It does not within a minute.
    pub fn wait_until<T>(&self, what: &str, find: impl Fn(&Self) -> Option<T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(self.until(what, find))
    }
}

impl Drop for SlackServer {
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
}

fn serve(listener: TcpListener, shared: Arc<Shared>, stopped: oneshot::Receiver<()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime can be built");
    runtime.block_on(async move {
        let listener = tokio::net::TcpListener::from_std(listener).expect("the listener is non-blocking");
        let app = axum::Router::new().fallback(move |request: Request| {
            let shared = shared.clone();
            async move { answer(&shared, request).await }
        });
        tokio::select! {
            _ = axum::serve(listener, app) => {}
            _ = stopped => {}
        }
    });
    runtime.shutdown_background();
}

async fn answer(shared: &Shared, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let method = parts.uri.path().strip_prefix("/api/").unwrap_or_default().to_owned();
    let authorization = parts.headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let authorization = authorization.unwrap_or_default().to_owned();
    let bytes = axum::body::to_bytes(body, REQUEST_BYTES_MAX).await.unwrap_or_default();
    let body: Value = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
    let trouble = {
        let mut state = shared.state();
        state.calls.push(Call { method: method.clone(), authorization: authorization.clone(), body: body.clone() });
        state.troubles.pop_front()
    };
    let done = || shared.state().workspace.call(&method, &authorization, &body);
    let response = match trouble {
        None => json_response(&done()),
        Some(Trouble::CutAfter) => {
            done();
            cut()
        }
        Some(Trouble::CutBefore) => cut(),
        Some(Trouble::RateLimited(seconds)) => {
            let headers = [(header::RETRY_AFTER, seconds.to_string())];
            (StatusCode::TOO_MANY_REQUESTS, headers, "{\"ok\":false,\"error\":\"ratelimited\"}").into_response()
        }
        Some(Trouble::Error(error)) => json_response(&json!({"ok": false, "error": error})),
        Some(Trouble::Status(status)) => {
            StatusCode::from_u16(status).expect("trouble has a status of HTTP").into_response()
        }
        Some(Trouble::Nonsense) => "<html>no</html>".into_response(),
        Some(trouble @ (Trouble::Hang | Trouble::HangAfter)) => {
            if matches!(trouble, Trouble::HangAfter) {
                done();
            }
            shared.changed.send_modify(|count| *count += 1);
            std::future::pending().await
        }
    };
    shared.changed.send_modify(|count| *count += 1);
    response
}

fn json_response(body: &Value) -> Response {
    ([(header::CONTENT_TYPE, "application/json; charset=utf-8")], body.to_string()).into_response()
}

/// An answer that breaks off in its middle.
fn cut() -> Response {
    let pieces = [Ok("{\"ok\":tr"), Err(std::io::Error::other("cut"))];
    let mut response = Response::new(Body::from_stream(stream::iter(pieces)));
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    response
}
