//! Where runs are kept. One trait, one conformance suite; the memory store is the reference.
//!
//! A run is written only by [`Store::append`]: all of it or nothing, on top of the revision that the writer saw. Losing
//! that race is an answer, not a fault. The store knows events as bytes in order; what they mean is worked out by the
//! runtime, which hands every store the same rows to index.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use holdpoint_core::event::RunEvent;
use holdpoint_core::ids::{AgentId, PauseId, RuleId, RunId, SessionId, ToolName};
use holdpoint_core::json::Digest;
use holdpoint_core::pause::PauseKind;
use holdpoint_core::policy::StandingRule;
use holdpoint_core::record::Entry;
use holdpoint_core::time::Timestamp;

/// Where runs are kept.
#[async_trait]
pub trait Store: Send + Sync + 'static {
    /// What time it is by the store's clock, which arbitrates deadlines and leases.
    fn now(&self) -> Timestamp;

    /// Writes one entry, durably and whole, and everything that goes with it.
    ///
    /// # Errors
    /// The run moved on, is owned by somebody else, or the store is out of order. Nothing was written then.
    async fn append(&self, append: Append) -> Result<Appended, AppendError>;

    /// A run's entries after a revision (0 for all of them); `None` when there is no such run.
    ///
    /// # Errors
    /// The store is out of order.
    async fn load(&self, run: RunId, after: u64) -> Result<Option<LoadedRun>, StoreFault>;

    /// Takes the lease of a run that nobody moves.
    ///
    /// # Errors
    /// Somebody moves it, there is no such run, or the store is out of order.
    async fn claim(&self, run: RunId, owner: &str, lease: Duration) -> Result<Lease, AppendError>;

    /// Lengthens a lease that is still held.
    ///
    /// # Errors
    /// The lease was lost, or the store is out of order.
    async fn renew(&self, lease: &Lease, duration: Duration) -> Result<Lease, AppendError>;

    /// Gives a lease back; one that was lost is no error.
    ///
    /// # Errors
    /// The store is out of order.
    async fn release(&self, lease: &Lease) -> Result<(), StoreFault>;

    /// Runs that have something to do and are moved by nobody, longest waiting first.
    ///
    /// # Errors
    /// The store is out of order.
    async fn claimable(&self, limit: usize) -> Result<Vec<RunId>, StoreFault>;

    /// Open pauses whose time is up, earliest deadline first.
    ///
    /// # Errors
    /// The store is out of order.
    async fn due_pauses(&self, limit: usize) -> Result<Vec<PauseId>, StoreFault>;

    /// The earliest deadline of an open pause.
    ///
    /// # Errors
    /// The store is out of order.
    async fn next_deadline(&self) -> Result<Option<Timestamp>, StoreFault>;

    /// A page of pauses, oldest first.
    ///
    /// # Errors
    /// The store is out of order.
    async fn list_pauses(&self, filter: &PauseFilter) -> Result<Vec<PauseRow>, StoreFault>;

    /// A session's runs, newest first.
    ///
    /// # Errors
    /// The store is out of order.
    async fn session_runs(&self, session: &SessionId, limit: usize) -> Result<Vec<RunRow>, StoreFault>;

    /// A session's entries whose events have numbers from `from` on, in order.
    ///
    /// # Errors
    /// The store is out of order.
    async fn session_entries(
        &self,
        session: &SessionId,
        from: u64,
        limit: usize,
    ) -> Result<Vec<(RunId, Entry)>, StoreFault>;

    /// The rules that stand in a session beyond the run in which they were made, with their uses so far.
    ///
    /// # Errors
    /// The store is out of order.
    async fn session_rules(&self, session: &SessionId) -> Result<Vec<StoredRule>, StoreFault>;

    /// The definition of an agent, by its digest.
    ///
    /// # Errors
    /// The store is out of order.
    async fn definition(&self, digest: &Digest) -> Result<Option<Arc<[u8]>>, StoreFault>;

    /// What the store promises, for start-up messages and health pages.
    fn durability(&self) -> Durability;
}

/// What one append writes: all of it or nothing.
#[derive(Debug, Clone)]
pub struct Append {
    /// The run.
    pub run: RunId,
    /// The revision that the events build on; 0 begins a run.
    pub expected: u64,
    /// The conversation.
    pub session: SessionId,
    /// The agent that the run began with.
    pub agent: AgentId,
    /// When, by the store's clock.
    pub at: Timestamp,
    /// What happened: one event at least.
    pub events: Arc<[RunEvent]>,
    /// What the run needs next.
    pub status: RunStatus,
    /// Who moves the run from now on.
    pub lease: LeaseChange,
    /// Pauses that opened or changed. One that is already there keeps what it was opened with: only its status changes,
    /// and its deadline while it is open.
    pub pauses: Vec<PauseRow>,
    /// Rules that were made, used or taken back, of those that outlive the run.
    pub rules: Vec<RuleChange>,
    /// Definitions that the events refer to; those already there are left as they are.
    pub definitions: Vec<(Digest, Arc<[u8]>)>,
}

impl Append {
    /// Whether the append opens pauses, which then share a number of the session.
    pub fn opens_pauses(&self) -> bool {
        self.events.iter().any(|event| matches!(event, RunEvent::PauseOpened(_)))
    }
}

