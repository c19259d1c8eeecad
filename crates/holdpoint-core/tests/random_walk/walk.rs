//! One walk: a random cast, random inputs of every kind, crashes in between, and the way to the end.

use std::sync::Arc;
use std::time::Duration;

use holdpoint_core::Run;
use holdpoint_core::decision::{Decision, DecisionInput, Manner};
use holdpoint_core::event::{RunEnd, RunEvent};
use holdpoint_core::ids::{ActorId, CallPath, FramePath, PauseId, RuleId};
use holdpoint_core::input::{Confirmation, Input, ReplyInput, StartInput, SupersedeInput};
use holdpoint_core::json::{CanonicalJson, Digest};
use holdpoint_core::message::Usage;
use holdpoint_core::pause::{PauseKind, PauseState, PauseView};
use holdpoint_core::policy::{
    Constraint, GuardrailPhase, GuardrailResult, Lifetime, NewRule, OnTimeout, PauseTerms, Screening, Verdict,
};
use holdpoint_core::record::{self, Entry};
use holdpoint_core::step::{Step, Work};
use holdpoint_core::time::Timestamp;
use holdpoint_core::tool::{Allowance, CallRecord, Outcome, ToolKind};

use crate::Counts;
use crate::cast::Cast;
use crate::common::{START_MILLIS, actor, brief, run_id, session};
use crate::dice::Dice;
use crate::mutants::{Honest, Machine};
use crate::watch::{Problem, Watch};

/// Steps of one walk before it is driven to its end.
const STEPS: usize = 20;
/// Steps that it goes on after the run's end, to see that nothing more happens.
const STEPS_AFTER: usize = 4;
/// Rounds within which every run must end once everybody answers.
const ROUNDS_MAX: usize = 200;

/// What a walk met.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Seen {
    pub counts: Counts,
}

impl Seen {
    pub fn add(&mut self, other: Self) {
        other.counts.into_iter().for_each(|(what, count)| *self.counts.entry(what).or_default() += count);
    }

    fn note(&mut self, what: &str) {
        match self.counts.get_mut(what) {
            Some(count) => *count += 1,
            None => drop(self.counts.insert(what.to_owned(), 1)),
        }
    }
}

/// Walks from `seed`.
pub fn walk<M: Machine>(seed: u64, machine: M) -> Result<Seen, Problem> {
    let mut walk = Walk::new(seed, machine);
    walk.start()?;
    walk.go()?;
    walk.drive_to_the_end()?;
    walk.check_journal()?;
    Ok(walk.seen)
}

/// The journal of a walk that went nowhere in particular.
pub fn journal(seed: u64) -> Vec<Entry> {
    let mut walk = Walk::new(seed, Honest);
    walk.start().and_then(|()| walk.go()).expect("an honest walk");
    walk.entries
}

struct Walk<M> {
    machine: M,
    dice: Dice,
    cast: Cast,
    run: Run,
    /// Folded from the events alone, one by one.
    shadow: Run,
    entries: Vec<Entry>,
    stored: usize,
    watch: Watch,
    now: Timestamp,
    call_ids: u32,
    seen: Seen,
}

impl<M: Machine> Walk<M> {
    fn new(seed: u64, machine: M) -> Self {
        let mut dice = Dice::new(seed);
        let cast = Cast::new(&mut dice);
        Self {
            machine,
            dice,
            cast,
            run: Run::new(run_id(1)),
            shadow: Run::new(run_id(1)),
            entries: Vec::new(),
            stored: 0,
            watch: Watch::default(),
            now: Timestamp::from_millis(START_MILLIS),
            call_ids: 0,
            seen: Seen::default(),
        }
    }

    fn start(&mut self) -> Result<(), Problem> {
        let input = StartInput {
            session: session(),
            agent: self.cast.root.clone(),
            content: "go".into(),
            context: None,
            turns_max: self.cast.turns_max,
            by: actor("ana"),
            holds_every_call: false,
        };
        self.give(Input::Start(input)).map(|_| ())
    }

