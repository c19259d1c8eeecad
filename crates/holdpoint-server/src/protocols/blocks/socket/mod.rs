//! `GET /api/v1/ws`: one JSON object per text frame, any number of sessions over one connection.
//!
//! A connection that does nothing costs one small task and a few kilobytes: buffers are small, and what is shown of a
//! session is read when something happens there.

mod close;
mod connection;
mod outbox;

use axum::extract::State;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{WebSocket, WebSocketUpgrade};
use axum::response::Response;
use http::HeaderMap;

use self::connection::Connection;
use crate::access::Identity;
use crate::app::App;
use crate::limits::Query;
use crate::problem::{Code, Problem};

/// The sub-protocol's name.
const SUB_PROTOCOL: &str = "holdpoint.blocks.v1";

/// Bytes that are read at once. Every connection has a buffer of this size.
const READ_BUFFER: usize = 4 << 10;

/// Bytes of one event at most: the largest outcome of a tool, every character of it escaped. One at a time is written, so
/// that the buffer never holds more.
const WRITE_BUFFER_MAX: usize = 64 << 20;

/// Opens a connection. Who sends no credential must say who they are in the first message, where one is asked for.
pub(super) async fn open(
    State(app): State<App>,
    query: Query,
    headers: HeaderMap,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, Problem> {
    // A credential in an address ends up in logs.
    query.only(&[])?;
    let upgrade = upgrade.map_err(|_| {
        let detail = format!("this address speaks WebSocket: open one, with the sub-protocol {SUB_PROTOCOL}");
        Problem::new(Code::INVALID_HEADER, detail)
    })?;
    let identity = Identity::shown(app.access(), &headers).await?;
    if let Some(identity) = &identity {
        app.rate().take(&identity.caller.actor)?;
    }
    let message_max = app.limits().body_bytes_max;
    let upgrade = upgrade
        .protocols([SUB_PROTOCOL])
        .read_buffer_size(READ_BUFFER)
        .write_buffer_size(0)
        .max_write_buffer_size(WRITE_BUFFER_MAX)
        .max_frame_size(message_max)
        .max_message_size(message_max);
    Ok(upgrade.on_upgrade(move |socket: WebSocket| {
        let tracked = app.tasks().clone();
        // A stop waits for the connection's last words.
        tracked.track_future(Box::pin(Connection::new(app, socket).serve(identity)))
    }))
}
