//! The watcher: it sees inputs, events and what a run shows, keeps its own books, and says what must never be.

use std::collections::BTreeMap;

use holdpoint_core::Run;
use holdpoint_core::decision::{Decision, DecisionInput};
use holdpoint_core::event::{
    CallAllowed, CallAnswered, ModelReplied, PauseDecided, PauseOpened, PauseVoted, RunEnd, RunEvent,
};
use holdpoint_core::ids::{ActorId, CallPath, FramePath};
use holdpoint_core::input::Input;
use holdpoint_core::json::CanonicalJson;
use holdpoint_core::pause::PauseKind;
use holdpoint_core::policy::{OnTimeout, PauseTerms};
use holdpoint_core::step::{Step, Work};
use holdpoint_core::time::Timestamp;
use holdpoint_core::tool::{Allowance, CallRecord, Outcome, ToolKind};

/// What must never be, in words.
pub type Problem = String;

#[derive(Default)]
pub struct Watch {
    calls: BTreeMap<CallPath, Book>,
    turns: BTreeMap<FramePath, u32>,
    pauses: Vec<PauseBook>,
    end: Option<RunEnd>,
}

/// What the watcher knows of a call.
struct Book {
    record: CallRecord,
    /// The arguments that would run.
    arguments: CanonicalJson,
    /// The arguments that somebody or something let run, as long as that stands.
    allowed: Option<CanonicalJson>,
    starts: u32,
    /// Turned down, expired or withdrawn: must never start again.
    is_closed: bool,
    outcome: Option<Outcome>,
}

struct PauseBook {
    kind: PauseKind,
    at: CallPath,
    /// What a person was shown.
    shown: Option<CanonicalJson>,
    expires_at: Option<Timestamp>,
    terms: PauseTerms,
    /// Who has approved.
    voters: Vec<ActorId>,
    /// How it ended, once.
    end: Option<&'static str>,
}

macro_rules! never {
    ($broken:expr, $($text:tt)+) => {
        if $broken {
            return Err(format!($($text)+));
        }
    };
}

mod several;

impl Watch {
    /// What one input led to.
    pub fn see(
        &mut self,
        before: Option<&Run>,
        input: &Input,
        events: &[RunEvent],
        after: &Run,
        now: Timestamp,
    ) -> Result<(), Problem> {
        for event in events {
            self.check_time(event, now)?;
            self.see_event(event)?;
        }
        match (input, before) {
            (Input::Decision(given), Some(before)) => {
                self.check_decider(given, events)?;
                self.check_decision(before, given, events, after)?;
                self.check_notes(&[given], events)?;
            }
            (Input::Decisions(given), Some(before)) => {
                self.check_decisions(before, given, events, after)?;
                self.check_notes(&given.iter().collect::<Vec<_>>(), events)?;
            }
            (Input::Supersede(message), Some(before)) => {
                self.check_superseded(before, &message.content, events, after)?;
            }
            _ => {}
        }
        self.check_shown(after)
    }

    /// Deadlines never fire early, and nobody decides after one.
    fn check_time(&self, event: &RunEvent, now: Timestamp) -> Result<(), Problem> {
        let deadline = |number: u32| self.pauses.get(number as usize - 1).and_then(|pause| pause.expires_at);
        match event {
            RunEvent::PauseDecided(decided) if decided.by == ActorId::timeout() => {
                let is_early = deadline(decided.number).is_none_or(|end| now < end);
                never!(is_early, "#{} was approved by waiting before its deadline", decided.number);
            }
            RunEvent::PauseVoted(PauseVoted { number, .. }) | RunEvent::PauseDecided(PauseDecided { number, .. }) => {
                let is_late = deadline(*number).is_some_and(|end| end <= now);
                never!(is_late, "#{number} was decided after its deadline");
            }
            RunEvent::PauseExpired(expired) => {
                let is_early = deadline(expired.number).is_some_and(|end| now < end);
                never!(is_early, "#{} expired before its deadline", expired.number);
            }
            _ => {}
        }
        Ok(())
    }

