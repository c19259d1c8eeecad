//! What happens in a run, as chunks, and chunks as frames.

mod make;
mod narrate;

pub(super) use make::{Maker, is_wait, result, usage};
pub(super) use narrate::{Narrator, Stop};

use super::wire::Chunk;
use crate::sse;

/// The frame after which nothing comes.
pub(super) fn done() -> sse::Frame {
    sse::Frame::text("[DONE]")
}

/// A chunk as a frame: one line of JSON, whoever reads the lines.
pub(super) fn frame(chunk: &Chunk) -> sse::Frame {
    // Our own types have a JSON form: every key is text, and no float is involved.
    let json = serde_json::to_string(chunk).unwrap_or_else(|_| "null".to_owned());
    // Some readers take these for the end of a line; inside of a JSON string they may be escaped.
    let line = json.replace('\u{85}', "\\u0085").replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029");
    sse::Frame::text(&line)
}
