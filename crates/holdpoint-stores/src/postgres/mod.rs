//! The PostgreSQL store: appends are acknowledged after the commit, on a handful of connections. Several instances may
//! share a database; it arbitrates between them, and its clock is the store's.
//!
//! An append locks its session's row, so that numbers are dense, and runs of other sessions are not kept waiting. Those
//! that come together share a transaction, and each is still answered by itself. A connection that is lost while a commit is on its way leaves
//! the append in doubt: then the database is asked what became of it, and only where it cannot be asked is the answer
//! that nobody knows.

mod append;
mod audit;
mod bus;
mod columns;
mod connection;
mod definitions;
mod fault;
mod group;
mod leases;
mod lists;
mod load;
mod notices;
mod open;
mod pauses;
mod retention;
mod rules;
mod schema;
mod sessions;
mod tls;

use std::sync::Arc;
use std::time::{Duration, Instant};

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

pub use open::PostgresOptions;

use append::PreparedAppend;
use bus::PostgresRoad;
use connection::{Connection, Pipeline};
use definitions::Known;
use fault::{Broken, TRIES_MAX, WriteError};
use group::{Answer, Desk, Groups};
use open::Pools;

use crate::bus::BusSlot;
use crate::clock::StoreClock;
use crate::lease_moves::LeaseMove;
use crate::questions::Questions;
use crate::raw::RawRun;
use crate::turns::Turns;

const REMOVING: &str = "remove old sessions";

/// Keeps runs in a PostgreSQL database, in the schema that comes first in the search path.
pub struct PostgresStore {
    pools: Arc<Pools>,
    clock: Arc<StoreClock>,
    turns: Turns,
    groups: Groups,
    loads: Questions<(RunId, u64), Option<RawRun>>,
    known: Known,
    patience: Duration,
    settings: String,
    bus: BusSlot<PostgresRoad>,
}

impl PostgresStore {
    /// Opens a database by its address (`postgres://…` or `host=… dbname=…`), with the ordinary options.
    ///
    /// TLS is used where the server offers it; with `sslmode=require` it must, and with `sslmode=disable` it is not
    /// used. Where it is used, the server's certificate is checked.
    ///
    /// # Errors
    /// The server cannot be reached, is too old, is a standby or would lose what it acknowledged in a crash; or the
    /// database was written by a newer version. A database that is refused is left as it was.
    pub async fn open(address: &str) -> Result<Self, StoreFault> {
        Self::open_with(address, PostgresOptions::default()).await
    }

    /// Opens a database.
    ///
    /// # Errors
    /// As [`PostgresStore::open`].
    pub async fn open_with(address: &str, options: PostgresOptions) -> Result<Self, StoreFault> {
        let opened = open::open(address, &options).await?;
        let road = PostgresRoad::new(open::config(address, &options)?, options.authorities.clone(), options.patience);
        Ok(Self {
            pools: Arc::new(opened.pools),
            clock: Arc::new(StoreClock::Database(opened.follower)),
            turns: Turns::default(),
            groups: Groups::default(),
            loads: Questions::default(),
            known: Known::default(),
            patience: options.patience,
            settings: opened.settings,
            bus: BusSlot::new(road),
        })
    }

    /// Looks at a database without changing it: what it promises, and whether nothing of ours is there yet.
    ///
    /// # Errors
    /// As [`PostgresStore::open`].
    pub async fn look(address: &str) -> Result<(Durability, bool), StoreFault> {
        let (settings, is_new) = open::look(address, &PostgresOptions::default()).await?;
        Ok((durability(settings), is_new))
    }

    /// Goes by another clock than the database's. For tests: instances that go by different clocks do not agree on who
    /// moves a run.
    #[doc(hidden)]
    pub fn going_by(self, clock: Arc<dyn Clock>) -> Self {
        Self { clock: Arc::new(StoreClock::Given(clock)), ..self }
    }

