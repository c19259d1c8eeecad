//! A call is held: a pause opens, and later it is decided, expires or is withdrawn.

use crate::event::{PauseExpired, PauseOpened, RunEvent};
use crate::ids::{CallPath, PauseId};
use crate::pause::{Pause, PauseKind, PauseState, Subject};
use crate::refusal::Refusal;
use crate::run::screen::answered;
use crate::run::{Begun, limits};
use crate::time::Timestamp;
use crate::tool::{Call, CallState, Outcome};

/// The event that opens a pause about a call.
pub(super) fn open(
    number: u32,
    kind: PauseKind,
    path: CallPath,
    call: &Call,
    reason: Option<String>,
    expires_at: Option<Timestamp>,
) -> RunEvent {
    RunEvent::PauseOpened(PauseOpened { number, kind, at: path, sha256: Some(call.digest()), reason, expires_at })
}

/// Calls that were allowed but have not started are asked about again: what was approved is no longer what would run.
pub(super) fn again(
    begun: &Begun,
    calls: Vec<CallPath>,
    reason: String,
    expires_at: Option<Timestamp>,
) -> Result<Vec<RunEvent>, Refusal> {
    let mut events = Vec::new();
    for path in calls {
        let fits = |state: &CallState| matches!(state, CallState::Allowed { .. });
        let call = begun.call_for(&path, "a second hold", fits)?;
        let number = begun.next_pause_number() + u32::try_from(events.len()).unwrap_or(u32::MAX);
        events.push(open(number, PauseKind::Approval, path.clone(), call, Some(reason.clone()), expires_at));
    }
    Ok(events)
}

/// A pause's time is up: it expires, unless somebody was first or it is too early.
pub(super) fn expire(begun: &Begun, id: PauseId, now: Timestamp) -> Result<Vec<RunEvent>, Refusal> {
    let pause = begun.pause(id)?;
    match &pause.state {
        PauseState::Open { expires_at: Some(end) } if *end <= now => {
            let mut events = vec![RunEvent::PauseExpired(PauseExpired { number: id.number })];
            // The model's own words need no outcome: the run ends with them.
            if let Subject::Call { path, .. } = &pause.subject {
                events.push(answered(path.clone(), expired(pause.kind)));
            }
            Ok(events)
        }
        PauseState::Open { .. } => Err(Refusal::OutOfTurn { state: "paused", input: "a deadline" }),
        _ => Err(pause.settled()),
    }
}

/// What an unanswered question means for its call. A call in doubt may have run; it is never said that it did not.
fn expired(kind: PauseKind) -> Outcome {
    match kind {
        PauseKind::InDoubt => Outcome::Abandoned,
        PauseKind::Approval | PauseKind::Question | PauseKind::Confirmation => Outcome::Expired,
    }
}

impl Begun {
    /// The pause of this id, whatever its state.
    pub(super) fn pause(&self, id: PauseId) -> Result<&Pause, Refusal> {
        let index = (id.number as usize).checked_sub(1);
        let pause = index.and_then(|index| self.pauses.get(index));
        pause.filter(|pause| pause.id == id).ok_or(Refusal::PauseNotFound(id))
    }

    pub(super) fn has_room_for_pauses(&self) -> bool {
        self.open_pauses().count() < limits::PAUSES_OPEN_MAX
    }
}

impl Pause {
    /// What a latecomer is told: who won, when and how. Only for a pause that is no longer open.
    pub(super) fn settled(&self) -> Refusal {
        match &self.state {
            PauseState::Decided(decided) => Refusal::AlreadyDecided {
                pause: self.id,
                outcome: decided.decision.name(),
                by: decided.by.clone(),
                at: decided.at,
            },
            PauseState::Expired { at } => Refusal::Expired { pause: self.id, at: *at },
            PauseState::Withdrawn { at, .. } => Refusal::Withdrawn { pause: self.id, at: *at },
            PauseState::Open { .. } => Refusal::OutOfTurn { state: "paused", input: "a decision" },
        }
    }
}
