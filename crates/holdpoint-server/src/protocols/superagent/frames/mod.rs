//! What a chat stream says, step by step: events and deltas become frames, and frames become bytes in one of two modes.
//!
//! The parts are pure. [`Narrator`] knows the run and says what is new; [`Encoder`] knows the mode and writes it.

mod code;
mod encode;
mod line;
mod narrate;

use super::wire::{AgentSwitch, Interrupt, InterruptState, Progress, StreamError, ToolCall, ToolResult};

pub(super) use encode::{Encoder, Mode};
pub(super) use narrate::{Narrator, Stop};

/// One thing that a stream says.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Frame {
    /// The model's words.
    Text(String),
    /// The model's thoughts.
    Thinking(String),
    /// A call; its result follows.
    ToolCall(ToolCall),
    /// What came of a call.
    ToolResult(ToolResult),
    /// How far other agents have come.
    Progress(Progress),
    /// Another agent goes on.
    AgentSwitch(AgentSwitch),
    /// Somebody must decide.
    Interrupt(InterruptState, Interrupt),
    /// Something went wrong.
    Error(StreamError),
    /// Nothing follows.
    Done,
}
