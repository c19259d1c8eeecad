//! Calls start, and something comes of them. A start without an outcome is in doubt: it is shown, never guessed.

use crate::event::{CallReleased, CallStarted, RunEvent};
use crate::ids::CallPath;
use crate::message::{Content, Part};
use crate::pause::PauseKind;
use crate::refusal::Refusal;
use crate::run::screen::answered;
use crate::run::{Begun, check_once, hold, limits};
use crate::text::clamp;
use crate::tool::{Call, CallState, Outcome, ToolKind};

/// The runtime is about to run these calls. Once this is durable, each may have taken effect.
pub(super) fn begin(begun: &Begun, calls: Vec<CallPath>) -> Result<Vec<RunEvent>, Refusal> {
    let input = "the start of calls";
    check_once(&calls, input)?;
    calls
        .into_iter()
        .map(|path| {
            let call = begun.call_for(&path, input, |state| matches!(state, CallState::Allowed { .. }))?;
            if call.record.kind.agent().is_some() {
                // Inner agents and hand-offs follow by themselves.
                return Err(Refusal::CallOutOfTurn { state: call.state.name(), call: path, input });
            }
            Ok(RunEvent::CallStarted(CallStarted { call: path }))
        })
        .collect()
}

/// A call that was started came to its end.
pub(super) fn end(begun: &Begun, path: CallPath, outcome: Outcome) -> Result<Vec<RunEvent>, Refusal> {
    begun.started(&path, "a tool outcome")?;
    match outcome {
        Outcome::Result(_) | Outcome::Failure(_) | Outcome::Invalid(_) => Ok(vec![answered(path, outcome)]),
        // These are not a tool's to give: after a start nobody can say that nothing ran.
        Outcome::Denied(_) | Outcome::Responded(_) | Outcome::Expired | Outcome::Withdrawn | Outcome::Abandoned => {
            let input = "an outcome other than a result or a failure";
            Err(Refusal::CallOutOfTurn { call: path, state: CallState::Started.name(), input })
        }
    }
}

/// Calls whose process is gone: what may be repeated is released, about the rest a person is asked.
pub(super) fn orphan(begun: &Begun, calls: Vec<CallPath>) -> Result<Vec<RunEvent>, Refusal> {
    check_once(&calls, "orphaned calls")?;
    let mut pauses = hold::Opener::new(begun);
    let mut settle = |path: CallPath| {
        let call = begun.started(&path, "orphaned calls")?;
        Ok(if !begun.is_live(&path.frame()) {
            // Its agent was given up: nothing would come of running it again or of asking.
            answered(path, Outcome::Abandoned)
        } else if call.record.effect.may_repeat() {
            RunEvent::CallReleased(CallReleased { call: path })
        } else {
            // Without a deadline: what happened to the world does not become known by waiting.
            pauses.open(PauseKind::InDoubt, path, call, hold::Ask::default())
        })
    };
    calls.into_iter().map(&mut settle).collect()
}

impl Begun {
    /// A call of a tool that was started and is not known to have ended. An inner agent ends by itself.
    fn started(&self, path: &CallPath, input: &'static str) -> Result<&Call, Refusal> {
        let call = self.call_for(path, input, |state| *state == CallState::Started)?;
        if is_agent(call) {
            return Err(Refusal::CallOutOfTurn { call: path.clone(), state: call.state.name(), input });
        }
        Ok(call)
    }
}

pub(super) fn is_agent(call: &Call) -> bool {
    matches!(call.record.kind, ToolKind::Agent { .. })
}

/// An outcome within bounds; what is cut says so.
pub(super) fn bounded(outcome: Outcome) -> Outcome {
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
        Outcome::Result(content) => Outcome::Result(content),
        Outcome::Failure(text) => Outcome::Failure(cut(text)),
        Outcome::Invalid(text) => Outcome::Invalid(cut(text)),
        Outcome::Denied(text) => Outcome::Denied(cut(text)),
        Outcome::Responded(text) => Outcome::Responded(cut(text)),
        Outcome::Expired | Outcome::Withdrawn | Outcome::Abandoned => outcome,
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
