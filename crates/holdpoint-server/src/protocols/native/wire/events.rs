//! What a stream carries: one message for each event of a session, and words of a model that is still speaking.

use holdpoint_core::json::CanonicalJson;
use serde::Serialize;
use utoipa::ToSchema;

use super::{Decision, RunEnd, RunStatus, Usage};

/// One event of a session, as the `data` of a frame. The frame's `id` is `seq` and its `event` is `type`.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Event {
    /// Its number; dense within the session.
    pub(crate) seq: u64,
    /// What happened.
    #[serde(rename = "type")]
    #[schema(example = "pause.opened")]
    pub(crate) kind: &'static str,
    /// The conversation.
    pub(crate) session_id: String,
    /// The run.
    pub(crate) run_id: String,
    /// When.
    #[schema(format = DateTime)]
    pub(crate) at: String,
    /// What else is to be said of it.
    pub(crate) data: EventData,
}

/// What is to be said of an event, by its type.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum EventData {
    /// `run.started`
    Started { agent: String, input: String, started_by: String },
    /// `model.replied`
    Replied { path: String, text: Option<String>, calls: Vec<Call>, usage: Usage },
    /// `reply.refused`
    Refused { path: String, code: String, message: String },
    /// `call.answered`
    Answered { path: String, outcome: &'static str, output: String },
    /// `call.allowed`, `call.denied`
    Judged { path: String, by: String },
    /// `pause.opened`
    Opened {
        pause_id: String,
        kind: &'static str,
        path: String,
        args_sha256: Option<String>,
        reason: Option<String>,
        #[schema(format = DateTime)]
        expires_at: Option<String>,
    },
    /// `pause.decided`
    Decided { pause_id: String, decision: Decision },
    /// `pause.voted`
    Voted { pause_id: String, by: String },
    /// `pause.withdrawn`
    Withdrawn { pause_id: String, reason: String },
    /// `pause.expired`
    Expired { pause_id: String },
    /// `guardrails.ran`
    Guardrails { path: String, results: Vec<Guardrail> },
    /// `input.staged`
    Staged { input: String, by: String },
    /// `agent.set`
    Agent { path: String, agent: String },
    /// `rule.made`, `rule.revoked`
    Rule { rule_id: String, by: String },
    /// `run.finished`
    Finished {
        status: RunStatus,
        #[serde(skip_serializing_if = "Option::is_none")]
        output: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        end: Option<RunEnd>,
    },
    /// `call.started`, `call.released`, `agent.handed_off`
    Place { path: String },
    /// Everything else.
    Nothing {},
}

/// A call as the model asked for it.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Call {
    /// The provider's id of it.
    pub(crate) tool_call_id: String,
    /// The tool.
    pub(crate) tool: String,
    /// Its arguments.
    #[schema(value_type = serde_json::Value)]
    pub(crate) args: CanonicalJson,
    /// Why it cannot run at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) problem: Option<String>,
}

/// What a guardrail said.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Guardrail {
    /// Which one.
    pub(crate) name: String,
    /// What it objects to; null when it passed.
    pub(crate) objection: Option<String>,
}

/// One frame of a stream, as a client reads it.
#[derive(Debug, Serialize, ToSchema)]
#[allow(dead_code, reason = "describes what `sse` writes")]
pub(crate) struct StreamFrame {
    /// The number of the event, where it has one: what `Last-Event-ID` names.
    pub(crate) id: Option<String>,
    /// What kind of frame it is: the type of an event, `delta`, `run.stopped`, `error`, `server.stopping` and others.
    pub(crate) event: Option<String>,
    /// A JSON document: an event, a delta, a pause, a run, a request or a problem.
    pub(crate) data: String,
}

/// What a model says while it is still speaking: the `data` of a frame `delta`, which has no `id`.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Delta {
    /// The run.
    pub(crate) run_id: String,
    /// The agent's place in the run; empty for the root.
    pub(crate) path: String,
    /// What is spoken.
    #[serde(rename = "type")]
    pub(crate) kind: DeltaKind,
    /// More of it.
    pub(crate) text: String,
    /// With `arguments`: of which call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tool_call_id: Option<String>,
    /// With `arguments`: of which tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tool: Option<String>,
}

/// What is spoken.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum DeltaKind {
    /// Words.
    Text,
    /// Thoughts.
    Thinking,
    /// Arguments of a call.
    Arguments,
}
