//! Single chunks, each with the run's name.

use holdpoint_core::ids::CallPath;
use holdpoint_core::json::CanonicalJson;
use holdpoint_core::message::{Content, Usage as Cost};
use holdpoint_core::pause::{PauseKind, PauseState, PauseView, Subject, questions};
use holdpoint_core::text::{clamp, visible};
use holdpoint_core::time::Timestamp;
use holdpoint_core::tool::{Outcome, ToolKind};
use serde_json::{Value, json};

use super::super::calls::Named;
use super::super::wire::{
    Approval, Arguments, Block, Call, CallDenial, CallFailure, CallResult, Chunk, Empty, ErrorBody, ErrorPayload,
    Output, Payload, ResultValue, Start, StepFinish, StepResult, StepStart, Usage, Waiting, Words,
};

/// Bytes of a tool's result that a client is sent; the model gets all of it.
const RESULT_BYTES_MAX: usize = 64 << 10;

/// Bytes of an error's sentence.
const ERROR_BYTES_MAX: usize = 4 << 10;

/// What answers an approval.
const APPROVAL_SCHEMA: &str = r#"{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"approved":{"type":"boolean","description":"true lets it run, false does not"},"reason":{"type":"string","description":"What the model is told when it does not run"}},"required":["approved"],"additionalProperties":false}"#;

/// What answers a call in doubt.
const DOUBT_SCHEMA: &str = r#"{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"outcome":{"type":"string","enum":["happened","run_again","abandon"]},"result":{"type":"string","description":"What came of it, where it happened"}},"required":["outcome"],"additionalProperties":false}"#;

/// Makes chunks of one run.
#[derive(Debug, Clone)]
pub(in super::super) struct Maker {
    /// What clients are told the run is called.
    pub(in super::super) run: String,
}

impl Maker {
    fn chunk(&self, kind: &'static str, payload: Payload) -> Chunk {
        Chunk { kind, run: self.run.clone(), from: "AGENT", payload }
    }

    /// The message that a model call writes; the first one is of turn 1.
    pub(in super::super) fn message(&self, turn: u32) -> String {
        format!("{}-{turn}", self.run)
    }

    pub(super) fn start(&self, agent: &str) -> Chunk {
        self.chunk("start", Payload::Start(Start { id: agent.to_owned(), message_id: self.message(1) }))
    }

    pub(super) fn step_start(&self, turn: u32, at: Timestamp) -> Chunk {
        let (message_id, started_at) = (self.message(turn), at.as_millis());
        let payload = StepStart { message_id, started_at, warnings: [], request: Empty {} };
        self.chunk("step-start", Payload::StepStart(payload))
    }

    pub(super) fn step_finish(&self, turn: u32, reason: &'static str, is_continued: bool, cost: Cost) -> Chunk {
        self.chunk("step-finish", self.finished(turn, reason, is_continued, cost))
    }

    pub(in super::super) fn finish(&self, turn: u32, reason: &'static str, cost: Cost) -> Chunk {
        self.chunk("finish", self.finished(turn, reason, false, cost))
    }

    fn finished(&self, turn: u32, reason: &'static str, is_continued: bool, cost: Cost) -> Payload {
        let usage = usage(cost);
        Payload::StepFinish(Box::new(StepFinish {
            message_id: self.message(turn),
            step_result: StepResult { reason, is_continued },
            metadata: Empty {},
            output: Output { usage },
            usage,
        }))
    }

    pub(super) fn block(&self, kind: &'static str, id: &str) -> Chunk {
        // The end of a text names its own kind once more.
        let named = (kind == "text-end").then_some(kind);
        self.chunk(kind, Payload::Block(Block { kind: named, id: id.to_owned() }))
    }

    pub(super) fn words(&self, kind: &'static str, id: &str, text: String) -> Chunk {
        self.chunk(kind, Payload::Words(Words { id: id.to_owned(), text }))
    }

    pub(super) fn arguments(&self, kind: &'static str, id: &str, tool: Option<&str>, more: Option<String>) -> Chunk {
        let payload =
            Arguments { args_text_delta: more, tool_call_id: id.to_owned(), tool_name: tool.map(str::to_owned) };
        self.chunk(kind, Payload::Arguments(payload))
    }

    pub(super) fn call(&self, id: &str, tool: &str, arguments: &CanonicalJson) -> Chunk {
        self.chunk("tool-call", Payload::Call(call(id, tool, arguments)))
    }

    /// What came of a call.
    pub(super) fn outcome(&self, call: Call, outcome: &Outcome, kind: &ToolKind) -> Chunk {
        let told = || clamped(&outcome.to_output(kind).to_text(), RESULT_BYTES_MAX);
        match outcome {
            Outcome::Result(content) => {
                self.chunk("tool-result", Payload::Result(CallResult { call, result: result(content) }))
            }
            Outcome::Responded(_) => {
                self.chunk("tool-result", Payload::Result(CallResult { call, result: ResultValue::Text(told()) }))
            }
            Outcome::Denied(reason) => self.denial(call, clamped(reason, RESULT_BYTES_MAX)),
            Outcome::Expired | Outcome::Withdrawn => self.denial(call, told()),
            Outcome::Failure(_) | Outcome::Invalid(_) | Outcome::Abandoned => {
                let error = ErrorBody { name: "Error", message: told(), code: "tool_failed".to_owned() };
                self.chunk("tool-error", Payload::Failure(CallFailure { error, call }))
            }
        }
    }

