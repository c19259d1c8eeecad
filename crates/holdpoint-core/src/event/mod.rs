//! What happened to a run. Events are committed before anything depends on them, and never change.
//!
//! Their stored form is the serde form of these types, tagged from outside so that arguments keep their exact bytes.

mod pause;

use serde::{Deserialize, Serialize};

use crate::agent::AgentBrief;
use crate::ids::{ActorId, CallPath, FramePath, RuleId, SessionId};
use crate::json::CanonicalJson;
use crate::message::{Content, Usage};
use crate::policy::{GuardrailResult, StandingRule};
use crate::tool::{Allowance, CallRecord, Outcome};

pub use pause::{PauseDecided, PauseExpired, PauseOpened, PauseVoted, PauseWithdrawn};

/// A committed fact of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum RunEvent {
    /// The run began.
    #[serde(rename = "run.started")]
    RunStarted(RunStarted),
    /// Guardrails spoke.
    #[serde(rename = "guardrails.ran")]
    GuardrailsRan(GuardrailsRan),
    /// The model replied.
    #[serde(rename = "model.replied")]
    ModelReplied(ModelReplied),
    /// The model's reply could not be used; it counts as a model call.
    #[serde(rename = "reply.refused")]
    ReplyRefused(ReplyRefused),
    /// A call may run.
    #[serde(rename = "call.allowed")]
    CallAllowed(CallAllowed),
    /// A call was turned down without a person; its words are still to be found.
    #[serde(rename = "call.denied")]
    CallDenied(CallDenied),
    /// A person is asked.
    #[serde(rename = "pause.opened")]
    PauseOpened(PauseOpened),
    /// One of several who must approve did.
    #[serde(rename = "pause.voted")]
    PauseVoted(PauseVoted),
    /// A person, or a rule that a person made, answered.
    #[serde(rename = "pause.decided")]
    PauseDecided(PauseDecided),
    /// Nobody answered in time.
    #[serde(rename = "pause.expired")]
    PauseExpired(PauseExpired),
    /// The question no longer arises.
    #[serde(rename = "pause.withdrawn")]
    PauseWithdrawn(PauseWithdrawn),
    /// A call is about to take effect.
    #[serde(rename = "call.started")]
    CallStarted(CallStarted),
    /// A call may be started once more: it may be repeated, or a person said so.
    #[serde(rename = "call.released")]
    CallReleased(CallReleased),
    /// A call is settled.
    #[serde(rename = "call.answered")]
    CallAnswered(CallAnswered),
    /// Another agent took over the conversation.
    #[serde(rename = "agent.handed_off")]
    HandedOff(HandedOff),
    /// Somebody said more; the model sees it with its next call.
    #[serde(rename = "input.staged")]
    InputStaged(InputStaged),
    /// Somebody made a rule.
    #[serde(rename = "rule.made")]
    RuleMade(StandingRule),
    /// Somebody took a rule back.
    #[serde(rename = "rule.revoked")]
    RuleRevoked(RuleRevoked),
    /// The application's context was replaced.
    #[serde(rename = "context.set")]
    ContextSet(ContextSet),
    /// Another agent, or another definition of it, goes on.
    #[serde(rename = "agent.set")]
    AgentSet(AgentSet),
    /// The run ended.
    #[serde(rename = "run.finished")]
    RunFinished(RunEnd),
}

impl RunEvent {
    /// The event's name, as wires and stores spell it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::RunStarted(_) => "run.started",
            Self::GuardrailsRan(_) => "guardrails.ran",
            Self::ModelReplied(_) => "model.replied",
            Self::ReplyRefused(_) => "reply.refused",
            Self::CallAllowed(_) => "call.allowed",
            Self::CallDenied(_) => "call.denied",
            Self::PauseOpened(_) => "pause.opened",
            Self::PauseVoted(_) => "pause.voted",
            Self::PauseDecided(_) => "pause.decided",
            Self::PauseExpired(_) => "pause.expired",
            Self::PauseWithdrawn(_) => "pause.withdrawn",
            Self::CallStarted(_) => "call.started",
            Self::CallReleased(_) => "call.released",
            Self::CallAnswered(_) => "call.answered",
            Self::HandedOff(_) => "agent.handed_off",
            Self::InputStaged(_) => "input.staged",
            Self::RuleMade(_) => "rule.made",
            Self::RuleRevoked(_) => "rule.revoked",
            Self::ContextSet(_) => "context.set",
            Self::AgentSet(_) => "agent.set",
            Self::RunFinished(_) => "run.finished",
        }
    }
}

