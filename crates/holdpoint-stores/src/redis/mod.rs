//! The Redis store (Redis 7, Valkey): appends are acknowledged when the server has written them to its log; those that
//! come together share a script, and each is still answered by itself.
//! Several instances may share a database; its clock is the store's.
//!
//! It is weaker than the other stores where servers are replicated: replicas follow later, so that a fail-over may lose
//! what was acknowledged last. With `appendfsync always` a crash of the one server loses nothing; the store says at the
//! start, and wherever it is asked, whether that is so.
//!
//! An append reads what it depends on, and its script writes only if that still stands. One whose answer is lost is tried
//! again: it carries a token, by which it finds itself if it was written after all, so that it is never written twice.

mod append;
mod audit;
mod bus;
mod change;
mod definitions;
mod fault;
mod group;
mod keys;
mod leases;
mod lists;
mod load;
mod notices;
mod open;
mod pauses;
mod records;
mod remembered;
mod retention;
mod rules;
mod script;
mod sessions;

use std::sync::Arc;
use std::time::Duration;

use ::redis::aio::ConnectionManager;
use async_trait::async_trait;
use holdpoint_core::audit::AuditRecord;
use holdpoint_core::ids::{PauseId, RunId, SessionId};
use holdpoint_core::json::Digest;
use holdpoint_core::record::Entry;
use holdpoint_core::time::Timestamp;
use holdpoint_runtime::ports::bus::Bus;
use holdpoint_runtime::ports::clock::Clock;
use holdpoint_runtime::ports::notifier::{Destination, NoticeKey};
use holdpoint_runtime::ports::store::{
    Append, AppendError, Appended, Durability, Lease, LoadedRun, NoticeFilter, NoticeOutcome, NoticeRow, PauseFilter,
    PauseRow, RuleFilter, RuleRow, RunFilter, RunRow, RunSummary, SessionFilter, SessionRow, Store, StoreFault,
    StoreFaultKind, StoredRule,
};

pub use open::RedisOptions;

use append::PreparedAppend;
use bus::RedisRoad;
use fault::{Broken, WriteError};
use group::{Answer, Desk, Groups, Head, Heads};
use keys::Keys;
use open::Promise;
use remembered::Remembered;

use crate::bus::BusSlot;
use crate::clock::StoreClock;
use crate::lease_moves::LeaseMove;
use crate::questions::Questions;
use crate::raw::RawRun;
use crate::turns::Turns;

/// How often something is tried whose connection was lost.
const TRIES_MAX: u32 = 5;

/// How often an append begins again because somebody else was faster. Each time somebody was; this many is a store that
/// nobody could use.
const OVERTAKEN_MAX: u32 = 1_000;

/// Keeps runs in a Redis database.
pub struct RedisStore {
    connection: ConnectionManager,
    keys: Keys,
    clock: Arc<StoreClock>,
    turns: Turns,
    groups: Groups,
    loads: Questions<(RunId, u64), Option<RawRun>>,
    heads: Arc<Heads>,
    remembered: Arc<Remembered>,
    patience: Duration,
    promise: Promise,
    bus: BusSlot<RedisRoad>,
}

impl RedisStore {
    /// Opens a database by its address (`redis://…`, or `rediss://…` for TLS), with the ordinary options.
    ///
    /// # Errors
    /// The server cannot be reached, is too old, is a replica or may throw away what it holds; or the database was
    /// written by a newer version. A database that is refused is left as it was.
    pub async fn open(address: &str) -> Result<Self, StoreFault> {
        Self::open_with(address, RedisOptions::default()).await
    }

    /// Opens a database.
    ///
    /// # Errors
    /// As [`RedisStore::open`].
    pub async fn open_with(address: &str, options: RedisOptions) -> Result<Self, StoreFault> {
        let opened = open::open(address, &options).await?;
        let (connection, keys) = (opened.connection.clone(), opened.keys.clone());
        let road = RedisRoad::new(open::client(address)?, connection, keys, options.patience);
        Ok(Self {
            connection: opened.connection,
            keys: opened.keys,
            clock: Arc::new(StoreClock::Database(opened.follower)),
            turns: Turns::default(),
            groups: Groups::default(),
            loads: Questions::default(),
            heads: Arc::default(),
            remembered: Arc::default(),
            patience: options.patience,
            promise: opened.promise,
            bus: BusSlot::new(road),
        })
    }