    /// Waits for something no longer than anybody waits for an answer.
    async fn within<T>(&self, something: impl Future<Output = T>) -> Result<T, Broken> {
        tokio::time::timeout(self.patience * 2, something).await.map_err(|_| Broken::TimedOut)
    }

    /// Reads. What fails for a reason that passes is tried again on another connection.
    async fn read<T, R>(
        &self,
        doing: &'static str,
        read: impl Fn(Arc<Connection>) -> R + Send + Sync,
    ) -> Result<T, StoreFault>
    where
        R: Future<Output = Result<T, Broken>> + Send,
    {
        let mut tries = 1;
        loop {
            match self.within(self.read_once(&read)).await.and_then(|done| done) {
                Err(broken) if broken.is_passing() && tries < TRIES_MAX => tries += 1,
                done => return done.map_err(|broken| broken.fault(doing)),
            }
        }
    }

    /// Writes by statements that stand for themselves and may be done twice. What fails for a reason that passes is tried
    /// again on another connection.
    async fn write_alone<T, R>(
        &self,
        doing: &'static str,
        write: impl Fn(Arc<Connection>) -> R + Send + Sync,
    ) -> Result<T, StoreFault>
    where
        R: Future<Output = Result<T, Broken>> + Send,
    {
        let once = || async {
            let connection = Arc::new(self.pools.writer().await?);
            let value = write(Arc::clone(&connection)).await?;
            if let Some(connection) = Arc::into_inner(connection) {
                connection.give_back();
            }
            Ok::<_, Broken>(value)
        };
        let mut tries = 1;
        loop {
            match self.within(once()).await.and_then(|done| done) {
                Err(broken) if broken.is_passing() && tries < TRIES_MAX => tries += 1,
                done => return done.map_err(|broken| broken.fault(doing)),
            }
        }
    }

    async fn read_once<T, R>(&self, read: &(impl Fn(Arc<Connection>) -> R + Send + Sync)) -> Result<T, Broken>
    where
        R: Future<Output = Result<T, Broken>> + Send,
    {
        let connection = Arc::new(self.pools.reader().await?);
        if self.clock.is_stale() {
            let asked = Instant::now();
            if let Some(row) = connection.query_opt(columns::CLOCK, &[]).await? {
                self.clock.arbiter(asked, columns::get(&row, 0)?);
            }
        }
        let value = read(Arc::clone(&connection)).await?;
        if let Some(connection) = Arc::into_inner(connection) {
            connection.give_back();
        }
        Ok(value)
    }

    /// What is needed to do something for several who ask at once.
    fn desk(&self) -> Desk {
        let (pools, clock) = (Arc::clone(&self.pools), Arc::clone(&self.clock));
        Desk { pools, clock, patience: self.patience * 2 }
    }

    /// Writes an append together with those that come at the same time; `None` where it is to be written alone.
    async fn append_with_others(&self, append: &Arc<PreparedAppend>) -> Option<Result<Appended, AppendError>> {
        match self.groups.write(append, &self.desk()).await {
            Answer::Done(appended) => Some(Ok(appended)),
            Answer::Refused(refusal) => Some(Err(refusal)),
            Answer::Alone => None,
            Answer::InDoubt(appended) => match self.settle(append).await {
                Some(true) => Some(Ok(appended)),
                Some(false) => None,
                None => Some(Err(StoreFault::because("append", StoreFaultKind::Unknown, Broken::TimedOut).into())),
            },
            Answer::Broken(broken) => Some(Err(broken.fault("append").into())),
        }
    }

