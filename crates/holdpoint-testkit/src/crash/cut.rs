//! A store of any kind that is cut off at its n-th write, where a real process ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use holdpoint_core::audit::AuditRecord;
use holdpoint_core::ids::{PauseId, RunId, SessionId};
use holdpoint_core::json::Digest;
use holdpoint_core::record::Entry;
use holdpoint_core::time::Timestamp;
use holdpoint_runtime::ports::bus::Bus;
use holdpoint_runtime::ports::notifier::{Destination, NoticeKey};
use holdpoint_runtime::ports::store::{
    Append, AppendError, Appended, Durability, Lease, LoadedRun, NoticeFilter, NoticeOutcome, NoticeRow, PauseFilter,
    PauseRow, RuleFilter, RuleRow, RunFilter, RunRow, RunSummary, SessionFilter, SessionRow, Store, StoreFault,
    StoreFaultKind, StoredRule,
};

use crate::power_loss::Cut;

/// What happens at the cut, besides the store's silence: a real process ends here.
pub type OnCut = Arc<dyn Fn(Cut) + Send + Sync>;

/// Counts writes and cuts one off; from then on nothing is answered.
pub struct CutStore {
    inner: Arc<dyn Store>,
    writes: AtomicU32,
    is_cut: AtomicBool,
    at: Option<(u32, Cut)>,
    /// The number of the write whose answer is lost, and whether it is written all the same.
    doubt: Option<(u32, bool)>,
    on_cut: OnCut,
    /// Whether other instances are told nothing, and nothing is heard from them.
    is_quiet: bool,
}

impl CutStore {
    /// A store that only counts.
    pub fn counting(inner: Arc<dyn Store>) -> Arc<Self> {
        Self::new(inner, None, Arc::new(|_| {}))
    }

    /// A store that is cut off at its `write`-th write, counted from one.
    pub fn cutting(inner: Arc<dyn Store>, write: u32, cut: Cut, on_cut: OnCut) -> Arc<Self> {
        Self::new(inner, Some((write, cut)), on_cut)
    }

    /// A store that loses the answer to its `write`-th write, counted from one, which is written or not, and goes on.
    pub fn doubting(inner: Arc<dyn Store>, write: u32, is_written: bool) -> Arc<Self> {
        let (writes, is_cut) = (AtomicU32::new(0), AtomicBool::new(false));
        let (doubt, on_cut) = (Some((write, is_written)), Arc::new(|_| {}));
        Arc::new(Self { inner, writes, is_cut, at: None, doubt, on_cut, is_quiet: false })
    }

    /// A store that is not cut off, and tells other instances nothing.
    pub fn telling_nobody(inner: Arc<dyn Store>) -> Arc<Self> {
        let (writes, is_cut) = (AtomicU32::new(0), AtomicBool::new(false));
        Arc::new(Self { inner, writes, is_cut, at: None, doubt: None, on_cut: Arc::new(|_| {}), is_quiet: true })
    }

    fn new(inner: Arc<dyn Store>, at: Option<(u32, Cut)>, on_cut: OnCut) -> Arc<Self> {
        let (writes, is_cut) = (AtomicU32::new(0), AtomicBool::new(false));
        Arc::new(Self { inner, writes, is_cut, at, doubt: None, on_cut, is_quiet: false })
    }

    /// How many writes there were.
    pub fn writes(&self) -> u32 {
        self.writes.load(Ordering::SeqCst)
    }

    /// Whether the cut came.
    pub fn is_cut(&self) -> bool {
        self.is_cut.load(Ordering::SeqCst)
    }

    fn alive(&self) -> Result<(), StoreFault> {
        if self.is_cut() { Err(gone()) } else { Ok(()) }
    }

    /// Counts a write; says what becomes of it.
    fn count(&self) -> Result<Fate, StoreFault> {
        self.alive()?;
        let number = self.writes.fetch_add(1, Ordering::SeqCst) + 1;
        Ok(match (self.at, self.doubt) {
            (Some((at, cut)), _) if at == number => Fate::Cut(cut),
            (_, Some((at, is_written))) if at == number => Fate::AnswerLost { is_written },
            _ => Fate::Answered,
        })
    }

    fn cut(&self, cut: Cut) -> StoreFault {
        self.is_cut.store(true, Ordering::SeqCst);
        (self.on_cut)(cut);
        gone()
    }

    async fn write<T, E: From<StoreFault>>(&self, writing: impl Future<Output = Result<T, E>>) -> Result<T, E> {
        match self.count()? {
            Fate::Answered => writing.await,
            Fate::AnswerLost { is_written } => {
                if is_written {
                    let _ = writing.await;
                }
                Err(StoreFault::new("answer", StoreFaultKind::Unknown).into())
            }
            Fate::Cut(Cut::Before) => Err(self.cut(Cut::Before).into()),
            Fate::Cut(Cut::After) => {
                let _ = writing.await;
                Err(self.cut(Cut::After).into())
            }
            Fate::Cut(Cut::Torn) => {
                // The write is on its way when the process ends; a store that is not a real one just loses it.
                let fault = self.cut(Cut::Torn);
                let mut writing = std::pin::pin!(writing);
                let _ = futures_util::poll!(&mut writing);
                Err(fault.into())
            }
        }
    }
}

