//! The SQLite store: one file, one writer thread that groups what is waiting into one commit, acknowledged after it.
//!
//! The library is the bundled one, in WAL mode with `synchronous=FULL`, both read back at the start. Several processes
//! may share the file on one machine: revisions and leases arbitrate between them. What the writer remembers of the file
//! from one transaction to the next it forgets as soon as somebody else has written.

mod append;
mod audit;
mod book;
mod columns;
mod definitions;
mod fault;
mod keys;
mod leases;
mod lists;
mod load;
mod notices;
mod open;
mod pauses;
mod place;
mod readers;
mod retention;
mod rules;
mod schema;
mod sessions;
mod writer;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use holdpoint_core::audit::AuditRecord;
use holdpoint_core::ids::{PauseId, RunId, SessionId};
use holdpoint_core::json::Digest;
use holdpoint_core::record::Entry;
use holdpoint_core::time::Timestamp;
use holdpoint_runtime::ports::clock::Clock;
use holdpoint_runtime::ports::notifier::{Destination, NoticeKey};
use holdpoint_runtime::ports::store::{
    Append, AppendError, Appended, Durability, Lease, LoadedRun, NoticeFilter, NoticeOutcome, NoticeRow, PauseFilter,
    PauseRow, RuleFilter, RuleRow, RunFilter, RunRow, RunSummary, SessionFilter, SessionRow, Store, StoreFault,
    StoreFaultKind, StoredRule,
};

pub use open::SqliteOptions;
pub use writer::WriterCounts;

use append::PreparedAppend;
use book::Book;
use readers::Readers;
use writer::Writer;

/// Keeps runs in an SQLite file.
///
/// Dropping it writes what is still queued, checkpoints the file and closes it.
pub struct SqliteStore {
    // Before the writer, which checkpoints when it is dropped: no reader is left to be in its way.
    readers: Readers,
    writer: Writer,
    clock: Arc<dyn Clock>,
    settings: String,
}

impl SqliteStore {
    /// Opens a file, or begins one, with the ordinary options.
    ///
    /// # Errors
    /// The file cannot be opened, is no store, was written by a newer version, or the library is too old or will not
    /// promise what it must. A file that is refused is left as it was.
    pub fn open(path: impl AsRef<Path>, clock: Arc<dyn Clock>) -> Result<Self, StoreFault> {
        Self::open_with(path, clock, SqliteOptions::default())
    }

    /// Opens a file, or begins one.
    ///
    /// # Errors
    /// As [`SqliteStore::open`].
    pub fn open_with(
        path: impl AsRef<Path>,
        clock: Arc<dyn Clock>,
        options: SqliteOptions,
    ) -> Result<Self, StoreFault> {
        // Absolute, so that no name has a special meaning to SQLite and a change of folder changes nothing.
        let path = &std::path::absolute(path)
            .map_err(|error| StoreFault::because("open the file", StoreFaultKind::Unavailable, error))?;
        let connection = open::writer(path, &options, clock.now())?;
        let settings = open::settings(&connection)?;
        let writer = Writer::start(connection, Arc::clone(&clock), options.queue_max)?;
        let readers = Readers::new(path, &options, writer.health());
        Ok(Self { readers, writer, clock, settings })
    }

    /// How much was written in how many commits since the file was opened here.
    pub fn counts(&self) -> WriterCounts {
        self.writer.counts()
    }

    /// Lets the file grow to so many pages and no further, as if the disk were full then. For tests.
    #[doc(hidden)]
    pub async fn limit_pages(&self, pages: u32) -> Result<(), AppendError> {
        let limit = move |book: &mut Book, _: Timestamp| {
            book.connection.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(())).map_err(Into::into)
        };
        self.writer.write("limit the file", 0, limit).await
    }
}

#[async_trait]
impl Store for SqliteStore {
    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    async fn append(&self, append: Append) -> Result<Appended, AppendError> {
        let append = PreparedAppend::new(append)?;
        let size = append.size();
        self.writer.write("append", size, move |book, now| append.write(book, now)).await
    }

    async fn load(&self, run: RunId, after: u64) -> Result<Option<LoadedRun>, StoreFault> {
        let found = self.readers.read("load a run", |connection| load::run(connection, run, after, self.now()))?;
        found.map(|found| found.decode(run, after)).transpose()
    }

    async fn claim(&self, run: RunId, owner: &str, duration: Duration) -> Result<Lease, AppendError> {
        let owner = owner.to_owned();
        let claim = move |book: &mut _, now| leases::claim(book, run, &owner, duration, now);
        self.writer.write("claim a run", 0, claim).await
    }

    async fn renew(&self, lease: &Lease, duration: Duration) -> Result<Lease, AppendError> {
        let lease = lease.clone();
        let renew = move |book: &mut _, now| leases::renew(book, &lease, duration, now);
        self.writer.write("renew a lease", 0, renew).await
    }

    async fn release(&self, lease: &Lease) -> Result<(), StoreFault> {
        let lease = lease.clone();
        let release = move |book: &mut _, now| leases::release(book, &lease, now);
        match self.writer.write("give a lease back", 0, release).await {
            Err(AppendError::Fault(fault)) => Err(fault),
            // Nothing else is refused: a lease that was lost is no error.
            Ok(()) | Err(_) => Ok(()),
        }
    }

    async fn claimable(&self, limit: usize) -> Result<Vec<RunId>, StoreFault> {
        self.readers.read_once("list runs to claim", |connection| leases::claimable(connection, limit, self.now()))
    }