    /// Gives an input and asserts what must hold after it; says whether it was taken.
    fn give(&mut self, input: Input) -> Result<bool, Problem> {
        if self.dice.chance(10)
            && self.run.handle(input.clone(), self.now) != self.run.clone().advance(input.clone(), self.now)
        {
            return Err(format!("handling and advancing differ for {}", input.name()));
        }
        let answer = self.machine.advance(&mut self.run, input.clone(), self.now);
        let events = match answer {
            Ok(events) => events,
            Err(refusal) => {
                self.seen.note(&format!("refused {}", refusal.code()));
                let is_same = self.run == self.shadow;
                return if is_same {
                    Ok(false)
                } else {
                    Err(format!("{} was refused and changed the run", input.name()))
                };
            }
        };
        // Only of decisions it is asked what else they changed.
        let decides = matches!(input, Input::Decision(_) | Input::Decisions(_) | Input::Supersede(_));
        let before = decides.then(|| self.shadow.clone());
        let was_over = self.shadow.end().is_some();
        // The store's clock may stand elsewhere: what it says counts.
        let at = self.now.after(Duration::from_millis(self.dice.below(5) as u64));
        for event in &events {
            self.run.date(event, at);
            self.shadow.apply(event, at);
            self.note(event, was_over);
        }
        if matches!(&input, Input::Decisions(given) if given.len() > 1) && !events.is_empty() {
            self.seen.note("decided together");
        }
        self.append(events.clone(), at);
        let told = |problem: Problem| format!("after {} {:?}: {problem}", input.name(), names(&events));
        if self.run != self.shadow {
            return Err(told("folding the events gives another run".to_owned()));
        }
        self.watch.see(before.as_ref(), &input, &events, &self.run, self.now).map_err(told)?;
        Ok(true)
    }

    fn note(&mut self, event: &RunEvent, was_over: bool) {
        self.seen.note(event.name());
        match event {
            RunEvent::PauseOpened(opened) if opened.kind == PauseKind::InDoubt => self.seen.note("in doubt"),
            RunEvent::PauseOpened(opened) if opened.at.depth() > 1 => self.seen.note("nested pauses"),
            RunEvent::CallAllowed(allowed) if matches!(allowed.by, Allowance::Rule(_)) => self.seen.note("rule used"),
            RunEvent::PauseDecided(decided) if decided.rule.is_some() => self.seen.note("rule used"),
            RunEvent::PauseDecided(decided) if decided.by == ActorId::timeout() => {
                self.seen.note("approved by waiting")
            }
            RunEvent::PauseDecided(decided) if decided.decision.name() == "approve_edited" => self.seen.note("edited"),
            RunEvent::PauseDecided(decided) if decided.manner != Manner::Given => {
                self.seen.note(decided.manner.name());
            }
            RunEvent::CallAnswered(_) if was_over => self.seen.note("late outcome"),
            RunEvent::RunFinished(RunEnd::Done(_)) => self.seen.note("done"),
            RunEvent::RunFinished(RunEnd::Failed { .. }) => self.seen.note("failed"),
            RunEvent::RunFinished(RunEnd::Cancelled { .. }) => self.seen.note("cancelled"),
            _ => {}
        }
    }

    fn append(&mut self, events: Vec<RunEvent>, at: Timestamp) {
        if events.is_empty() {
            return;
        }
        let revision = self.entries.len() as u64 + 1;
        self.entries.push(Entry { revision, seq: revision, pause_group: None, at, events: Arc::from(events) });
    }

    /// Forgets the run and folds it from its stored bytes.
    fn restart(&mut self) -> Result<(), Problem> {
        self.store()?;
        let step = self.run.next_step();
        self.run = Run::fold(self.run.id(), self.entries.iter().flat_map(Entry::timed));
        if self.run != self.shadow || self.run.next_step() != step {
            return Err("a restarted process knows another run".to_owned());
        }
        Ok(())
    }

