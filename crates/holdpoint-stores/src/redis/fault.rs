//! What an error of Redis means to whoever waits for an answer.

use ::redis::{FromRedisValue, RedisError, Value};
use holdpoint_runtime::ports::store::{AppendError, StoreFault, StoreFaultKind};

pub(super) use crate::faults::{no_events, unwritable};

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

/// What an answer says.
pub(super) fn from_value<T: FromRedisValue>(value: Value) -> Result<T, Broken> {
    ::redis::from_redis_value(value).map_err(|error| Broken::Unreadable(error.to_string()))
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
