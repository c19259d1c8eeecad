//! Events from outside are checked before they are taken as fact: a journal that contradicts itself is refused whole.

use crate::decision::{Decision, Manner};
use crate::event::{
    CallAllowed, CallAnswered, HandedOff, ModelReplied, PauseDecided, PauseOpened, PauseVoted, RunEnd, RunEvent,
};
use crate::ids::{ActorId, CallPath, FramePath, PauseId, RuleId, RunId};
use crate::pause::{Pause, PauseKind, PauseState, Subject};
use crate::policy::OnTimeout;
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
    for (revision, entry) in (1u64..).zip(entries) {
        let corrupt = |problem: Problem| Refusal::StateCorrupt(format!("entry {}: {problem}", entry.revision));
        is_true(entry.revision == revision, "it does not follow the one before it").map_err(corrupt)?;
        for (event, at) in entry.timed() {
            check(&run, event).map_err(|problem| corrupt(format!("{}: {problem}", event.name())))?;
            run.apply(event, at);
        }
        check_whole(&run).map_err(corrupt)?;
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
        RunEvent::RuleRevoked(revoked) => find_rule(run, revoked.rule),
        _ if run.end().is_some() => Err("the run has ended".to_owned()),
        RunEvent::GuardrailsRan(ran) => {
            is_true(run.call(&ran.at).is_some() || run.frame(&ran.at).is_some(), "it names nothing in the run")
        }
        RunEvent::ModelReplied(replied) => check_reply(run, replied),
        RunEvent::ReplyRefused(refused) => check_awaited(run, &refused.frame),
        RunEvent::CallAllowed(allowed) => check_allowance(run, allowed),
        RunEvent::CallDenied(denied) => {
            in_state(run, &denied.call, |state| *state == CallState::Requested)?;
            denied.rule.map_or(Ok(()), |rule| check_rule(run, rule, RuleSays::No))
        }
        RunEvent::PauseOpened(opened) => check_pause(run, opened),
        RunEvent::PauseVoted(voted) => check_vote(run, voted),
        RunEvent::PauseDecided(decided) => check_decision(run, decided),
        RunEvent::PauseExpired(expired) => {
            let pause = open_pause(run, expired.number)?;
            is_true(pause.terms.on_timeout == OnTimeout::Deny, "the pause approves when its time is up")?;
            is_true(pause.state != PauseState::Open { expires_at: None }, "the pause has no deadline")
        }
        RunEvent::PauseWithdrawn(withdrawn) => open_pause(run, withdrawn.number).map(|_| ()),
        RunEvent::CallStarted(started) => {
            let call = in_state(run, &started.call, |state| matches!(state, CallState::Allowed { .. }))?;
            is_true(!matches!(call.record.kind, ToolKind::Handoff { .. }), "a hand-off does not start")
        }
        RunEvent::CallReleased(released) => check_release(run, &released.call),
        RunEvent::HandedOff(handed) => check_hand_off(run, handed),
        RunEvent::InputStaged(staged) => {
            is_true(run.frame(&staged.frame).is_some(), "it names no frame of the run")?;
            is_true(run.staged_in(&staged.frame).len() < limits::STAGED_MAX, "too many inputs are staged")
        }
        RunEvent::RuleMade(rule) => {
            let is_next = rule.id == RuleId { run: run.id(), number: run.rules_made() + 1 };
            is_true(is_next, "the rule's id is not the next of this run")
        }
        RunEvent::AgentSet(set) => is_true(run.frame(&set.frame).is_some(), "it names no frame of the run"),
        RunEvent::ContextSet(_) => Ok(()),
        RunEvent::RunFinished(end) => check_end(run, end),
    }
}

fn is_true(fact: bool, problem: &str) -> Result<(), Problem> {
    if fact { Ok(()) } else { Err(problem.to_owned()) }
}

fn in_state<'a>(run: &'a Run, path: &CallPath, fits: impl Fn(&CallState) -> bool) -> Result<&'a Call, Problem> {
    let call = run.call(path).ok_or_else(|| format!("there is no call {path}"))?;
    if fits(&call.state) { Ok(call) } else { Err(format!("call {path} is {}", call.state.name())) }
}

