//! Why an input was turned away. A refusal is an answer: the run is unchanged, and the caller can correct it.

use crate::ids::{ActorId, AgentId, CallPath, PauseId, RuleId, RunId, SessionId};
use crate::json::Digest;
use crate::time::Timestamp;

/// Why an input was turned away. The run is unchanged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// No such pause, or none that the caller may see.
    #[error("pause {0} is not known")]
    PauseNotFound(PauseId),
    /// No such run, or none that the caller may see.
    #[error("run {0} is not known")]
    RunNotFound(RunId),
    /// No such session, or none that the caller may see.
    #[error("session {0} is not known")]
    SessionNotFound(SessionId),
    /// No such rule, or none that the caller may see.
    #[error("rule {0} is not known")]
    RuleNotFound(RuleId),
    /// Somebody else was first.
    #[error("pause {pause} was already decided: {outcome} by {by} at {at}")]
    AlreadyDecided {
        /// The pause.
        pause: PauseId,
        /// The recorded answer's name.
        outcome: &'static str,
        /// Who gave it.
        by: ActorId,
        /// When.
        at: Timestamp,
    },
    /// The pause's time is up.
    #[error("pause {pause} expired at {at}")]
    Expired {
        /// The pause.
        pause: PauseId,
        /// Since when.
        at: Timestamp,
    },
    /// The question no longer arises.
    #[error("pause {pause} was withdrawn at {at}")]
    Withdrawn {
        /// The pause.
        pause: PauseId,
        /// Since when.
        at: Timestamp,
    },
    /// The caller saw other arguments than those held.
    #[error("pause {pause} holds arguments with digest {held}, not {seen}: look at it again")]
    StaleView {
        /// The pause.
        pause: PauseId,
        /// What is held.
        held: Digest,
        /// What the caller saw.
        seen: Digest,
    },
    /// The decision does not answer this kind of pause.
    #[error("{decision} does not answer a pause of kind {kind}; {} do", allowed.join(", "))]
    DecisionNotAllowed {
        /// The pause.
        pause: PauseId,
        /// Its kind.
        kind: &'static str,
        /// What was given.
        decision: &'static str,
        /// What would do.
        allowed: &'static [&'static str],
    },
    /// Somebody who may not decide this pause.
    #[error("{by} is not among those who may decide pause {pause}")]
    NotAnApprover {
        /// The pause.
        pause: PauseId,
        /// Who tried.
        by: ActorId,
    },
    /// Several must approve what is held, and so nobody alone can change it.
    #[error(
        "pause {pause} needs {quorum} approvals of what is held, so nobody can edit it: approve it as it is, or deny it"
    )]
    EditOfSeveral {
        /// The pause.
        pause: PauseId,
        /// How many must approve.
        quorum: u32,
    },
    /// The edited arguments break the tool's schema.
    #[error("the edited arguments of pause {pause} are not accepted: {problem}")]
    InvalidArguments {
        /// The pause.
        pause: PauseId,
        /// What is wrong, and where.
        problem: String,
    },
    /// The edited arguments hold a number that would not run as it was sent.
    #[error("the edited arguments of pause {pause} hold a number that programs cannot keep exactly: {number}")]
    NumberOutOfRange {
        /// The pause.
        pause: PauseId,
        /// The number, or its beginning.
        number: String,
    },
    /// The answers do not fit the questions.
    #[error("the answers to pause {pause} are not accepted: {problem}")]
    InvalidAnswers {
        /// The pause.
        pause: PauseId,
        /// What is wrong, and where.
        problem: String,
    },
    /// The rule cannot be made as it was given.
    #[error("the rule is not accepted: {0}")]
    InvalidRule(String),
    /// Too long, too deep or too many.
    #[error("at most {limit} {what} are accepted, and this has {found}")]
    OverLimit {
        /// What is limited.
        what: &'static str,
        /// The bound.
        limit: usize,
        /// What was given.
        found: usize,
    },
    /// The input does not fit the run's state.
    #[error("{input} is not accepted while the run is {state}")]
    OutOfTurn {
        /// The state.
        state: &'static str,
        /// The input.
        input: &'static str,
    },
    /// The input names a call that is not in the state for it.
    #[error("{input} is not accepted for call {call}, which is {state}")]
    CallOutOfTurn {
        /// The call.
        call: CallPath,
        /// Its state.
        state: &'static str,
        /// The input.
        input: &'static str,
    },
    /// The run has ended.
    #[error("run {0} is finished")]
    RunFinished(RunId),
    /// The agent already has a run under way in this session.
    #[error(
        "run {run} of agent {agent} is under way in this session: decide, cancel or wait for it, or stage the input"
    )]
    RunActive {
        /// The run under way.
        run: RunId,
        /// Its agent.
        agent: AgentId,
    },
    /// Another process moves the run.
    #[error("run {run} is moved by {owner} until {until}")]
    RunBusy {
        /// The run.
        run: RunId,
        /// Who moves it.
        owner: String,
        /// Until when its lease lasts.
        until: Timestamp,
    },
    /// The stored form is of a version that this program does not know.
    #[error("the state has format {found}, and the newest that is read here is {newest}: use a newer holdpoint")]
    FormatNewer {
        /// What was found.
        found: u64,
        /// What is known.
        newest: u64,
    },
    /// The text is no state at all, or has no format.
    #[error("no run state: {0}")]
    NotAState(String),
    /// The state contradicts itself.
    #[error("the run state is not consistent: {0}")]
    StateCorrupt(String),
    /// The state's signature is missing or wrong.
    #[error("the run state's signature does not match: it was changed, or signed with another key")]
    StateTampered,
    /// The store has moved on since the state was written.
    #[error("run {run} stands at revision {stored} in the store, and the state is of revision {given}")]
    StateStale {
        /// The run.
        run: RunId,
        /// What the store has.
        stored: u64,
        /// What was given.
        given: u64,
    },
    /// The agent graph lacks an agent that the run refers to.
    #[error("agent {0} is not in the agent graph: rebuild the graph that the run was started with")]
    AgentMissing(AgentId),
    /// The agent lacks a tool that a pending call refers to.
    #[error("agent {agent} has no tool {tool}, which a pending call needs")]
    ToolMissing {
        /// The agent.
        agent: AgentId,
        /// The tool.
        tool: String,
    },
    /// The agent's definition changed while the run was paused, and the drift policy refuses that.
    #[error("the definition of agent {agent} changed while the run was paused: {was} became {now}")]
    AgentChanged {
        /// The agent.
        agent: AgentId,
        /// The digest then.
        was: Digest,
        /// The digest now.
        now: Digest,
    },
    /// The agent, tool or setting is not valid.
    #[error("{0}")]
    InvalidDefinition(String),
}

