//! Rows that stores keep beside the journals, and which of them are asked for.

use holdpoint_core::ids::{ActorId, AgentId, PauseId, RuleId, RunId, SessionId, ToolName};
use holdpoint_core::pause::PauseKind;
use holdpoint_core::policy::StandingRule;
use holdpoint_core::time::Timestamp;

use super::RunStatus;

/// The most rows that a page of any list may have.
pub const PAGE_MAX: usize = 1_000;

/// One row of a session's list of runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunRow {
    /// The run.
    pub run: RunId,
    /// The agent it began with.
    pub agent: AgentId,
    /// How it stands.
    pub status: RunStatus,
}

/// One row of the inbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PauseRow {
    /// The pause.
    pub id: PauseId,
    /// What is asked.
    pub kind: PauseKind,
    /// How it stands.
    pub status: PauseStatus,
    /// The conversation.
    pub session: SessionId,
    /// The agent that asks.
    pub agent: AgentId,
    /// The tool, unless the model's own words are the question.
    pub tool: Option<ToolName>,
    /// Since when.
    pub opened_at: Timestamp,
    /// Until when.
    pub expires_at: Option<Timestamp>,
    /// The session's number that pauses opened together share; set by the store.
    pub group: u64,
}

/// How a pause stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PauseStatus {
    /// It waits.
    Open,
    /// Somebody answered.
    Decided,
    /// Nobody did in time.
    Expired,
    /// The question no longer arises.
    Withdrawn,
}

/// Which pauses are listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PauseFilter {
    /// Only these; `None` for all.
    pub status: Option<PauseStatus>,
    /// Only of this session.
    pub session: Option<SessionId>,
    /// Only of this agent.
    pub agent: Option<AgentId>,
    /// Only of this tool.
    pub tool: Option<ToolName>,
    /// Only those that come after this one.
    pub after: Option<PauseCursor>,
    /// At most so many.
    pub limit: usize,
}

/// A place in the list of pauses, which is in the order of opening.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct PauseCursor {
    /// When the pause before the place opened.
    pub opened_at: Timestamp,
    /// The pause before the place.
    pub id: PauseId,
}

impl PauseFilter {
    /// The most pauses that a page may have.
    pub const LIMIT_MAX: usize = PAGE_MAX;

    /// The first hundred open pauses.
    pub fn open() -> Self {
        Self { status: Some(PauseStatus::Open), session: None, agent: None, tool: None, after: None, limit: 100 }
    }

    /// Whether a row is listed, its place in the order aside.
    pub fn admits(&self, row: &PauseRow) -> bool {
        self.status.is_none_or(|status| status == row.status)
            && self.session.as_ref().is_none_or(|session| *session == row.session)
            && self.agent.as_ref().is_none_or(|agent| *agent == row.agent)
            && self.tool.as_ref().is_none_or(|tool| row.tool.as_ref() == Some(tool))
            && self.after.is_none_or(|after| row.cursor() > after)
    }
}

impl PauseRow {
    /// The row's place in the list.
    pub fn cursor(&self) -> PauseCursor {
        PauseCursor { opened_at: self.opened_at, id: self.id }
    }
}

/// A rule that outlives its run, and how often it was used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredRule {
    /// The rule.
    pub rule: StandingRule,
    /// Its uses in all runs.
    pub uses: u32,
}

/// One row of the list of rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleRow {
    /// The session in which it stands.
    pub session: SessionId,
    /// The rule.
    pub rule: StandingRule,
    /// Its uses in all runs.
    pub uses: u32,
}

/// Which rules are listed: always those that may still be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleFilter {
    /// Only of this session.
    pub session: Option<SessionId>,
    /// Only those that come after this one.
    pub after: Option<RuleId>,
    /// At most so many.
    pub limit: usize,
}

impl Default for RuleFilter {
    fn default() -> Self {
        Self { session: None, after: None, limit: 100 }
    }
}

/// One row of the list of sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRow {
    /// The session.
    pub session: SessionId,
    /// Who began its first run.
    pub owner: ActorId,
    /// When that was.
    pub created_at: Timestamp,
    /// When something last happened in it.
    pub last_at: Timestamp,
    /// How many runs it has.
    pub runs: u64,
    /// How many events.
    pub events: u64,
}

/// Which sessions are listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionFilter {
    /// Only those of this owner.
    pub owner: Option<ActorId>,
    /// Only those that come after this one. After a session that is not known comes none.
    pub after: Option<SessionId>,
    /// At most so many.
    pub limit: usize,
}

impl Default for SessionFilter {
    fn default() -> Self {
        Self { owner: None, after: None, limit: 100 }
    }
}

/// One row of the list of runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunSummary {
    /// The run.
    pub run: RunId,
    /// Its conversation.
    pub session: SessionId,
    /// The agent it began with.
    pub agent: AgentId,
    /// How it stands.
    pub status: RunStatus,
    /// When it began.
    pub started_at: Timestamp,
    /// When something last happened in it.
    pub last_at: Timestamp,
}

/// Which runs are listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunFilter {
    /// Only of this session.
    pub session: Option<SessionId>,
    /// Only of sessions of this owner.
    pub owner: Option<ActorId>,
    /// Only those that began with this agent.
    pub agent: Option<AgentId>,
    /// Only those that stand so.
    pub status: Option<RunStatus>,
    /// Only those that come after this one.
    pub after: Option<RunId>,
    /// At most so many.
    pub limit: usize,
}

impl Default for RunFilter {
    fn default() -> Self {
        Self { session: None, owner: None, agent: None, status: None, after: None, limit: 100 }
    }
}
