//! The one thread that writes. It takes what is waiting, writes it in one transaction, and answers after the commit:
//! sixty-four writers cost one flush, not sixty-four.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use holdpoint_core::time::Timestamp;
use holdpoint_runtime::ports::clock::Clock;
use holdpoint_runtime::ports::store::{AppendError, StoreFault, StoreFaultKind};
use rusqlite::{Connection, Error};
use tokio::sync::{mpsc, oneshot};

use super::book::Book;
use super::fault::{self, WriteError};

/// How many writes one transaction takes at most.
const BATCH_JOBS_MAX: usize = 256;
/// How many bytes one transaction takes; the write that passes it is the last one.
const BATCH_BYTES_MAX: usize = 1_024 * 1_024;

/// How long the writer waits for the next of those it expects: less than a flush takes.
const COMPANY_PATIENCE: Duration = Duration::from_micros(50);

/// How long whoever writes alone stays awake for the answer: about what a flush takes on a good disk.
const FLUSH_PATIENCE: Duration = Duration::from_micros(500);

const FLUSH_FAILED: &str = "an earlier flush to disk failed; the file must be opened again";

/// How much was written since a file was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriterCounts {
    /// Appends and changes of leases, those that were refused included.
    pub writes: u64,
    /// The commits that they shared.
    pub commits: u64,
}

/// Whether the file may still be trusted to keep what it is told.
///
/// After a flush that failed nobody knows what the disk holds. To go on, or to read on, could show something that a
/// restart takes back, so the store stays out of order until it is opened again.
#[derive(Clone, Default)]
pub(super) struct Health(Arc<AtomicBool>);

impl Health {
    /// # Errors
    /// A flush failed earlier.
    pub(super) fn check(&self, doing: &'static str) -> Result<(), StoreFault> {
        match self.0.load(Ordering::Acquire) {
            true => Err(StoreFault::because(doing, StoreFaultKind::Unavailable, FLUSH_FAILED)),
            false => Ok(()),
        }
    }