impl Refusal {
    /// A stable, documented name: the same in every protocol and client.
    pub fn code(&self) -> &'static str {
        match self {
            Self::PauseNotFound(_) | Self::RunNotFound(_) | Self::RuleNotFound(_) => "not_found",
            Self::SessionNotFound(_) => "session_not_found",
            Self::AlreadyDecided { .. } => "already_decided",
            Self::Expired { .. } => "expired",
            Self::Withdrawn { .. } => "withdrawn",
            Self::StaleView { .. } => "stale_view",
            Self::DecisionNotAllowed { .. } | Self::EditOfSeveral { .. } => "decision_not_allowed",
            Self::NotAnApprover { .. } => "not_an_approver",
            Self::InvalidArguments { .. } => "invalid_arguments",
            Self::NumberOutOfRange { .. } => "number_out_of_range",
            Self::InvalidAnswers { .. } => "invalid_answers",
            Self::InvalidRule(_) => "invalid_rule",
            Self::OverLimit { .. } => "over_limit",
            Self::OutOfTurn { .. } | Self::CallOutOfTurn { .. } => "out_of_turn",
            Self::RunFinished(_) => "run_finished",
            Self::RunActive { .. } => "run_active",
            Self::RunBusy { .. } => "run_busy",
            Self::FormatNewer { .. } => "format_newer",
            Self::NotAState(_) => "not_a_state",
            Self::StateCorrupt(_) => "state_corrupt",
            Self::StateTampered => "state_tampered",
            Self::StateStale { .. } => "state_stale",
            Self::AgentMissing(_) => "agent_missing",
            Self::ToolMissing { .. } => "tool_missing",
            Self::AgentChanged { .. } => "agent_changed",
            Self::InvalidDefinition(_) => "invalid_definition",
        }
    }

    /// The pause that the refusal speaks of, where it is about one: of several decisions, the one that was refused.
    pub fn pause(&self) -> Option<PauseId> {
        match self {
            Self::PauseNotFound(pause)
            | Self::AlreadyDecided { pause, .. }
            | Self::Expired { pause, .. }
            | Self::Withdrawn { pause, .. }
            | Self::StaleView { pause, .. }
            | Self::DecisionNotAllowed { pause, .. }
            | Self::NotAnApprover { pause, .. }
            | Self::EditOfSeveral { pause, .. }
            | Self::InvalidArguments { pause, .. }
            | Self::NumberOutOfRange { pause, .. }
            | Self::InvalidAnswers { pause, .. } => Some(*pause),
            _ => None,
        }
    }

    /// Every code there is; each has a page under `docs/errors/`.
    pub const CODES: &'static [&'static str] = &[
        "already_decided",
        "agent_changed",
        "agent_missing",
        "decision_not_allowed",
        "expired",
        "format_newer",
        "invalid_answers",
        "invalid_arguments",
        "invalid_definition",
        "invalid_rule",
        "not_a_state",
        "not_an_approver",
        "not_found",
        "number_out_of_range",
        "out_of_turn",
        "over_limit",
        "run_active",
        "run_busy",
        "run_finished",
        "session_not_found",
        "stale_view",
        "state_corrupt",
        "state_stale",
        "state_tampered",
        "tool_missing",
        "withdrawn",
    ];
}

/// Why a model's reply could not be used: stable codes that a failed run carries.
pub mod reply {
    /// A call came without an id.
    pub const CALL_ID_EMPTY: &str = "call_id_empty";
    /// An id was used for two different calls.
    pub const CALL_ID_REUSED: &str = "call_id_reused";
    /// More calls than a reply may have.
    pub const TOO_MANY_CALLS: &str = "too_many_calls";
    /// The words and arguments together were larger than a reply's may be.
    pub const REPLY_TOO_LARGE: &str = "reply_too_large";
}

/// Why a run failed: stable codes.
pub mod failure {
    /// The agent may make no more model calls.
    pub const TURNS_EXHAUSTED: &str = "turns_exhausted";
    /// The model's replies could not be used, several times in a row.
    pub const MODEL_MISBEHAVED: &str = "model_misbehaved";
    /// A guardrail stopped the run.
    pub const GUARDRAIL_TRIPPED: &str = "guardrail_tripped";
}