    /// One try of an append.
    async fn append_once(&self, append: &PreparedAppend) -> Result<Appended, WriteError> {
        let connection = self.pools.writer().await?;
        let begun = async {
            let admitted = append.begin(&connection, &self.clock).await?;
            append.write(admitted, &self.known)
        };
        match self.within(begun).await? {
            Ok((pipeline, appended)) => match self.commit(connection, pipeline).await {
                Ok(()) => Ok(appended),
                Err(WriteError::InDoubt(broken)) => match self.settle(append).await {
                    Some(true) => Ok(appended),
                    Some(false) => Err(WriteError::NotWritten(broken)),
                    None => Err(WriteError::InDoubt(broken)),
                },
                Err(error) => Err(error),
            },
            Err(WriteError::Refused(refusal)) => {
                connection.roll_back().await;
                Err(WriteError::Refused(refusal))
            }
            Err(error) => Err(error),
        }
    }

    async fn commit(&self, connection: Connection, pipeline: Pipeline<'_>) -> Result<(), WriteError> {
        match self.within(pipeline.commit(&connection)).await {
            Ok(Ok(())) => {
                connection.give_back();
                Ok(())
            }
            Ok(Err(error)) => Err(error),
            Err(broken) => Err(WriteError::InDoubt(broken)),
        }
    }

    /// Finds out what became of an append whose commit was in doubt; `None` where the database cannot be asked.
    async fn settle(&self, append: &PreparedAppend) -> Option<bool> {
        for tried in 0..TRIES_MAX {
            let asking = async {
                let connection = self.pools.writer().await?;
                let is_written = append.is_written(&connection).await?;
                connection.roll_back().await;
                Ok::<_, Broken>(is_written)
            };
            match self.within(asking).await.and_then(|done| done) {
                Ok(is_written) => return Some(is_written),
                Err(error) => tracing::warn!(%error, "an append is in doubt and the database cannot be asked"),
            }
            // A server that restarts is back after a moment.
            tokio::time::sleep(Duration::from_millis(50 << tried)).await;
        }
        None
    }

    /// Changes a lease; gives it back as it is then, if anybody holds it.
    async fn change_lease(&self, doing: &'static str, change: LeaseMove) -> Result<Option<Lease>, AppendError> {
        let mut tries = 1;
        loop {
            match self.change_lease_once(&change).await {
                Ok(lease) => return Ok(lease),
                Err(error) => error.or_again(doing, &mut tries)?,
            }
        }
    }

    /// Removes a session if it may be removed still; says whether it was.
    async fn remove(&self, session: i64, before: Timestamp) -> Result<bool, StoreFault> {
        let connection = self.pools.writer().await.map_err(|broken| broken.fault(REMOVING))?;
        let removing = async {
            let may_go = retention::begin(&connection, session, before).await?;
            if may_go {
                retention::end(&connection, session).await?;
            }
            Ok::<_, WriteError>(may_go)
        };
        match self.within(removing).await.map_err(WriteError::from).and_then(|done| done) {
            Ok(true) => {
                connection.give_back();
                Ok(true)
            }
            Ok(false) => {
                connection.roll_back().await;
                Ok(false)
            }
            Err(WriteError::NotWritten(broken)) => Err(broken.fault(REMOVING)),
            // Removed or not, it is whole: the next look tells.
            Err(WriteError::InDoubt(broken)) => Err(StoreFault::because(REMOVING, StoreFaultKind::Unknown, broken)),
            Err(WriteError::Refused(_)) => Ok(false),
        }
    }

    async fn change_lease_once(&self, change: &LeaseMove) -> Result<Option<Lease>, WriteError> {
        let connection = self.pools.writer().await?;
        match self.within(leases::begin(&connection, &self.clock, change)).await? {
            Ok(after) => {
                self.commit(connection, leases::end(change, &after)).await?;
                Ok(leases::held(change, after))
            }
            Err(WriteError::Refused(refusal)) => {
                connection.roll_back().await;
                Err(WriteError::Refused(refusal))
            }
            Err(error) => Err(error),
        }
    }
}