fn check_awaited(run: &Run, frame: &FramePath) -> Result<(), Problem> {
    let phase = run.frame(frame).map(|frame| &frame.phase);
    is_true(phase == Some(&Phase::AwaitingModel), "no reply was awaited")
}

fn check_reply(run: &Run, replied: &ModelReplied) -> Result<(), Problem> {
    check_awaited(run, &replied.frame)?;
    let frame = run.frame(&replied.frame).ok_or("there is no such frame")?;
    is_true(replied.admitted as usize <= frame.staged.len(), "more inputs were admitted than staged")?;
    is_true(replied.calls.len() <= limits::CALLS_PER_REPLY_MAX, "too many calls")?;
    let thought = replied.thinking.as_ref().map_or(0, String::len);
    is_true(thought <= limits::THINKING_BYTES_MAX, "too many thoughts")?;
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
    let call = in_state(run, &allowed.call, |state| *state == CallState::Requested)?;
    is_true(call.record.kind != ToolKind::Question, "a question is answered by a person")?;
    match &allowed.by {
        Allowance::Policy | Allowance::Decider(_) => Ok(()),
        Allowance::Rule(rule) => check_rule(run, *rule, RuleSays::Yes),
        // A person's approval is an event of its own, bound to the pause.
        Allowance::Pause(_) => Err("an approval by a person has no decision".to_owned()),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum RuleSays {
    Yes,
    No,
}

/// A rule of this run must stand when it settles a call; those of other runs are not known here.
fn check_rule(run: &Run, rule: RuleId, says: RuleSays) -> Result<(), Problem> {
    if rule.run != run.id() {
        return Ok(());
    }
    find_rule(run, rule)?;
    let denies = run.rules().iter().any(|known| known.id == rule && known.is_denial());
    is_true(denies == (says == RuleSays::No), "the rule says otherwise")
}

fn find_rule(run: &Run, rule: RuleId) -> Result<(), Problem> {
    is_true(run.rules().iter().any(|known| known.id == rule), "no such rule stands")
}

fn check_pause(run: &Run, opened: &PauseOpened) -> Result<(), Problem> {
    is_true(opened.number as usize == run.pauses().len() + 1, "the pause's number is not the next")?;
    opened.terms().check().map_err(|refusal| refusal.to_string())?;
    let has_terms = !opened.terms().takes_one() || opened.on_timeout != OnTimeout::Deny;
    is_true(!has_terms || opened.kind == PauseKind::Approval, "only a call is approved by several, or by waiting")?;
    let call = match opened.kind {
        PauseKind::Confirmation => {
            let words = run.frame(&opened.at).and_then(|frame| frame.last_words());
            return is_true(words.is_some() && opened.sha256.is_none(), "the model's words ask for nothing");
        }
        PauseKind::InDoubt => in_state(run, &opened.at, |state| *state == CallState::Started)?,
        PauseKind::Question => in_state(run, &opened.at, |state| *state == CallState::Requested)?,
        PauseKind::Approval => {
            in_state(run, &opened.at, |state| matches!(state, CallState::Requested | CallState::Allowed { .. }))?
        }
    };
    let asks = call.record.kind == ToolKind::Question;
    is_true(asks == (opened.kind == PauseKind::Question), "the pause's kind is not that of the call")?;
    let is_agent = matches!(call.record.kind, ToolKind::Agent { .. });
    is_true(!is_agent || opened.kind != PauseKind::InDoubt, "an agent is never in doubt")?;
    is_true(opened.sha256 == Some(call.digest()), "the digest is not that of the call's arguments")
}

fn pause(run: &Run, number: u32) -> Result<&Pause, Problem> {
    run.pause(PauseId { run: run.id(), number }).map_err(|_| format!("there is no pause {number}"))
}

fn open_pause(run: &Run, number: u32) -> Result<&Pause, Problem> {
    let pause = pause(run, number)?;
    if pause.is_open() { Ok(pause) } else { Err(format!("pause {number} is not open")) }
}

/// A vote is an approval by somebody new, while more than one is missing.
fn check_vote(run: &Run, voted: &PauseVoted) -> Result<(), Problem> {
    let pause = open_pause(run, voted.number)?;
    is_true(!pause.is_approved_by(&voted.by), "that actor has approved before")?;
    is_true(pause.approvals_missing() > 1, "the approval decides, and is no vote")
}

/// An approval needs all that its pause asks for: enough people, or a deadline that lets the call run.
fn check_approval(pause: &Pause, decided: &PauseDecided) -> Result<(), Problem> {
    if decided.by == ActorId::timeout() {
        let has_deadline = pause.state != PauseState::Open { expires_at: None };
        let may_approve = pause.terms.on_timeout == OnTimeout::Approve && decided.decision == Decision::Approve;
        return is_true(has_deadline && may_approve && decided.rule.is_none(), "the pause does not approve by itself");
    }
    match &decided.decision {
        Decision::Approve | Decision::ApproveEdited { .. } if !pause.terms.takes_one() => {
            let is_enough = pause.approvals_missing() == 1 && !pause.is_approved_by(&decided.by);
            is_true(is_enough && decided.completes_votes(), "the pause lacks approvals")
        }
        _ => Ok(()),
    }
}

fn check_decision(run: &Run, decided: &PauseDecided) -> Result<(), Problem> {
    let pause = open_pause(run, decided.number)?;
    let name = decided.decision.name();
    is_true(pause.kind.allowed_decisions().contains(&name), "the decision does not answer this kind of pause")?;
    check_approval(pause, decided)?;
    let closes = matches!(decided.decision, Decision::Deny { .. } | Decision::Abandon);
    is_true(closes || decided.manner != Manner::Superseded, "what a message takes the place of is not let run")?;
    match (&decided.decision, decided.rule) {
        (Decision::Approve, Some(rule)) => check_rule(run, rule, RuleSays::Yes),
        (Decision::Deny { .. }, Some(rule)) => check_rule(run, rule, RuleSays::No),
        (_, Some(_)) => Err("a rule only approves or denies".to_owned()),
        (Decision::ApproveEdited { arguments }, None) => is_true(arguments.is_object(), "the arguments are no object"),
        (_, None) => Ok(()),
    }
}

fn check_release(run: &Run, path: &CallPath) -> Result<(), Problem> {
    let call = in_state(run, path, |state| matches!(state, CallState::Started | CallState::InDoubt { .. }))?;
    match call.state {
        CallState::InDoubt { pause } => {
            is_true(decision(run, pause) == Some(&Decision::RunAgain), "nobody said that it may run again")
        }
        _ => {
            let is_agent = matches!(call.record.kind, ToolKind::Agent { .. });
            is_true(call.record.effect.may_repeat() && !is_agent, "the call may not be repeated unasked")
        }
    }
}

fn check_hand_off(run: &Run, handed: &HandedOff) -> Result<(), Problem> {
    let call = in_state(run, &handed.call, |state| matches!(state, CallState::Allowed { .. }))?;
    is_true(matches!(call.record.kind, ToolKind::Handoff { .. }), "the call is no hand-off")?;
    let turn = run.frame(&handed.call.frame()).and_then(|frame| frame.turn());
    let open = turn.map_or(0, |turn| turn.calls.iter().filter(|call| call.outcome().is_none()).count());
    is_true(open == 1, "other calls of the turn are not settled")
}

/// What a pause was decided with.
fn decision(run: &Run, number: u32) -> Option<&Decision> {
    pause(run, number).ok()?.decision()
}

/// An outcome must fit what is known of the call: a result needs a start, a person's words need a decision, and of what
/// was ever started nobody may say that it did not run.
fn check_answer(run: &Run, answered: &CallAnswered) -> Result<(), Problem> {
    let path = &answered.call;
    let call = in_state(run, path, |state| !matches!(state, CallState::Answered(_)))?;
    let is_agent = matches!(call.record.kind, ToolKind::Agent { .. });
    is_true(run.end().is_none() || (call.state == CallState::Started && !is_agent), "the run has ended")?;
    let decision = |number: u32| decision(run, number);
    let is_closed = |number: u32| pause(run, number).is_ok_and(|pause| !pause.is_open());
    let is_fresh = call.attempts == 0;
    let fits = match (&answered.outcome, &call.state) {
        (Outcome::Result(output), CallState::Started) if is_agent => {
            run.frame(path).is_some_and(|frame| frame.phase == Phase::Finished(output.clone()))
        }
        (Outcome::Result(_) | Outcome::Failure(_), CallState::Started) => true,
        (Outcome::Result(_), CallState::Held { pause }) => matches!(decision(*pause), Some(Decision::Answer { .. })),
        (Outcome::Result(given), CallState::InDoubt { pause }) => {
            matches!(decision(*pause), Some(Decision::Happened { result }) if result == given)
        }
        (Outcome::Failure(_), CallState::Allowed { .. }) => is_agent,
        (Outcome::Invalid(_), CallState::Requested | CallState::Allowed { .. }) => is_fresh,
        (Outcome::Invalid(_), CallState::Started) => !is_agent,
        (Outcome::Denied(text), CallState::Denied) => denial_words(run, path).is_none_or(|words| words == text),
        (Outcome::Denied(_), CallState::Allowed { .. }) => true,
        (Outcome::Responded(text), CallState::Held { pause }) => {
            matches!(decision(*pause), Some(Decision::Respond { content }) if content == text)
        }
        (Outcome::Expired, CallState::Held { pause: number }) => {
            is_fresh && pause(run, *number).is_ok_and(|pause| matches!(pause.state, PauseState::Expired { .. }))
        }
        (Outcome::Withdrawn, CallState::Held { pause }) => is_fresh && is_closed(*pause),
        (Outcome::Withdrawn, CallState::Requested | CallState::Allowed { .. } | CallState::Denied) => is_fresh,
        (Outcome::Abandoned, CallState::Held { pause } | CallState::InDoubt { pause }) => {
            !is_fresh && is_closed(*pause)
        }
        (Outcome::Abandoned, _) => !is_fresh,
        _ => false,
    };
    is_true(fits, "the outcome does not fit the call's state")
}

/// The words of the denial by which a call was last decided, where it had any.
fn denial_words<'a>(run: &'a Run, path: &CallPath) -> Option<&'a String> {
    let is_of_call = |pause: &&Pause| matches!(&pause.subject, Subject::Call { path: about, .. } if about == path);
    match &run.pauses().iter().rev().find(is_of_call)?.state {
        PauseState::Decided(decided) => match &decided.decision {
            Decision::Deny { message } => message.as_ref(),
            _ => None,
        },
        _ => None,
    }
}

