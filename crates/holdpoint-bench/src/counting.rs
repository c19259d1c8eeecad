//! A store that notes what is written through it: how many commits are waited for, and how many bytes each has.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use holdpoint::notifier::{Destination, NoticeKey};
use holdpoint::store::{
    Append, AppendError, Appended, Durability, Lease, LoadedRun, NoticeFilter, NoticeOutcome, NoticeRow, PauseFilter,
    PauseRow, RuleFilter, RuleRow, RunFilter, RunRow, RunSummary, SessionFilter, SessionRow, Store, StoreFault,
    StoredRule,
};
use holdpoint::{AuditRecord, Digest, Entry, PauseId, RunId, SessionId, Timestamp};
use holdpoint_core::record;

/// Notes the bytes of every commit that somebody waited for.
pub(crate) struct Counting {
    inner: Arc<dyn Store>,
    commits: Mutex<Vec<usize>>,
}

impl Counting {
    pub(crate) fn new(inner: Arc<dyn Store>) -> Arc<Self> {
        Arc::new(Self { inner, commits: Mutex::default() })
    }

    /// The bytes of each commit since the last call.
    pub(crate) fn take(&self) -> Vec<usize> {
        std::mem::take(&mut self.commits.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn note(&self, bytes: usize) {
        self.commits.lock().unwrap_or_else(PoisonError::into_inner).push(bytes);
    }
}

#[async_trait]
impl Store for Counting {
    fn now(&self) -> Timestamp {
        self.inner.now()
    }

    async fn append(&self, append: Append) -> Result<Appended, AppendError> {
        self.note(record::encode(&append.events).len());
        self.inner.append(append).await
    }

    async fn load(&self, run: RunId, after: u64) -> Result<Option<LoadedRun>, StoreFault> {
        self.inner.load(run, after).await
    }

    async fn claim(&self, run: RunId, owner: &str, lease: Duration) -> Result<Lease, AppendError> {
        self.note(0);
        self.inner.claim(run, owner, lease).await
    }

    async fn renew(&self, lease: &Lease, duration: Duration) -> Result<Lease, AppendError> {
        self.note(0);
        self.inner.renew(lease, duration).await
    }

    async fn release(&self, lease: &Lease) -> Result<(), StoreFault> {
        self.note(0);
        self.inner.release(lease).await
    }

    async fn claimable(&self, limit: usize) -> Result<Vec<RunId>, StoreFault> {
        self.inner.claimable(limit).await
    }

    async fn due_pauses(&self, limit: usize) -> Result<Vec<PauseId>, StoreFault> {
        self.inner.due_pauses(limit).await
    }

    async fn next_deadline(&self) -> Result<Option<Timestamp>, StoreFault> {
        self.inner.next_deadline().await
    }

    async fn list_pauses(&self, filter: &PauseFilter) -> Result<Vec<PauseRow>, StoreFault> {
        self.inner.list_pauses(filter).await
    }

    async fn session_runs(&self, session: &SessionId, limit: usize) -> Result<Vec<RunRow>, StoreFault> {
        self.inner.session_runs(session, limit).await
    }

    async fn session_entries(
        &self,
        session: &SessionId,
        from: u64,
        limit: usize,
    ) -> Result<Vec<(RunId, Entry)>, StoreFault> {
        self.inner.session_entries(session, from, limit).await
    }

    async fn session_rules(&self, session: &SessionId) -> Result<Vec<StoredRule>, StoreFault> {
        self.inner.session_rules(session).await
    }

    async fn session(&self, session: &SessionId) -> Result<Option<SessionRow>, StoreFault> {
        self.inner.session(session).await
    }

    async fn list_sessions(&self, filter: &SessionFilter) -> Result<Vec<SessionRow>, StoreFault> {
        self.inner.list_sessions(filter).await
    }

    async fn list_runs(&self, filter: &RunFilter) -> Result<Vec<RunSummary>, StoreFault> {
        self.inner.list_runs(filter).await
    }

    async fn list_rules(&self, filter: &RuleFilter) -> Result<Vec<RuleRow>, StoreFault> {
        self.inner.list_rules(filter).await
    }

    async fn audit(&self, after: u64, limit: usize) -> Result<Vec<AuditRecord>, StoreFault> {
        self.inner.audit(after, limit).await
    }

    async fn audit_head(&self) -> Result<Option<(u64, Digest)>, StoreFault> {
        self.inner.audit_head().await
    }

    async fn definition(&self, digest: &Digest) -> Result<Option<Arc<[u8]>>, StoreFault> {
        self.inner.definition(digest).await
    }

    async fn claim_notices(
        &self,
        destinations: &[Destination],
        limit: usize,
        hold: Duration,
    ) -> Result<Vec<NoticeRow>, StoreFault> {
        self.inner.claim_notices(destinations, limit, hold).await
    }

    async fn settle_notice(&self, key: &NoticeKey, attempt: u32, outcome: NoticeOutcome) -> Result<bool, StoreFault> {
        self.inner.settle_notice(key, attempt, outcome).await
    }

    async fn notice(&self, key: &NoticeKey) -> Result<Option<NoticeRow>, StoreFault> {
        self.inner.notice(key).await
    }

    async fn list_notices(&self, filter: &NoticeFilter) -> Result<Vec<NoticeRow>, StoreFault> {
        self.inner.list_notices(filter).await
    }

    async fn remove_old(&self, before: Timestamp, limit: usize) -> Result<u64, StoreFault> {
        self.inner.remove_old(before, limit).await
    }

    fn durability(&self) -> Durability {
        self.inner.durability()
    }
}
