//! A call is held: a pause opens, and later it is decided, expires or is withdrawn.

use crate::decision::Decision;
use crate::event::{PauseExpired, PauseOpened, RunEvent};
use crate::ids::{ActorId, CallPath, PauseId};
use crate::json::Digest;
use crate::pause::{Pause, PauseKind, PauseState, Subject};
use crate::policy::{OnTimeout, PauseTerms};
use crate::refusal::Refusal;
use crate::run::decide::{self, Answer};
use crate::run::screen::answered;
use crate::run::{Begun, check_once, limits};
use crate::time::Timestamp;
use crate::tool::{Call, CallState, Outcome};

/// Opens the pauses of one input, one number after the other, as long as there is room.
pub(super) struct Opener {
    next: u32,
    room: usize,
}

impl Opener {
    pub(super) fn new(begun: &Begun) -> Self {
        Self { next: begun.next_pause_number(), room: begun.room_for_pauses() }
    }

    /// The pause about a call, or its outcome where no more questions may be open.
    pub(super) fn open(&mut self, kind: PauseKind, path: CallPath, call: &Call, ask: Ask) -> RunEvent {
        let Some(room) = self.room.checked_sub(1) else {
            return answered(path, overflowed(call));
        };
        let number = self.next;
        self.next += 1;
        self.room = room;
        RunEvent::PauseOpened(ask.opened(number, kind, path, Some(call.digest())))
    }
}

/// How a person is asked.
#[derive(Default)]
pub(super) struct Ask {
    pub(super) reason: Option<String>,
    pub(super) expires_at: Option<Timestamp>,
    pub(super) terms: PauseTerms,
}

impl Ask {
    pub(super) fn opened(self, number: u32, kind: PauseKind, at: CallPath, sha256: Option<Digest>) -> PauseOpened {
        let Self { reason, expires_at, terms: PauseTerms { rule, approvers, quorum, on_timeout } } = self;
        PauseOpened { number, kind, at, sha256, reason, expires_at, rule, approvers, quorum, on_timeout }
    }
}

/// What becomes of a call about which nobody can be asked. One that was started may have taken effect.
fn overflowed(call: &Call) -> Outcome {
    if call.attempts > 0 {
        return Outcome::Abandoned;
    }
    Outcome::Invalid(format!("{} calls already wait for a person; ask again later", limits::PAUSES_OPEN_MAX))
}

/// Calls that were allowed but have not started are asked about again: what was approved is no longer what would run.
pub(super) fn again(
    begun: &Begun,
    calls: Vec<CallPath>,
    reason: String,
    expires_at: Option<Timestamp>,
) -> Result<Vec<RunEvent>, Refusal> {
    check_once(&calls, "a second hold")?;
    let mut pauses = Opener::new(begun);
    let mut ask = |path: CallPath| {
        let fits = |state: &CallState| matches!(state, CallState::Allowed { .. });
        let call = begun.call_for(&path, "a second hold", fits)?;
        // Who had to look before must look again.
        let terms = begun.last_pause_of(&path).map(|pause| pause.terms.asked_again()).unwrap_or_default();
        let ask = Ask { reason: Some(reason.clone()), expires_at, terms };
        Ok(pauses.open(PauseKind::Approval, path, call, ask))
    };
    calls.into_iter().map(&mut ask).collect()
}

/// A pause's time is up: it expires, unless somebody was first or it is too early.
pub(super) fn expire(begun: &Begun, id: PauseId, now: Timestamp) -> Result<Vec<RunEvent>, Refusal> {
    let pause = begun.pause(id)?;
    match &pause.state {
        PauseState::Open { expires_at: Some(end) } if *end <= now && pause.terms.on_timeout == OnTimeout::Approve => {
            decide::settle(begun, pause, Answer::by(&ActorId::timeout(), &Decision::Approve))
        }
        PauseState::Open { expires_at: Some(end) } if *end <= now => {
            let mut events = vec![RunEvent::PauseExpired(PauseExpired { number: id.number })];
            // The model's own words need no outcome: the run ends with them. Of a call that was ever started it is never
            // said that it did not run.
            if let Subject::Call { path, .. } = &pause.subject {
                let may_have_run = begun.call(path).is_some_and(|call| call.attempts > 0);
                events.push(answered(path.clone(), if may_have_run { Outcome::Abandoned } else { Outcome::Expired }));
            }
            Ok(events)
        }
        PauseState::Open { .. } => Err(Refusal::OutOfTurn { state: "paused", input: "a deadline" }),
        _ => Err(pause.settled()),
    }
}

impl Begun {
    /// The pause of this id, whatever its state.
    pub(super) fn pause(&self, id: PauseId) -> Result<&Pause, Refusal> {
        let index = (id.number as usize).checked_sub(1);
        let pause = index.and_then(|index| self.pauses.get(index));
        pause.filter(|pause| pause.id == id).ok_or(Refusal::PauseNotFound(id))
    }

    /// The pause at which a person was last asked about a call.
    fn last_pause_of(&self, path: &CallPath) -> Option<&Pause> {
        let is_of_call = |pause: &&Pause| matches!(&pause.subject, Subject::Call { path: about, .. } if about == path);
        self.pauses.iter().rev().find(is_of_call)
    }

    pub(super) fn has_room_for_pauses(&self) -> bool {
        self.room_for_pauses() > 0
    }

    fn room_for_pauses(&self) -> usize {
        limits::PAUSES_OPEN_MAX.saturating_sub(self.open_pauses().count())
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