/// What became of an append.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Appended {
    /// The run's revision now.
    pub revision: u64,
    /// The session's number of the first event.
    pub seq: u64,
    /// The number that the opened pauses share.
    pub pause_group: Option<u64>,
    /// The lease's fencing token, where the append took or held one.
    pub epoch: Option<u64>,
}

/// What a run needs next, as far as the store must know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RunStatus {
    /// Somebody must move it.
    Working,
    /// A person must answer.
    Waiting,
    /// Nothing.
    Finished,
}

/// What an append does to the run's lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeaseChange {
    /// Nothing: the writer does not move the run.
    Keep,
    /// Takes it, unless somebody else holds it.
    Take {
        /// Who takes it.
        owner: String,
        /// For how long.
        duration: Duration,
    },
    /// Writes under it and keeps it.
    Hold {
        /// The fencing token.
        epoch: u64,
    },
    /// Writes under it and gives it back.
    Release {
        /// The fencing token.
        epoch: u64,
    },
}

/// The right to move a run, for a while.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// The run.
    pub run: RunId,
    /// The fencing token: greater than every earlier one.
    pub epoch: u64,
    /// Who holds it.
    pub owner: String,
    /// Until when.
    pub until: Timestamp,
}

/// A run as it was loaded.
#[derive(Debug, Clone)]
pub struct LoadedRun {
    /// Its revision.
    pub revision: u64,
    /// Its conversation.
    pub session: SessionId,
    /// The agent it began with.
    pub agent: AgentId,
    /// The entries asked for, in order.
    pub entries: Vec<Entry>,
    /// Who moves it, if the lease still runs.
    pub lease: Option<Lease>,
}

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
    pub const LIMIT_MAX: usize = 1_000;

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

/// What an append does to rules that outlive their run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RuleChange {
    /// Somebody made it.
    Made(StandingRule),
    /// It settled a call: refused when it is spent or was taken back.
    Used(RuleId),
    /// Somebody took it back.
    Revoked(RuleId),
}

/// What a store promises.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Durability {
    /// The store's name.
    pub store: &'static str,
    /// Whether what was acknowledged survives a crash.
    pub survives_crash: bool,
    /// Whether several processes may share it.
    pub is_shared: bool,
    /// The settings that the promise rests on.
    pub settings: String,
}

/// Why an append was not written.
#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    /// Somebody else wrote first.
    #[error("run {run} stands at revision {revision}, not at the one expected")]
    Conflict {
        /// The run.
        run: RunId,
        /// Where it stands.
        revision: u64,
    },
    /// Somebody else moves the run.
    #[error("run {run} is moved by {owner} until {until}")]
    Leased {
        /// The run.
        run: RunId,
        /// Who moves it.
        owner: String,
        /// Until when.
        until: Timestamp,
    },
    /// The writer's lease was lost: somebody else may have gone on since.
    #[error("the lease of run {run} was lost")]
    Fenced {
        /// The run.
        run: RunId,
    },
    /// The agent already has a run under way in the session.
    #[error("run {run} is under way in the session")]
    SessionBusy {
        /// The run under way.
        run: RunId,
    },
    /// A rule that the append uses is spent or was taken back.
    #[error("rule {0} no longer stands")]
    RuleSpent(RuleId),
    /// There is no such run.
    #[error("run {0} is not known")]
    NoRun(RunId),
    /// The store is out of order.
    #[error(transparent)]
    Fault(#[from] StoreFault),
}

/// A store that is out of order. Nothing was acknowledged; a retry may help.
#[derive(Debug, thiserror::Error)]
#[error("the store could not {doing}: {kind}")]
pub struct StoreFault {
    /// What it was about to do.
    pub doing: &'static str,
    /// What kind of disorder.
    pub kind: StoreFaultKind,
    /// The cause.
    #[source]
    pub source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// What kind of disorder a store is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreFaultKind {
    /// It cannot be reached, or was stopped.
    Unavailable,
    /// There is no room left.
    Full,
    /// What it holds cannot be read.
    Corrupt,
    /// What it holds was written by a newer version.
    Newer,
    /// Whether the append was written is not known; read before trying again.
    Unknown,
}

impl StoreFaultKind {
    /// A stable, documented name.
    pub fn code(self) -> &'static str {
        match self {
            Self::Unavailable => "store_unavailable",
            Self::Full => "store_full",
            Self::Corrupt => "store_corrupt",
            Self::Newer => "store_newer",
            Self::Unknown => "store_unknown",
        }
    }
}

impl std::fmt::Display for StoreFaultKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Unavailable => "it is not available",
            Self::Full => "there is no room left",
            Self::Corrupt => "what it holds cannot be read",
            Self::Newer => "it was written by a newer version of holdpoint",
            Self::Unknown => "whether it was written is not known",
        })
    }
}

impl StoreFault {
    /// A fault without a cause of its own.
    pub fn new(doing: &'static str, kind: StoreFaultKind) -> Self {
        Self { doing, kind, source: None }
    }

    /// A fault with its cause.
    pub fn because(
        doing: &'static str,
        kind: StoreFaultKind,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self { doing, kind, source: Some(source.into()) }
    }
}