    /// Looks at a database without changing it: what it promises, and whether nothing of ours is there yet.
    ///
    /// # Errors
    /// As [`RedisStore::open`].
    pub async fn look(address: &str) -> Result<(Durability, bool), StoreFault> {
        let (promise, is_new) = open::look(address, &RedisOptions::default()).await?;
        Ok((durability(&promise), is_new))
    }

    /// Goes by another clock than the database's. For tests: instances that go by different clocks do not agree on who
    /// moves a run.
    #[doc(hidden)]
    pub fn going_by(self, clock: Arc<dyn Clock>) -> Self {
        Self { clock: Arc::new(StoreClock::Given(clock)), ..self }
    }

    /// Reads. What fails because the connection was lost is tried again on the next.
    async fn read<T, R>(
        &self,
        doing: &'static str,
        read: impl Fn(ConnectionManager) -> R + Send + Sync,
    ) -> Result<T, StoreFault>
    where
        R: Future<Output = Result<T, Broken>> + Send,
    {
        let mut tries = 1;
        loop {
            match self.read_once(&read).await {
                Err(broken) if broken.is_passing() && tries < TRIES_MAX => pause_before(&mut tries).await,
                done => return done.map_err(|broken| broken.fault(doing)),
            }
        }
    }

    async fn read_once<T, R>(&self, read: &(impl Fn(ConnectionManager) -> R + Send + Sync)) -> Result<T, Broken>
    where
        R: Future<Output = Result<T, Broken>> + Send,
    {
        self.desk().look_at_clock().await?;
        read(self.connection.clone()).await
    }

    /// Changes a lease; gives it back as it is then, if anybody holds it.
    async fn change_lease(&self, doing: &'static str, wanted: LeaseMove) -> Result<Option<Lease>, AppendError> {
        let (mut tries, mut overtaken) = (1, 0);
        loop {
            match leases::change(&self.desk(), &wanted).await {
                Ok(lease) => return Ok(lease),
                Err(WriteError::Refused(refusal)) => return Err(refusal),
                Err(WriteError::Overtaken) if overtaken < OVERTAKEN_MAX => overtaken += 1,
                Err(WriteError::Overtaken) => return Err(StoreFault::new(doing, StoreFaultKind::Unavailable).into()),
                Err(WriteError::NotWritten(broken)) if broken.is_passing() && tries < TRIES_MAX => {
                    pause_before(&mut tries).await;
                }
                Err(WriteError::NotWritten(broken)) => return Err(broken.fault(doing).into()),
                Err(WriteError::InDoubt(broken)) => {
                    return Err(StoreFault::because(doing, StoreFaultKind::Unknown, broken).into());
                }
            }
        }
    }
}

