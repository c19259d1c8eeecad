//! The machine, and machines with a planted fault that the watcher must notice.

use holdpoint_core::decision::{Decision, Manner};
use holdpoint_core::event::{CallReleased, CallStarted, PauseDecided, PauseVoted, RunEvent};
use holdpoint_core::ids::CallPath;
use holdpoint_core::input::Input;
use holdpoint_core::json::CanonicalJson;
use holdpoint_core::step::Step;
use holdpoint_core::time::Timestamp;
use holdpoint_core::tool::CallState;
use holdpoint_core::{Refusal, Run};

/// What moves a run from input to events.
pub trait Machine: Copy {
    fn name(self) -> &'static str;
    fn advance(self, run: &mut Run, input: Input, now: Timestamp) -> Result<Vec<RunEvent>, Refusal>;
}

/// The machine as it is.
#[derive(Debug, Clone, Copy)]
pub struct Honest;

impl Machine for Honest {
    fn name(self) -> &'static str {
        "honest"
    }

    fn advance(self, run: &mut Run, input: Input, now: Timestamp) -> Result<Vec<RunEvent>, Refusal> {
        run.advance(input, now)
    }
}

/// A planted fault.
#[derive(Debug, Clone, Copy)]
pub enum Mutant {
    /// A second, other decision is taken as well.
    DecidesTwice,
    /// A call that waits for a person is started.
    StartsHeldCalls,
    /// After a crash everything runs again, whatever its tool declares.
    RepeatsEverything,
    /// One decision decides all open approvals.
    DecidesAll,
    /// A decision after the deadline is taken.
    DecidesLate,
    /// What is recorded, and runs, is not what the person approved.
    SwapsArguments,
    /// A denied call is started after all.
    StartsDeniedCalls,
    /// A started call is started once more.
    StartsTwice,
    /// The first of several approvals decides.
    DecidesAtTheFirstVote,
    /// Whoever comes decides.
    AsksNobodyWhoTheyAre,
    /// Who votes twice counts twice.
    CountsVotesTwice,
    /// Of several decisions of which one is refused, the first is recorded.
    DecidesPartOfThem,
    /// What a message took the place of runs after all.
    StartsSupersededCalls,
}

impl Mutant {
    pub const ALL: &'static [Self] = &[
        Self::DecidesTwice,
        Self::StartsHeldCalls,
        Self::RepeatsEverything,
        Self::DecidesAll,
        Self::DecidesLate,
        Self::SwapsArguments,
        Self::StartsDeniedCalls,
        Self::StartsTwice,
        Self::DecidesAtTheFirstVote,
        Self::AsksNobodyWhoTheyAre,
        Self::CountsVotesTwice,
        Self::DecidesPartOfThem,
        Self::StartsSupersededCalls,
    ];
}

impl Machine for Mutant {
    fn name(self) -> &'static str {
        match self {
            Self::DecidesTwice => "decides twice",
            Self::StartsHeldCalls => "starts held calls",
            Self::RepeatsEverything => "repeats everything",
            Self::DecidesAll => "decides all",
            Self::DecidesLate => "decides late",
            Self::SwapsArguments => "swaps arguments",
            Self::StartsDeniedCalls => "starts denied calls",
            Self::StartsTwice => "starts twice",
            Self::DecidesAtTheFirstVote => "decides at the first vote",
            Self::AsksNobodyWhoTheyAre => "asks nobody who they are",
            Self::CountsVotesTwice => "counts votes twice",
            Self::DecidesPartOfThem => "decides part of them",
            Self::StartsSupersededCalls => "starts superseded calls",
        }
    }

    fn advance(self, run: &mut Run, input: Input, now: Timestamp) -> Result<Vec<RunEvent>, Refusal> {
        let before = run.clone();
        let input = if matches!(self, Self::SwapsArguments) { swapped(input) } else { input };
        let answer = run.advance(input.clone(), now);
        let Some(planted) = self.planted(&before, &input, &answer, now) else { return answer };
        let mut events = answer.unwrap_or_default();
        for event in &planted {
            run.apply(event, now);
        }
        events.extend(planted);
        Ok(events)
    }
}

