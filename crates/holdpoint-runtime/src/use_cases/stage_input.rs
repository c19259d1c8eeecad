//! Somebody says more while a run is under way: the model sees it with its next call, after the pending results.

use std::sync::Arc;

use holdpoint_core::ids::{ActorId, RunId};
use holdpoint_core::input::Input;
use holdpoint_core::message::Content;
use holdpoint_core::run::Run;

use crate::fault::RunError;
use crate::runtime::Runtime;

impl Runtime {
    /// Stages input for a run that is under way or paused.
    ///
    /// # Errors
    /// There is no such run, it is over or out of model calls, or too much is staged.
    pub async fn stage_input(&self, run: RunId, content: Content, by: ActorId) -> Result<Run, RunError> {
        self.stage_input_as(run, content, by, None).await
    }

    /// As [`Runtime::stage_input`], under the caller's own name of the request, which is recorded with it.
    ///
    /// # Errors
    /// As there; or the name is too long.
    pub async fn stage_input_as(
        &self,
        run: RunId,
        content: Content,
        by: ActorId,
        request: Option<String>,
    ) -> Result<Run, RunError> {
        Ok(Arc::unwrap_or_clone(self.change(run, Input::Stage { content, by, request }).await?.run))
    }
}
