//! The world behind an agent's tools: counts what reached it, and answers when the test lets it.

use std::sync::{Arc, Mutex};

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::post;
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::sync::watch;

/// A server that tools call.
pub struct ToolServer {
    pub url: String,
    calls: Arc<Calls>,
}

struct Calls {
    bodies: Mutex<Vec<String>>,
    arrived: watch::Sender<usize>,
    is_open: watch::Sender<bool>,
}

impl ToolServer {
    pub async fn start() -> Self {
        let calls = Arc::new(Calls {
            bodies: Mutex::default(),
            arrived: watch::Sender::new(0),
            is_open: watch::Sender::new(true),
        });
        let app = Router::new().route("/{tool}", post(answer)).with_state(calls.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, app).await });
        Self { url, calls }
    }

    /// What reached it, oldest first.
    pub fn calls(&self) -> Vec<String> {
        self.calls.bodies.lock().unwrap().clone()
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

async fn answer(
    State(calls): State<Arc<Calls>>,
    Path(tool): Path<String>,
    body: String,
) -> Result<Json<Value>, (StatusCode, &'static str)> {
    calls.bodies.lock().unwrap().push(format!("{tool} {body}"));
    calls.arrived.send_modify(|arrived| *arrived += 1);
    calls.is_open.subscribe().wait_for(|is_open| *is_open).await.unwrap();
    if tool == "failTool" {
        return Err((StatusCode::INTERNAL_SERVER_ERROR, "disk on fire"));
    }
    Ok(Json(json!({"done": serde_json::from_str::<Value>(&body).unwrap()})))
}