impl RedisStore {
    /// Makes a change that may be made twice: where it was overtaken, or its connection was lost, once more.
    async fn write_alone<T, R>(&self, doing: &'static str, write: impl Fn() -> R + Send + Sync) -> Result<T, StoreFault>
    where
        R: Future<Output = Result<T, WriteError>> + Send,
    {
        let (mut tries, mut overtaken) = (1, 0);
        loop {
            match write().await {
                Ok(value) => return Ok(value),
                Err(WriteError::Overtaken) if overtaken < OVERTAKEN_MAX => overtaken += 1,
                Err(WriteError::Overtaken) => return Err(StoreFault::new(doing, StoreFaultKind::Unavailable)),
                Err(WriteError::NotWritten(broken) | WriteError::InDoubt(broken))
                    if broken.is_passing() && tries < TRIES_MAX =>
                {
                    pause_before(&mut tries).await;
                }
                Err(WriteError::NotWritten(broken)) => return Err(broken.fault(doing)),
                Err(WriteError::InDoubt(broken)) => {
                    return Err(StoreFault::because(doing, StoreFaultKind::Unknown, broken));
                }
                Err(WriteError::Refused(refusal)) => {
                    return Err(StoreFault::because(doing, StoreFaultKind::Corrupt, refusal));
                }
            }
        }
    }

    /// What is needed to do something for several who ask at once.
    fn desk(&self) -> Desk {
        let (connection, keys, clock) = (self.connection.clone(), self.keys.clone(), Arc::clone(&self.clock));
        let (heads, remembered) = (Arc::clone(&self.heads), Arc::clone(&self.remembered));
        Desk { connection, keys, clock, heads, remembered, patience: self.patience * 2 }
    }

    /// Writes an append by itself. One that was in doubt before finds itself if it was written.
    async fn append_alone(
        &self,
        append: &PreparedAppend,
        mut in_doubt: Option<Broken>,
    ) -> Result<Appended, AppendError> {
        let (mut tries, mut overtaken) = (1, 0);
        loop {
            let broken = match append.write(&self.connection, &self.keys, &self.clock).await {
                Ok(appended) => return Ok(appended),
                // Also after a try that was in doubt: what it depended on has changed since, so that it comes to nothing.
                Err(WriteError::Refused(refusal)) => return Err(refusal),
                Err(WriteError::Overtaken) if overtaken < OVERTAKEN_MAX => {
                    overtaken += 1;
                    continue;
                }
                Err(WriteError::Overtaken) => return Err(StoreFault::new("append", StoreFaultKind::Unavailable).into()),
                Err(WriteError::NotWritten(broken)) => broken,
                Err(WriteError::InDoubt(broken)) => {
                    in_doubt = Some(broken);
                    if tries < TRIES_MAX {
                        pause_before(&mut tries).await;
                        continue;
                    }
                    break;
                }
            };
            if broken.is_passing() && tries < TRIES_MAX {
                pause_before(&mut tries).await;
            } else if in_doubt.is_some() {
                break;
            } else {
                return Err(broken.fault("append").into());
            }
        }
        let fault = match in_doubt {
            Some(broken) => StoreFault::because("append", StoreFaultKind::Unknown, broken),
            None => StoreFault::new("append", StoreFaultKind::Unknown),
        };
        Err(fault.into())
    }
}

/// Waits a moment before the next try: a server that restarts is back soon.
async fn pause_before(tries: &mut u32) {
    tokio::time::sleep(Duration::from_millis(20 << *tries)).await;
    *tries += 1;
}

#[async_trait]
impl Store for RedisStore {
    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    async fn append(&self, append: Append) -> Result<Appended, AppendError> {
        let append = Arc::new(PreparedAppend::new(append)?);
        let too_long = |_| StoreFault::because("append", StoreFaultKind::Unavailable, "others wrote for too long");
        let turn = self.turns.wait(&append.append.session);
        let _turn = tokio::time::timeout(self.patience * 2, turn).await.map_err(too_long)?;
        let in_doubt = match self.groups.write(&append, &self.desk()).await {
            Answer::Done(appended) => return Ok(appended),
            Answer::Refused(refusal) => return Err(refusal),
            Answer::Alone => None,
            Answer::InDoubt(broken) => Some(broken),
        };
        // What is written alone is not remembered.
        self.remembered.forget(&append.append);
        if append.audit.is_empty() {
            return self.append_alone(&append, in_doubt).await;
        }
        let Ok(mut turn) = tokio::time::timeout(self.patience * 2, self.heads.wait()).await else {
            let kind = if in_doubt.is_some() { StoreFaultKind::Unknown } else { StoreFaultKind::Unavailable };
            return Err(StoreFault::because("append", kind, "others wrote for too long").into());
        };
        let appended = self.append_alone(&append, in_doubt).await;
        // Whoever comes next in a group looks for the head itself.
        *turn = Head::Unknown;
        appended
    }

