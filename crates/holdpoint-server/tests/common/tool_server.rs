//! The world behind an agent's tools: counts what reached it, and answers when the test lets it.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use tokio::sync::watch;

/// A server that tools call.
pub struct ToolServer {
    pub url: String,
    calls: Arc<Calls>,
}

struct Calls {
    /// Which tool, and what was sent.
    arrivals: Mutex<Vec<(String, String)>>,
    arrived: watch::Sender<usize>,
    is_open: watch::Sender<bool>,
    answer: fn(&str) -> Response,
}

impl ToolServer {
    /// Its answers are sentences.
    pub async fn start() -> Self {
        Self::answering(|body| format!("done with {body}").into_response()).await
    }

    /// It answers what was sent in this way.
    pub async fn answering(answer: fn(&str) -> Response) -> Self {
        let calls = Arc::new(Calls {
            arrivals: Mutex::default(),
            arrived: watch::Sender::new(0),
            is_open: watch::Sender::new(true),
            answer,
        });
        let app = Router::new().route("/{tool}", post(answer_call)).with_state(calls.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, app).await });
        Self { url, calls }
    }

    /// What was sent to it, oldest first.
    pub fn calls(&self) -> Vec<String> {
        self.calls.arrivals.lock().unwrap().iter().map(|(_, body)| body.clone()).collect()
    }

    /// The same, each after the name of the tool.
    pub fn calls_by_tool(&self) -> Vec<String> {
        self.calls.arrivals.lock().unwrap().iter().map(|(tool, body)| format!("{tool} {body}")).collect()
    }

    /// From now on nothing is answered.
    pub fn close(&self) {
        self.calls.is_open.send_replace(false);
    }

    /// Everything is answered again.
    pub fn open(&self) {
        self.calls.is_open.send_replace(true);
    }

    /// Ends when so many calls have reached it.
    pub async fn wait_for_calls(&self, count: usize) {
        self.calls.arrived.subscribe().wait_for(|arrived| *arrived >= count).await.unwrap();
    }
}

async fn answer_call(State(calls): State<Arc<Calls>>, Path(tool): Path<String>, body: String) -> Response {
    calls.arrivals.lock().unwrap().push((tool.clone(), body.clone()));
    calls.arrived.send_modify(|arrived| *arrived += 1);
    calls.is_open.subscribe().wait_for(|is_open| *is_open).await.unwrap();
    match tool.as_str() {
        "failTool" => (StatusCode::INTERNAL_SERVER_ERROR, "disk on fire").into_response(),
        _ => (calls.answer)(&body),
    }
}