/// The run began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunStarted {
    /// The conversation.
    pub session: SessionId,
    /// The agent that begins.
    pub agent: AgentBrief,
    /// What is asked of it.
    pub input: Content,
    /// The application's context.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<CanonicalJson>,
    /// How many model calls the root agent may make; `None` for no limit.
    pub turns_max: Option<u32>,
    /// Who asks.
    pub by: ActorId,
    /// Whether a person must look at every call of the run, whatever its tools say.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub holds_every_call: bool,
}

/// Guardrails spoke.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GuardrailsRan {
    /// The call they looked at, or the frame.
    pub at: CallPath,
    /// What they said.
    pub results: Vec<GuardrailResult>,
}

/// The model replied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelReplied {
    /// In which frame.
    #[serde(default, skip_serializing_if = "CallPath::is_root")]
    pub frame: FramePath,
    /// How many staged inputs it had been shown.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub admitted: u32,
    /// What it thought before it spoke, as far as it showed that. Shown to people, never to a model again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking: Option<String>,
    /// Its words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Its calls.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<CallRecord>,
    /// What it cost.
    pub usage: Usage,
}

/// The model's reply could not be used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplyRefused {
    /// In which frame.
    #[serde(default, skip_serializing_if = "CallPath::is_root")]
    pub frame: FramePath,
    /// A stable code.
    pub code: String,
    /// What was wrong.
    pub message: String,
    /// What it cost.
    pub usage: Usage,
}

/// A call may run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallAllowed {
    /// The call.
    pub call: CallPath,
    /// Who let it.
    pub by: Allowance,
}

/// A call was turned down without a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallDenied {
    /// The call.
    pub call: CallPath,
    /// What denied it.
    pub by: ActorId,
    /// The rule, where it was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<RuleId>,
}

/// A call is about to take effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallStarted {
    /// The call.
    pub call: CallPath,
}

/// A call may be started once more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallReleased {
    /// The call.
    pub call: CallPath,
}

/// A call is settled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallAnswered {
    /// The call.
    pub call: CallPath,
    /// What came of it.
    pub outcome: Outcome,
}

/// Another agent took over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HandedOff {
    /// The call that asked for it.
    pub call: CallPath,
}

/// Somebody said more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InputStaged {
    /// What they said.
    pub content: Content,
    /// Who.
    pub by: ActorId,
    /// The caller's own name of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
    /// Whose model hears it.
    #[serde(default, skip_serializing_if = "CallPath::is_root")]
    pub frame: FramePath,
}

/// Somebody took a rule back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RuleRevoked {
    /// The rule.
    pub rule: RuleId,
    /// Who.
    pub by: ActorId,
}

/// The application's context was replaced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContextSet {
    /// What it is now.
    pub context: Option<CanonicalJson>,
}

/// Another agent goes on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentSet {
    /// In which frame.
    #[serde(default, skip_serializing_if = "CallPath::is_root")]
    pub frame: FramePath,
    /// The agent.
    pub agent: AgentBrief,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum RunEnd {
    /// With an output.
    Done(Content),
    /// It could not go on.
    Failed {
        /// A stable code.
        code: String,
        /// What was wrong.
        message: String,
    },
    /// Somebody ended it.
    Cancelled {
        /// Who.
        by: ActorId,
        /// Why.
        reason: String,
        /// What they called their request, where they named it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        request: Option<String>,
    },
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}
