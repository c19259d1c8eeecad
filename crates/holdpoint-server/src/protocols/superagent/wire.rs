//! Messages exactly as SuperAgent chat spells them: no logic, no domain types besides arguments, which keep their text.

use holdpoint_core::json::CanonicalJson;
use serde::Serialize;

/// The answer of `interrupt_state`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct InterruptAnswer {
    pub(super) interrupted: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) state: Option<InterruptState>,
}

/// What a session waits for.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct InterruptState {
    pub(super) session_id: String,
    pub(super) agent_name: String,
    pub(super) reason: String,
    pub(super) fields: Vec<InputField>,
    /// Unix seconds.
    pub(super) timestamp: i64,
    pub(super) checkpoint_id: String,
}

/// One field to fill in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct InputField {
    pub(super) name: String,
    #[serde(rename = "type")]
    pub(super) kind: FieldType,
    pub(super) label: String,
    pub(super) required: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) options: Vec<String>,
}

/// What a field takes: text, a JSON boolean, one of the options.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum FieldType {
    Text,
    Confirm,
    Select,
}

/// The answer of `abort`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) struct AbortAnswer {
    pub(super) status: AbortStatus,
}

/// What `abort` found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum AbortStatus {
    Aborted,
    NoActiveLoop,
}

/// The answer of `agents`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct AgentList {
    pub(super) agents: Vec<AgentLine>,
}

/// One agent of the list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct AgentLine {
    pub(super) name: String,
    pub(super) description: String,
    #[serde(rename = "type")]
    pub(super) kind: String,
}

/// An error, as a body and as a frame of the legacy mode.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct ErrorBody {
    pub(super) error: String,
    pub(super) code: String,
    /// Why nothing is pending.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reason: Option<String>,
    /// What is to be decided first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) approval_key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) retryable: Option<bool>,
}

/// A frame of the A2UI mode.
#[derive(Debug, Serialize)]
pub(super) struct Event<'a> {
    #[serde(rename = "type")]
    pub(super) name: &'static str,
    /// Unix milliseconds.
    pub(super) timestamp: i64,
    pub(super) data: EventData<'a>,
}

/// What a frame of the A2UI mode carries; `done` carries null.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum EventData<'a> {
    Piece { content: &'a str, delta: &'a str },
    ToolCall(&'a ToolCall),
    ToolResult(&'a ToolResult),
    CodeBlock(&'a CodeBlock),
    Interrupt(&'a Interrupt),
    Error(&'a StreamError),
    Progress(&'a Progress),
    AgentSwitch(&'a AgentSwitch),
    Nothing,
}

/// A call: once, before its result.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct ToolCall {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) arguments: CanonicalJson,
    pub(super) status: CallStatus,
}

/// How a call stands when it is told: under way, or settled without having run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum CallStatus {
    Calling,
    Success,
    Error,
}

/// What came of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct ToolResult {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) result: String,
    pub(super) is_error: bool,
}

/// A fenced block of code that stood in the text and is complete.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct CodeBlock {
    pub(super) language: String,
    pub(super) code: String,
    pub(super) delta: String,
}

/// What the session waits for, as a frame.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Interrupt {
    pub(super) reason: String,
    pub(super) fields: Vec<InputField>,
    pub(super) approval_key: String,
    /// Unix seconds; null where it waits for ever.
    pub(super) expires_at: Option<i64>,
}

/// Something went wrong after the stream began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct StreamError {
    pub(super) code: String,
    pub(super) message: String,
    pub(super) retryable: bool,
}

/// How far agents that work for the one that was asked have come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Progress {
    pub(super) agent_name: String,
    pub(super) step: &'static str,
    pub(super) total: usize,
    pub(super) current: usize,
}

/// Another agent goes on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct AgentSwitch {
    pub(super) from_agent: String,
    pub(super) to_agent: String,
    pub(super) reason: String,
}
