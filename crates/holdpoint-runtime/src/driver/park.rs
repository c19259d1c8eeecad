//! Stopping: a run that waits for a person, or is over, is written down and left to itself.

use std::sync::Arc;

use holdpoint_core::input::Input;
use holdpoint_core::pause::{Pause, PauseState};
use holdpoint_core::step::Step;

use crate::driver::{Done, Drive};
use crate::fault::RunError;

impl Drive {
    /// Pauses whose time is up expire now: nobody else may have looked since.
    pub(crate) fn expire_overdue(&mut self) -> Result<(), RunError> {
        let now = self.runtime.store().now();
        let is_over = |pause: &Pause| matches!(pause.state, PauseState::Open { expires_at: Some(expires_at) } if expires_at <= now);
        let overdue: Vec<_> = self.run.pauses().iter().filter(|pause| is_over(pause)).map(|pause| pause.id).collect();
        overdue.into_iter().try_for_each(|pause| self.advance(Input::DeadlinePassed(pause)))
    }

    /// Writes everything down and says whether there is nothing left to do here.
    pub(super) async fn park(&mut self) -> Result<bool, RunError> {
        if self.run.end().is_some() {
            self.wind_up().await;
        }
        self.commit_and_release().await?;
        match self.run.next_step() {
            // Somebody's decision came in between: there is more to do.
            Step::Work(_) => Ok(false),
            // The calls that run are not ours: another process was faster, and goes on.
            Step::AwaitCalls => Err(self.moved_elsewhere().await),
            Step::AwaitDecisions { .. } | Step::Finished(_) => {
                self.runtime.recent().keep(Arc::new(self.run.clone()), self.revision, true);
                Ok(true)
            }
        }
    }

    /// Tells tools that the run is over, and takes what they still have to say.
    async fn wind_up(&mut self) {
        self.cancelled.cancel();
        let clock = self.runtime.clock().clone();
        let grace = clock.sleep(self.runtime.settings().cancel_grace);
        tokio::pin!(grace);
        while !self.tools.is_empty() {
            tokio::select! {
                biased;
                done = self.under_way.join_next() => match done {
                    Some(Ok(Done::Tool { call, outcome })) => {
                        self.tools.remove(&call);
                        self.advance_if_welcome(Input::CallEnded { call, outcome });
                    }
                    Some(_) => {}
                    None => break,
                },
                () = &mut grace => break,
            }
        }
        self.under_way.abort_all();
    }

    /// An error ends the drive: tools that run are waited for, and what they did is written down if that is possible.
    pub(super) async fn stop_on_error(&mut self) {
        while !self.tools.is_empty() {
            match self.under_way.join_next().await {
                Some(Ok(Done::Tool { call, outcome })) => {
                    self.tools.remove(&call);
                    self.advance_if_welcome(Input::CallEnded { call, outcome });
                }
                Some(_) => {}
                None => break,
            }
        }
        let written = match self.forget_starts().await {
            Ok(()) => self.commit_and_release().await,
            Err(error) => Err(error),
        };
        if let Err(error) = written {
            tracing::warn!(run.id = %self.run_id(), %error, "what was done could not be written down");
        }
    }
}
