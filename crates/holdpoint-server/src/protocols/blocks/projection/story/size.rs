//! Roughly how many bytes of a run are kept because of an event. Nobody is charged by it: it keeps what is at hand bounded.

use holdpoint_core::event::RunEvent;
use holdpoint_core::tool::Outcome;

/// What an event weighs beside the texts in it.
const EVENT_BYTES: usize = 256;

/// Roughly how many bytes are kept because of this event.
pub(super) fn of(event: &RunEvent) -> usize {
    let texts = match event {
        RunEvent::RunStarted(started) => started.input.size(),
        RunEvent::InputStaged(staged) => staged.content.size(),
        RunEvent::ModelReplied(replied) => {
            let calls = replied.calls.iter().map(|call| EVENT_BYTES + 3 * call.arguments.as_str().len());
            2 * replied.text.as_ref().map_or(0, String::len) + calls.sum::<usize>()
        }
        RunEvent::CallAnswered(answered) => match &answered.outcome {
            Outcome::Result(content) => content.size(),
            Outcome::Failure(text) | Outcome::Invalid(text) | Outcome::Denied(text) | Outcome::Responded(text) => {
                text.len()
            }
            Outcome::Withdrawn | Outcome::Expired | Outcome::Abandoned => 0,
        },
        _ => 0,
    };
    EVENT_BYTES + texts
}
