//! What an error of PostgreSQL means to whoever waits for an answer.

use holdpoint_runtime::ports::store::{AppendError, StoreFault, StoreFaultKind};
use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

pub(super) use crate::faults::{no_events, unwritable};

/// How often something is tried that fails for a reason which passes.
pub(super) const TRIES_MAX: u32 = 4;

/// Why something came to nothing although nobody refused it.
#[derive(Debug, thiserror::Error)]
pub(super) enum Broken {
    /// The server said so, or the connection to it was lost.
    #[error("PostgreSQL did not do it")]
    Server(#[source] Error),
    /// No connection could be had.
    #[error("no connection to PostgreSQL: {0}")]
    NoConnection(String),
    /// It took longer than anybody waits.
    #[error("PostgreSQL did not answer in time")]
    TimedOut,
    /// What a column holds cannot be read.
    #[error("{0}")]
    Unreadable(String),
    /// The session was removed while a run was about to begin in it.
    #[error("the session was removed at the same moment")]
    SessionGone,
}

/// Why a write came to nothing.
pub(super) enum WriteError {
    /// It was refused: an answer. Nothing was written.
    Refused(AppendError),
    /// It surely was not written.
    NotWritten(Broken),
    /// The commit was on its way: whether it was written is not known.
    InDoubt(Broken),
}

impl WriteError {
    /// Lets it be tried again where that may help, and otherwise answers whoever asked.
    pub(super) fn or_again(self, doing: &'static str, tries: &mut u32) -> Result<(), AppendError> {
        match self {
            Self::Refused(refusal) => Err(refusal),
            Self::NotWritten(broken) if broken.is_passing() && *tries < TRIES_MAX => {
                *tries += 1;
                Ok(())
            }
            Self::NotWritten(broken) => Err(broken.fault(doing).into()),
            Self::InDoubt(broken) => Err(StoreFault::because(doing, StoreFaultKind::Unknown, broken).into()),
        }
    }
}

impl From<Error> for Broken {
    fn from(error: Error) -> Self {
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

impl From<Error> for WriteError {
    fn from(error: Error) -> Self {
        Self::NotWritten(error.into())
    }
}

impl Broken {
    /// What kind of disorder it shows, given that nothing was committed.
    pub(super) fn kind(&self) -> StoreFaultKind {
        match self {
            Self::NoConnection(_) | Self::TimedOut | Self::SessionGone => StoreFaultKind::Unavailable,
            Self::Unreadable(_) => StoreFaultKind::Corrupt,
            Self::Server(error) => error.code().map_or(StoreFaultKind::Unavailable, kind_of_state),
        }
    }

    /// Whether it may well work when it is tried again at once: the connection was gone, or somebody else was in the way.
    pub(super) fn is_passing(&self) -> bool {
        match self {
            Self::Server(error) => match error.code() {
                None => true,
                Some(state) => {
                    [
                        SqlState::T_R_SERIALIZATION_FAILURE,
                        SqlState::T_R_DEADLOCK_DETECTED,
                        SqlState::UNIQUE_VIOLATION,
                        SqlState::ADMIN_SHUTDOWN,
                        SqlState::CRASH_SHUTDOWN,
                    ]
                    .contains(state)
                        || state.code().starts_with("08")
                }
            },
            Self::SessionGone => true,
            Self::NoConnection(_) | Self::TimedOut | Self::Unreadable(_) => false,
        }
    }

    /// The fault of something that surely did not happen.
    pub(super) fn fault(self, doing: &'static str) -> StoreFault {
        StoreFault::because(doing, self.kind(), self)
    }
}

fn kind_of_state(state: &SqlState) -> StoreFaultKind {
    if *state == SqlState::DISK_FULL {
        StoreFaultKind::Full
    } else if [SqlState::DATA_CORRUPTED, SqlState::INDEX_CORRUPTED, SqlState::UNDEFINED_TABLE].contains(state) {
        StoreFaultKind::Corrupt
    } else {
        StoreFaultKind::Unavailable
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_of_the_server_are_told_apart() {
        assert_eq!(kind_of_state(&SqlState::DISK_FULL), StoreFaultKind::Full);
        assert_eq!(kind_of_state(&SqlState::DATA_CORRUPTED), StoreFaultKind::Corrupt);
        assert_eq!(kind_of_state(&SqlState::UNDEFINED_TABLE), StoreFaultKind::Corrupt);
        for state in [SqlState::QUERY_CANCELED, SqlState::TOO_MANY_CONNECTIONS, SqlState::READ_ONLY_SQL_TRANSACTION] {
            assert_eq!(kind_of_state(&state), StoreFaultKind::Unavailable, "{state:?}");
        }
    }

    #[test]
    fn only_what_passes_is_tried_again() {
        assert!(!Broken::TimedOut.is_passing());
        assert!(!Broken::NoConnection("refused".to_owned()).is_passing());
        assert!(!Broken::Unreadable("run status 9".to_owned()).is_passing());
        assert_eq!(Broken::Unreadable(String::new()).kind(), StoreFaultKind::Corrupt);
        assert_eq!(Broken::TimedOut.kind(), StoreFaultKind::Unavailable);
    }
}
