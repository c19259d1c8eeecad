//! What an SQLite error means to whoever waits for an answer.

use std::sync::Arc;

use holdpoint_runtime::ports::store::{AppendError, StoreFault, StoreFaultKind};
use rusqlite::{Error, ErrorCode};

pub(super) use crate::faults::{no_events, unwritable};

/// Why a write came to nothing.
pub(super) enum WriteError {
    /// It was refused: an answer. Nothing was written, and its neighbours in the transaction are none the worse.
    Refused(AppendError),
    /// SQLite stumbled: the transaction is of no use any more.
    Broken(Error),
}

impl From<AppendError> for WriteError {
    fn from(refusal: AppendError) -> Self {
        Self::Refused(refusal)
    }
}

impl From<Error> for WriteError {
    fn from(error: Error) -> Self {
        Self::Broken(error)
    }
}

/// The fault of something that surely did not happen.
pub(super) fn of(doing: &'static str, error: Error) -> StoreFault {
    StoreFault::because(doing, kind(&error), error)
}

/// The fault of one of several who shared a transaction that failed.
pub(super) fn shared(doing: &'static str, kind: StoreFaultKind, error: &Arc<Error>) -> StoreFault {
    StoreFault::because(doing, kind, Arc::clone(error))
}

/// What kind of disorder an error shows, given that nothing was committed.
pub(super) fn kind(error: &Error) -> StoreFaultKind {
    match error {
        Error::FromSqlConversionFailure(..)
        | Error::IntegralValueOutOfRange(..)
        | Error::InvalidColumnType(..)
        | Error::Utf8Error(..) => StoreFaultKind::Corrupt,
        _ => match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => StoreFaultKind::Full,
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => StoreFaultKind::Corrupt,
            _ => StoreFaultKind::Unavailable,
        },
    }
}

/// What kind of disorder an error of `COMMIT` shows.
///
/// A full disk and a lock are found before the commit mark is on its way, so nothing was written. After any other
/// error (writing or flushing the log failed) the mark may or may not be found when the file is opened again.
pub(super) fn commit_kind(error: &Error) -> StoreFaultKind {
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => StoreFaultKind::Full,
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreFaultKind::Unavailable,
        _ => StoreFaultKind::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rusqlite::ffi;

    fn sqlite(code: i32) -> Error {
        Error::SqliteFailure(ffi::Error::new(code), None)
    }

    #[test]
    fn only_a_failed_flush_leaves_a_commit_in_doubt() {
        assert_eq!(commit_kind(&sqlite(ffi::SQLITE_FULL)), StoreFaultKind::Full);
        assert_eq!(commit_kind(&sqlite(ffi::SQLITE_BUSY)), StoreFaultKind::Unavailable);
        for code in [ffi::SQLITE_IOERR_FSYNC, ffi::SQLITE_IOERR_WRITE, ffi::SQLITE_IOERR, ffi::SQLITE_NOMEM] {
            assert_eq!(commit_kind(&sqlite(code)), StoreFaultKind::Unknown, "{code}");
        }
    }

    #[test]
    fn errors_before_the_commit_are_told_apart() {
        assert_eq!(kind(&sqlite(ffi::SQLITE_FULL)), StoreFaultKind::Full);
        assert_eq!(kind(&sqlite(ffi::SQLITE_CORRUPT)), StoreFaultKind::Corrupt);
        assert_eq!(kind(&sqlite(ffi::SQLITE_NOTADB)), StoreFaultKind::Corrupt);
        assert_eq!(kind(&sqlite(ffi::SQLITE_BUSY)), StoreFaultKind::Unavailable);
        assert_eq!(kind(&sqlite(ffi::SQLITE_IOERR_READ)), StoreFaultKind::Unavailable);
        assert_eq!(kind(&Error::IntegralValueOutOfRange(0, 7)), StoreFaultKind::Corrupt);
    }
}
