//! Somebody ends a run. Open questions are withdrawn; a tool that runs is told, and what it did is still written down.

use std::sync::Arc;

use holdpoint_core::ids::{ActorId, RunId};
use holdpoint_core::input::Input;
use holdpoint_core::run::Run;

use crate::fault::RunError;
use crate::runtime::Runtime;

impl Runtime {
    /// Ends a run.
    ///
    /// # Errors
    /// There is no such run, or it is over.
    pub async fn cancel_run(&self, run: RunId, by: ActorId, reason: impl Into<String>) -> Result<Run, RunError> {
        self.cancel_run_as(run, by, reason.into(), None).await
    }

    /// As [`Runtime::cancel_run`], under the caller's own name of the request, which is recorded with it.
    ///
    /// # Errors
    /// As there; or the name is too long.
    pub async fn cancel_run_as(
        &self,
        run: RunId,
        by: ActorId,
        reason: String,
        request: Option<String>,
    ) -> Result<Run, RunError> {
        Ok(Arc::unwrap_or_clone(self.change(run, Input::Cancel { by, reason, request }).await?.run))
    }
}