/// What becomes of a write.
enum Fate {
    Answered,
    /// Nobody hears of it, whether it is written or not.
    AnswerLost {
        is_written: bool,
    },
    Cut(Cut),
}

fn gone() -> StoreFault {
    StoreFault::new("answer", StoreFaultKind::Unavailable)
}

#[async_trait]
impl Store for CutStore {
    fn now(&self) -> Timestamp {
        self.inner.now()
    }

    async fn append(&self, append: Append) -> Result<Appended, AppendError> {
        self.write(self.inner.append(append)).await
    }

    async fn load(&self, run: RunId, after: u64) -> Result<Option<LoadedRun>, StoreFault> {
        self.alive()?;
        self.inner.load(run, after).await
    }

    async fn claim(&self, run: RunId, owner: &str, lease: Duration) -> Result<Lease, AppendError> {
        self.write(self.inner.claim(run, owner, lease)).await
    }

    async fn renew(&self, lease: &Lease, duration: Duration) -> Result<Lease, AppendError> {
        self.write(self.inner.renew(lease, duration)).await
    }

    async fn release(&self, lease: &Lease) -> Result<(), StoreFault> {
        self.write(self.inner.release(lease)).await
    }

    async fn claimable(&self, limit: usize) -> Result<Vec<RunId>, StoreFault> {
        self.alive()?;
        self.inner.claimable(limit).await
    }

    async fn due_pauses(&self, limit: usize) -> Result<Vec<PauseId>, StoreFault> {
        self.alive()?;
        self.inner.due_pauses(limit).await
    }

    async fn next_deadline(&self) -> Result<Option<Timestamp>, StoreFault> {
        self.alive()?;
        self.inner.next_deadline().await
    }

    async fn list_pauses(&self, filter: &PauseFilter) -> Result<Vec<PauseRow>, StoreFault> {
        self.alive()?;
        self.inner.list_pauses(filter).await
    }

    async fn session_runs(&self, session: &SessionId, limit: usize) -> Result<Vec<RunRow>, StoreFault> {
        self.alive()?;
        self.inner.session_runs(session, limit).await
    }

    async fn session_entries(
        &self,
        session: &SessionId,
        from: u64,
        limit: usize,
    ) -> Result<Vec<(RunId, Entry)>, StoreFault> {
        self.alive()?;
        self.inner.session_entries(session, from, limit).await
    }

    async fn session_rules(&self, session: &SessionId) -> Result<Vec<StoredRule>, StoreFault> {
        self.alive()?;
        self.inner.session_rules(session).await
    }

    async fn session(&self, session: &SessionId) -> Result<Option<SessionRow>, StoreFault> {
        self.alive()?;
        self.inner.session(session).await
    }

    async fn list_sessions(&self, filter: &SessionFilter) -> Result<Vec<SessionRow>, StoreFault> {
        self.alive()?;
        self.inner.list_sessions(filter).await
    }

    async fn list_runs(&self, filter: &RunFilter) -> Result<Vec<RunSummary>, StoreFault> {
        self.alive()?;
        self.inner.list_runs(filter).await
    }

    async fn list_rules(&self, filter: &RuleFilter) -> Result<Vec<RuleRow>, StoreFault> {
        self.alive()?;
        self.inner.list_rules(filter).await
    }

    async fn audit(&self, after: u64, limit: usize) -> Result<Vec<AuditRecord>, StoreFault> {
        self.alive()?;
        self.inner.audit(after, limit).await
    }

    async fn audit_head(&self) -> Result<Option<(u64, Digest)>, StoreFault> {
        self.alive()?;
        self.inner.audit_head().await
    }

    async fn definition(&self, digest: &Digest) -> Result<Option<Arc<[u8]>>, StoreFault> {
        self.alive()?;
        self.inner.definition(digest).await
    }

    async fn claim_notices(
        &self,
        destinations: &[Destination],
        limit: usize,
        hold: Duration,
    ) -> Result<Vec<NoticeRow>, StoreFault> {
        self.write(self.inner.claim_notices(destinations, limit, hold)).await
    }

    async fn settle_notice(&self, key: &NoticeKey, attempt: u32, outcome: NoticeOutcome) -> Result<bool, StoreFault> {
        self.write(self.inner.settle_notice(key, attempt, outcome)).await
    }

    async fn notice(&self, key: &NoticeKey) -> Result<Option<NoticeRow>, StoreFault> {
        self.alive()?;
        self.inner.notice(key).await
    }

    async fn list_notices(&self, filter: &NoticeFilter) -> Result<Vec<NoticeRow>, StoreFault> {
        self.alive()?;
        self.inner.list_notices(filter).await
    }

    async fn remove_old(&self, before: Timestamp, limit: usize) -> Result<u64, StoreFault> {
        self.write(self.inner.remove_old(before, limit)).await
    }

    fn bus(&self) -> Option<Arc<dyn Bus>> {
        if self.is_quiet { None } else { self.inner.bus() }
    }

    fn durability(&self) -> Durability {
        self.inner.durability()
    }
}
