//! Events from outside are checked before they are taken as fact: a journal that contradicts itself is refused whole.

use crate::event::{
    CallAllowed, CallAnswered, CallStarted, HandedOff, ModelReplied, PauseDecided, PauseOpened, RunEvent,
};
use crate::ids::{CallPath, PauseId, RunId};
use crate::pause::{PauseKind, PauseState};
use crate::record::Entry;
use crate::refusal::Refusal;
use crate::run::{Phase, Run, limits};
use crate::tool::{Allowance, Call, CallState, Outcome, ToolKind};

/// The run that these entries tell of, each event checked against the state before it.
///
/// # Errors
/// The first event that cannot have happened there.
pub fn replay<'a>(id: RunId, entries: impl IntoIterator<Item = &'a Entry>) -> Result<Run, Refusal> {
    let mut run = Run::new(id);
    for entry in entries {
        for (event, at) in entry.timed() {
            check(&run, event).map_err(|problem| {
                Refusal::StateCorrupt(format!("{} in entry {}: {problem}", event.name(), entry.revision))
            })?;
            run.apply(event, at);
        }
    }
    if run.session().is_none() {
        return Err(Refusal::StateCorrupt("the run has no beginning".to_owned()));
    }
    Ok(run)
}

/// Why an event cannot have happened in this state.
type Problem = String;

fn check(run: &Run, event: &RunEvent) -> Result<(), Problem> {
    match event {
        RunEvent::RunStarted(_) => is_true(run.session().is_none(), "the run has already begun"),
        _ if run.session().is_none() => Err("the run has not begun".to_owned()),
        RunEvent::CallAnswered(answered) => check_answer(run, answered),
        _ if run.end().is_some() => Err("the run has ended".to_owned()),
        RunEvent::GuardrailsRan(ran) => {
            is_true(run.call(&ran.at).is_some() || run.frame(&ran.at).is_some(), "it names nothing in the run")
        }
        RunEvent::ModelReplied(replied) => check_reply(run, replied),
        RunEvent::ReplyRefused(refused) => {
            let phase = run.frame(&refused.frame).map(|frame| &frame.phase);
            is_true(phase == Some(&Phase::AwaitingModel), "no reply was awaited")
        }
        RunEvent::CallAllowed(allowed) => check_allowance(run, allowed),
        RunEvent::CallDenied(denied) => in_state(run, &denied.call, |state| *state == CallState::Requested).map(|_| ()),
        RunEvent::PauseOpened(opened) => check_pause(run, opened),
        RunEvent::PauseDecided(decided) => check_decision(run, decided),
        RunEvent::PauseExpired(expired) => check_open(run, expired.number).map(|_| ()),
        RunEvent::PauseWithdrawn(withdrawn) => check_open(run, withdrawn.number).map(|_| ()),
        RunEvent::CallStarted(CallStarted { call }) => {
            in_state(run, call, |state| matches!(state, CallState::Allowed { .. })).map(|_| ())
        }
        RunEvent::CallReleased(released) => {
            let fits = |state: &CallState| matches!(state, CallState::Started | CallState::InDoubt { .. });
            in_state(run, &released.call, fits).map(|_| ())
        }
        RunEvent::HandedOff(HandedOff { call }) => {
            let call = in_state(run, call, |state| matches!(state, CallState::Allowed { .. }))?;
            is_true(matches!(call.record.kind, ToolKind::Handoff { .. }), "the call is no hand-off")
        }
        RunEvent::InputStaged(_) => is_true(run.staged().len() < limits::STAGED_MAX, "too many inputs are staged"),
        RunEvent::RuleMade(rule) => {
            let is_known = run.rules().iter().any(|known| known.id == rule.id);
            is_true(!is_known && rule.id.run == run.id(), "the rule's id is not of this run, or used twice")
        }
        RunEvent::RuleRevoked(revoked) => {
            is_true(run.rules().iter().any(|rule| rule.id == revoked.rule), "no such rule stands")
        }
        RunEvent::AgentSet(set) => is_true(run.frame(&set.frame).is_some(), "it names no frame of the run"),
        RunEvent::ContextSet(_) | RunEvent::RunFinished(_) => Ok(()),
    }
}

fn is_true(fact: bool, problem: &str) -> Result<(), Problem> {
    if fact { Ok(()) } else { Err(problem.to_owned()) }
}

