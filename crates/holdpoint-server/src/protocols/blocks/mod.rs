//! Content blocks over a WebSocket: groups of work, approvals by position, questions with answers by text.
//!
//! `projection` is pure: it reads the session's journal and says what clients see, on the stream and in the history.

mod agents;
mod commands;
mod from_wire;
pub(crate) mod history;
mod http;
mod idempotency;
mod labels;
mod projection;
mod refuse;
mod shared;
mod socket;
mod standing;
mod subscription;
mod wire;

use axum::Router;
use axum::routing::{get, post};
use holdpoint_core::time::Timestamp;

use crate::app::App;

pub(crate) use shared::Shared;

/// The protocol's name and version.
const PROTOCOL: &str = "blocks/1";

/// The routes of plain requests, for callers who are known.
pub fn router() -> Router<App> {
    Router::new()
        .route("/api/v1/sessions/{id}/blocks", get(http::events))
        .route("/api/v1/sessions/{id}/commands", post(http::command))
}

/// The socket, whose callers may say who they are once it is open.
pub fn socket() -> Router<App> {
    Router::new().route("/api/v1/ws", get(socket::open))
}

/// A time as this protocol tells it: seconds since 1970.
fn seconds(at: Timestamp) -> f64 {
    at.as_millis() as f64 / 1_000.0
}