    /// Takes what was appended since the last time through its stored bytes.
    fn store(&mut self) -> Result<(), Problem> {
        for entry in &mut self.entries[self.stored..] {
            let read = record::decode(&record::encode(&entry.events)).map_err(|refusal| refusal.to_string())?;
            if read[..] != entry.events[..] {
                return Err("events changed on their way through the stored form".to_owned());
            }
            entry.events = Arc::from(read);
        }
        self.stored = self.entries.len();
        Ok(())
    }

    fn check_journal(&mut self) -> Result<(), Problem> {
        self.store()?;
        match record::replay(self.run.id(), &self.entries) {
            Ok(run) if run == self.shadow => Ok(()),
            Ok(_) => Err("a careful reader reads another run".to_owned()),
            Err(refusal) => Err(refusal.to_string()),
        }
    }

    fn go(&mut self) -> Result<(), Problem> {
        let mut steps_after = 0;
        for _ in 0..STEPS {
            steps_after += usize::from(self.run.end().is_some());
            if steps_after > STEPS_AFTER {
                break;
            }
            self.step()?;
        }
        Ok(())
    }

    fn step(&mut self) -> Result<(), Problem> {
        match self.dice.below(100) {
            0..=69 => self.do_what_is_due(),
            70..=79 => self.decide_something().map(|_| ()),
            80..=82 => self.crash(),
            83 => self.restart(),
            84..=87 => {
                let minutes = self.dice.below(12) as u64;
                self.now = self.now.after(Duration::from_secs(60 * minutes));
                Ok(())
            }
            _ => {
                let input = self.anything();
                self.give(input).map(|_| ())
            }
        }
    }

    /// What a driver would do next, or part of it.
    fn do_what_is_due(&mut self) -> Result<(), Problem> {
        match self.run.next_step() {
            Step::Work(work) => {
                let input = self.some_work(&work);
                self.give(input).map(|_| ())
            }
            Step::AwaitCalls => self.end_a_call(),
            Step::AwaitDecisions { .. } => self.decide_something().map(|_| ()),
            Step::Finished(_) if !self.run.started_calls().is_empty() => self.end_a_call(),
            Step::Finished(_) => Ok(()),
        }
    }

    fn some_work(&mut self, work: &Work) -> Input {
        let mut choices: Vec<Input> = Vec::new();
        let running = self.run.started_calls();
        if let Some(frame) = self.dice.any(&work.check_input).cloned() {
            choices.push(Input::InputChecked { frame, results: self.results(GuardrailPhase::Input) });
        }
        if let Some(frame) = self.dice.any(&work.check_output).cloned() {
            choices.push(Input::OutputChecked { frame, results: self.results(GuardrailPhase::Output) });
        }
        if let Some(frame) = self.dice.any(&work.call_model).cloned() {
            choices.push(self.reply(frame));
        }
        if !work.screen.is_empty() {
            choices.push(self.screening(&work.screen));
        }
        if !work.word.is_empty() {
            choices.push(Input::Worded(work.word.iter().map(|call| (call.clone(), "no".to_owned())).collect()));
        }
        if !work.run_tools.is_empty() {
            choices.push(self.use_leave(&work.run_tools));
        }
        if let Some(call) = self.dice.any(&running).cloned() {
            choices.push(self.ended(call));
        }
        let index = self.dice.below(choices.len());
        choices.swap_remove(index)
    }

    fn use_leave(&mut self, calls: &[CallPath]) -> Input {
        let one = self.dice.pick(calls).clone();
        match self.dice.below(12) {
            0 => Input::Blocked {
                call: one,
                results: self.results(GuardrailPhase::BeforeRun),
                message: "blocked".to_owned(),
            },
            1 => Input::HoldAgain { calls: vec![one], reason: "changed".to_owned(), expires_at: self.deadline() },
            2 => Input::StartCalls(vec![one]),
            3 => Input::StartCalls(vec![one.clone(), one]),
            _ => Input::StartCalls(calls.to_vec()),
        }
    }

    fn end_a_call(&mut self) -> Result<(), Problem> {
        let started = self.run.started_calls();
        let Some(call) = self.dice.any(&started).cloned() else { return Ok(()) };
        let input = self.ended(call);
        self.give(input).map(|_| ())
    }

