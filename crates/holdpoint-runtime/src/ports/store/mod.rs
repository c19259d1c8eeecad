//! Where runs are kept. One trait, one conformance suite; the memory store is the reference.
//!
//! A run is written only by [`Store::append`]: all of it or nothing, on top of the revision that the writer saw. Losing
//! that race is an answer, not a fault. The store knows events as bytes in order; what they mean is worked out by the
//! runtime, which hands every store the same rows to index.

mod fault;
mod notices;
mod rows;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use holdpoint_core::audit::{AuditNote, AuditRecord};
use holdpoint_core::event::RunEvent;
use holdpoint_core::ids::{ActorId, AgentId, PauseId, RuleId, RunId, SessionId};
use holdpoint_core::json::Digest;
use holdpoint_core::policy::StandingRule;
use holdpoint_core::record::Entry;
use holdpoint_core::time::Timestamp;

use crate::ports::bus::Bus;
use crate::ports::notifier::{Destination, NoticeKey};

pub use fault::{AppendError, StoreFault, StoreFaultKind};
pub use notices::{
    NoticeFilter, NoticeOutcome, NoticeRow, NoticeState, NoticeStatus, WHY_BYTES_MAX as NOTICE_WHY_BYTES_MAX,
};
pub use rows::{
    PAGE_MAX, PauseCursor, PauseFilter, PauseRow, PauseStatus, RuleFilter, RuleRow, RunFilter, RunRow, RunSummary,
    SessionFilter, SessionRow, StoredRule,
};

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

    /// A session, if it has been used.
    ///
    /// # Errors
    /// The store is out of order.
    async fn session(&self, session: &SessionId) -> Result<Option<SessionRow>, StoreFault>;

    /// A page of sessions, the one that began last first.
    ///
    /// # Errors
    /// The store is out of order.
    async fn list_sessions(&self, filter: &SessionFilter) -> Result<Vec<SessionRow>, StoreFault>;

    /// A page of runs, in the order of their ids from the last one on: those that began last come first.
    ///
    /// # Errors
    /// The store is out of order.
    async fn list_runs(&self, filter: &RunFilter) -> Result<Vec<RunSummary>, StoreFault>;

    /// A page of the rules that stand beyond the run in which they were made, in the order of their ids.
    ///
    /// # Errors
    /// The store is out of order.
    async fn list_rules(&self, filter: &RuleFilter) -> Result<Vec<RuleRow>, StoreFault>;

    /// The audit records after a number (0 for the first), in order.
    ///
    /// # Errors
    /// The store is out of order.
    async fn audit(&self, after: u64, limit: usize) -> Result<Vec<AuditRecord>, StoreFault>;

    /// The number and hash of the last audit record that was written. Kept apart from the records and changed with them,
    /// so that it shows where some are gone from the end.
    ///
    /// # Errors
    /// The store is out of order.
    async fn audit_head(&self) -> Result<Option<(u64, Digest)>, StoreFault>;

    /// The definition of an agent, by its digest.
    ///
    /// # Errors
    /// The store is out of order.
    async fn definition(&self, digest: &Digest) -> Result<Option<Arc<[u8]>>, StoreFault>;

    /// Begins attempts at notices to these destinations that wait and are due, the one that is due longest first: each has
    /// one attempt more then, and is due again after `hold`, so that nobody else takes it meanwhile and whoever dies with it
    /// loses nothing. That a pause ended is not told while it is still to be told there that it opened.
    ///
    /// # Errors
    /// The store is out of order.
    async fn claim_notices(
        &self,
        destinations: &[Destination],
        limit: usize,
        hold: Duration,
    ) -> Result<Vec<NoticeRow>, StoreFault>;

    /// Writes down what came of the attempt with this number. `false` where a later one was begun, or the notice is settled:
    /// a late answer changes nothing.
    ///
    /// # Errors
    /// The store is out of order.
    async fn settle_notice(&self, key: &NoticeKey, attempt: u32, outcome: NoticeOutcome) -> Result<bool, StoreFault>;

    /// A notice, if there is one of this key.
    ///
    /// # Errors
    /// The store is out of order.
    async fn notice(&self, key: &NoticeKey) -> Result<Option<NoticeRow>, StoreFault>;

    /// A page of notices, in the order of their keys.
    ///
    /// # Errors
    /// The store is out of order.
    async fn list_notices(&self, filter: &NoticeFilter) -> Result<Vec<NoticeRow>, StoreFault>;

    /// The number of the last event in each of these sessions. One that has not been used may be left out.
    ///
    /// # Errors
    /// The store is out of order.
    async fn session_heads(&self, sessions: &[SessionId]) -> Result<Vec<(SessionId, u64)>, StoreFault> {
        let mut heads = Vec::with_capacity(sessions.len());
        for session in sessions {
            heads.extend(self.session(session).await?.map(|row| (row.session, row.events)));
        }
        Ok(heads)
    }

    /// What instances over this store tell each other by; `None` where a process is alone, or finds out by looking.
    fn bus(&self) -> Option<Arc<dyn Bus>> {
        None
    }

    /// Removes sessions whole in which nothing has happened since `before`, at most so many, the oldest first; says how
    /// many. What belongs to a session goes with it: runs, entries, pauses, rules and notices. The audit stays, and so do
    /// definitions, which several runs share.
    ///
    /// A session with an unfinished run is never removed, also where one begins at the same moment. Any number of
    /// processes may do this at once. A store that keeps everything removes nothing.
    ///
    /// # Errors
    /// The store is out of order. Whatever was removed by then was removed whole.
    async fn remove_old(&self, before: Timestamp, limit: usize) -> Result<u64, StoreFault> {
        let _ = (before, limit);
        Ok(0)
    }

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
    /// and its deadline while it is open. One that was settled stays as it is: it does not come again.
    pub pauses: Vec<PauseRow>,
    /// Rules that were made, used or taken back, of those that outlive the run.
    pub rules: Vec<RuleChange>,
    /// Definitions that the events refer to; those already there are left as they are.
    pub definitions: Vec<(Digest, Arc<[u8]>)>,
    /// What is written down for those who look later; each becomes the next record of the store's chain.
    pub audit: Vec<AuditNote>,
    /// Who is to be told of what, from the append's time on; a notice that is already there is left as it is.
    pub notices: Vec<NoticeKey>,
    /// Whether a run that begins is refused where its session is somebody else's.
    pub only_owner: bool,
}

impl Append {
    /// Whether the append opens pauses, which then share a number of the session.
    pub fn opens_pauses(&self) -> bool {
        self.events.iter().any(|event| matches!(event, RunEvent::PauseOpened(_)))
    }

    /// Who begins the run, where the append does: whoever begins a session's first run owns the session.
    pub fn starter(&self) -> Option<&ActorId> {
        self.events.iter().find_map(|event| match event {
            RunEvent::RunStarted(started) => Some(&started.by),
            _ => None,
        })
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
