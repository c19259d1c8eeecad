//! Deadlines: a pause whose time is up expires once, on whichever instance comes first.

use holdpoint_core::ids::{PauseId, RunId};
use holdpoint_core::input::Input;
use holdpoint_core::refusal::Refusal;

use crate::fault::RunError;
use crate::runtime::Runtime;

impl Runtime {
    /// Expires pauses whose time is up, at most `limit`; says which runs have something to do now.
    ///
    /// # Errors
    /// The store is out of order.
    pub async fn expire_pauses(&self, limit: usize) -> Result<Vec<RunId>, RunError> {
        let (expired, failed) = self.expire_due(limit).await?;
        match failed.into_iter().next() {
            Some((_, error)) if expired.is_empty() => Err(error),
            _ => Ok(expired),
        }
    }

    /// Expires what is due. What one run runs into does not hold up the others.
    pub(crate) async fn expire_due(&self, limit: usize) -> Result<(Vec<RunId>, Vec<(RunId, RunError)>), RunError> {
        let (mut expired, mut failed) = (Vec::new(), Vec::new());
        for pause in self.store().due_pauses(limit).await? {
            match self.expire_pause(pause).await {
                Ok(true) if !expired.contains(&pause.run) => expired.push(pause.run),
                Ok(_) => {}
                Err(error) => failed.push((pause.run, error)),
            }
        }
        Ok((expired, failed))
    }

    /// Expires one pause if its time is up; says whether it was this call that did.
    pub(super) async fn expire_pause(&self, pause: PauseId) -> Result<bool, RunError> {
        match self.change(pause.run, Input::DeadlinePassed(pause)).await {
            Ok(_) => Ok(true),
            // Somebody answered first, or another instance was faster.
            Err(RunError::Refused(
                Refusal::AlreadyDecided { .. }
                | Refusal::Expired { .. }
                | Refusal::Withdrawn { .. }
                | Refusal::OutOfTurn { .. },
            )) => Ok(false),
            Err(error) => Err(error),
        }
    }
}
