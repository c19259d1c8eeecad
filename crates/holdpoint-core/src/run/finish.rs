//! How a run ends: with an output, with a failure, or because somebody ended it. And what follows by itself.

use crate::event::{CallStarted, HandedOff, PauseWithdrawn, RunEnd, RunEvent};
use crate::ids::{ActorId, CallPath, FramePath};
use crate::policy::GuardrailResult;
use crate::refusal::{Refusal, failure};
use crate::run::decide::check_name;
use crate::run::screen::answered;
use crate::run::start::check_text;
use crate::run::tool_outcome::is_agent;
use crate::run::{Begun, Frame, Phase, Turn, limits, start};
use crate::text::clamp;
use crate::tool::{Call, CallState, Outcome, ToolKind};

/// What guardrails said of a frame's output.
pub(super) fn checked(
    begun: &Begun,
    frame: FramePath,
    results: Vec<GuardrailResult>,
) -> Result<Vec<RunEvent>, Refusal> {
    let is_due = begun.frame(&frame).is_some_and(|frame| matches!(frame.phase, Phase::CheckingOutput(_)));
    if !is_due {
        return Err(Refusal::OutOfTurn { state: begun.state_name(), input: "an output check" });
    }
    Ok(start::heard(begun, frame, results))
}

pub(super) fn cancel(
    begun: &Begun,
    by: ActorId,
    reason: String,
    request: Option<String>,
) -> Result<Vec<RunEvent>, Refusal> {
    check_text("bytes in the reason of a cancellation", &reason)?;
    check_name("bytes in the name of a request", request.as_deref())?;
    let mut events = withdraw(begun, &FramePath::root(), "the run was cancelled");
    events.push(RunEvent::RunFinished(RunEnd::Cancelled { by, reason, request }));
    Ok(events)
}

pub(super) fn fail(begun: &Begun, code: String, message: String) -> Vec<RunEvent> {
    let mut events = withdraw(begun, &FramePath::root(), "the run failed");
    let message = clamp(&message, limits::TEXT_BYTES_MAX).to_owned();
    events.push(RunEvent::RunFinished(RunEnd::Failed { code, message }));
    events
}

/// A frame cannot go on: the root's failure is the run's, an inner agent's is its call's outcome.
pub(super) fn fail_frame(begun: &Begun, frame: &FramePath, code: &str, message: String) -> Vec<RunEvent> {
    if frame.is_root() {
        return fail(begun, code.to_owned(), message);
    }
    let mut events = withdraw(begun, frame, "the agent failed");
    events.push(answered(frame.clone(), Outcome::Failure(format!("{code}: {message}"))));
    events
}

/// Closes every open question at or below a frame, and every call that has not started.
fn withdraw(begun: &Begun, within: &FramePath, reason: &str) -> Vec<RunEvent> {
    let pauses = begun.open_pauses().filter(|pause| pause.subject.frame().is_within(within));
    let mut events: Vec<RunEvent> = pauses
        .map(|pause| RunEvent::PauseWithdrawn(PauseWithdrawn { number: pause.id.number, reason: reason.to_owned() }))
        .collect();
    let frames = begun.frames.iter().rev().filter(|(path, _)| path.is_within(within));
    for (path, call) in frames.flat_map(|(path, frame)| frame.calls(path)) {
        let outcome = match call.state {
            CallState::Answered(_) => continue,
            // It may have taken effect, or still does: its outcome is recorded when it comes.
            CallState::Started if !is_agent(call) => continue,
            // It was started once, by a process that is gone or as an inner agent: nobody knows how far it came.
            _ if call.attempts > 0 => Outcome::Abandoned,
            _ => Outcome::Withdrawn,
        };
        events.push(answered(path, outcome));
    }
    events
}

impl Frame {
    /// The calls of the current turn, with their places in the run.
    pub(super) fn calls<'a>(&'a self, path: &'a FramePath) -> impl Iterator<Item = (CallPath, &'a Call)> {
        self.turn().into_iter().flat_map(move |turn| {
            (0u32..).zip(&turn.calls).map(move |(index, call)| (path.call(turn.number, index), call))
        })
    }
}

impl Begun {
    /// The next thing that follows from the state without anybody's doing. Inner frames come first.
    pub(super) fn consequence(&self) -> Option<RunEvent> {
        if self.end.is_some() {
            return None;
        }
        self.frames.iter().rev().find_map(|(path, frame)| self.frame_consequence(path, frame))
    }

    fn frame_consequence(&self, path: &FramePath, frame: &Frame) -> Option<RunEvent> {
        match &frame.phase {
            Phase::Tools(turn) => turn_consequence(path, turn),
            Phase::Finished(output) if path.is_root() => Some(RunEvent::RunFinished(RunEnd::Done(output.clone()))),
            Phase::Finished(output) => Some(answered(path.clone(), Outcome::Result(output.clone()))),
            Phase::AwaitingModel if frame.replies_refused >= limits::REPLIES_REFUSED_MAX => {
                let text = format!("{} replies in a row could not be used", frame.replies_refused);
                fail_frame(self, path, failure::MODEL_MISBEHAVED, text).pop()
            }
            Phase::AwaitingModel if frame.is_exhausted() => {
                let calls = if frame.turns == 1 { "model call" } else { "model calls" };
                let text = format!("the agent made {} {calls}, and may make no more", frame.turns);
                fail_frame(self, path, failure::TURNS_EXHAUSTED, text).pop()
            }
            Phase::CheckingInput | Phase::AwaitingModel | Phase::Confirming { .. } | Phase::CheckingOutput(_) => None,
        }
    }
}

/// Inner agents begin at once; a hand-off waits until every other call of its turn is settled.
fn turn_consequence(path: &FramePath, turn: &Turn) -> Option<RunEvent> {
    let places = || (0u32..).zip(&turn.calls).map(|(index, call)| (path.call(turn.number, index), call));
    let is_allowed = |call: &Call| matches!(call.state, CallState::Allowed { .. });
    let is_handoff = |call: &Call| matches!(call.record.kind, ToolKind::Handoff { .. });

    if let Some((call, _)) = places().find(|(_, call)| is_allowed(call) && is_agent(call)) {
        // Its calls would stand one level deeper, and that path must still be readable.
        return Some(match call.depth() < CallPath::DEPTH_MAX {
            true => RunEvent::CallStarted(CallStarted { call }),
            false => answered(call, Outcome::Failure(format!("calls nest at most {} deep", CallPath::DEPTH_MAX))),
        });
    }
    let rest_settled = turn.calls.iter().all(|call| call.outcome().is_some() || (is_allowed(call) && is_handoff(call)));
    let mut waiting = places().filter(|(_, call)| is_allowed(call) && is_handoff(call));
    let (first, second) = (waiting.next(), waiting.next());
    match (rest_settled, first, second) {
        (true, Some(_), Some((call, _))) => {
            Some(answered(call, Outcome::Invalid("only one hand-off can be made in a turn".to_owned())))
        }
        (true, Some((call, _)), None) => Some(RunEvent::HandedOff(HandedOff { call })),
        _ => None,
    }
}
