//! A store that loses power at a chosen write, for tests that crash a scenario at every commit and go on.
//!
//! It writes to memory as a disk does to its cache: a write is acknowledged once it is flushed, and writes that arrive
//! together are flushed together. Killing a process loses what it was about to write; losing power also loses what was
//! not flushed. In both cases nothing that was acknowledged may be missing afterwards.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use holdpoint_core::audit::AuditRecord;
use holdpoint_core::ids::{PauseId, RunId, SessionId};
use holdpoint_core::json::Digest;
use holdpoint_core::record::Entry;
use holdpoint_core::time::Timestamp;
use holdpoint_runtime::memory::MemoryStore;
use holdpoint_runtime::ports::clock::Clock;
use holdpoint_runtime::ports::notifier::{Destination, NoticeKey};
use holdpoint_runtime::ports::store::{
    Append, AppendError, Appended, Durability, Lease, LoadedRun, NoticeFilter, NoticeOutcome, NoticeRow, PauseFilter,
    PauseRow, RuleFilter, RuleRow, RunFilter, RunRow, RunSummary, SessionFilter, SessionRow, Store, StoreFault,
    StoreFaultKind, StoredRule,
};

/// How a write is cut off. Afterwards every call of the store fails, until [`PowerLoss::restart`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// The process dies before the write: nothing of it is there, what came before it is.
    Before,
    /// The process dies after the write: it is there, but nobody heard of it.
    After,
    /// The power fails during the write: it is lost whole, and so is whatever else nobody had heard of yet.
    Torn,
}

impl Cut {
    /// Each way to cut a write off.
    pub const ALL: [Self; 3] = [Self::Before, Self::After, Self::Torn];
}

/// A memory store that loses power at a chosen write.
///
/// Writes are appends, changes of leases and of notices, counted from one whether they succeed or are refused.
pub struct PowerLoss {
    state: Mutex<State>,
    before_append: Mutex<Option<BeforeAppend>>,
}

/// What a faulty program does before it writes.
type BeforeAppend = Arc<dyn Fn(&mut Append, &PowerLoss) + Send + Sync>;

struct State {
    /// What a restart finds.
    flushed: Arc<MemoryStore>,
    /// What is written and read while there is power.
    cache: Arc<MemoryStore>,
    writes: u64,
    plan: Option<(u64, Cut)>,
    is_cut: bool,
}

/// What becomes of one write.
enum Fate {
    Flushed,
    Cut(Cut),
}

impl PowerLoss {
    /// An empty store that goes by this clock.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self::over(&MemoryStore::new(clock))
    }

    /// A store with the contents of another, whose own are left alone.
    pub fn over(store: &MemoryStore) -> Self {
        let (flushed, cache) = (Arc::new(store.copy()), Arc::new(store.copy()));
        let state = Mutex::new(State { flushed, cache, writes: 0, plan: None, is_cut: false });
        Self { state, before_append: Mutex::default() }
    }

    /// Plans to cut off the write with this number.
    pub fn cut_at(&self, write: u64, cut: Cut) {
        self.state().plan = Some((write, cut));
    }

    /// How many writes there were, the one that was cut off included.
    pub fn writes(&self) -> u64 {
        self.state().writes
    }

    /// Whether the power is gone.
    pub fn is_cut(&self) -> bool {
        self.state().is_cut
    }

    /// The store as it is found after power comes back. It counts its own writes; this one stays dead.
    pub fn restart(&self) -> Self {
        let mut state = self.state();
        state.is_cut = true;
        Self::over(&state.flushed)
    }

    /// What a restart would find now.
    pub fn found_after_restart(&self) -> Arc<MemoryStore> {
        Arc::clone(&self.state().flushed)
    }

    /// Does something with every append before it is written: for controls, which are faulty on purpose.
    pub fn before_each_append(&self, meddle: impl Fn(&mut Append, &PowerLoss) + Send + Sync + 'static) {
        *self.before_append.lock().expect("nothing panics while it holds this") = Some(Arc::new(meddle));
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nothing panics while it holds the state")
    }

    /// Numbers a write and does what is planned for it.
    async fn write<T, E, F>(&self, doing: &'static str, write: impl FnOnce(Arc<MemoryStore>) -> F) -> Result<T, E>
    where
        E: From<StoreFault>,
        F: Future<Output = Result<T, E>>,
    {
        let (cache, fate) = self.state().next_write(doing)?;
        let answer = match fate {
            Fate::Cut(Cut::Before) => return Err(StoreFault::new(doing, StoreFaultKind::Unavailable).into()),
            Fate::Cut(Cut::Torn) => return Err(StoreFault::new(doing, StoreFaultKind::Unknown).into()),
            Fate::Cut(Cut::After) | Fate::Flushed => write(cache).await,
        };
        if let Fate::Cut(_) = fate {
            self.state().flush();
            return Err(StoreFault::new(doing, StoreFaultKind::Unknown).into());
        }
        // Whoever else writes now is flushed together with this write, or lost together with it.
        tokio::task::yield_now().await;
        let mut state = self.state();
        if state.is_cut {
            return Err(StoreFault::new(doing, StoreFaultKind::Unknown).into());
        }
        state.flush();
        answer
    }

    fn cache(&self, doing: &'static str) -> Result<Arc<MemoryStore>, StoreFault> {
        self.state().powered(doing)
    }
}

impl State {
    fn powered(&self, doing: &'static str) -> Result<Arc<MemoryStore>, StoreFault> {
        match self.is_cut {
            true => Err(StoreFault::new(doing, StoreFaultKind::Unavailable)),
            false => Ok(Arc::clone(&self.cache)),
        }
    }

