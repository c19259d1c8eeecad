//! Calls start, and something comes of them. A start without an outcome is in doubt: it is shown, never guessed.

use crate::event::{CallReleased, CallStarted, RunEvent};
use crate::ids::CallPath;
use crate::message::{Content, Part};
use crate::pause::PauseKind;
use crate::refusal::Refusal;
use crate::run::screen::answered;
use crate::run::{Begun, hold, limits};
use crate::text::clamp;
use crate::tool::{Call, CallState, Outcome, ToolKind};

/// The runtime is about to run these calls. Once this is durable, each may have taken effect.
pub(super) fn begin(begun: &Begun, calls: Vec<CallPath>) -> Result<Vec<RunEvent>, Refusal> {
    calls
        .into_iter()
        .map(|path| {
            begun.call_for(&path, "the start of calls", |state| matches!(state, CallState::Allowed { .. }))?;
            Ok(RunEvent::CallStarted(CallStarted { call: path }))
        })
        .collect()
}

/// A call that was started came to its end.
pub(super) fn end(begun: &Begun, path: CallPath, outcome: Outcome) -> Result<Vec<RunEvent>, Refusal> {
    let call = begun.call_for(&path, "a tool outcome", |state| *state == CallState::Started)?;
    if is_agent(call) {
        let state = call.state.name();
        return Err(Refusal::CallOutOfTurn { call: path, state, input: "a tool outcome" });
    }
    Ok(vec![answered(path, bounded(outcome))])
}

/// Calls whose process is gone: what may be repeated is released, about the rest a person is asked.
pub(super) fn orphan(begun: &Begun, calls: Vec<CallPath>) -> Result<Vec<RunEvent>, Refusal> {
    let mut events = Vec::new();
    let mut number = begun.next_pause_number();
    for path in calls {
        let call = begun.call_for(&path, "orphaned calls", |state| *state == CallState::Started)?;
        if call.record.effect.may_repeat() {
            events.push(RunEvent::CallReleased(CallReleased { call: path }));
        } else if begun.has_room_for_pauses() {
            events.push(hold::open(number, PauseKind::InDoubt, path.clone(), call, None, None));
            number += 1;
        } else {
            events.push(answered(path, Outcome::Abandoned));
        }
    }
    Ok(events)
}

pub(super) fn is_agent(call: &Call) -> bool {
    matches!(call.record.kind, ToolKind::Agent { .. })
}

/// An outcome within bounds; what is cut says so.
fn bounded(outcome: Outcome) -> Outcome {
    let cut = |text: String| {
        if text.len() <= limits::RESULT_BYTES_MAX {
            return text;
        }
        let kept = clamp(&text, limits::RESULT_BYTES_MAX);
        format!("{kept}\n[cut: {} of {} bytes are shown]", kept.len(), text.len())
    };
    match outcome {
        Outcome::Result(Content::Text(text)) => Outcome::Result(Content::Text(cut(text))),
        Outcome::Result(Content::Json(json)) if json.as_str().len() > limits::RESULT_BYTES_MAX => {
            Outcome::Result(Content::Text(cut(json.as_str().to_owned())))
        }
        Outcome::Result(Content::Parts(parts)) => Outcome::Result(Content::Parts(bounded_parts(parts))),
        Outcome::Failure(text) => Outcome::Failure(cut(text)),
        outcome => outcome,
    }
}

fn bounded_parts(parts: Vec<Part>) -> Vec<Part> {
    let content = Content::Parts(parts);
    let size = content.size();
    match content {
        Content::Parts(parts) if size <= limits::RESULT_BYTES_MAX => parts,
        _ => {
            vec![Part::Text(format!("[the result of {size} bytes is over the limit of {}]", limits::RESULT_BYTES_MAX))]
        }
    }
}