    fn ended(&mut self, call: CallPath) -> Input {
        let outcome = match self.dice.below(8) {
            0 => Outcome::Failure("broken".to_owned()),
            1 => Outcome::Invalid("bad".to_owned()),
            _ => Outcome::Result("result".into()),
        };
        Input::CallEnded { call, outcome }
    }

    fn crash(&mut self) -> Result<(), Problem> {
        self.restart()?;
        let started = self.run.started_calls();
        if started.is_empty() || self.run.end().is_some() {
            return Ok(());
        }
        match self.give(Input::Orphaned(started))? {
            true => Ok(()),
            false => Err("orphaned calls were refused".to_owned()),
        }
    }

    fn results(&mut self, phase: GuardrailPhase) -> Vec<GuardrailResult> {
        let objection = self.dice.chance(12).then(|| "no".to_owned());
        vec![GuardrailResult { name: "g".to_owned(), phase, objection }]
    }

    fn deadline(&mut self) -> Option<Timestamp> {
        let minutes = 1 + self.dice.below(15) as u64;
        self.dice.chance(50).then(|| self.now.after(Duration::from_secs(60 * minutes)))
    }

    /// Mostly the usual ones.
    fn terms(&mut self) -> PauseTerms {
        if self.dice.chance(70) {
            return PauseTerms::default();
        }
        let approvers = self.dice.some(&["ana".to_owned(), "staff".to_owned()], 40);
        let on_timeout = if self.dice.chance(30) { OnTimeout::Approve } else { OnTimeout::Deny };
        PauseTerms { rule: None, approvers, quorum: 1 + self.dice.below(3) as u32, on_timeout }
    }

    fn reply(&mut self, frame: FramePath) -> Input {
        let says = self.dice.chance(22);
        let count = 1 + self.dice.below(4);
        let calls = if says { Vec::new() } else { (0..count).map(|_| self.call(&frame)).collect() };
        let staged = self.run.staged_in(&frame).len();
        let asks = says && self.dice.chance(35);
        Input::ModelReply(ReplyInput {
            turn: self.turn(&frame),
            admitted: self.dice.below(staged + 1) as u32,
            thinking: None,
            text: (says || self.dice.chance(10)).then(|| "words".to_owned()),
            calls,
            asks_confirmation: asks.then(|| Confirmation { reason: None, expires_at: self.deadline() }),
            usage: Usage::request(1, 1),
            frame,
        })
    }

    /// Which model call is under way there.
    fn turn(&self, frame: &FramePath) -> u32 {
        self.run.frame(frame).map_or(1, |frame| frame.turns + 1)
    }

