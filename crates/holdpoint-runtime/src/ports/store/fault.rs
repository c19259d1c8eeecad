//! Why a store did not do what it was asked: an answer to a race that was lost, or a store out of order.

use holdpoint_core::ids::{RuleId, RunId, SessionId};
use holdpoint_core::time::Timestamp;

/// Why an append was not written.
#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    /// Somebody else wrote first.
    #[error("run {run} stands at revision {revision}, not at the one expected")]
    Conflict {
        /// The run.
        run: RunId,
        /// Where it stands.
        revision: u64,
    },
    /// Somebody else moves the run.
    #[error("run {run} is moved by {owner} until {until}")]
    Leased {
        /// The run.
        run: RunId,
        /// Who moves it.
        owner: String,
        /// Until when.
        until: Timestamp,
    },
    /// The writer's lease was lost: somebody else may have gone on since.
    #[error("the lease of run {run} was lost")]
    Fenced {
        /// The run.
        run: RunId,
    },
    /// The agent already has a run under way in the session.
    #[error("run {run} is under way in the session")]
    SessionBusy {
        /// The run under way.
        run: RunId,
    },
    /// The session is somebody else's.
    #[error("session {session} is not known")]
    SessionForeign {
        /// The session.
        session: SessionId,
    },
    /// A rule that the append uses is spent or was taken back.
    #[error("rule {0} no longer stands")]
    RuleSpent(RuleId),
    /// There is no such run.
    #[error("run {0} is not known")]
    NoRun(RunId),
    /// The store is out of order.
    #[error(transparent)]
    Fault(#[from] StoreFault),
}

/// A store that is out of order. Nothing was acknowledged; a retry may help.
#[derive(Debug, thiserror::Error)]
#[error("the store could not {doing}: {kind}")]
pub struct StoreFault {
    /// What it was about to do.
    pub doing: &'static str,
    /// What kind of disorder.
    pub kind: StoreFaultKind,
    /// The cause.
    #[source]
    pub source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// What kind of disorder a store is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreFaultKind {
    /// It cannot be reached, or was stopped.
    Unavailable,
    /// There is no room left.
    Full,
    /// What it holds cannot be read.
    Corrupt,
    /// What it holds was written by a newer version.
    Newer,
    /// Whether the append was written is not known; read before trying again.
    Unknown,
}

impl StoreFaultKind {
    /// A stable, documented name.
    pub fn code(self) -> &'static str {
        match self {
            Self::Unavailable => "store_unavailable",
            Self::Full => "store_full",
            Self::Corrupt => "store_corrupt",
            Self::Newer => "store_newer",
            Self::Unknown => "store_unknown",
        }
    }
}

impl std::fmt::Display for StoreFaultKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Unavailable => "it is not available",
            Self::Full => "there is no room left",
            Self::Corrupt => "what it holds cannot be read",
            Self::Newer => "it was written by a newer version of holdpoint",
            Self::Unknown => "whether it was written is not known",
        })
    }
}

impl StoreFault {
    /// A fault without a cause of its own.
    pub fn new(doing: &'static str, kind: StoreFaultKind) -> Self {
        Self { doing, kind, source: None }
    }

    /// A fault with its cause.
    pub fn because(
        doing: &'static str,
        kind: StoreFaultKind,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self { doing, kind, source: Some(source.into()) }
    }
}