fn check_end(run: &Run, end: &RunEnd) -> Result<(), Problem> {
    is_true(run.pauses().iter().all(|pause| !pause.is_open()), "a pause is open")?;
    let root = run.frame(&FramePath::root()).map(|frame| &frame.phase);
    match end {
        RunEnd::Done(output) => is_true(root == Some(&Phase::Finished(output.clone())), "that is not its output"),
        RunEnd::Failed { .. } | RunEnd::Cancelled { .. } => Ok(()),
    }
}

/// Holds between entries: a call waits for a person exactly as long as its pause is open.
fn check_whole(run: &Run) -> Result<(), Problem> {
    for (path, frame) in run.frames() {
        for (index, call) in (0u32..).zip(frame.turn().map_or(&[][..], |turn| &turn.calls)) {
            if let CallState::Held { pause } | CallState::InDoubt { pause } = call.state {
                open_pause(run, pause)
                    .map_err(|problem| format!("call {index} of frame {path:?} waits, but {problem}"))?;
            }
        }
    }
    for pause in run.pauses().iter().filter(|pause| pause.is_open()) {
        let number = pause.id.number;
        let waits = match &pause.subject {
            Subject::Call { path, .. } => run.call(path).is_some_and(|call| {
                call.state == CallState::Held { pause: number } || call.state == CallState::InDoubt { pause: number }
            }),
            Subject::Words { frame, .. } => run
                .frame(frame)
                .is_some_and(|frame| matches!(frame.phase, Phase::Confirming { pause, .. } if pause == number)),
        };
        is_true(waits, &format!("pause {number} is open, but nothing waits for it"))?;
    }
    Ok(())
}