    async fn due_pauses(&self, limit: usize) -> Result<Vec<PauseId>, StoreFault> {
        self.readers.read_once("list due pauses", |connection| pauses::due(connection, limit, self.now()))
    }

    async fn next_deadline(&self) -> Result<Option<Timestamp>, StoreFault> {
        self.readers.read_once("find the next deadline", pauses::next_deadline)
    }

    async fn list_pauses(&self, filter: &PauseFilter) -> Result<Vec<PauseRow>, StoreFault> {
        self.readers.read("list pauses", |connection| pauses::list(connection, filter))
    }

    async fn session_runs(&self, session: &SessionId, limit: usize) -> Result<Vec<RunRow>, StoreFault> {
        self.readers.read_once("list a session's runs", |connection| sessions::runs(connection, session, limit))
    }

    async fn session_entries(
        &self,
        session: &SessionId,
        from: u64,
        limit: usize,
    ) -> Result<Vec<(RunId, Entry)>, StoreFault> {
        let read = |connection: &_| sessions::entries(connection, session, from, limit);
        let found = self.readers.read_once("list a session's entries", read)?;
        found.into_iter().map(|(run, entry)| Ok((run, entry.decode(run)?))).collect()
    }

    async fn session_rules(&self, session: &SessionId) -> Result<Vec<StoredRule>, StoreFault> {
        self.readers.read_once("list a session's rules", |connection| rules::standing(connection, session, self.now()))
    }

    async fn session(&self, session: &SessionId) -> Result<Option<SessionRow>, StoreFault> {
        self.readers.read("find a session", |connection| lists::session(connection, session))
    }

    async fn list_sessions(&self, filter: &SessionFilter) -> Result<Vec<SessionRow>, StoreFault> {
        self.readers.read("list sessions", |connection| lists::sessions(connection, filter))
    }

    async fn list_runs(&self, filter: &RunFilter) -> Result<Vec<RunSummary>, StoreFault> {
        self.readers.read("list runs", |connection| lists::runs(connection, filter))
    }

    async fn list_rules(&self, filter: &RuleFilter) -> Result<Vec<RuleRow>, StoreFault> {
        self.readers.read("list rules", |connection| lists::rules(connection, filter, self.now()))
    }

    async fn audit(&self, after: u64, limit: usize) -> Result<Vec<AuditRecord>, StoreFault> {
        self.readers.read("read the audit records", |connection| audit::page(connection, after, limit))
    }

    async fn audit_head(&self) -> Result<Option<(u64, Digest)>, StoreFault> {
        self.readers.read_once("read the end of the audit", audit::head)
    }

    async fn definition(&self, digest: &Digest) -> Result<Option<Arc<[u8]>>, StoreFault> {
        self.readers.read_once("load a definition", |connection| definitions::find(connection, digest))
    }

    async fn claim_notices(
        &self,
        destinations: &[Destination],
        limit: usize,
        hold: Duration,
    ) -> Result<Vec<NoticeRow>, StoreFault> {
        const DOING: &str = "claim notices";
        let is_due = |connection: &_| notices::is_due(connection, destinations, limit, self.now());
        if !self.readers.read_once(DOING, is_due)? {
            return Ok(Vec::new());
        }
        let destinations = destinations.to_owned();
        let claim = move |book: &mut _, now| notices::claim(book, &destinations, limit, hold, now);
        self.writer.write(DOING, 0, claim).await.map_err(|error| only_fault(DOING, error))
    }

    async fn settle_notice(&self, key: &NoticeKey, attempt: u32, outcome: NoticeOutcome) -> Result<bool, StoreFault> {
        const DOING: &str = "settle a notice";
        let key = key.clone();
        let settle = move |book: &mut _, now| notices::settle(book, &key, attempt, outcome.clone(), now);
        self.writer.write(DOING, 0, settle).await.map_err(|error| only_fault(DOING, error))
    }

    async fn notice(&self, key: &NoticeKey) -> Result<Option<NoticeRow>, StoreFault> {
        self.readers.read_once("find a notice", |connection| notices::find(connection, key))
    }

    async fn list_notices(&self, filter: &NoticeFilter) -> Result<Vec<NoticeRow>, StoreFault> {
        self.readers.read_once("list notices", |connection| notices::list(connection, filter))
    }

    async fn remove_old(&self, before: Timestamp, limit: usize) -> Result<u64, StoreFault> {
        const DOING: &str = "remove old sessions";
        let old = self.readers.read(DOING, |connection| retention::old(connection, before, limit))?;
        let mut removed = 0;
        // One after the other: whoever writes meanwhile gets a turn in between.
        for session in old {
            let remove = move |book: &mut Book, _| retention::remove(book, session, before);
            match self.writer.write(DOING, 0, remove).await {
                Ok(is_removed) => removed += u64::from(is_removed),
                Err(AppendError::Fault(fault)) => return Err(fault),
                // Nothing is refused here.
                Err(_) => {}
            }
        }
        Ok(removed)
    }

    fn durability(&self) -> Durability {
        Durability { store: "sqlite", survives_crash: true, is_shared: true, settings: self.settings.clone() }
    }
}

/// The fault of something that is never refused.
fn only_fault(doing: &'static str, error: AppendError) -> StoreFault {
    match error {
        AppendError::Fault(fault) => fault,
        refused => StoreFault::because(doing, StoreFaultKind::Corrupt, refused),
    }
}
