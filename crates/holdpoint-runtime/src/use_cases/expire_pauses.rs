//! Deadlines: a pause whose time is up expires once, on whichever instance comes first.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use futures_util::stream::{self, StreamExt as _};
use holdpoint_core::ids::{PauseId, RunId};
use holdpoint_core::input::Input;
use holdpoint_core::refusal::Refusal;

use crate::fault::RunError;
use crate::runtime::Runtime;

/// How many pauses of one list are expired at once: their commits share the store's waits.
const AT_ONCE: usize = 16;

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
        let mut due = self.store().due_pauses(limit).await?;
        self.begin_elsewhere(&mut due);
        let expire = |pause: PauseId| async move { (pause.run, self.expire_pause(pause).await) };
        let mut expiring = stream::iter(due).map(expire).buffer_unordered(AT_ONCE);
        let (mut expired, mut failed) = (Vec::new(), Vec::new());
        while let Some((run, outcome)) = expiring.next().await {
            match outcome {
                Ok(true) if !expired.contains(&run) => expired.push(run),
                Ok(_) => {}
                Err(error) => failed.push((run, error)),
            }
        }
        Ok((expired, failed))
    }

    /// Instances look at the same list. Where it is long, each begins at a place of its own, so that they do not all try
    /// the same pauses.
    fn begin_elsewhere(&self, due: &mut [PauseId]) {
        if due.len() > AT_ONCE {
            let mut hasher = DefaultHasher::new();
            self.settings().owner.hash(&mut hasher);
            let place = hasher.finish() % due.len() as u64;
            due.rotate_left(usize::try_from(place).unwrap_or_default());
        }
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
