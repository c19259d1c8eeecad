//! Somebody sends a new message instead of deciding: what waits is closed without running, and the model is told why.

use crate::decision::{Decision, Manner};
use crate::event::RunEvent;
use crate::input::SupersedeInput;
use crate::pause::{Pause, PauseKind, PauseState, Subject};
use crate::refusal::Refusal;
use crate::run::decide::{self, Answer, check_name};
use crate::run::{Begun, hold, start};
use crate::time::Timestamp;

/// Closes every open pause and stages the message. Who may decide a pause is not asked: nothing is let run, and whoever
/// may write into the conversation may also end what it waits for. A pause whose time is up ends as its terms say.
pub(super) fn close(begun: &Begun, message: SupersedeInput, now: Timestamp) -> Result<Vec<RunEvent>, Refusal> {
    check_name("bytes in the name of a request", message.request.as_deref())?;
    check_name("bytes in the name of a door", message.via.as_deref())?;
    let staged = start::stage(begun, message.content, message.by.clone(), message.request.clone())?;
    let mut events = Vec::new();
    for pause in begun.open_pauses() {
        if is_due(pause, now) {
            events.extend(hold::expire(begun, pause.id, now)?);
            continue;
        }
        let decision = closing(begun, pause);
        let answer = Answer {
            via: message.via.as_deref(),
            request: message.request.as_deref(),
            manner: Manner::Superseded,
            ..Answer::by(&message.by, &decision)
        };
        events.extend(decide::settle(begun, pause, answer)?);
    }
    events.extend(staged);
    Ok(events)
}

fn is_due(pause: &Pause, now: Timestamp) -> bool {
    matches!(pause.state, PauseState::Open { expires_at: Some(end) } if end <= now)
}

/// The decision that lets nothing run. Of a call that was ever started it is never said that it did not run.
fn closing(begun: &Begun, pause: &Pause) -> Decision {
    let may_have_run = match &pause.subject {
        Subject::Call { path, .. } => begun.call(path).is_some_and(|call| call.attempts > 0),
        Subject::Words { .. } => false,
    };
    match pause.kind {
        PauseKind::InDoubt => Decision::Abandon,
        PauseKind::Approval if may_have_run => Decision::deny(NOT_AGAIN),
        PauseKind::Approval => Decision::deny(NOT_RUN),
        PauseKind::Question => Decision::deny(NOT_ANSWERED),
        PauseKind::Confirmation => Decision::deny(NOT_CONFIRMED),
    }
}

const NOT_RUN: &str = "This call did not run: the person sent a new message instead of deciding about it.";
const NOT_AGAIN: &str = "This call did not run again: the person sent a new message instead of deciding about it. \
                         Whether its first run took effect is not known.";
const NOT_ANSWERED: &str = "The question was not answered: the person sent a new message instead.";
const NOT_CONFIRMED: &str = "the person sent a new message instead, and nothing was done.";
