//! The task that moves a run while a stream tells of it, and how it came to its end.

use holdpoint_core::refusal::Refusal;
use holdpoint_core::run::Run;
use holdpoint_runtime::{Fault, RunError};
use tokio::task::{JoinError, JoinHandle};

use crate::problem::Problem;

/// The task that moves a run.
pub(super) type Drive = JoinHandle<Result<Run, RunError>>;

/// How far the task is that moves the run.
pub(super) enum Driving {
    /// Under way.
    UnderWay(Drive),
    /// It came to its end before the stream began.
    Ended(DriveEnd),
    /// Its end was seen; if the run goes on, somebody else moves it.
    Over,
}

/// How such a task came to its end.
pub(super) enum DriveEnd {
    /// At a stop, or because somebody else moves the run and was told of what was decided.
    Stopped,
    /// The run could not go on.
    Failed(Failure),
}

/// Why a run could not go on.
pub(super) struct Failure {
    pub(super) problem: Problem,
    /// Whether the world failed in a way that may pass.
    pub(super) may_pass: bool,
    /// Whether the run would wait for its model in vain.
    pub(super) is_hopeless: bool,
}

impl DriveEnd {
    /// What the end of the task means.
    pub(super) fn read(ended: Result<Result<Run, RunError>, JoinError>) -> Self {
        match ended {
            Ok(Ok(_) | Err(RunError::Refused(Refusal::RunBusy { .. }))) => Self::Stopped,
            Ok(Err(error)) => Self::Failed(error.into()),
            Err(_) => {
                let problem = Problem::internal("the task that moves a run panicked");
                Self::Failed(Failure { problem, may_pass: false, is_hopeless: false })
            }
        }
    }
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        let is_hopeless = matches!(&error, RunError::Fault(Fault::Model { source, .. }) if !source.may_retry);
        let may_pass = matches!(error, RunError::Fault(_)) && !is_hopeless;
        Self { problem: error.into(), may_pass, is_hopeless }
    }
}
