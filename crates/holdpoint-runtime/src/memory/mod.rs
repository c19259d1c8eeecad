//! The memory store: the reference that every other store is held against. Plain, obviously right, and gone with the
//! process, so it is for tests and for whoever asks for it by name.
//!
//! What the contract of [`Store`] leaves open is settled here, and the conformance suite holds every store to it:
//!
//! - **An append is checked in this order**, and the first check that fails is the answer: the run is there, or is not
//!   there and begins ([`AppendError::NoRun`]; a run is known only in the session in which it began); a run that begins
//!   and may only begin in a session of its starter's own does ([`AppendError::SessionForeign`]); no other run of
//!   the agent is unfinished in the session ([`AppendError::SessionBusy`]); the revision is the one expected
//!   ([`AppendError::Conflict`]); the lease ([`AppendError::Leased`], [`AppendError::Fenced`]); the rules
//!   ([`AppendError::RuleSpent`]). Then everything is written, or nothing.
//! - **Event numbers** (`seq`) are dense in a session from one and count events, not entries. **Pause groups** are dense
//!   in a session from one: each append that opens pauses takes the next, and all pauses that it opens share it. An
//!   append without events has no place in that order and is a fault.
//! - **A pause keeps what it was opened with**: a row that comes again changes its status, and its deadline while it is
//!   open, and nothing else.
//! - **A lease stops others only until its time is up; its holder may write until somebody else has taken it.** Taking
//!   is refused while an unexpired lease stands, be it the taker's own. Holding, renewing and giving back ask for the
//!   current epoch alone: a late holder is safe to admit as long as nobody took over, since the epoch would have
//!   changed. A lease that was given back, or ended with its run, is nobody's.
//! - **Runs to claim** are those at work without an unexpired lease, in the order in which they were left alone.
//! - **Rules** are used in their own session only, while they are alive at the append's time and not taken back. Taking
//!   back what is not there changes nothing.
//! - **A session is owned** by whoever began its first run, for good.
//! - **Audit records** are numbered from one without a gap, in the order in which appends are written and within an append
//!   in the order given. Each is chained to the one before it.
//! - **Notices** are written with the append that they tell of and are due from its time on; one that is there already is
//!   left as it is. They are claimed in the order in which they are due, those of one moment in the order of their keys.
//!   Notices of one pause to one destination are told in their order: while the first waits, due or not, the second is
//!   not claimed. Of an attempt only the outcome of the last one begun counts, and only the first that is told.
//! - **Pages**: sessions come in the order in which they began, from the last one on; runs in the order of their ids, from
//!   the last one on; rules in the order of their ids; notices in the order of their keys. No page has more than [`PAGE_MAX`](crate::ports::store::PAGE_MAX)
//!   rows.
//! - **Sessions are removed whole**, and only those whose runs are all finished and whose entries are all older. A session
//!   of the same name that begins later begins anew: its numbers start at one.
//! - **A deadline is due when its time has come**: `expires_at <= now`, never earlier.
//!
//! Whatever is read is a copy.

mod append;
mod audit;
mod lease;
mod lists;
mod notices;
mod read;
mod retention;
mod rules;
mod tables;

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use holdpoint_core::audit::AuditRecord;
use holdpoint_core::ids::{PauseId, RunId, SessionId};
use holdpoint_core::json::Digest;
use holdpoint_core::record::Entry;
use holdpoint_core::time::Timestamp;

use crate::ports::clock::Clock;
use crate::ports::notifier::{Destination, NoticeKey};
use crate::ports::store::{
    Append, AppendError, Appended, Durability, Lease, LoadedRun, NoticeFilter, NoticeOutcome, NoticeRow, PauseFilter,
    PauseRow, RuleFilter, RuleRow, RunFilter, RunRow, RunSummary, SessionFilter, SessionRow, Store, StoreFault,
    StoredRule,
};
use tables::Tables;

/// Keeps runs in memory. Nothing survives the process.
pub struct MemoryStore {
    clock: Arc<dyn Clock>,
    tables: Mutex<Tables>,
}

impl MemoryStore {
    /// An empty store that goes by this clock.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, tables: Mutex::default() }
    }

    /// A store of its own with the same contents and the same clock: what is written to one is not seen in the other.
    pub fn copy(&self) -> Self {
        Self { clock: Arc::clone(&self.clock), tables: Mutex::new(self.tables().clone()) }
    }

    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.tables.lock().expect("nothing panics while it holds the tables")
    }
}

#[async_trait]
impl Store for MemoryStore {
    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    async fn append(&self, append: Append) -> Result<Appended, AppendError> {
        append::append(&mut self.tables(), append, self.now())
    }