    /// Takes an event down, unless it must never be.
    pub fn see_event(&mut self, event: &RunEvent) -> Result<(), Problem> {
        let is_late = matches!(event, RunEvent::CallAnswered(_) | RunEvent::RuleRevoked(_));
        never!(self.end.is_some() && !is_late, "{} after the end", event.name());
        match event {
            RunEvent::ModelReplied(replied) => self.see_reply(replied),
            RunEvent::ReplyRefused(refused) => {
                *self.turns.entry(refused.frame.clone()).or_default() += 1;
                self.check_settled(&refused.frame)
            }
            RunEvent::CallAllowed(allowed) => self.see_allowed(allowed),
            RunEvent::CallDenied(denied) => {
                let book = self.book(&denied.call)?;
                never!(book.starts > 0 || book.allowed.is_some(), "{} was denied after it was allowed", denied.call);
                book.is_closed = true;
                Ok(())
            }
            RunEvent::PauseOpened(opened) => self.see_opened(opened),
            RunEvent::PauseVoted(voted) => self.see_voted(voted),
            RunEvent::PauseDecided(decided) => self.see_decided(decided),
            RunEvent::PauseExpired(expired) => {
                let pause = self.close(expired.number, "expired")?;
                never!(pause.expires_at.is_none(), "#{} expired without a deadline", expired.number);
                let approves = pause.terms.on_timeout == OnTimeout::Approve;
                never!(approves, "#{} expired although waiting approves it", expired.number);
                self.close_call(expired.number)
            }
            RunEvent::PauseWithdrawn(withdrawn) => {
                self.close(withdrawn.number, "withdrawn")?;
                self.close_call(withdrawn.number)
            }
            RunEvent::CallStarted(started) => self.see_started(&started.call),
            RunEvent::CallReleased(released) => self.see_released(&released.call),
            RunEvent::CallAnswered(answered) => self.see_answered(answered),
            RunEvent::HandedOff(handed) => {
                let book = self.book(&handed.call)?;
                never!(book.allowed.is_none() || book.is_closed, "{} handed off unasked", handed.call);
                book.outcome = Some(Outcome::Result("handed off".into()));
                self.check_settled(&handed.call.frame())
            }
            RunEvent::RunFinished(end) => {
                let open = self.pauses.iter().position(|pause| pause.end.is_none());
                never!(open.is_some(), "the run ended while pause {open:?} was open");
                self.end = Some(end.clone());
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn see_reply(&mut self, replied: &ModelReplied) -> Result<(), Problem> {
        self.check_settled(&replied.frame)?;
        let turn = self.turns.entry(replied.frame.clone()).or_default();
        *turn += 1;
        let turn = *turn;
        for (index, record) in (0u32..).zip(&replied.calls) {
            let (record, arguments) = (record.clone(), record.arguments.clone());
            // A repeat and a call with a problem are answered without an event.
            let is_settled = record.repeats.is_some() || record.problem.is_some();
            let outcome = is_settled.then(|| Outcome::Invalid("settled with the reply".to_owned()));
            let book = Book { record, arguments, allowed: None, starts: 0, is_closed: is_settled, outcome };
            let place = replied.frame.call(turn, index);
            never!(self.calls.insert(place.clone(), book).is_some(), "{place} came twice");
        }
        Ok(())
    }

    /// The model must not be called while a call of its frame is unsettled.
    fn check_settled(&self, frame: &FramePath) -> Result<(), Problem> {
        let open = self.calls.iter().find(|(path, book)| path.frame() == *frame && book.outcome.is_none());
        never!(
            open.is_some(),
            "the model of frame {frame:?} went on while {:?} was unsettled",
            open.map(|(path, _)| path)
        );
        Ok(())
    }

    fn see_allowed(&mut self, allowed: &CallAllowed) -> Result<(), Problem> {
        let path = &allowed.call;
        let book = self.book(path)?;
        never!(book.is_closed || book.outcome.is_some(), "{path} was allowed after it was closed");
        never!(book.record.kind == ToolKind::Question, "the question {path} was allowed to run");
        never!(matches!(allowed.by, Allowance::Pause(_)), "{path} was allowed by a pause without a decision");
        book.allowed = Some(book.arguments.clone());
        Ok(())
    }

    fn see_opened(&mut self, opened: &PauseOpened) -> Result<(), Problem> {
        let number = opened.number;
        never!(number as usize != self.pauses.len() + 1, "pause #{number} is not the next");
        let mut shown = None;
        if opened.kind != PauseKind::Confirmation {
            let others = self.pauses.iter().any(|pause| pause.end.is_none() && pause.at == opened.at);
            never!(others, "{} waits at two pauses", opened.at);
            let book = self.book(&opened.at)?;
            never!(
                opened.sha256 != Some(book.arguments.digest()),
                "#{number} does not show what {} would run",
                opened.at
            );
            never!(book.is_closed || book.outcome.is_some(), "#{number} asks about a closed call");
            // Whoever let it run before is asked again.
            book.allowed = None;
            shown = Some(book.arguments.clone());
        }
        self.pauses.push(PauseBook {
            kind: opened.kind,
            at: opened.at.clone(),
            shown,
            expires_at: opened.expires_at,
            terms: opened.terms(),
            voters: Vec::new(),
            end: None,
        });
        Ok(())
    }

    fn see_voted(&mut self, voted: &PauseVoted) -> Result<(), Problem> {
        let number = voted.number;
        let pause = self.pauses.get_mut(number as usize - 1).ok_or_else(|| format!("there is no pause #{number}"))?;
        never!(pause.end.is_some(), "#{number} was approved after its end");
        never!(pause.voters.contains(&voted.by), "{} approved #{number} twice", voted.by);
        pause.voters.push(voted.by.clone());
        let is_enough = pause.voters.len() >= pause.terms.quorum as usize;
        never!(is_enough, "#{number} has its approvals and is not decided");
        Ok(())
    }

    /// What runs was approved by as many different people as were asked for, unless waiting approves it.
    fn check_quorum(&self, decided: &PauseDecided) -> Result<(), Problem> {
        let number = decided.number;
        let pause = self.pauses.get(number as usize - 1).ok_or_else(|| format!("there is no pause #{number}"))?;
        let lets_run = matches!(decided.decision, Decision::Approve | Decision::ApproveEdited { .. });
        if decided.by == ActorId::timeout() {
            let may = pause.terms.on_timeout == OnTimeout::Approve && decided.decision == Decision::Approve;
            never!(!may, "#{number} was decided by waiting");
            return Ok(());
        }
        let mut voters = pause.voters.clone();
        never!(voters.contains(&decided.by) && lets_run, "{} approved #{number} twice", decided.by);
        voters.push(decided.by.clone());
        let is_short = lets_run && voters.len() < pause.terms.quorum as usize;
        never!(is_short, "#{number} was approved by {voters:?} alone");
        Ok(())
    }

    /// Nobody votes or decides who may not, be it by a rule.
    fn check_decider(&self, given: &DecisionInput, events: &[RunEvent]) -> Result<(), Problem> {
        for event in events {
            if let RunEvent::PauseVoted(PauseVoted { number, .. })
            | RunEvent::PauseDecided(PauseDecided { number, .. }) = event
            {
                let may = self.pauses[*number as usize - 1].terms.admit(&given.by, &given.groups);
                never!(!may, "{} decided #{number} and may not", given.by);
            }
        }
        Ok(())
    }

    fn see_decided(&mut self, decided: &PauseDecided) -> Result<(), Problem> {
        self.check_quorum(decided)?;
        let pause = self.close(decided.number, "decided")?;
        let (kind, at, shown) = (pause.kind, pause.at.clone(), pause.shown.clone());
        if kind == PauseKind::Confirmation {
            return Ok(());
        }
        let book = self.book(&at)?;
        match &decided.decision {
            Decision::Approve => book.allowed = shown,
            Decision::ApproveEdited { arguments } => {
                book.arguments = arguments.clone();
                book.allowed = Some(arguments.clone());
            }
            Decision::RunAgain => {}
            _ => book.is_closed = true,
        }
        Ok(())
    }

    fn see_started(&mut self, path: &CallPath) -> Result<(), Problem> {
        let book = self.book(path)?;
        never!(book.is_closed, "{path} was started after it was turned down");
        never!(book.outcome.is_some(), "{path} was started after it was answered");
        never!(book.allowed.is_none(), "{path} was started without leave");
        never!(
            book.allowed.as_ref() != Some(&book.arguments),
            "{path} was started with other arguments than were approved"
        );
        book.starts += 1;
        // One leave, one start.
        book.allowed = None;
        Ok(())
    }

    fn see_released(&mut self, path: &CallPath) -> Result<(), Problem> {
        let last = self.pauses.iter().rev().find(|pause| pause.at == *path);
        let in_doubt = last.is_some_and(|pause| pause.kind == PauseKind::InDoubt);
        let said_so = in_doubt && last.is_some_and(|pause| pause.end == Some("decided"));
        let book = self.book(path)?;
        never!(book.starts == 0, "{path} was released before it was started");
        never!(book.is_closed, "{path} was released after it was closed");
        never!(!book.record.effect.may_repeat() && !said_so, "{path} was released though it may run once only");
        book.allowed = Some(book.arguments.clone());
        Ok(())
    }

    fn see_answered(&mut self, answered: &CallAnswered) -> Result<(), Problem> {
        let path = &answered.call;
        let waits = self.pauses.iter().any(|pause| pause.end.is_none() && pause.at == *path && !self.is_frame(path));
        never!(waits, "{path} was answered while its pause was open");
        let (is_over, book) = (self.end.is_some(), self.book(path)?);
        never!(book.outcome.is_some(), "{path} was answered twice");
        never!(is_over && book.starts == 0, "{path} was answered after the end though it never started");
        let is_denial = matches!(answered.outcome, Outcome::Expired | Outcome::Withdrawn);
        never!(is_denial && book.starts > 0, "{path} is said not to have run, and was started");
        let is_agent = matches!(book.record.kind, ToolKind::Agent { .. });
        let is_result = matches!(answered.outcome, Outcome::Result(_));
        never!(is_result && book.starts == 0 && !book.is_closed, "{path} has a result and never started");
        never!(is_agent && is_result && book.starts != 1, "agent {path} was started {} times", book.starts);
        book.outcome = Some(answered.outcome.clone());
        book.allowed = None;
        book.is_closed = true;
        Ok(())
    }

    /// Whether a confirmation's place is this agent's frame rather than the call.
    fn is_frame(&self, path: &CallPath) -> bool {
        self.calls.get(path).is_some_and(|book| matches!(book.record.kind, ToolKind::Agent { .. }))
    }

    fn book(&mut self, path: &CallPath) -> Result<&mut Book, Problem> {
        self.calls.get_mut(path).ok_or_else(|| format!("nobody asked for {path}"))
    }

    /// A pause ends once.
    fn close(&mut self, number: u32, end: &'static str) -> Result<&PauseBook, Problem> {
        let pause = (number as usize).checked_sub(1).and_then(|index| self.pauses.get_mut(index));
        let pause = pause.ok_or_else(|| format!("there is no pause #{number}"))?;
        never!(pause.end.is_some(), "#{number} was {end} after it was {:?}", pause.end);
        pause.end = Some(end);
        Ok(pause)
    }

    fn close_call(&mut self, number: u32) -> Result<(), Problem> {
        let pause = &self.pauses[number as usize - 1];
        if pause.kind == PauseKind::Confirmation {
            return Ok(());
        }
        let at = pause.at.clone();
        self.book(&at)?.is_closed = true;
        Ok(())
    }

    /// What is recorded is what was said, and deciding one decides only that one.
    fn check_decision(
        &self,
        before: &Run,
        given: &DecisionInput,
        events: &[RunEvent],
        after: &Run,
    ) -> Result<(), Problem> {
        let number = given.pause.number;
        for event in events {
            if let RunEvent::PauseDecided(decided) = event
                && decided.number == number
            {
                never!(decided.decision != given.decision, "#{number}: another decision was recorded than was given");
                never!(decided.by != given.by, "#{number}: the decision was recorded under another name");
            }
        }
        if given.rule.as_ref().is_some_and(|rule| rule.apply_to_open) {
            return Ok(());
        }
        for (pause, now) in before.pauses().iter().zip(after.pauses()) {
            never!(pause.id.number != number && pause != now, "deciding #{number} changed {}", pause.id);
        }
        let at = before.pause(given.pause).map(|pause| match &pause.subject {
            holdpoint_core::pause::Subject::Call { path, .. } => path.clone(),
            holdpoint_core::pause::Subject::Words { frame, .. } => frame.clone(),
        });
        for (path, book) in &self.calls {
            let (Some(was), Some(is)) = (before.call(path), after.call(path)) else { continue };
            // Hand-offs follow once the rest is settled, and outer agents once their inner ones end.
            let follows =
                matches!(book.record.kind, ToolKind::Handoff { .. }) || at.as_ref().is_ok_and(|at| at.is_within(path));
            never!(was != is && !follows, "deciding #{number} changed call {path}");
        }
        Ok(())
    }

    /// What the run shows must be what the books say.
    fn check_shown(&self, run: &Run) -> Result<(), Problem> {
        for (path, frame) in run.frames() {
            never!(
                frame.turns_max.is_some_and(|turns_max| frame.turns > turns_max),
                "frame {path:?} made more model calls than it may"
            );
        }
        let open: Vec<u32> =
            (1u32..).zip(&self.pauses).filter(|(_, pause)| pause.end.is_none()).map(|(number, _)| number).collect();
        let views = run.open_pauses();
        let shown: Vec<u32> = views.iter().map(|view| view.id().number).collect();
        never!(open != shown, "pauses {open:?} are open, and {shown:?} are shown");
        for (number, call) in views.iter().filter_map(|view| Some((view.id().number, view.call.as_ref()?))) {
            let pause = &self.pauses[number as usize - 1];
            never!(pause.shown.as_ref() != Some(&call.arguments), "#{number} shows other arguments than at first");
            let would_run = self.calls.get(&call.path).map(|book| &book.arguments);
            never!(would_run != Some(&call.arguments), "#{number} shows other arguments than would run");
        }
        match run.next_step() {
            Step::Work(work) => self.check_work(run, &work),
            Step::AwaitCalls => {
                never!(run.started_calls().is_empty(), "the run waits for calls, and none is under way");
                Ok(())
            }
            Step::AwaitDecisions { pauses } => {
                let pauses: Vec<u32> = pauses.iter().map(|pause| pause.number).collect();
                never!(pauses != open, "the run waits for {pauses:?}, and {open:?} are open");
                never!(open.is_empty(), "the run waits for nothing");
                Ok(())
            }
            Step::Finished(end) => {
                never!(self.end.as_ref() != Some(&end), "the run ended otherwise than was told");
                Ok(())
            }
        }
    }

    fn check_work(&self, run: &Run, work: &Work) -> Result<(), Problem> {
        work.call_model.iter().try_for_each(|frame| self.check_settled(frame))?;
        for path in &work.run_tools {
            let book = self.calls.get(path).ok_or_else(|| format!("{path} is to run, and nobody asked for it"))?;
            let shown = run.call(path).map(|call| &call.arguments);
            never!(book.is_closed || book.allowed.is_none(), "{path} is to run without leave");
            never!(book.allowed.as_ref() != shown, "{path} is to run with other arguments than were approved");
        }
        for path in &work.screen {
            let book =
                self.calls.get(path).ok_or_else(|| format!("{path} is to be looked at, and nobody asked for it"))?;
            let is_new = book.starts == 0 && book.allowed.is_none() && !book.is_closed;
            never!(!is_new, "{path} is to be looked at again");
        }
        Ok(())
    }
}
