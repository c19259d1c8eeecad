//! A store that a race destroys: it reads the revision and then writes on top of it, whatever was written in between.
//!
//! This is the control of the trial. With it a pause can be decided twice, and the check must say so.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use holdpoint::notifier::{Destination, NoticeKey};
use holdpoint::store::{
    Append, AppendError, Appended, Durability, Lease, LoadedRun, NoticeFilter, NoticeOutcome, NoticeRow, PauseFilter,
    PauseRow, RuleFilter, RuleRow, RunFilter, RunRow, RunSummary, SessionFilter, SessionRow, Store, StoreFault,
    StoredRule,
};
use holdpoint::{AuditRecord, Digest, Entry, PauseId, RunId, SessionId, Timestamp};

/// Writes what it is given without comparing what the writer saw with what is there.
pub(super) struct Careless(pub(super) Arc<dyn Store>);

#[async_trait]
impl Store for Careless {
    fn now(&self) -> Timestamp {
        self.0.now()
    }

    async fn append(&self, append: Append) -> Result<Appended, AppendError> {
        if append.expected == 0 {
            return self.0.append(append).await;
        }
        loop {
            let loaded = self.0.load(append.run, u64::MAX).await?.ok_or(AppendError::NoRun(append.run))?;
            match self.0.append(Append { expected: loaded.revision, ..append.clone() }).await {
                // Somebody was faster, which a store without a comparison would not have noticed.
                Err(AppendError::Conflict { .. }) => {}
                written => return written,
            }
        }
    }

    async fn load(&self, run: RunId, after: u64) -> Result<Option<LoadedRun>, StoreFault> {
        self.0.load(run, after).await
    }

    async fn claim(&self, run: RunId, owner: &str, lease: Duration) -> Result<Lease, AppendError> {
        self.0.claim(run, owner, lease).await
    }

    async fn renew(&self, lease: &Lease, duration: Duration) -> Result<Lease, AppendError> {
        self.0.renew(lease, duration).await
    }

    async fn release(&self, lease: &Lease) -> Result<(), StoreFault> {
        self.0.release(lease).await
    }

    async fn claimable(&self, limit: usize) -> Result<Vec<RunId>, StoreFault> {
        self.0.claimable(limit).await
    }

    async fn due_pauses(&self, limit: usize) -> Result<Vec<PauseId>, StoreFault> {
        self.0.due_pauses(limit).await
    }

    async fn next_deadline(&self) -> Result<Option<Timestamp>, StoreFault> {
        self.0.next_deadline().await
    }

    async fn list_pauses(&self, filter: &PauseFilter) -> Result<Vec<PauseRow>, StoreFault> {
        self.0.list_pauses(filter).await
    }

    async fn session_runs(&self, session: &SessionId, limit: usize) -> Result<Vec<RunRow>, StoreFault> {
        self.0.session_runs(session, limit).await
    }

    async fn session_entries(
        &self,
        session: &SessionId,
        from: u64,
        limit: usize,
    ) -> Result<Vec<(RunId, Entry)>, StoreFault> {
        self.0.session_entries(session, from, limit).await
    }

    async fn session_rules(&self, session: &SessionId) -> Result<Vec<StoredRule>, StoreFault> {
        self.0.session_rules(session).await
    }

    async fn session(&self, session: &SessionId) -> Result<Option<SessionRow>, StoreFault> {
        self.0.session(session).await
    }

    async fn list_sessions(&self, filter: &SessionFilter) -> Result<Vec<SessionRow>, StoreFault> {
        self.0.list_sessions(filter).await
    }

    async fn list_runs(&self, filter: &RunFilter) -> Result<Vec<RunSummary>, StoreFault> {
        self.0.list_runs(filter).await
    }

    async fn list_rules(&self, filter: &RuleFilter) -> Result<Vec<RuleRow>, StoreFault> {
        self.0.list_rules(filter).await
    }

    async fn audit(&self, after: u64, limit: usize) -> Result<Vec<AuditRecord>, StoreFault> {
        self.0.audit(after, limit).await
    }

    async fn audit_head(&self) -> Result<Option<(u64, Digest)>, StoreFault> {
        self.0.audit_head().await
    }

    async fn definition(&self, digest: &Digest) -> Result<Option<Arc<[u8]>>, StoreFault> {
        self.0.definition(digest).await
    }

    async fn claim_notices(
        &self,
        destinations: &[Destination],
        limit: usize,
        hold: Duration,
    ) -> Result<Vec<NoticeRow>, StoreFault> {
        self.0.claim_notices(destinations, limit, hold).await
    }

    async fn settle_notice(&self, key: &NoticeKey, attempt: u32, outcome: NoticeOutcome) -> Result<bool, StoreFault> {
        self.0.settle_notice(key, attempt, outcome).await
    }

    async fn notice(&self, key: &NoticeKey) -> Result<Option<NoticeRow>, StoreFault> {
        self.0.notice(key).await
    }

    async fn list_notices(&self, filter: &NoticeFilter) -> Result<Vec<NoticeRow>, StoreFault> {
        self.0.list_notices(filter).await
    }

    async fn remove_old(&self, before: Timestamp, limit: usize) -> Result<u64, StoreFault> {
        self.0.remove_old(before, limit).await
    }

    fn durability(&self) -> Durability {
        self.0.durability()
    }
}