#[async_trait]
impl Store for PostgresStore {
    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    async fn append(&self, append: Append) -> Result<Appended, AppendError> {
        let append = Arc::new(PreparedAppend::new(append)?);
        // Those of one session would wait for each other in the database, each with a connection.
        let turn = self.within(self.turns.wait(&append.append.session)).await;
        let _turn = turn.map_err(|broken| broken.fault("append"))?;
        if let Some(answer) = self.append_with_others(&append).await {
            return answer;
        }
        let mut tries = 1;
        loop {
            match self.append_once(&append).await {
                Ok(appended) => {
                    self.known.keep(&append.append.definitions);
                    return Ok(appended);
                }
                Err(error) => error.or_again("append", &mut tries)?,
            }
        }
    }

    async fn load(&self, run: RunId, after: u64) -> Result<Option<LoadedRun>, StoreFault> {
        let desk = self.desk();
        let together = move |wanted| {
            let desk = desk.clone();
            async move { load::together(wanted, &desk).await }
        };
        let found = match self.loads.ask((run, after), self.patience * 2, together).await {
            Some(found) => found,
            None => {
                let now = self.now();
                let load =
                    move |connection: Arc<Connection>| async move { load::run(&connection, run, after, now).await };
                self.read("load a run", load).await?
            }
        };
        found.map(|found| found.decode(run, after)).transpose()
    }

    async fn claim(&self, run: RunId, owner: &str, duration: Duration) -> Result<Lease, AppendError> {
        let change = LeaseMove::Claim { run, owner: owner.to_owned(), duration };
        self.change_lease("claim a run", change).await?.ok_or(AppendError::Fenced { run })
    }

    async fn renew(&self, lease: &Lease, duration: Duration) -> Result<Lease, AppendError> {
        let change = LeaseMove::Renew { lease: lease.clone(), duration };
        self.change_lease("renew a lease", change).await?.ok_or(AppendError::Fenced { run: lease.run })
    }

    async fn release(&self, lease: &Lease) -> Result<(), StoreFault> {
        match self.change_lease("give a lease back", LeaseMove::Release { lease: lease.clone() }).await {
            Err(AppendError::Fault(fault)) => Err(fault),
            // Nothing else is refused: a lease that was lost is no error.
            Ok(_) | Err(_) => Ok(()),
        }
    }

    async fn claimable(&self, limit: usize) -> Result<Vec<RunId>, StoreFault> {
        let now = self.now();
        self.read(
            "list runs to claim",
            move |connection| async move { leases::claimable(&connection, limit, now).await },
        )
        .await
    }

    async fn due_pauses(&self, limit: usize) -> Result<Vec<PauseId>, StoreFault> {
        let now = self.now();
        self.read("list due pauses", move |connection| async move { pauses::due(&connection, limit, now).await }).await
    }

    async fn next_deadline(&self) -> Result<Option<Timestamp>, StoreFault> {
        self.read("find the next deadline", |connection| async move { pauses::next_deadline(&connection).await }).await
    }

    async fn list_pauses(&self, filter: &PauseFilter) -> Result<Vec<PauseRow>, StoreFault> {
        self.read("list pauses", move |connection| async move { pauses::list(&connection, filter).await }).await
    }

    async fn session_runs(&self, session: &SessionId, limit: usize) -> Result<Vec<RunRow>, StoreFault> {
        let runs = move |connection: Arc<Connection>| async move { sessions::runs(&connection, session, limit).await };
        self.read("list a session's runs", runs).await
    }

    async fn session_entries(
        &self,
        session: &SessionId,
        from: u64,
        limit: usize,
    ) -> Result<Vec<(RunId, Entry)>, StoreFault> {
        let entries = move |connection: Arc<Connection>| async move {
            sessions::entries(&connection, session, from, limit).await
        };
        let found = self.read("list a session's entries", entries).await?;
        found.into_iter().map(|(run, entry)| Ok((run, entry.decode(run)?))).collect()
    }