    fn call(&mut self, frame: &FramePath) -> CallRecord {
        let asking = self.run.frame(frame).map_or(self.cast.root.id.clone(), |frame| frame.agent.id.clone());
        let (tool, kind, effect) = self.cast.tool(&mut self.dice, &asking);
        let is_old = self.dice.chance(8);
        let call_id = match self.dice.below(60) {
            0 => String::new(),
            _ if is_old => format!("c{}", self.dice.below(self.call_ids as usize + 1)),
            _ => {
                self.call_ids += 1;
                format!("c{}", self.call_ids)
            }
        };
        let arguments = match kind {
            ToolKind::Question if !self.dice.chance(15) => QUESTIONS.to_owned(),
            _ => format!(r#"{{"n":{}}}"#, self.dice.below(3)),
        };
        let problem = self.dice.chance(4).then(|| "not JSON".to_owned());
        let arguments = CanonicalJson::parse(&arguments).unwrap();
        CallRecord { call_id, tool, kind, effect, arguments, problem, repeats: None }
    }

    fn screening(&mut self, calls: &[CallPath]) -> Input {
        let some = self.dice.some(calls, 85);
        Input::Screened(some.into_iter().map(|call| self.verdict(call)).collect())
    }

    fn verdict(&mut self, call: CallPath) -> Screening {
        let ruling = self.run.ruling(&call, &[], self.now).filter(|_| self.dice.chance(70));
        let verdict = match (ruling, self.dice.below(40)) {
            (Some(rule), _) => Verdict::Ruled(rule),
            (None, 0..=15) => Verdict::Allow,
            (None, 16..=31) => Verdict::Hold { reason: None, expires_at: self.deadline(), terms: self.terms() },
            (None, 32 | 33) => Verdict::Deny { by: actor("guard"), message: None },
            (None, 34) => Verdict::Deny { by: actor("guard"), message: Some("no".to_owned()) },
            (None, 35 | 36) => Verdict::Approved { by: actor("bot") },
            (None, 37 | 38) => Verdict::Invalid("bad".to_owned()),
            (None, _) => Verdict::Halt { guardrail: "g".to_owned(), message: "stop".to_owned() },
        };
        let guardrails = if self.dice.chance(15) { self.results(GuardrailPhase::BeforePause) } else { Vec::new() };
        Screening { call, verdict, guardrails }
    }

    /// A decision on some pause: mostly a fitting one, sometimes foreign, repeated, late or of the wrong kind.
    fn decide_something(&mut self) -> Result<bool, Problem> {
        let open = self.run.open_pauses();
        if open.len() > 1 && self.dice.chance(30) {
            let input = self.together(&open);
            return self.give(input);
        }
        let fitting = self.dice.chance(75);
        let input = match self.dice.any(&open).cloned().filter(|_| fitting) {
            Some(view) => self.fitting(&view),
            None => self.misfit(),
        };
        self.give(input)
    }

    /// Several decisions at once; sometimes one of them does not fit.
    fn together(&mut self, open: &[PauseView]) -> Input {
        let mut inputs: Vec<Input> = self.dice.some(open, 70).iter().map(|view| self.fitting(view)).collect();
        if self.dice.chance(15) {
            inputs.push(self.misfit());
        }
        let given = inputs.into_iter().filter_map(|input| match input {
            Input::Decision(given) => Some(given),
            _ => None,
        });
        Input::Decisions(given.collect())
    }

    fn message_instead(&mut self) -> Input {
        let who = *self.dice.pick(&["ana", "eve"]);
        Input::Supersede(SupersedeInput { content: "instead".into(), by: actor(who), via: None, request: None })
    }

    fn fitting(&mut self, view: &PauseView) -> Input {
        if let PauseState::Open { expires_at: Some(end) } = view.pause.state
            && end <= self.now
            && self.dice.chance(60)
        {
            return Input::DeadlinePassed(view.id());
        }
        let decision = match (view.pause.kind, self.dice.below(10)) {
            (PauseKind::Approval, 0..=4) => Decision::Approve,
            (PauseKind::Approval, 5) => self.edited(),
            (PauseKind::Question, 0..=5) => self.answers(),
            (PauseKind::Confirmation, 0..=4) => Decision::Approve,
            (PauseKind::InDoubt, 0..=3) => Decision::RunAgain,
            (PauseKind::InDoubt, 4..=6) => Decision::Happened { result: "it did".into() },
            (PauseKind::InDoubt, _) => Decision::Abandon,
            (_, 6) => Decision::Deny { message: None },
            (_, 7 | 8) => Decision::deny("no"),
            (_, _) => Decision::Respond { content: "instead".to_owned() },
        };
        let who = *self.dice.pick(&["ana", "bo", "cy"]);
        let mut given = DecisionInput::new(view.id(), decision, actor(who));
        given.groups = self.dice.some(&["staff".to_owned()], 60);
        let shown = view.call.as_ref().map(|call| call.digest);
        given.seen = match self.dice.below(6) {
            0 => Some(Digest::of(b"another view")),
            1..=3 => shown,
            _ => None,
        };
        given.rule = self.dice.chance(25).then(|| self.rule());
        given.note = self.dice.chance(10).then(|| "please".to_owned());
        given.manner = if self.dice.chance(20) { Manner::Implied } else { Manner::Given };
        Input::Decision(given)
    }

    fn edited(&mut self) -> Decision {
        let text = if self.dice.chance(15) { "[1]" } else { r#"{"n":7}"# };
        Decision::ApproveEdited { arguments: CanonicalJson::parse(text).unwrap() }
    }

    fn answers(&mut self) -> Decision {
        let text = if self.dice.chance(20) { r#"{"A?":["z"]}"# } else { r#"{"A?":["x"],"B?":["any"]}"# };
        Decision::Answer { answers: serde_json::from_str(text).unwrap() }
    }

    fn rule(&mut self) -> NewRule {
        let lifetime = match self.dice.below(4) {
            0 => Lifetime::Session,
            1 => Lifetime::Until(self.now.after(Duration::from_secs(60 * self.dice.below(20) as u64))),
            _ => Lifetime::Run,
        };
        let limit = self.dice.below(3) as i64;
        NewRule {
            any_agent: self.dice.chance(40),
            constraints: if self.dice.chance(30) { vec![Constraint::at_most("/n", limit)] } else { Vec::new() },
            lifetime,
            uses_max: self.dice.chance(40).then(|| self.dice.below(4) as u32),
            apply_to_open: self.dice.chance(40),
        }
    }

    fn misfit(&mut self) -> Input {
        let run = if self.dice.chance(15) { run_id(2) } else { self.run.id() };
        let pause = PauseId { run, number: self.dice.below(self.run.pauses().len() + 2) as u32 };
        if self.dice.chance(25) {
            return Input::DeadlinePassed(pause);
        }
        let decision = match self.dice.below(9) {
            0 | 1 => Decision::Approve,
            2 => self.edited(),
            3 => Decision::Deny { message: None },
            4 => Decision::deny("other words"),
            5 => Decision::Respond { content: "instead".to_owned() },
            6 => self.answers(),
            7 => Decision::RunAgain,
            _ => Decision::Abandon,
        };
        let mut given = DecisionInput::new(pause, decision, actor("eve"));
        given.rule = self.dice.chance(15).then(|| self.rule());
        Input::Decision(given)
    }

    /// Any input, with any place in it.
    fn anything(&mut self) -> Input {
        let (frame, call, other) = (self.any_frame(), self.any_call(), self.any_call());
        let rule = RuleId { run: self.run.id(), number: 1 + self.dice.below(2) as u32 };
        match self.dice.below(24) {
            0 => Input::InputChecked { frame, results: self.results(GuardrailPhase::Input) },
            1 => Input::OutputChecked { frame, results: self.results(GuardrailPhase::Output) },
            2 => self.reply(frame),
            3 => self.screening(&[call, other]),
            4 => Input::StartCalls(vec![call]),
            5 => Input::StartCalls(vec![call, other]),
            6 => Input::Blocked { call, results: Vec::new(), message: "blocked".to_owned() },
            7 => self.ended(call),
            8 => Input::CallEnded { call, outcome: Outcome::Withdrawn },
            9 => Input::Worded(vec![(call, "no".to_owned()), (other, "no".to_owned())]),
            10 => Input::Orphaned(vec![call, other]),
            11 => Input::HoldAgain { calls: vec![call, other], reason: "changed".to_owned(), expires_at: None },
            12 | 13 => Input::Stage { content: "more".into(), by: actor("ana"), request: None },
            14 | 19 | 20 => Input::RevokeRule { rule, by: actor("bo") },
            15 => Input::SetContext(self.dice.chance(50).then(|| CanonicalJson::parse("{}").unwrap())),
            16 => {
                let id = *self.dice.pick(&["Sales", "Support"]);
                Input::SetAgent { frame, agent: brief(id) }
            }
            17 | 21 if self.dice.chance(70) => {
                Input::Cancel { by: actor("ana"), reason: "enough".to_owned(), request: None }
            }
            18 if self.dice.chance(30) => Input::Fail { code: "gone".to_owned(), message: "gone".to_owned() },
            22 => self.message_instead(),
            23 => {
                let open = self.run.open_pauses();
                self.together(&open)
            }
            _ => self.misfit(),
        }
    }

    fn any_frame(&mut self) -> FramePath {
        let frames: Vec<FramePath> = self.run.frames().map(|(path, _)| path.clone()).collect();
        self.dice.any(&frames).cloned().unwrap_or_default()
    }

    /// A call of some turn, or one that is not there.
    fn any_call(&mut self) -> CallPath {
        let frame = self.any_frame();
        let turn = self.run.frame(&frame).map_or(1, |frame| frame.turns.max(1));
        frame.call(turn, self.dice.below(4) as u32)
    }

    /// Once everybody answers, every run ends.
    fn drive_to_the_end(&mut self) -> Result<(), Problem> {
        for _ in 0..ROUNDS_MAX {
            let inputs = match self.run.next_step() {
                Step::Finished(_) => return Ok(()),
                Step::Work(work) => self.all_work(&work),
                Step::AwaitCalls => {
                    let ended = |call| Input::CallEnded { call, outcome: Outcome::Result("result".into()) };
                    self.run.started_calls().into_iter().map(ended).collect()
                }
                Step::AwaitDecisions { pauses } => vec![self.last_word(pauses[0])],
            };
            for input in inputs {
                let name = input.name();
                if !self.give(input)? {
                    return Err(format!("{name} was due and was refused"));
                }
            }
        }
        Err(format!("the run had not ended after {ROUNDS_MAX} rounds: {:?}", self.run.next_step()))
    }

    /// One input for one kind of work: doing one thing may make another unnecessary.
    fn all_work(&mut self, work: &Work) -> Vec<Input> {
        if let Some(frame) = work.check_input.first().cloned() {
            return vec![Input::InputChecked { frame, results: Vec::new() }];
        }
        if let Some(frame) = work.check_output.first().cloned() {
            return vec![Input::OutputChecked { frame, results: Vec::new() }];
        }
        if !work.screen.is_empty() {
            let allow =
                |call: &CallPath| Screening { call: call.clone(), verdict: Verdict::Allow, guardrails: Vec::new() };
            return vec![Input::Screened(work.screen.iter().map(allow).collect())];
        }
        if !work.word.is_empty() {
            return vec![Input::Worded(work.word.iter().map(|call| (call.clone(), "no".to_owned())).collect())];
        }
        if !work.run_tools.is_empty() {
            return vec![Input::StartCalls(work.run_tools.clone())];
        }
        let Some(frame) = work.call_model.first().cloned() else { return Vec::new() };
        vec![Input::ModelReply(ReplyInput {
            turn: self.turn(&frame),
            admitted: self.run.staged_in(&frame).len() as u32,
            frame,
            thinking: None,
            text: Some("done".to_owned()),
            calls: Vec::new(),
            asks_confirmation: None,
            usage: Usage::request(1, 1),
        })]
    }

    fn last_word(&mut self, pause: PauseId) -> Input {
        let view = self.run.pause_view(pause).expect("an open pause can be shown");
        if let PauseState::Open { expires_at: Some(end) } = view.pause.state
            && end <= self.now
        {
            return Input::DeadlinePassed(pause);
        }
        let decision = match view.pause.kind {
            PauseKind::Approval if self.dice.chance(50) => Decision::Approve,
            PauseKind::Approval | PauseKind::Confirmation => Decision::Deny { message: None },
            PauseKind::Question => Decision::Respond { content: "later".to_owned() },
            PauseKind::InDoubt => Decision::Abandon,
        };
        // Whoever has approved before has said what they have to say.
        let decision =
            if view.pause.is_approved_by(&actor("ana")) { Decision::Deny { message: None } } else { decision };
        let groups = view.pause.terms.approvers.clone();
        Input::Decision(DecisionInput { groups, ..DecisionInput::new(pause, decision, actor("ana")) })
    }
}

const QUESTIONS: &str =
    r#"{"questions":[{"question":"A?","options":[{"label":"x"},{"label":"y"}]},{"question":"B?"}]}"#;

fn names(events: &[RunEvent]) -> Vec<&'static str> {
    events.iter().map(RunEvent::name).collect()
}
