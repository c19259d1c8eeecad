//! Who may decide, and where several must approve: each approval is a vote, and the last one needed decides.

use crate::decision::{Decision, DecisionInput};
use crate::event::{PauseVoted, RunEvent};
use crate::ids::ActorId;
use crate::pause::Pause;
use crate::refusal::Refusal;

/// Whether the actor may decide this pause. The name under which deadlines decide is nobody's.
pub(super) fn check_approver(pause: &Pause, input: &DecisionInput) -> Result<(), Refusal> {
    let may_decide = input.by != ActorId::timeout() && pause.terms.admit(&input.by, &input.groups);
    match may_decide {
        true => Ok(()),
        false => Err(Refusal::NotAnApprover { pause: pause.id, by: input.by.clone() }),
    }
}

/// The vote that an approval is as long as others must approve too; `None` where the decision settles the pause.
///
/// An actor has one vote: the same approval again changes nothing. Whatever is no approval needs no company.
pub(super) fn cast(pause: &Pause, input: &DecisionInput) -> Option<Vec<RunEvent>> {
    if pause.terms.takes_one() || input.decision != Decision::Approve {
        return None;
    }
    if pause.is_approved_by(&input.by) {
        return Some(Vec::new());
    }
    let voted = PauseVoted {
        number: pause.id.number,
        by: input.by.clone(),
        via: input.via.clone(),
        request: input.request.clone(),
    };
    (pause.approvals_missing() > 1).then(|| vec![RunEvent::PauseVoted(voted)])
}
