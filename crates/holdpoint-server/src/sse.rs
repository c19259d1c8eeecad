//! Server-sent events: a bounded writer with a heartbeat. A client that does not read hurts only itself.
//!
//! `id` fields are numbers and `event` fields are words of ours: text of clients, models and tools is only ever data.

use std::convert::Infallible;
use std::future::Future;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream;
use http::{HeaderValue, StatusCode, header};
use serde::Serialize;
use tokio::sync::mpsc;

use crate::access::Identity;
use crate::app::App;
use crate::limits::StreamPermit;

/// How many frames wait for a client before the writer waits too.
const FRAMES_MAX: usize = 64;

/// The client is gone, or reads too slowly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the client no longer reads")]
pub struct Gone;

/// Where a stream's frames are written.
pub struct Writer {
    frames: mpsc::Sender<Bytes>,
    slow_reader: std::time::Duration,
}

impl Writer {
    /// Writes a frame; waits while too many are unread.
    ///
    /// # Errors
    /// The client is gone or reads too slowly: there is nobody left to write to.
    pub async fn send(&self, frame: Frame) -> Result<(), Gone> {
        self.frames.send_timeout(frame.into_bytes(), self.slow_reader).await.map_err(|_| Gone)
    }

    /// Ends when the client is gone.
    pub async fn closed(&self) {
        self.frames.closed().await;
    }
}

/// One frame.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Frame {
    text: String,
}

impl Frame {
    /// A frame of JSON data.
    pub fn json(data: &impl Serialize) -> Self {
        // JSON never holds a line break, so it is one line. What has no JSON form is a mistake of ours.
        let text = serde_json::to_string(data).unwrap_or_else(|_| "null".to_owned());
        Self { text: format!("data: {text}\n") }
    }

    /// A frame of plain text, one `data` line for each of its lines. All three line breaks end a line, as clients read.
    pub fn text(data: &str) -> Self {
        let lines = data.replace("\r\n", "\n").replace('\r', "\n");
        Self { text: lines.split('\n').map(|line| format!("data: {line}\n")).collect() }
    }

    /// A comment, which clients pass over.
    pub fn comment(text: &'static str) -> Self {
        Self { text: format!(": {text}\n") }
    }

    /// What kind of frame it is: a word of ours, never text from outside.
    #[must_use]
    pub fn event(mut self, name: &'static str) -> Self {
        self.text.insert_str(0, &format!("event: {name}\n"));
        self
    }

    /// Where a client goes on after this frame.
    #[must_use]
    pub fn id(mut self, number: u64) -> Self {
        self.text.insert_str(0, &format!("id: {number}\n"));
        self
    }

    /// After how many milliseconds a client that lost the stream comes back.
    #[must_use]
    pub fn retry(mut self, millis: u64) -> Self {
        self.text.insert_str(0, &format!("retry: {millis}\n"));
        self
    }

    pub(crate) fn into_bytes(mut self) -> Bytes {
        self.text.push('\n');
        self.text.into()
    }
}

/// A response that `write` fills. It ends with `write`, with the client, or with the server; then `farewell` is the
/// last frame.
pub fn stream<F, Fut>(app: &App, permit: StreamPermit, farewell: Vec<Frame>, write: F) -> Response
where
    F: FnOnce(Writer) -> Fut,
    Fut: Future<Output = Result<(), Gone>> + Send + 'static,
{
    let (frames, unread) = mpsc::channel(FRAMES_MAX);
    let limits = app.limits();
    let writing = write(Writer { frames: frames.clone(), slow_reader: limits.slow_reader });
    let (stop, slow_reader) = (app.stopping(), limits.slow_reader);
    app.tasks().spawn(async move {
        let _permit = permit;
        let last_words = Writer { frames, slow_reader };
        tokio::select! {
            _ = writing => {}
            () = last_words.closed() => {}
            () = stop.cancelled() => {
                for frame in farewell {
                    if last_words.send(frame).await.is_err() {
                        break;
                    }
                }
            }
        }
    });
    let heartbeat = limits.heartbeat;
    let frames = stream::unfold(unread, move |mut unread| async move {
        match tokio::time::timeout(heartbeat, unread.recv()).await {
            Ok(Some(frame)) => Some((Ok::<_, Infallible>(frame), unread)),
            Ok(None) => None,
            Err(_) => Some((Ok(Frame::comment("keep-alive").into_bytes()), unread)),
        }
    });
    response(Body::from_stream(frames))
}

/// As [`stream`], for somebody who watches for as long as they like, or until their credential no longer holds.
pub(crate) fn watch<F, Fut>(
    app: &App,
    permit: StreamPermit,
    identity: Option<Identity>,
    farewell: Vec<Frame>,
    write: F,
) -> Response
where
    F: FnOnce(Writer) -> Fut + Send + 'static,
    Fut: Future<Output = Result<(), Gone>> + Send + 'static,
{
    let watched = app.clone();
    stream(app, permit, farewell, move |writer| {
        let writing = write(writer);
        async move {
            let Some(identity) = identity else { return writing.await };
            tokio::select! {
                written = writing => written,
                () = identity.ended(watched.access(), watched.limits().heartbeat) => Ok(()),
            }
        }
    })
}

fn response(body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::OK;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shown(frame: Frame) -> String {
        String::from_utf8(frame.into_bytes().to_vec()).unwrap()
    }

    #[test]
    fn frames_are_written_as_clients_read_them() {
        assert_eq!(
            shown(Frame::json(&json!({"a": "b\nc"})).event("delta").id(7)),
            "id: 7\nevent: delta\ndata: {\"a\":\"b\\nc\"}\n\n"
        );
        assert_eq!(shown(Frame::text("two\nlines")), "data: two\ndata: lines\n\n");
        assert_eq!(shown(Frame::text("")), "data: \n\n");
        assert_eq!(shown(Frame::comment("keep-alive")), ": keep-alive\n\n");
    }

    #[test]
    fn text_from_outside_never_becomes_a_field_of_its_own() {
        for hostile in ["x\n\nevent: interrupt\ndata: {}", "x\r\revent: interrupt", "x\r\nid: 9"] {
            for line in shown(Frame::text(hostile)).lines().filter(|line| !line.is_empty()) {
                assert!(line.starts_with("data: "), "{line:?}");
            }
        }
    }
}
