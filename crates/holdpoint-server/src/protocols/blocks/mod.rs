//! Content blocks over a WebSocket: groups of work, approvals by position, questions with answers by text.
//!
//! `projection` is pure: it reads the session's journal and says what clients see, on the stream and in the history.

mod agents;
mod commands;
pub(crate) mod describe;
mod from_wire;
pub(crate) mod history;
pub(crate) mod http;
mod idempotency;
mod kept;
mod labels;
mod projection;
mod refuse;
mod shared;
mod socket;
mod standing;
mod subscription;
mod wire;

use axum::Router;
use axum::routing::get;
use holdpoint_core::time::Timestamp;

use crate::app::App;

pub(crate) use shared::Shared;

/// The protocol's name and version.
const PROTOCOL: &str = "blocks/1";

/// The socket, whose callers may say who they are once it is open.
pub fn socket() -> Router<App> {
    Router::new().route("/api/v1/ws", get(socket::open))
}

/// A time as this protocol tells it: seconds since 1970.
fn seconds(at: Timestamp) -> f64 {
    at.as_millis() as f64 / 1_000.0
}
