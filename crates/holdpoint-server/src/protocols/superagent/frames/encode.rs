//! Frames as bytes, in the mode that the client asked for. Nothing is written after the end.

use holdpoint_core::time::Timestamp;
use serde::Serialize;

use super::super::wire::{ErrorBody, Event, EventData};
use super::Frame;
use super::code::Fences;
use super::line::{DONE, Tokens, one_line};
use crate::sse;

/// How a client wants to be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Mode {
    /// One frame of plain text for each token.
    Legacy,
    /// Named frames of JSON.
    A2ui,
}

/// Writes frames in one mode.
#[derive(Debug)]
pub(in super::super) struct Encoder {
    mode: Mode,
    is_done: bool,
    tokens: Tokens,
    fences: Fences,
    said: Growing,
    thought: Growing,
}

impl Encoder {
    /// An encoder that has written nothing yet.
    pub(in super::super) fn new(mode: Mode) -> Self {
        Self {
            mode,
            is_done: false,
            tokens: Tokens::default(),
            fences: Fences::default(),
            said: Growing::default(),
            thought: Growing::default(),
        }
    }

    /// The frame as it is sent: nothing where this mode has no word for it, or the end was written.
    pub(in super::super) fn write(&mut self, frame: &Frame, now: Timestamp) -> Vec<sse::Frame> {
        if self.is_done {
            return Vec::new();
        }
        self.is_done = *frame == Frame::Done;
        match self.mode {
            Mode::Legacy => self.write_legacy(frame),
            Mode::A2ui => self.write_a2ui(frame, now),
        }
    }

    fn write_legacy(&mut self, frame: &Frame) -> Vec<sse::Frame> {
        match frame {
            Frame::Text(text) => self.tokens.of(text).iter().map(|token| sse::Frame::text(token)).collect(),
            Frame::Interrupt(state, _) => vec![sse::Frame::text(&format!("\0INTERRUPT:{}", json(state)))],
            Frame::Error(error) => {
                let body = ErrorBody {
                    error: error.message.clone(),
                    code: error.code.clone(),
                    reason: None,
                    approval_key: None,
                    retryable: Some(error.retryable),
                };
                vec![sse::Frame::text(&json(&body))]
            }
            Frame::Done => vec![sse::Frame::text(DONE)],
            Frame::Thinking(_)
            | Frame::ToolCall(_)
            | Frame::ToolResult(_)
            | Frame::Progress(_)
            | Frame::AgentSwitch(_) => Vec::new(),
        }
    }

    fn write_a2ui(&mut self, frame: &Frame, now: Timestamp) -> Vec<sse::Frame> {
        let one = match frame {
            Frame::Text(delta) => {
                let mut frames: Vec<sse::Frame> =
                    self.said.grow(delta).map(|piece| event("text", piece, now)).into_iter().collect();
                let blocks = self.fences.read(delta);
                frames.extend(self.rest_before(!blocks.is_empty(), now));
                frames.extend(blocks.iter().map(|block| event("code_block", EventData::CodeBlock(block), now)));
                return frames;
            }
            Frame::Thinking(delta) => {
                return self.thought.grow(delta).map(|piece| event("thinking", piece, now)).into_iter().collect();
            }
            Frame::ToolCall(call) => event("tool_call", EventData::ToolCall(call), now),
            Frame::ToolResult(result) => event("tool_result", EventData::ToolResult(result), now),
            Frame::Progress(progress) => event("progress", EventData::Progress(progress), now),
            Frame::AgentSwitch(switch) => event("agent_switch", EventData::AgentSwitch(switch), now),
            Frame::Interrupt(_, interrupt) => event("interrupt", EventData::Interrupt(interrupt), now),
            Frame::Error(error) => event("error", EventData::Error(error), now),
            Frame::Done => event("done", EventData::Nothing, now),
        };
        let mut frames = self.rest_before(true, now);
        // A block whose closing line is the last of the text.
        if matches!(frame, Frame::Interrupt(..) | Frame::Done) {
            let last = self.fences.end();
            frames.extend(last.iter().map(|block| event("code_block", EventData::CodeBlock(block), now)));
        }
        frames.push(one);
        frames
    }

    /// What was kept back of long texts, where something else follows.
    fn rest_before(&mut self, something_follows: bool, now: Timestamp) -> Vec<sse::Frame> {
        if !something_follows {
            return Vec::new();
        }
        let thought = self.thought.rest().map(|piece| event("thinking", piece, now));
        let said = self.said.rest().map(|piece| event("text", piece, now));
        thought.into_iter().chain(said).collect()
    }
}

/// A text that is told in pieces, each with all that came before. A long one is told in larger pieces: otherwise its
/// frames would grow with the square of its length.
#[derive(Debug, Default)]
struct Growing {
    all: String,
    told: usize,
}

/// From this length on, pieces are kept back until they are worth a frame.
const LONG_BYTES: usize = 8 << 10;

impl Growing {
    fn grow(&mut self, delta: &str) -> Option<EventData<'_>> {
        self.all.push_str(delta);
        let waiting = self.all.len() - self.told;
        let is_worth_it = self.all.len() < LONG_BYTES || waiting >= self.all.len() / 128;
        if is_worth_it { self.rest() } else { None }
    }

    fn rest(&mut self) -> Option<EventData<'_>> {
        let told = std::mem::replace(&mut self.told, self.all.len());
        let delta = &self.all[told..];
        (!delta.is_empty()).then_some(EventData::Piece { content: &self.all, delta })
    }
}

fn event(name: &'static str, data: EventData<'_>, now: Timestamp) -> sse::Frame {
    sse::Frame::text(&json(&Event { name, timestamp: now.as_millis(), data })).event(name)
}

/// JSON on one line, whoever reads the lines.
fn json(value: &impl Serialize) -> String {
    // Our own types have a JSON form: every key is text, and no float is involved.
    one_line(&serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned()))
}

#[cfg(test)]
mod tests;
