//! What can reach a run.

use crate::agent::AgentBrief;
use crate::decision::DecisionInput;
use crate::ids::{ActorId, CallPath, FramePath, PauseId, RuleId, SessionId};
use crate::json::CanonicalJson;
use crate::message::{Content, Usage};
use crate::policy::{GuardrailResult, Screening};
use crate::tool::{CallRecord, Outcome};

/// What reached a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// Somebody starts it.
    Start(StartInput),
    /// Guardrails looked at the input.
    InputChecked {
        /// Of which frame.
        frame: FramePath,
        /// What they said.
        results: Vec<GuardrailResult>,
    },
    /// The model replied.
    ModelReply(ReplyInput),
    /// Policy, guardrails and deciders looked at calls.
    Screened(Vec<Screening>),
    /// The runtime is about to run these calls.
    StartCalls(Vec<CallPath>),
    /// A guardrail objected right before a call ran.
    Blocked {
        /// The call.
        call: CallPath,
        /// What the guardrails said.
        results: Vec<GuardrailResult>,
        /// What the model is told.
        message: String,
    },
    /// A call came to its end.
    CallEnded {
        /// The call.
        call: CallPath,
        /// What came of it.
        outcome: Outcome,
    },
    /// The words for denials that came without any.
    Worded(Vec<(CallPath, String)>),
    /// These calls were started by a process that is gone.
    Orphaned(Vec<CallPath>),
    /// The tool of these allowed calls is no longer the one that was approved: ask again.
    HoldAgain {
        /// The calls.
        calls: Vec<CallPath>,
        /// Why.
        reason: String,
        /// Until when the new pauses wait.
        expires_at: Option<crate::time::Timestamp>,
    },
    /// Guardrails looked at the output.
    OutputChecked {
        /// Of which frame.
        frame: FramePath,
        /// What they said.
        results: Vec<GuardrailResult>,
    },
    /// A person answered.
    Decision(DecisionInput),
    /// A person answered several pauses: all of the answers count, or none.
    Decisions(Vec<DecisionInput>),
    /// A person says something new instead of deciding: what waits for a decision is closed, and the words are staged.
    Supersede(SupersedeInput),
    /// A pause's time is up.
    DeadlinePassed(PauseId),
    /// Somebody says more while the run is under way.
    Stage {
        /// What they say.
        content: Content,
        /// Who.
        by: ActorId,
        /// The caller's own name of the request, recorded with it.
        request: Option<String>,
    },
    /// A rule is taken back.
    RevokeRule {
        /// The rule.
        rule: RuleId,
        /// Who takes it back.
        by: ActorId,
    },
    /// The application's context is replaced.
    SetContext(Option<CanonicalJson>),
    /// Another agent, or another definition of it, is to go on in a frame.
    SetAgent {
        /// The frame.
        frame: FramePath,
        /// The agent.
        agent: AgentBrief,
    },
    /// Somebody ends the run.
    Cancel {
        /// Who.
        by: ActorId,
        /// Why.
        reason: String,
        /// What they call their request.
        request: Option<String>,
    },
    /// The runtime cannot go on: the model failed for good, a definition is gone.
    Fail {
        /// A stable code.
        code: String,
        /// What is wrong.
        message: String,
    },
}

impl Input {
    /// The input's name, for messages.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Start(_) => "a start",
            Self::InputChecked { .. } => "an input check",
            Self::ModelReply(_) => "a model reply",
            Self::Screened(_) => "a screening",
            Self::StartCalls(_) => "the start of calls",
            Self::Blocked { .. } => "a guardrail's objection",
            Self::CallEnded { .. } => "a tool outcome",
            Self::Worded(_) => "the words of a denial",
            Self::Orphaned(_) => "orphaned calls",
            Self::HoldAgain { .. } => "a second hold",
            Self::OutputChecked { .. } => "an output check",
            Self::Decision(_) => "a decision",
            Self::Decisions(_) => "several decisions",
            Self::Supersede(_) => "a message in the place of decisions",
            Self::DeadlinePassed(_) => "a deadline",
            Self::Stage { .. } => "staged input",
            Self::RevokeRule { .. } => "a rule's end",
            Self::SetContext(_) => "a context",
            Self::SetAgent { .. } => "an agent",
            Self::Cancel { .. } => "a cancellation",
            Self::Fail { .. } => "a failure",
        }
    }
}

/// What starts a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartInput {
    /// The conversation.
    pub session: SessionId,
    /// The agent that begins.
    pub agent: AgentBrief,
    /// What is asked of it.
    pub content: Content,
    /// The application's context: data without secrets.
    pub context: Option<CanonicalJson>,
    /// How many model calls the root agent may make; `None` for no limit.
    pub turns_max: Option<u32>,
    /// Who asks.
    pub by: ActorId,
    /// Whether a person must look at every call of the run, whatever its tools say.
    pub holds_every_call: bool,
}

/// A message that takes the place of the decisions a run waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SupersedeInput {
    /// What is said.
    pub content: Content,
    /// Who says it.
    pub by: ActorId,
    /// Through which door.
    pub via: Option<String>,
    /// The caller's own name of the request, recorded with each pause that is closed.
    pub request: Option<String>,
}

/// A model's reply, its calls resolved against the agent's definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplyInput {
    /// The frame whose model was called.
    pub frame: FramePath,
    /// Which of the frame's model calls it answers, from 1 on. Who asked before somebody else went on answers an earlier one.
    pub turn: u32,
    /// How many staged inputs the model had been shown.
    pub admitted: u32,
    /// What it thought before it spoke, as far as it showed that.
    pub thinking: Option<String>,
    /// Its words.
    pub text: Option<String>,
    /// Its calls.
    pub calls: Vec<CallRecord>,
    /// Whether its words ask a person to confirm.
    pub asks_confirmation: Option<Confirmation>,
    /// What it cost.
    pub usage: Usage,
}

/// A confirmation that the model's own words ask for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Confirmation {
    /// What triggered it, in the operator's words.
    pub reason: Option<String>,
    /// Until when the pause waits.
    pub expires_at: Option<crate::time::Timestamp>,
}