    fn lose(&self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Hands writes to the thread, and stops it when dropped.
pub(super) struct Writer {
    queue: Option<mpsc::Sender<Box<dyn Job>>>,
    thread: Option<JoinHandle<()>>,
    health: Health,
    counts: Arc<Counts>,
}

#[derive(Default)]
struct Counts {
    writes: AtomicU64,
    commits: AtomicU64,
}

impl Writer {
    pub(super) fn start(connection: Connection, clock: Arc<dyn Clock>, queue_max: usize) -> Result<Self, StoreFault> {
        let (queue, jobs) = mpsc::channel(queue_max.max(1));
        let (health, counts) = (Health::default(), Arc::new(Counts::default()));
        let desk = Desk { book: Book::new(connection), clock, health: health.clone(), counts: Arc::clone(&counts) };
        let thread = std::thread::Builder::new()
            .name("holdpoint-sqlite".to_owned())
            .spawn(move || desk.work_off(jobs))
            .map_err(|error| StoreFault::because("start the writer", StoreFaultKind::Unavailable, error))?;
        Ok(Self { queue: Some(queue), thread: Some(thread), health, counts })
    }

    /// Does `work` in a transaction of the writer's thread; ends when it is committed, or surely is not.
    ///
    /// The work may be done more than once, when a neighbour in its transaction fails. Dropping the future does not
    /// take back what was queued.
    pub(super) async fn write<T, W>(&self, doing: &'static str, size: usize, work: W) -> Result<T, AppendError>
    where
        T: Send + 'static,
        W: FnMut(&mut Book, Timestamp) -> Result<T, WriteError> + Send + 'static,
    {
        self.health.check(doing)?;
        let stopped = || StoreFault::because(doing, StoreFaultKind::Unavailable, "the writer has stopped");
        let queue = self.queue.as_ref().ok_or_else(stopped)?;
        let (reply, answer) = oneshot::channel();
        let task = Task { doing, size, work, answer: None, reply };
        let is_alone = queue.capacity() == queue.max_capacity();
        queue.send(Box::new(task)).await.map_err(|_| stopped())?;
        // The thread answers every job; if it is gone, the job may have been committed before.
        let lost = |_| Err(StoreFault::new(doing, StoreFaultKind::Unknown).into());
        match is_alone {
            true => stay_awake(answer).await.unwrap_or_else(lost),
            false => answer.await.unwrap_or_else(lost),
        }
    }

    pub(super) fn health(&self) -> Health {
        self.health.clone()
    }

    pub(super) fn counts(&self) -> WriterCounts {
        WriterCounts {
            writes: self.counts.writes.load(Ordering::Relaxed),
            commits: self.counts.commits.load(Ordering::Relaxed),
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // Without senders the thread works off the queue, closes the file and ends.
        drop(self.queue.take());
        if let Some(Err(_)) = self.thread.take().map(JoinHandle::join) {
            tracing::error!("the sqlite writer panicked");
        }
    }
}

/// One write, whatever it answers.
trait Job: Send {
    fn size(&self) -> usize;

    /// Does the work in the open transaction and keeps the answer.
    ///
    /// # Errors
    /// The transaction is of no use any more. A refusal is an answer, not an error.
    fn run(&mut self, book: &mut Book, now: Timestamp) -> Result<(), Error>;

    /// Answers, now that the work is committed.
    fn acknowledge(self: Box<Self>);

    /// Answers that the work came to nothing, or that nobody knows.
    fn fail(self: Box<Self>, kind: StoreFaultKind, error: &Arc<Error>);
}

struct Task<T, W> {
    doing: &'static str,
    size: usize,
    work: W,
    answer: Option<Result<T, AppendError>>,
    reply: oneshot::Sender<Result<T, AppendError>>,
}

impl<T, W> Job for Task<T, W>
where
    T: Send,
    W: FnMut(&mut Book, Timestamp) -> Result<T, WriteError> + Send,
{
    fn size(&self) -> usize {
        self.size
    }

    fn run(&mut self, book: &mut Book, now: Timestamp) -> Result<(), Error> {
        self.answer = Some(match (self.work)(book, now) {
            Ok(value) => Ok(value),
            Err(WriteError::Refused(refusal)) => Err(refusal),
            Err(WriteError::Broken(error)) => return Err(error),
        });
        Ok(())
    }

    fn acknowledge(self: Box<Self>) {
        let answer = self.answer.expect("a job is acknowledged after it was run");
        // Whoever asked may have stopped listening.
        self.reply.send(answer).ok();
    }

    fn fail(self: Box<Self>, kind: StoreFaultKind, error: &Arc<Error>) {
        self.reply.send(Err(fault::shared(self.doing, kind, error).into())).ok();
    }
}

/// Where a transaction failed.
enum Failure {
    /// Before it began: whoever comes next would fail too.
    Begin(Error),
    /// At one of the jobs. The others may be sound.
    Work(Error),
    /// At the end.
    Commit(Error),
}

/// Lets those who were just answered write again, rather than flush for the first of them alone.
///
/// Half as many as came last time are expected, and waited for only as long as they keep coming: while one half is
/// written and flushed, the other half can work. Who writes alone never waits.
fn await_company(jobs: &mpsc::Receiver<Box<dyn Job>>, expected: usize) {
    let mut queued = jobs.len();
    let mut last_arrival = Instant::now();
    while queued + 1 < expected && last_arrival.elapsed() < COMPANY_PATIENCE {
        std::thread::yield_now();
        if jobs.len() > queued {
            queued = jobs.len();
            last_arrival = Instant::now();
        }
    }
}

/// Waits for the answer to the only write there is. A core that has fallen asleep takes longer to wake up than a good disk
/// to flush, so for about that long the caller's thread goes round instead: it does whatever else there is to do, and
/// looks again. On a machine with one core the writer needs it more.
async fn stay_awake<T>(mut answer: oneshot::Receiver<T>) -> Result<T, oneshot::error::RecvError> {
    static HAS_CORES: LazyLock<bool> =
        LazyLock::new(|| std::thread::available_parallelism().is_ok_and(|cores| cores.get() > 1));
    let asked = Instant::now();
    while *HAS_CORES && asked.elapsed() < FLUSH_PATIENCE {
        match answer.try_recv() {
            Err(oneshot::error::TryRecvError::Empty) => tokio::task::yield_now().await,
            Err(oneshot::error::TryRecvError::Closed) => break,
            Ok(answer) => return Ok(answer),
        }
    }
    answer.await
}

/// The next job. Whoever was just answered often writes again at once: for a moment the thread stays awake for it, since
/// being woken costs more than the wait.
fn next_job(jobs: &mut mpsc::Receiver<Box<dyn Job>>) -> Option<Box<dyn Job>> {
    let answered = Instant::now();
    while answered.elapsed() < COMPANY_PATIENCE {
        match jobs.try_recv() {
            Ok(job) => return Some(job),
            Err(mpsc::error::TryRecvError::Disconnected) => return None,
            Err(mpsc::error::TryRecvError::Empty) => std::thread::yield_now(),
        }
    }
    jobs.blocking_recv()
}

/// What the thread works with.
struct Desk {
    book: Book,
    clock: Arc<dyn Clock>,
    health: Health,
    counts: Arc<Counts>,
}

impl Desk {
    fn work_off(mut self, mut jobs: mpsc::Receiver<Box<dyn Job>>) {
        let mut last_batch = 0;
        while let Some(first) = next_job(&mut jobs) {
            await_company(&jobs, last_batch / 2);
            let mut bytes = first.size();
            let mut batch = vec![first];
            while batch.len() < BATCH_JOBS_MAX && bytes < BATCH_BYTES_MAX {
                let Ok(next) = jobs.try_recv() else { break };
                bytes += next.size();
                batch.push(next);
            }
            last_batch = batch.len();
            self.write_batch(batch);
        }
        self.tidy_up();
    }

    fn write_batch(&mut self, mut batch: Vec<Box<dyn Job>>) {
        self.counts.writes.fetch_add(batch.len() as u64, Ordering::Relaxed);
        match self.commit(&mut batch) {
            Ok(()) => batch.into_iter().for_each(Job::acknowledge),
            Err(Failure::Work(_) | Failure::Commit(_)) if batch.len() > 1 && self.is_trusted() => {
                batch.into_iter().for_each(|job| self.write_alone(job));
            }
            Err(failure) => self.fail(batch, failure),
        }
    }

    fn write_alone(&mut self, job: Box<dyn Job>) {
        let mut batch = vec![job];
        match self.commit(&mut batch) {
            Ok(()) => batch.into_iter().for_each(Job::acknowledge),
            Err(failure) => self.fail(batch, failure),
        }
    }

    fn fail(&self, batch: Vec<Box<dyn Job>>, failure: Failure) {
        let (kind, error) = match failure {
            Failure::Begin(error) | Failure::Work(error) => (fault::kind(&error), error),
            Failure::Commit(error) => (fault::commit_kind(&error), error),
        };
        tracing::warn!(%error, code = kind.code(), writes = batch.len(), "the store could not write");
        let error = Arc::new(error);
        batch.into_iter().for_each(|job| job.fail(kind, &error));
    }

    /// Writes jobs in one transaction: all of them, or none.
    fn commit(&mut self, batch: &mut [Box<dyn Job>]) -> Result<(), Failure> {
        if !self.is_trusted() {
            let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_IOERR);
            return Err(Failure::Begin(Error::SqliteFailure(code, Some(FLUSH_FAILED.to_owned()))));
        }
        self.execute("BEGIN IMMEDIATE").map_err(Failure::Begin)?;
        if let Err(error) = self.book.catch_up() {
            self.roll_back();
            return Err(Failure::Begin(error));
        }
        for job in batch {
            if let Err(error) = job.run(&mut self.book, self.clock.now()) {
                self.roll_back();
                return Err(Failure::Work(error));
            }
        }
        if let Err(error) = self.execute("COMMIT") {
            if fault::commit_kind(&error) == StoreFaultKind::Unknown {
                self.health.lose();
            }
            self.roll_back();
            return Err(Failure::Commit(error));
        }
        self.counts.commits.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn is_trusted(&self) -> bool {
        self.health.check("write").is_ok()
    }

    fn roll_back(&mut self) {
        self.book.forget_all();
        // Some errors have rolled back already.
        if !self.book.connection.is_autocommit()
            && let Err(error) = self.execute("ROLLBACK")
        {
            tracing::error!(%error, "a transaction could not be rolled back");
        }
    }

    fn execute(&self, sql: &str) -> Result<(), Error> {
        self.book.connection.prepare_cached(sql)?.execute([])?;
        Ok(())
    }

    fn tidy_up(self) {
        if !self.is_trusted() {
            return;
        }
        // Another process may be reading: then the log stays as it is, and the next to close the file tidies up.
        let checkpoint = self.book.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        if let Err(error) = checkpoint {
            tracing::warn!(%error, "the log was not checkpointed");
        }
    }
}