    async fn load(&self, run: RunId, after: u64) -> Result<Option<LoadedRun>, StoreFault> {
        let desk = self.desk();
        let together = move |wanted: Vec<_>| {
            let desk = desk.clone();
            async move { desk.load(&wanted).await }
        };
        let found = match self.loads.ask((run, after), self.patience * 2, together).await {
            Some(found) => found,
            None => {
                let desk = self.desk();
                let load = move |_| {
                    let desk = desk.clone();
                    async move { desk.load(&[(run, after)]).await }
                };
                self.read("load a run", load).await?.pop().flatten()
            }
        };
        found.map(|found| found.decode(run, after)).transpose()
    }

    async fn claim(&self, run: RunId, owner: &str, duration: Duration) -> Result<Lease, AppendError> {
        let wanted = LeaseMove::Claim { run, owner: owner.to_owned(), duration };
        self.change_lease("claim a run", wanted).await?.ok_or(AppendError::Fenced { run })
    }

    async fn renew(&self, lease: &Lease, duration: Duration) -> Result<Lease, AppendError> {
        let wanted = LeaseMove::Renew { lease: lease.clone(), duration };
        self.change_lease("renew a lease", wanted).await?.ok_or(AppendError::Fenced { run: lease.run })
    }

    async fn release(&self, lease: &Lease) -> Result<(), StoreFault> {
        match self.change_lease("give a lease back", LeaseMove::Release { lease: lease.clone() }).await {
            Err(AppendError::Fault(fault)) => Err(fault),
            // Nothing else is refused: a lease that was lost is no error.
            Ok(_) | Err(_) => Ok(()),
        }
    }

    async fn claimable(&self, limit: usize) -> Result<Vec<RunId>, StoreFault> {
        let (keys, now) = (&self.keys, self.now());
        let list = move |mut connection| async move { leases::claimable(&mut connection, keys, limit, now).await };
        self.read("list runs to claim", list).await
    }

    async fn due_pauses(&self, limit: usize) -> Result<Vec<PauseId>, StoreFault> {
        let (keys, now) = (&self.keys, self.now());
        let due = move |mut connection| async move { pauses::due(&mut connection, keys, limit, now).await };
        self.read("list due pauses", due).await
    }

    async fn next_deadline(&self) -> Result<Option<Timestamp>, StoreFault> {
        let keys = &self.keys;
        let next = move |mut connection| async move { pauses::next_deadline(&mut connection, keys).await };
        self.read("find the next deadline", next).await
    }

    async fn list_pauses(&self, filter: &PauseFilter) -> Result<Vec<PauseRow>, StoreFault> {
        let keys = &self.keys;
        let list = move |mut connection| async move { pauses::list(&mut connection, keys, filter).await };
        self.read("list pauses", list).await
    }

    async fn session_runs(&self, session: &SessionId, limit: usize) -> Result<Vec<RunRow>, StoreFault> {
        let keys = &self.keys;
        let runs = move |mut connection| async move { sessions::runs(&mut connection, keys, session, limit).await };
        self.read("list a session's runs", runs).await
    }

    async fn session_entries(
        &self,
        session: &SessionId,
        from: u64,
        limit: usize,
    ) -> Result<Vec<(RunId, Entry)>, StoreFault> {
        let keys = &self.keys;
        let entries =
            move |mut connection| async move { sessions::entries(&mut connection, keys, session, from, limit).await };
        let found = self.read("list a session's entries", entries).await?;
        found.into_iter().map(|(run, entry)| Ok((run, entry.decode(run)?))).collect()
    }

    async fn session_heads(&self, sessions: &[SessionId]) -> Result<Vec<(SessionId, u64)>, StoreFault> {
        let keys = &self.keys;
        let heads = move |mut connection| async move { sessions::heads(&mut connection, keys, sessions).await };
        self.read("look at sessions", heads).await
    }

    fn bus(&self) -> Option<Arc<dyn Bus>> {
        self.bus.get()
    }

    async fn session_rules(&self, session: &SessionId) -> Result<Vec<StoredRule>, StoreFault> {
        let (keys, now) = (&self.keys, self.now());
        let rules = move |mut connection| async move { rules::standing(&mut connection, keys, session, now).await };
        self.read("list a session's rules", rules).await
    }

    async fn session(&self, session: &SessionId) -> Result<Option<SessionRow>, StoreFault> {
        let keys = &self.keys;
        let find = move |mut connection| async move { lists::session(&mut connection, keys, session).await };
        self.read("find a session", find).await
    }

