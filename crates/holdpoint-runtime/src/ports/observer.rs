//! Whoever counts and times what happens here: metrics, alarms. It sees what was done and changes nothing.

use std::time::Duration;

use holdpoint_core::event::RunEvent;
use holdpoint_core::ids::{AgentId, CallPath, FramePath, PauseId, RunId, SessionId, ToolName};
use holdpoint_core::message::Usage;
use holdpoint_core::pause::PauseKind;
use holdpoint_core::run::Run;
use holdpoint_core::time::Timestamp;

use crate::ports::notifier::NoticeKey;

/// Is told what happened in this process, after it happened. It is called where the work is done, outside of any lock, and
/// must return at once; what it does not want to know it leaves out. Should it panic, nothing else is the worse for it.
pub trait Observer: Send + Sync + 'static {
    /// Something was committed.
    fn committed(&self, _committed: &Committed<'_>) {}

    /// A pause opened, was voted on or ended, in something that was committed here.
    fn pause_changed(&self, _change: &PauseChange) {}

    /// A model replied, or gave no reply.
    fn model_called(&self, _call: &ModelCalled<'_>) {}

    /// A tool came to its end.
    fn tool_ran(&self, _call: &ToolRan<'_>) {}

    /// An attempt to tell people of a pause came to its end.
    fn notice_attempted(&self, _attempted: &NoticeAttempted<'_>) {}
}

/// What was committed.
#[derive(Debug, Clone, Copy)]
pub struct Committed<'a> {
    /// The conversation.
    pub session: &'a SessionId,
    /// The run.
    pub run: RunId,
    /// When, by the store's clock.
    pub at: Timestamp,
    /// What happened, in order.
    pub events: &'a [RunEvent],
}

/// A model call that ended.
#[derive(Debug, Clone, Copy)]
pub struct ModelCalled<'a> {
    /// The run.
    pub run: RunId,
    /// The frame within the run.
    pub frame: &'a FramePath,
    /// The agent at work.
    pub agent: &'a AgentId,
    /// The model's name.
    pub model: &'a str,
    /// How long it took.
    pub duration: Duration,
    /// What it cost; `None` when there was no reply.
    pub usage: Option<Usage>,
}

/// A tool that ended.
#[derive(Debug, Clone, Copy)]
pub struct ToolRan<'a> {
    /// The run.
    pub run: RunId,
    /// The call's place in it.
    pub call: &'a CallPath,
    /// The agent that asked.
    pub agent: &'a AgentId,
    /// The tool.
    pub tool: &'a ToolName,
    /// How long it took.
    pub duration: Duration,
    /// Whether it gave a result.
    pub is_ok: bool,
}

/// An attempt to tell people of a pause.
#[derive(Debug, Clone, Copy)]
pub struct NoticeAttempted<'a> {
    /// What was to be told to whom.
    pub key: &'a NoticeKey,
    /// Which attempt it was; 1 for the first.
    pub attempt: u32,
    /// What came of it.
    pub end: AttemptEnd,
    /// How long it took.
    pub duration: Duration,
}

/// What came of an attempt to tell people of a pause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AttemptEnd {
    /// They know.
    Delivered,
    /// It is tried again.
    Retried,
    /// It is not tried any more.
    Failed,
    /// It counts for nothing: another attempt overtook it, or what came of it could not be written down.
    Late,
}

impl AttemptEnd {
    /// The name, as metrics spell it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Delivered => "delivered",
            Self::Retried => "retried",
            Self::Failed => "failed",
            Self::Late => "late",
        }
    }
}

/// A pause that opened, was voted on or ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PauseChange {
    /// The pause.
    pub pause: PauseId,
    /// The conversation.
    pub session: SessionId,
    /// The agent that asks.
    pub agent: AgentId,
    /// The tool, unless the model's own words are the question.
    pub tool: Option<ToolName>,
    /// What is asked.
    pub kind: PauseKind,
    /// What changed.
    pub change: Change,
    /// Since when it was open.
    pub opened_at: Timestamp,
    /// When it changed, by the store's clock.
    pub at: Timestamp,
}

/// What changed about a pause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Change {
    /// It opened.
    Opened,
    /// One of several who must approve did.
    Voted,
    /// It was decided, with the decision of this name.
    Decided(&'static str),
    /// Nobody decided in time.
    Expired,
    /// The question no longer arises.
    Withdrawn,
}

impl Change {
    /// The change's name, as wires spell it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Opened => "opened",
            Self::Voted => "voted",
            Self::Decided(_) => "decided",
            Self::Expired => "expired",
            Self::Withdrawn => "withdrawn",
        }
    }
}

impl PauseChange {
    /// The change that an event means; `run` is the run right after it.
    pub(crate) fn of(run: &Run, event: &RunEvent, at: Timestamp) -> Option<Self> {
        let (number, change) = match event {
            RunEvent::PauseOpened(opened) => (opened.number, Change::Opened),
            RunEvent::PauseVoted(voted) => (voted.number, Change::Voted),
            RunEvent::PauseDecided(decided) => (decided.number, Change::Decided(decided.decision.name())),
            RunEvent::PauseExpired(expired) => (expired.number, Change::Expired),
            RunEvent::PauseWithdrawn(withdrawn) => (withdrawn.number, Change::Withdrawn),
            _ => return None,
        };
        let view = run.pause_view(PauseId { run: run.id(), number })?;
        Some(Self {
            pause: view.pause.id,
            session: run.session()?.clone(),
            agent: view.agent,
            tool: view.call.map(|call| call.tool),
            kind: view.pause.kind,
            change,
            opened_at: view.pause.opened_at,
            at,
        })
    }

    /// How long the pause had been open.
    pub fn waited(&self) -> Duration {
        self.at.since(self.opened_at)
    }
}