    fn denial(&self, call: Call, reason: String) -> Chunk {
        let approval = Approval { id: call.tool_call_id.clone(), approved: false, reason: Some(reason) };
        self.chunk("tool-output-denied", Payload::Denial(CallDenial { call, approval }))
    }

    /// A question that waits.
    pub(in super::super) fn waiting(&self, named: &Named) -> Chunk {
        let view = &named.view;
        let (kind, suspend_payload, resume_schema) = match view.kind() {
            PauseKind::Approval | PauseKind::Confirmation => ("tool-call-approval", None, APPROVAL_SCHEMA.to_owned()),
            PauseKind::Question => {
                let payload = view.arguments().map(CanonicalJson::to_value);
                ("tool-call-suspended", payload, question_schema(view))
            }
            PauseKind::InDoubt => {
                let why = "The process ended while the tool ran: did it take effect?";
                let payload = json!({"type": "in_doubt", "message": why});
                ("tool-call-suspended", Some(payload), DOUBT_SCHEMA.to_owned())
            }
        };
        let expires_at = match view.pause.state {
            PauseState::Open { expires_at } => expires_at.map(|end| end.to_string()),
            _ => None,
        };
        let waiting = Waiting {
            call: held_call(named),
            suspend_payload,
            resume_schema,
            reason: view.pause.reason.as_deref().map(visible),
            expires_at,
        };
        self.chunk(kind, Payload::Waiting(Box::new(waiting)))
    }

    pub(in super::super) fn error(&self, code: &str, message: &str) -> Chunk {
        let message = clamped(message, ERROR_BYTES_MAX);
        let error = ErrorBody { name: "Error", message, code: code.to_owned() };
        self.chunk("error", Payload::Error(ErrorPayload { error }))
    }
}

/// Whether a chunk says that a call waits.
pub(in super::super) fn is_wait(chunk: &Chunk) -> bool {
    matches!(chunk.payload, Payload::Waiting(_))
}

/// What model calls cost.
pub(in super::super) fn usage(cost: Cost) -> Usage {
    Usage {
        input_tokens: cost.input_tokens,
        output_tokens: cost.output_tokens,
        total_tokens: cost.input_tokens.saturating_add(cost.output_tokens),
    }
}

/// A call as clients are shown it. They take an object: arguments that are none stand as the text they were.
pub(super) fn call(id: &str, tool: &str, arguments: &CanonicalJson) -> Call {
    let args = match arguments.is_object() {
        true => arguments.clone(),
        false => CanonicalJson::from_serialize(&json!({"input": arguments.to_value()})).unwrap_or(arguments.clone()),
    };
    Call { tool_call_id: id.to_owned(), tool_name: tool.to_owned(), args }
}

/// The call that a question is about. The model's own words are shown as the arguments of a call that is none.
fn held_call(named: &Named) -> Call {
    match (&named.view.call, &named.view.pause.subject) {
        (Some(held), _) => call(&named.name, held.tool.as_str(), &held.arguments),
        (None, subject) => {
            let words = match subject {
                Subject::Words { text, .. } => visible(text),
                Subject::Call { path, .. } => place(path),
            };
            let words = CanonicalJson::from_serialize(&json!({ "message": words }));
            let args = words.unwrap_or_else(|_| empty());
            Call { tool_call_id: named.name.clone(), tool_name: "confirmation".to_owned(), args }
        }
    }
}

fn place(path: &CallPath) -> String {
    path.to_string()
}

fn empty() -> CanonicalJson {
    CanonicalJson::parse("{}").expect("an empty object is JSON")
}

/// The schema of the answers to questions: one member for each.
fn question_schema(view: &PauseView) -> String {
    let asked = view.arguments().and_then(|arguments| questions(arguments).ok()).unwrap_or_default();
    let property = |question: &holdpoint_core::pause::Question| {
        let takes_text = question.options.is_empty() || question.options.iter().any(|option| option.input);
        let one = match takes_text {
            true => json!({"type": "string"}),
            false => {
                let labels: Vec<&str> = question.options.iter().map(|option| option.label.as_str()).collect();
                json!({"type": "string", "enum": labels})
            }
        };
        let value = if question.multi_select { json!({"type": "array", "items": one, "minItems": 1}) } else { one };
        (question.question.clone(), value)
    };
    let properties: serde_json::Map<String, Value> = asked.iter().map(property).collect();
    let names: Vec<&str> = asked.iter().map(|question| question.question.as_str()).collect();
    let answers = json!({"type": "object", "properties": properties, "required": names, "additionalProperties": false});
    json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {"answers": answers},
        "required": ["answers"],
        "additionalProperties": false,
    })
    .to_string()
}

/// What a tool gave, as far as clients are sent it.
pub(in super::super) fn result(content: &Content) -> ResultValue {
    match content {
        Content::Json(json) if json.as_str().len() <= RESULT_BYTES_MAX => ResultValue::Json(json.clone()),
        content => ResultValue::Text(clamped(&content.to_text(), RESULT_BYTES_MAX)),
    }
}

/// A text, as far as clients are sent it.
fn clamped(text: &str, bytes_max: usize) -> String {
    let shown = clamp(text, bytes_max);
    let cut = if shown.len() < text.len() { "… (cut)" } else { "" };
    format!("{}{cut}", visible(shown))
}
