//! What can go wrong: a refusal is an answer that the caller can act on, a fault is the world failing.

use holdpoint_core::Refusal;
use holdpoint_core::ids::RunId;

use crate::ports::model::ModelFault;
use crate::ports::store::StoreFault;

/// Why a use case gave no result.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The caller can correct it. Nothing changed.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The world failed. What was acknowledged stands; a retry may help.
    #[error(transparent)]
    Fault(#[from] Fault),
}

impl RunError {
    /// A stable, documented name.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Refused(refusal) => refusal.code(),
            Self::Fault(fault) => fault.code(),
        }
    }

    /// The refusal, where it is one.
    pub fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Refused(refusal) => Some(refusal),
            Self::Fault(_) => None,
        }
    }
}

/// The world failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// The store is out of order.
    #[error(transparent)]
    Store(#[from] StoreFault),
    /// The model gave no reply; the run can be resumed.
    #[error("run {run} could not go on")]
    Model {
        /// The run.
        run: RunId,
        /// What the model said.
        #[source]
        source: ModelFault,
    },
    /// The process that moved the run begins nothing more: see [`Runtime::leave_runs`](crate::Runtime::leave_runs).
    #[error("run {run} was left where it stands: this process stops")]
    Left {
        /// The run.
        run: RunId,
    },
    /// Too many others write to one run at once.
    #[error("run {run} changed too often while it was written to: try again")]
    Contended {
        /// The run.
        run: RunId,
    },
}

impl Fault {
    /// A stable, documented name.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Store(fault) => fault.kind.code(),
            Self::Model { .. } => "model_unavailable",
            Self::Contended { .. } => "contended",
            Self::Left { .. } => "run_left",
        }
    }

    /// Every code there is; each has a page under `docs/errors/`.
    pub const CODES: &'static [&'static str] = &[
        "contended",
        "model_unavailable",
        "run_left",
        "store_corrupt",
        "store_full",
        "store_newer",
        "store_unavailable",
        "store_unknown",
    ];
}

impl From<StoreFault> for RunError {
    fn from(fault: StoreFault) -> Self {
        Self::Fault(Fault::Store(fault))
    }
}