fn in_state<'a>(run: &'a Run, path: &CallPath, fits: impl Fn(&CallState) -> bool) -> Result<&'a Call, Problem> {
    let call = run.call(path).ok_or_else(|| format!("there is no call {path}"))?;
    if fits(&call.state) { Ok(call) } else { Err(format!("call {path} is {}", call.state.name())) }
}

fn check_reply(run: &Run, replied: &ModelReplied) -> Result<(), Problem> {
    let frame = run.frame(&replied.frame).ok_or("there is no such frame")?;
    is_true(frame.phase == Phase::AwaitingModel, "no reply was awaited")?;
    is_true(replied.admitted as usize <= run.staged().len(), "more inputs were admitted than staged")?;
    is_true(replied.calls.len() <= limits::CALLS_PER_REPLY_MAX, "too many calls")?;
    let mut ids: Vec<&str> = replied.calls.iter().map(|call| call.call_id.as_str()).collect();
    ids.sort_unstable();
    is_true(!ids.windows(2).any(|pair| pair[0] == pair[1]), "a call id stands twice in the reply")?;
    is_true(!ids.contains(&""), "a call has no id")?;
    for call in &replied.calls {
        match (frame.earlier(&call.call_id), &call.repeats) {
            (None, None) => {}
            (Some(earlier), Some(repeats)) if earlier.is_same(call) && earlier.path() == repeats => {}
            _ => return Err(format!("the id of a call of {} was used for another call", call.tool)),
        }
    }
    Ok(())
}

fn check_allowance(run: &Run, allowed: &CallAllowed) -> Result<(), Problem> {
    in_state(run, &allowed.call, |state| *state == CallState::Requested)?;
    // A person's approval is an event of its own, bound to the pause; here only policy, rules and deciders speak.
    is_true(!matches!(allowed.by, Allowance::Pause(_)), "an approval by a person has no decision")
}

fn check_pause(run: &Run, opened: &PauseOpened) -> Result<(), Problem> {
    is_true(opened.number as usize == run.pauses().len() + 1, "the pause's number is not the next")?;
    let call = match opened.kind {
        PauseKind::Confirmation => {
            let phase = run.frame(&opened.at).map(|frame| &frame.phase);
            return is_true(
                matches!(phase, Some(Phase::Finished(_) | Phase::CheckingOutput(_))) && opened.sha256.is_none(),
                "the model's words ask for nothing",
            );
        }
        PauseKind::InDoubt => in_state(run, &opened.at, |state| *state == CallState::Started)?,
        PauseKind::Approval | PauseKind::Question => {
            in_state(run, &opened.at, |state| matches!(state, CallState::Requested | CallState::Allowed { .. }))?
        }
    };
    is_true(opened.sha256 == Some(call.digest()), "the digest is not that of the call's arguments")
}

fn check_open(run: &Run, number: u32) -> Result<PauseKind, Problem> {
    let pause = run.pause(PauseId { run: run.id(), number }).map_err(|_| format!("there is no pause {number}"))?;
    match pause.state {
        PauseState::Open { .. } => Ok(pause.kind),
        _ => Err(format!("pause {number} is not open")),
    }
}

fn check_decision(run: &Run, decided: &PauseDecided) -> Result<(), Problem> {
    let kind = check_open(run, decided.number)?;
    let name = decided.decision.name();
    is_true(kind.allowed_decisions().contains(&name), "the decision does not answer this kind of pause")
}

/// An outcome must fit what is known of the call: a result needs a start, an answer needs a pause.
fn check_answer(run: &Run, answered: &CallAnswered) -> Result<(), Problem> {
    let call = in_state(run, &answered.call, |state| !matches!(state, CallState::Answered(_)))?;
    let by_person = matches!(call.state, CallState::Held { .. } | CallState::InDoubt { .. });
    let fits = match &answered.outcome {
        Outcome::Result(_) => call.state == CallState::Started || by_person,
        Outcome::Failure(_) => matches!(call.state, CallState::Started | CallState::Allowed { .. }),
        Outcome::Responded(_) => by_person,
        Outcome::Denied(_) => {
            by_person || matches!(call.state, CallState::Denied | CallState::Allowed { .. } | CallState::Requested)
        }
        Outcome::Expired => by_person,
        Outcome::Invalid(_) => matches!(call.state, CallState::Requested | CallState::Allowed { .. }),
        Outcome::Withdrawn | Outcome::Abandoned => true,
    };
    is_true(fits, "the outcome does not fit the call's state")
}