    async fn session_heads(&self, sessions: &[SessionId]) -> Result<Vec<(SessionId, u64)>, StoreFault> {
        let heads = move |connection: Arc<Connection>| async move { sessions::heads(&connection, sessions).await };
        self.read("look at sessions", heads).await
    }

    fn bus(&self) -> Option<Arc<dyn Bus>> {
        self.bus.get()
    }

    async fn session_rules(&self, session: &SessionId) -> Result<Vec<StoredRule>, StoreFault> {
        let now = self.now();
        let standing =
            move |connection: Arc<Connection>| async move { rules::standing(&connection, session, now).await };
        self.read("list a session's rules", standing).await
    }

    async fn session(&self, session: &SessionId) -> Result<Option<SessionRow>, StoreFault> {
        self.read("find a session", move |connection| async move { lists::session(&connection, session).await }).await
    }

    async fn list_sessions(&self, filter: &SessionFilter) -> Result<Vec<SessionRow>, StoreFault> {
        self.read("list sessions", move |connection| async move { lists::sessions(&connection, filter).await }).await
    }

    async fn list_runs(&self, filter: &RunFilter) -> Result<Vec<RunSummary>, StoreFault> {
        self.read("list runs", move |connection| async move { lists::runs(&connection, filter).await }).await
    }

    async fn list_rules(&self, filter: &RuleFilter) -> Result<Vec<RuleRow>, StoreFault> {
        let now = self.now();
        self.read("list rules", move |connection| async move { lists::rules(&connection, filter, now).await }).await
    }

    async fn audit(&self, after: u64, limit: usize) -> Result<Vec<AuditRecord>, StoreFault> {
        self.read(
            "read the audit records",
            move |connection| async move { audit::page(&connection, after, limit).await },
        )
        .await
    }

    async fn audit_head(&self) -> Result<Option<(u64, Digest)>, StoreFault> {
        self.read("read the end of the audit", |connection| async move { audit::head(&connection).await }).await
    }

    async fn definition(&self, digest: &Digest) -> Result<Option<Arc<[u8]>>, StoreFault> {
        self.read("load a definition", move |connection| async move { definitions::find(&connection, digest).await })
            .await
    }

    async fn claim_notices(
        &self,
        destinations: &[Destination],
        limit: usize,
        hold: Duration,
    ) -> Result<Vec<NoticeRow>, StoreFault> {
        let clock = &self.clock;
        let claim = move |connection: Arc<Connection>| async move {
            notices::claim(&connection, clock, destinations, limit, hold).await
        };
        self.write_alone("claim notices", claim).await
    }

    async fn settle_notice(&self, key: &NoticeKey, attempt: u32, outcome: NoticeOutcome) -> Result<bool, StoreFault> {
        let (clock, outcome) = (&self.clock, &outcome);
        let settle = move |connection: Arc<Connection>| async move {
            notices::settle(&connection, clock, key, attempt, outcome).await
        };
        self.write_alone("settle a notice", settle).await
    }

    async fn notice(&self, key: &NoticeKey) -> Result<Option<NoticeRow>, StoreFault> {
        self.read("find a notice", move |connection| async move { notices::find(&connection, key).await }).await
    }

    async fn list_notices(&self, filter: &NoticeFilter) -> Result<Vec<NoticeRow>, StoreFault> {
        self.read("list notices", move |connection| async move { notices::list(&connection, filter).await }).await
    }

    async fn remove_old(&self, before: Timestamp, limit: usize) -> Result<u64, StoreFault> {
        let find = move |connection: Arc<Connection>| async move { retention::old(&connection, before, limit).await };
        let mut removed = 0;
        for session in self.read(REMOVING, find).await? {
            removed += u64::from(self.remove(session, before).await?);
        }
        Ok(removed)
    }

    fn durability(&self) -> Durability {
        durability(self.settings.clone())
    }
}

fn durability(settings: String) -> Durability {
    Durability { store: "postgres", survives_crash: true, is_shared: true, settings }
}
