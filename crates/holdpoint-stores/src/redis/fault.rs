//! What an error of Redis means to whoever waits for an answer.

use ::redis::RedisError;
use holdpoint_core::ids::RunId;
use holdpoint_core::json::JsonProblem;
use holdpoint_core::refusal::Refusal;
use holdpoint_runtime::ports::store::{AppendError, StoreFault, StoreFaultKind};

/// Why something came to nothing although nobody refused it.
#[derive(Debug, thiserror::Error)]
pub(super) enum Broken {
    /// The server said so, or the connection to it was lost.
    #[error("Redis did not do it")]
    Server(#[source] RedisError),
    /// What is stored cannot be read.
    #[error("{0}")]
    Unreadable(String),
}

/// Why a write came to nothing.
pub(super) enum WriteError {
    /// It was refused: an answer. Nothing was written.
    Refused(AppendError),
    /// It surely was not written.
    NotWritten(Broken),
    /// Somebody else wrote between reading and writing: it can be tried again.
    Overtaken,
    /// The script was on its way: whether it was written is not known.
    InDoubt(Broken),
}

impl From<RedisError> for Broken {
    fn from(error: RedisError) -> Self {
        Self::Server(error)
    }
}

impl From<AppendError> for WriteError {
    fn from(refusal: AppendError) -> Self {
        Self::Refused(refusal)
    }
}

impl From<Broken> for WriteError {
    fn from(broken: Broken) -> Self {
        Self::NotWritten(broken)
    }
}

impl From<RedisError> for WriteError {
    fn from(error: RedisError) -> Self {
        Self::NotWritten(error.into())
    }
}

impl Broken {
    /// What kind of disorder it shows, given that nothing was written.
    pub(super) fn kind(&self) -> StoreFaultKind {
        match self {
            Self::Unreadable(_) => StoreFaultKind::Corrupt,
            Self::Server(error) if error.code() == Some("OOM") => StoreFaultKind::Full,
            // The disk of the server is full or broken: it takes no writes.
            Self::Server(error) if error.code() == Some("MISCONF") => StoreFaultKind::Full,
            Self::Server(error) if error.code() == Some("WRONGTYPE") => StoreFaultKind::Corrupt,
            Self::Server(_) => StoreFaultKind::Unavailable,
        }
    }

    /// Whether it may well work on another connection.
    pub(super) fn is_passing(&self) -> bool {
        matches!(self, Self::Server(error) if is_lost(error))
    }

    /// The fault of something that surely did not happen.
    pub(super) fn fault(self, doing: &'static str) -> StoreFault {
        StoreFault::because(doing, self.kind(), self)
    }
}

/// Whether an error leaves open what the server did.
pub(super) fn is_lost(error: &RedisError) -> bool {
    error.is_io_error() || error.is_timeout() || error.is_connection_dropped() || error.is_unrecoverable_error()
}

/// The fault of an entry that cannot be read.
pub(super) fn unreadable(run: RunId, revision: u64, refusal: &Refusal) -> StoreFault {
    let kind = match refusal {
        Refusal::FormatNewer { .. } => StoreFaultKind::Newer,
        _ => StoreFaultKind::Corrupt,
    };
    StoreFault::because("read an entry", kind, format!("entry {revision} of {run}: {refusal}"))
}

/// The fault of an append that says nothing: there is no place for it among the session's events.
pub(super) fn no_events(run: RunId) -> StoreFault {
    StoreFault::because("append", StoreFaultKind::Corrupt, format!("an append to {run} has no events"))
}

/// The fault of a note for the audit that has no JSON form.
pub(super) fn unwritable(run: RunId, problem: JsonProblem) -> StoreFault {
    StoreFault::because("append", StoreFaultKind::Corrupt, format!("a note about {run}: {problem}"))
}

/// The fault of a run whose entries do not follow one another.
pub(super) fn incomplete(run: RunId) -> StoreFault {
    StoreFault::because("load a run", StoreFaultKind::Corrupt, format!("entries of {run} are missing"))
}