/// An approval becomes one of other arguments.
fn swapped(input: Input) -> Input {
    match input {
        Input::Decision(mut given) if given.decision == Decision::Approve && given.rule.is_none() => {
            let arguments = CanonicalJson::parse(r#"{"swapped":true}"#).unwrap();
            given.decision = Decision::ApproveEdited { arguments };
            Input::Decision(given)
        }
        input => input,
    }
}

impl Mutant {
    /// The events that the fault adds.
    fn planted(
        self,
        before: &Run,
        input: &Input,
        answer: &Result<Vec<RunEvent>, Refusal>,
        now: Timestamp,
    ) -> Option<Vec<RunEvent>> {
        match (self, input, answer) {
            (Self::CountsVotesTwice, Input::Decision(given), Ok(events)) if events.is_empty() => {
                let (number, by) = (given.pause.number, given.by.clone());
                let is_open = before.pause(given.pause).is_ok_and(|pause| pause.is_open());
                is_open.then(|| vec![RunEvent::PauseVoted(PauseVoted { number, by, via: None, request: None })])
            }
            (Self::DecidesTwice, Input::Decision(given), Err(Refusal::AlreadyDecided { .. }))
            | (Self::AsksNobodyWhoTheyAre, Input::Decision(given), Err(Refusal::NotAnApprover { .. }))
            | (Self::DecidesLate, Input::Decision(given), Err(Refusal::Expired { .. })) => {
                let (number, by) = (given.pause.number, given.by.clone());
                let decision = given.decision.clone();
                Some(vec![RunEvent::PauseDecided(PauseDecided {
                    number,
                    decision,
                    by,
                    via: None,
                    rule: None,
                    request: None,
                    manner: Manner::Given,
                })])
            }
            (Self::DecidesAtTheFirstVote, Input::Decision(given), Ok(events))
                if matches!(events[..], [RunEvent::PauseVoted(_)]) =>
            {
                let (number, by) = (given.pause.number, given.by.clone());
                let decision = given.decision.clone();
                Some(vec![RunEvent::PauseDecided(PauseDecided {
                    number,
                    decision,
                    by,
                    via: None,
                    rule: None,
                    request: None,
                    manner: Manner::Given,
                })])
            }
            (Self::DecidesPartOfThem, Input::Decisions(given), Err(_)) => {
                let first = given.first().cloned().map(|first| before.handle(Input::Decision(first), now));
                first.and_then(Result::ok).filter(|events| !events.is_empty())
            }
            (Self::StartsSupersededCalls, Input::Supersede(_), Ok(_)) => {
                let held = before.open_pauses().into_iter().find_map(|view| view.call);
                held.map(|held| vec![RunEvent::CallStarted(CallStarted { call: held.path })])
            }
            (Self::StartsHeldCalls, Input::StartCalls(calls), Err(_)) => {
                start(before, calls, |state| matches!(state, CallState::Held { .. }))
            }
            (Self::StartsDeniedCalls, Input::StartCalls(_) | Input::Worded(_), Ok(_)) => match before.next_step() {
                Step::Work(work) => start(before, &work.word, |state| *state == CallState::Denied),
                _ => None,
            },
            (Self::StartsTwice, Input::StartCalls(calls), Ok(_)) => start(before, calls, |_| true),
            (Self::RepeatsEverything, Input::Orphaned(calls), Ok(_)) => {
                let released = calls.iter().map(|call| CallReleased { call: call.clone() });
                Some(released.map(RunEvent::CallReleased).collect())
            }
            (Self::DecidesAll, Input::Decision(given), Ok(events)) if !events.is_empty() => {
                let others = before.open_pauses().into_iter().map(|view| view.id().number);
                let others = others.filter(|number| *number != given.pause.number);
                let (decision, by) = (Decision::Deny { message: None }, given.by.clone());
                let all = others.map(|number| PauseDecided {
                    number,
                    decision: decision.clone(),
                    by: by.clone(),
                    via: None,
                    rule: None,
                    request: None,
                    manner: Manner::Given,
                });
                Some(all.map(RunEvent::PauseDecided).collect())
            }
            _ => None,
        }
    }
}

fn start(run: &Run, calls: &[CallPath], wanted: impl Fn(&CallState) -> bool) -> Option<Vec<RunEvent>> {
    let found = calls.iter().find(|call| run.call(call).is_some_and(|call| wanted(&call.state)))?;
    Some(vec![RunEvent::CallStarted(CallStarted { call: found.clone() })])
}