    async fn list_sessions(&self, filter: &SessionFilter) -> Result<Vec<SessionRow>, StoreFault> {
        let keys = &self.keys;
        let list = move |mut connection| async move { lists::sessions(&mut connection, keys, filter).await };
        self.read("list sessions", list).await
    }

    async fn list_runs(&self, filter: &RunFilter) -> Result<Vec<RunSummary>, StoreFault> {
        let keys = &self.keys;
        let list = move |mut connection| async move { lists::runs(&mut connection, keys, filter).await };
        self.read("list runs", list).await
    }

    async fn list_rules(&self, filter: &RuleFilter) -> Result<Vec<RuleRow>, StoreFault> {
        let (keys, now) = (&self.keys, self.now());
        let list = move |mut connection| async move { lists::rules(&mut connection, keys, filter, now).await };
        self.read("list rules", list).await
    }

    async fn audit(&self, after: u64, limit: usize) -> Result<Vec<AuditRecord>, StoreFault> {
        let keys = &self.keys;
        let page = move |mut connection| async move { audit::page(&mut connection, keys, after, limit).await };
        self.read("read the audit records", page).await
    }

    async fn audit_head(&self) -> Result<Option<(u64, Digest)>, StoreFault> {
        let keys = &self.keys;
        let head = move |mut connection| async move { audit::head(&mut connection, keys).await };
        self.read("read the end of the audit", head).await
    }

    async fn definition(&self, digest: &Digest) -> Result<Option<Arc<[u8]>>, StoreFault> {
        let keys = &self.keys;
        let find = move |mut connection| async move { definitions::find(&mut connection, keys, digest).await };
        self.read("load a definition", find).await
    }

    async fn claim_notices(
        &self,
        destinations: &[Destination],
        limit: usize,
        hold: Duration,
    ) -> Result<Vec<NoticeRow>, StoreFault> {
        let claim = || notices::claim(&self.connection, &self.keys, &self.clock, destinations, limit, hold);
        self.write_alone("claim notices", claim).await
    }

    async fn settle_notice(&self, key: &NoticeKey, attempt: u32, outcome: NoticeOutcome) -> Result<bool, StoreFault> {
        let settle = || notices::settle(&self.connection, &self.keys, &self.clock, key, attempt, &outcome);
        self.write_alone("settle a notice", settle).await
    }

    async fn notice(&self, key: &NoticeKey) -> Result<Option<NoticeRow>, StoreFault> {
        let keys = &self.keys;
        self.read("find a notice", move |connection| async move { notices::find(&connection, keys, key).await }).await
    }

    async fn list_notices(&self, filter: &NoticeFilter) -> Result<Vec<NoticeRow>, StoreFault> {
        let keys = &self.keys;
        let list = move |connection| async move { notices::list(&connection, keys, filter).await };
        self.read("list notices", list).await
    }

    async fn remove_old(&self, before: Timestamp, limit: usize) -> Result<u64, StoreFault> {
        const DOING: &str = "remove old sessions";
        let keys = &self.keys;
        let find = move |mut connection| async move { retention::old(&mut connection, keys, before, limit).await };
        let mut removed = 0;
        for old in self.read(DOING, find).await? {
            match retention::remove(&self.connection, keys, old).await {
                Ok(is_removed) => removed += u64::from(is_removed),
                Err(WriteError::NotWritten(broken)) => return Err(broken.fault(DOING)),
                // Removed or not, it is whole: the next look tells.
                Err(WriteError::InDoubt(broken)) => {
                    return Err(StoreFault::because(DOING, StoreFaultKind::Unknown, broken));
                }
                Err(WriteError::Overtaken | WriteError::Refused(_)) => {}
            }
        }
        Ok(removed)
    }

    fn durability(&self) -> Durability {
        durability(&self.promise)
    }
}

fn durability(promise: &Promise) -> Durability {
    let Promise { survives_crash, settings } = promise;
    Durability { store: "redis", survives_crash: *survives_crash, is_shared: true, settings: settings.clone() }
}
