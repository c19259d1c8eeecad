//! Somebody sends a new message instead of deciding: what waits is closed, and the message is staged, in one append.

use std::sync::Arc;

use holdpoint_core::ids::RunId;
use holdpoint_core::input::{Input, SupersedeInput};
use holdpoint_core::run::Run;

use crate::fault::RunError;
use crate::runtime::Runtime;

impl Runtime {
    /// Closes every open pause of a run without letting anything run, and stages the message; the model is told of both.
    /// It is durable when this returns. A run that waits for nobody any more only gets the message.
    ///
    /// # Errors
    /// There is no such run, it is over or out of model calls, or too much is staged.
    pub async fn supersede(&self, run: RunId, message: SupersedeInput) -> Result<Run, RunError> {
        Ok(Arc::unwrap_or_clone(self.change(run, Input::Supersede(message)).await?.run))
    }
}
