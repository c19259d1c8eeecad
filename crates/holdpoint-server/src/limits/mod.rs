//! Bounds on what clients may send and hold. Each has a number and a code of its own.

mod body;
mod query;
mod rate;
mod streams;

use std::time::Duration;

pub use body::{JsonBody, OptionalJsonBody, from_json, object, objects, read_body, require_json};
pub use query::{Params, Query};
pub use rate::{Pace, RateLimiter};
pub use streams::{StreamPermit, StreamSlots};

/// The bounds. Defaults are for a server in production; a test may lower them.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Bytes of a request's body.
    pub body_bytes_max: usize,
    /// How long a body may take to arrive.
    pub body_timeout: Duration,
    /// Bytes of a request's address.
    pub uri_bytes_max: usize,
    /// Bytes of a request's head.
    pub head_bytes_max: usize,
    /// Headers of a request.
    pub headers_max: usize,
    /// How long a head may take to arrive.
    pub head_timeout: Duration,
    /// Connections at once.
    pub connections_max: usize,
    /// Requests a second that one caller may make, on average.
    pub requests_per_second: u32,
    /// Requests that one caller may make at once after a rest.
    pub requests_burst: u32,
    /// Streams and long polls that one caller may have at once.
    pub streams_per_caller: usize,
    /// Streams and long polls at once, of all callers.
    pub streams_max: usize,
    /// How long `?wait=` may wait.
    pub wait_max: Duration,
    /// How long an answer may take to begin, over and above what a client asked to wait for.
    pub answer_timeout: Duration,
    /// How often an idle stream says that it is still there.
    pub heartbeat: Duration,
    /// How long a client may take to read what a stream holds ready for it.
    pub slow_reader: Duration,
    /// WebSockets at once, of all callers.
    pub sockets_max: usize,
    /// WebSockets that one caller may have at once.
    pub sockets_per_caller: usize,
    /// WebSockets at once whose callers have not said yet who they are.
    pub sockets_unknown_max: usize,
    /// How long a caller may take to say who they are.
    pub socket_auth_timeout: Duration,
    /// How often a WebSocket is asked whether its client is still there.
    pub socket_heartbeat: Duration,
    /// Sessions that one WebSocket may be shown at once.
    pub socket_sessions_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes_max: 1 << 20,
            body_timeout: Duration::from_secs(30),
            uri_bytes_max: 8 << 10,
            head_bytes_max: 64 << 10,
            headers_max: 100,
            head_timeout: Duration::from_secs(15),
            connections_max: 20_000,
            requests_per_second: 200,
            requests_burst: 1_000,
            streams_per_caller: 256,
            streams_max: 8_192,
            wait_max: Duration::from_secs(60),
            answer_timeout: Duration::from_secs(30),
            heartbeat: Duration::from_secs(15),
            slow_reader: Duration::from_secs(60),
            sockets_max: 20_000,
            sockets_per_caller: 20_000,
            sockets_unknown_max: 256,
            socket_auth_timeout: Duration::from_secs(10),
            socket_heartbeat: Duration::from_secs(25),
            socket_sessions_max: 256,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_room_for_as_many_connections_as_there_may_be_sockets() {
        let limits = Limits::default();
        assert!(limits.connections_max >= limits.sockets_max && limits.sockets_max >= 15_000, "{limits:?}");
    }
}