    fn next_write(&mut self, doing: &'static str) -> Result<(Arc<MemoryStore>, Fate), StoreFault> {
        let cache = self.powered(doing)?;
        self.writes += 1;
        let Some((_, cut)) = self.plan.filter(|(write, _)| *write == self.writes) else {
            return Ok((cache, Fate::Flushed));
        };
        self.is_cut = true;
        // A killed process leaves to the disk what it had handed over; a power loss does not.
        if cut != Cut::Torn {
            self.flush();
        }
        Ok((cache, Fate::Cut(cut)))
    }

    fn flush(&mut self) {
        self.flushed = Arc::new(self.cache.copy());
    }
}

#[async_trait]
impl Store for PowerLoss {
    fn now(&self) -> Timestamp {
        let cache = Arc::clone(&self.state().cache);
        cache.now()
    }

    async fn append(&self, mut append: Append) -> Result<Appended, AppendError> {
        let meddle = self.before_append.lock().expect("nothing panics while it holds this").clone();
        if let Some(meddle) = meddle {
            meddle(&mut append, self);
        }
        self.write("append", |store| async move { store.append(append).await }).await
    }

    async fn load(&self, run: RunId, after: u64) -> Result<Option<LoadedRun>, StoreFault> {
        self.cache("load a run")?.load(run, after).await
    }

    async fn claim(&self, run: RunId, owner: &str, lease: Duration) -> Result<Lease, AppendError> {
        self.write("claim a run", |store| async move { store.claim(run, owner, lease).await }).await
    }

    async fn renew(&self, lease: &Lease, duration: Duration) -> Result<Lease, AppendError> {
        self.write("renew a lease", |store| async move { store.renew(lease, duration).await }).await
    }

    async fn release(&self, lease: &Lease) -> Result<(), StoreFault> {
        self.write("release a lease", |store| async move { store.release(lease).await }).await
    }

    async fn claimable(&self, limit: usize) -> Result<Vec<RunId>, StoreFault> {
        self.cache("list runs to claim")?.claimable(limit).await
    }

    async fn due_pauses(&self, limit: usize) -> Result<Vec<PauseId>, StoreFault> {
        self.cache("list due pauses")?.due_pauses(limit).await
    }

    async fn next_deadline(&self) -> Result<Option<Timestamp>, StoreFault> {
        self.cache("find the next deadline")?.next_deadline().await
    }

    async fn list_pauses(&self, filter: &PauseFilter) -> Result<Vec<PauseRow>, StoreFault> {
        self.cache("list pauses")?.list_pauses(filter).await
    }

    async fn session_runs(&self, session: &SessionId, limit: usize) -> Result<Vec<RunRow>, StoreFault> {
        self.cache("list a session's runs")?.session_runs(session, limit).await
    }

    async fn session_entries(
        &self,
        session: &SessionId,
        from: u64,
        limit: usize,
    ) -> Result<Vec<(RunId, Entry)>, StoreFault> {
        self.cache("list a session's entries")?.session_entries(session, from, limit).await
    }

    async fn session_rules(&self, session: &SessionId) -> Result<Vec<StoredRule>, StoreFault> {
        self.cache("list a session's rules")?.session_rules(session).await
    }

    async fn session(&self, session: &SessionId) -> Result<Option<SessionRow>, StoreFault> {
        self.cache("find a session")?.session(session).await
    }

    async fn list_sessions(&self, filter: &SessionFilter) -> Result<Vec<SessionRow>, StoreFault> {
        self.cache("list sessions")?.list_sessions(filter).await
    }

    async fn list_runs(&self, filter: &RunFilter) -> Result<Vec<RunSummary>, StoreFault> {
        self.cache("list runs")?.list_runs(filter).await
    }

    async fn list_rules(&self, filter: &RuleFilter) -> Result<Vec<RuleRow>, StoreFault> {
        self.cache("list rules")?.list_rules(filter).await
    }

    async fn audit(&self, after: u64, limit: usize) -> Result<Vec<AuditRecord>, StoreFault> {
        self.cache("read the audit records")?.audit(after, limit).await
    }

    async fn audit_head(&self) -> Result<Option<(u64, Digest)>, StoreFault> {
        self.cache("read the end of the audit")?.audit_head().await
    }

    async fn definition(&self, digest: &Digest) -> Result<Option<Arc<[u8]>>, StoreFault> {
        self.cache("load a definition")?.definition(digest).await
    }

    async fn claim_notices(
        &self,
        destinations: &[Destination],
        limit: usize,
        hold: Duration,
    ) -> Result<Vec<NoticeRow>, StoreFault> {
        self.write("claim notices", |store| async move { store.claim_notices(destinations, limit, hold).await }).await
    }

    async fn settle_notice(&self, key: &NoticeKey, attempt: u32, outcome: NoticeOutcome) -> Result<bool, StoreFault> {
        self.write("settle a notice", |store| async move { store.settle_notice(key, attempt, outcome).await }).await
    }

    async fn notice(&self, key: &NoticeKey) -> Result<Option<NoticeRow>, StoreFault> {
        self.cache("find a notice")?.notice(key).await
    }

    async fn list_notices(&self, filter: &NoticeFilter) -> Result<Vec<NoticeRow>, StoreFault> {
        self.cache("list notices")?.list_notices(filter).await
    }

    async fn remove_old(&self, before: Timestamp, limit: usize) -> Result<u64, StoreFault> {
        self.write("remove old sessions", |store| async move { store.remove_old(before, limit).await }).await
    }

    fn durability(&self) -> Durability {
        Durability {
            store: "power loss",
            survives_crash: true,
            is_shared: false,
            settings: "survives restart() in tests".to_owned(),
        }
    }
}