    async fn load(&self, run: RunId, after: u64) -> Result<Option<LoadedRun>, StoreFault> {
        Ok(read::load(&self.tables(), run, after, self.now()))
    }

    async fn claim(&self, run: RunId, owner: &str, duration: Duration) -> Result<Lease, AppendError> {
        lease::claim(&mut self.tables(), run, owner, duration, self.now())
    }

    async fn renew(&self, lease: &Lease, duration: Duration) -> Result<Lease, AppendError> {
        lease::renew(&mut self.tables(), lease, duration, self.now())
    }

    async fn release(&self, lease: &Lease) -> Result<(), StoreFault> {
        lease::release(&mut self.tables(), lease, self.now());
        Ok(())
    }

    async fn claimable(&self, limit: usize) -> Result<Vec<RunId>, StoreFault> {
        Ok(lease::claimable(&self.tables(), limit, self.now()))
    }

    async fn due_pauses(&self, limit: usize) -> Result<Vec<PauseId>, StoreFault> {
        Ok(read::due_pauses(&self.tables(), limit, self.now()))
    }

    async fn next_deadline(&self) -> Result<Option<Timestamp>, StoreFault> {
        Ok(read::next_deadline(&self.tables()))
    }

    async fn list_pauses(&self, filter: &PauseFilter) -> Result<Vec<PauseRow>, StoreFault> {
        Ok(read::list_pauses(&self.tables(), filter))
    }

    async fn session_runs(&self, session: &SessionId, limit: usize) -> Result<Vec<RunRow>, StoreFault> {
        Ok(read::session_runs(&self.tables(), session, limit))
    }

    async fn session_entries(
        &self,
        session: &SessionId,
        from: u64,
        limit: usize,
    ) -> Result<Vec<(RunId, Entry)>, StoreFault> {
        Ok(read::session_entries(&self.tables(), session, from, limit))
    }

    async fn session_rules(&self, session: &SessionId) -> Result<Vec<StoredRule>, StoreFault> {
        Ok(rules::standing(&self.tables(), session, self.now()))
    }

    async fn session(&self, session: &SessionId) -> Result<Option<SessionRow>, StoreFault> {
        Ok(lists::session(&self.tables(), session))
    }

    async fn list_sessions(&self, filter: &SessionFilter) -> Result<Vec<SessionRow>, StoreFault> {
        Ok(lists::sessions(&self.tables(), filter))
    }

    async fn list_runs(&self, filter: &RunFilter) -> Result<Vec<RunSummary>, StoreFault> {
        Ok(lists::runs(&self.tables(), filter))
    }

    async fn list_rules(&self, filter: &RuleFilter) -> Result<Vec<RuleRow>, StoreFault> {
        Ok(lists::rules(&self.tables(), filter, self.now()))
    }

    async fn audit(&self, after: u64, limit: usize) -> Result<Vec<AuditRecord>, StoreFault> {
        Ok(audit::page(&self.tables(), after, limit))
    }

    async fn audit_head(&self) -> Result<Option<(u64, Digest)>, StoreFault> {
        Ok(self.tables().audit.last().map(|record| (record.n, record.hash)))
    }

    async fn definition(&self, digest: &Digest) -> Result<Option<Arc<[u8]>>, StoreFault> {
        Ok(self.tables().definitions.get(digest).cloned())
    }

    async fn claim_notices(
        &self,
        destinations: &[Destination],
        limit: usize,
        hold: Duration,
    ) -> Result<Vec<NoticeRow>, StoreFault> {
        Ok(notices::claim(&mut self.tables(), destinations, limit, hold, self.now()))
    }

    async fn settle_notice(&self, key: &NoticeKey, attempt: u32, outcome: NoticeOutcome) -> Result<bool, StoreFault> {
        Ok(notices::settle(&mut self.tables(), key, attempt, outcome, self.now()))
    }

    async fn notice(&self, key: &NoticeKey) -> Result<Option<NoticeRow>, StoreFault> {
        Ok(self.tables().notices.get(key).cloned())
    }

    async fn list_notices(&self, filter: &NoticeFilter) -> Result<Vec<NoticeRow>, StoreFault> {
        Ok(notices::list(&self.tables(), filter))
    }

    async fn remove_old(&self, before: Timestamp, limit: usize) -> Result<u64, StoreFault> {
        Ok(retention::remove_old(&mut self.tables(), before, limit))
    }

    fn durability(&self) -> Durability {
        Durability {
            store: "memory",
            survives_crash: false,
            is_shared: false,
            settings: "kept in this process only".to_owned(),
        }
    }
}
