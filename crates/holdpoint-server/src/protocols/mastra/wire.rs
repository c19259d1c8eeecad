//! Messages exactly as Mastra's clients read them: no logic, no domain types besides arguments, which keep their text.

use holdpoint_core::json::CanonicalJson;
use serde::Serialize;
use serde_json::Value;

/// One chunk of a stream.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Chunk {
    #[serde(rename = "type")]
    pub(super) kind: &'static str,
    #[serde(rename = "runId")]
    pub(super) run: String,
    pub(super) from: &'static str,
    pub(super) payload: Payload,
}

/// What a chunk carries.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub(super) enum Payload {
    Start(Start),
    StepStart(StepStart),
    Block(Block),
    Words(Words),
    Arguments(Arguments),
    Call(Call),
    Result(CallResult),
    Failure(CallFailure),
    Denial(CallDenial),
    Waiting(Box<Waiting>),
    StepFinish(Box<StepFinish>),
    Error(ErrorPayload),
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Start {
    /// The agent.
    pub(super) id: String,
    pub(super) message_id: String,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct StepStart {
    pub(super) message_id: String,
    /// Unix milliseconds.
    pub(super) started_at: i64,
    pub(super) warnings: [u8; 0],
    pub(super) request: Empty,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Empty {}

/// The start or end of a text or thought.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Block {
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub(super) kind: Option<&'static str>,
    pub(super) id: String,
}

/// More of a text or thought.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Words {
    pub(super) id: String,
    pub(super) text: String,
}

/// A call that is still being written.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Arguments {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) args_text_delta: Option<String>,
    pub(super) tool_call_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tool_name: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Call {
    pub(super) tool_call_id: String,
    pub(super) tool_name: String,
    pub(super) args: CanonicalJson,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CallResult {
    #[serde(flatten)]
    pub(super) call: Call,
    pub(super) result: ResultValue,
}

/// What a tool gave: JSON keeps its text.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub(super) enum ResultValue {
    Json(CanonicalJson),
    Text(String),
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CallFailure {
    pub(super) error: ErrorBody,
    #[serde(flatten)]
    pub(super) call: Call,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CallDenial {
    #[serde(flatten)]
    pub(super) call: Call,
    pub(super) approval: Approval,
}

/// What became of an approval.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Approval {
    pub(super) id: String,
    pub(super) approved: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reason: Option<String>,
}

/// A call that waits for a person.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Waiting {
    #[serde(flatten)]
    pub(super) call: Call,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) suspend_payload: Option<Value>,
    /// A JSON schema, as text.
    pub(super) resume_schema: String,
    /// Why a person is asked; ours.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reason: Option<String>,
    /// Until when it waits; ours.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) expires_at: Option<String>,
}

/// The end of a step, and of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct StepFinish {
    pub(super) message_id: String,
    pub(super) step_result: StepResult,
    pub(super) metadata: Empty,
    pub(super) output: Output,
    pub(super) usage: Usage,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct StepResult {
    pub(super) reason: &'static str,
    pub(super) is_continued: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Output {
    pub(super) usage: Usage,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Usage {
    pub(super) input_tokens: u64,
    pub(super) output_tokens: u64,
    pub(super) total_tokens: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct ErrorPayload {
    pub(super) error: ErrorBody,
}

/// What went wrong, without causes, addresses or traces.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct ErrorBody {
    pub(super) name: &'static str,
    pub(super) message: String,
    pub(super) code: String,
}
