//! Decides as somebody who clicked: the same checks, in the same place, as for everybody else. What is decided here was
//! shown here, whole.

use std::sync::Arc;

use holdpoint_core::decision::{Decision, DecisionInput};
use holdpoint_core::pause::{Pause, PauseView};
use holdpoint_core::refusal::Refusal;

use super::reference::Reference;
use super::sheet::Sheet;
use super::{Slack, VIA};
use crate::access::{Action, Caller};
use crate::app::App;
use crate::problem::{Code, Problem};
use crate::protocols::native::decide::{check_may_decide, names, record};
use crate::protocols::native::dossier::Dossier;

/// Somebody who clicked, and what they clicked on.
pub(super) struct Decider<'a> {
    pub(super) app: &'a App,
    pub(super) slack: &'a Arc<Slack>,
    pub(super) caller: &'a Caller,
    pub(super) reference: Reference,
}

impl Decider<'_> {
    /// The pause and its run, where this person and this channel may know of it.
    ///
    /// # Errors
    /// 404 `not_found`, 409 `stale_view`, 403 `forbidden`.
    pub(super) async fn look(&self) -> Result<Looked, Problem> {
        self.caller.check(Action::ReadPause)?;
        let id = self.reference.pause;
        let unknown = || Problem::from(Refusal::PauseNotFound(id));
        let dossier = Dossier::of_pause(self.app.runtime(), id).await?;
        let view = dossier.pause(id).map(|file| file.view.clone()).ok_or_else(unknown)?;
        let is_visible = self.caller.sees(Action::ReadPause, dossier.run.started_by());
        let is_told_here = self.slack.rule.admits(&view.agent, view.kind());
        if !is_visible || !is_told_here || !self.reference.fits(&view.pause) {
            return Err(unknown());
        }
        Ok(Looked { dossier, view })
    }

    /// Looks, and refuses what is not open any more, or is not for this person to decide.
    ///
    /// # Errors
    /// As for [`Decider::decide`].
    pub(super) async fn look_before(&self, decision: &Decision) -> Result<Looked, Problem> {
        let looked = self.look().await?;
        looked.check_open()?;
        self.check(&looked, decision)?;
        Ok(looked)
    }

    /// Records a decision. It is durable when this returns; the run goes on by itself.
    ///
    /// # Errors
    /// 409 `not_fully_displayed`, and whatever the same decision would be refused with elsewhere.
    pub(super) async fn decide(&self, decision: Decision) -> Result<(), Problem> {
        let looked = self.look().await?;
        if looked.view.pause.is_open() {
            self.check(&looked, &decision)?;
        }
        let input = DecisionInput {
            via: Some(VIA.to_owned()),
            groups: names(self.caller, &looked.view.pause),
            seen: self.reference.seen,
            ..DecisionInput::new(self.reference.pause, decision, self.caller.actor.clone())
        };
        record(self.app, self.caller, input, None).await?;
        self.app.go_on(self.reference.pause.run);
        Ok(())
    }

    fn check(&self, looked: &Looked, decision: &Decision) -> Result<(), Problem> {
        let (run, view) = (&looked.dossier.run, &looked.view);
        check_may_decide(self.app, self.caller, run, &view.pause, decision, false)?;
        match needs_sight(decision) && !Sheet::of(view, run.started_by()).is_whole {
            true => Err(not_fully_displayed()),
            false => Ok(()),
        }
    }
}

/// A pause as somebody who clicked may see it.
pub(super) struct Looked {
    pub(super) dossier: Dossier,
    pub(super) view: PauseView,
}

impl Looked {
    pub(super) fn pause(&self) -> &Pause {
        &self.view.pause
    }

    fn check_open(&self) -> Result<(), Problem> {
        use holdpoint_core::pause::PauseState::{Decided, Expired, Open, Withdrawn};
        let pause = self.pause().id;
        Err(match &self.pause().state {
            Open { .. } => return Ok(()),
            Decided(first) => {
                Refusal::AlreadyDecided { pause, outcome: first.decision.name(), by: first.by.clone(), at: first.at }
            }
            Expired { at } => Refusal::Expired { pause, at: *at },
            Withdrawn { at, .. } => Refusal::Withdrawn { pause, at: *at },
        }
        .into())
    }
}

/// Whether a decision lets something happen that must have been seen.
fn needs_sight(decision: &Decision) -> bool {
    match decision {
        Decision::Deny { .. } | Decision::Respond { .. } | Decision::Abandon => false,
        Decision::Approve
        | Decision::ApproveEdited { .. }
        | Decision::Answer { .. }
        | Decision::Happened { .. }
        | Decision::RunAgain => true,
    }
}

fn not_fully_displayed() -> Problem {
    Problem::new(
        Code::NOT_FULLY_DISPLAYED,
        "the message could not show everything that would run, so it cannot be approved there: open it in holdpoint",
    )
}
