//! A run, from its first message to its outcome. The files are the stations of its life, in order.
//!
//! The machine is three functions. [`Run::handle`] says what an input leads to, [`Run::apply`] takes a committed event
//! as fact, [`Run::next_step`] reads from the state what must be done. "Paused" is read from the state, never stored.

// The stations, in order.
mod start;
#[rustfmt::skip]
mod model_reply;
mod answer;
mod decide;
mod finish;
mod hold;
mod screen;
mod supersede;
mod tool_outcome;
mod vote;

// What the stations work on, and what is read from it.
mod apply;
mod date;
mod frame;
mod next;
mod view;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub use decide::check_numbers;
pub use frame::{Frame, Phase, Turn};
pub use view::answered_items;

use crate::agent::AgentBrief;
use crate::event::{RunEnd, RunEvent};
use crate::ids::{ActorId, AgentId, CallPath, FramePath, RuleId, RunId, SessionId};
use crate::input::Input;
use crate::json::CanonicalJson;
use crate::message::Usage;
use crate::pause::{HeldCall, Pause};
use crate::policy::{GuardrailResult, StandingRule};
use crate::refusal::Refusal;
use crate::time::Timestamp;
use crate::tool::{Call, CallState};

/// Bounds of the machine. Each has a refusal or a reply code that names it.
pub mod limits {
    /// Calls in one model reply.
    pub const CALLS_PER_REPLY_MAX: usize = 128;
    /// Pauses open at once in a run; further calls are answered with an error.
    pub const PAUSES_OPEN_MAX: usize = 256;
    /// Inputs staged at once in a run.
    pub const STAGED_MAX: usize = 64;
    /// Bytes of one message, staged input, text or arguments of a decision, or reason of a cancellation.
    pub const TEXT_BYTES_MAX: usize = 1 << 20;
    /// Bytes of one model reply: its words, and the ids and arguments of its calls.
    pub const REPLY_BYTES_MAX: usize = 4 << 20;
    /// Bytes of what a model thought before it spoke; more is cut off.
    pub const THINKING_BYTES_MAX: usize = 64 << 10;
    /// Decisions in one request.
    pub const DECISIONS_MAX: usize = PAUSES_OPEN_MAX;
    /// Bytes of one outcome; longer ones are cut, and say so.
    pub const RESULT_BYTES_MAX: usize = 4 << 20;
    /// Rules made in one run.
    pub const RULES_MAX: usize = 256;
    /// Approvers that a pause may name.
    pub const APPROVERS_MAX: usize = 64;
    /// Approvals that a pause may need.
    pub const QUORUM_MAX: usize = 64;
    /// Bytes of the name of an approver, a policy's rule, a caller's request, or a door.
    pub const NAME_BYTES_MAX: usize = 256;
    /// Bytes of a provider's call id.
    pub const CALL_ID_BYTES_MAX: usize = 256;
    /// Replies in a row that could not be used.
    pub const REPLIES_REFUSED_MAX: u32 = 3;
}

/// One execution of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    id: RunId,
    state: State,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    /// Nothing has happened yet.
    Idle,
    /// Under way, or over; what happened stays readable.
    Begun(Box<Begun>),
}

/// What is true of a run once it has begun.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Begun {
    session: SessionId,
    agent: AgentBrief,
    by: ActorId,
    holds_every_call: bool,
    context: Option<CanonicalJson>,
    started_at: Timestamp,
    frames: BTreeMap<FramePath, Frame>,
    pauses: Vec<Pause>,
    /// What each pause asked about, beside it: still there when the call's turn is over.
    asked: Vec<Asked>,
    rules: Vec<StandingRule>,
    rules_made: u32,
    rule_uses: BTreeMap<RuleId, u32>,
    guardrails: Vec<(CallPath, GuardrailResult)>,
    usage: Usage,
    end: Option<RunEnd>,
}

/// What a pause asked about.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Asked {
    agent: AgentId,
    call: Option<HeldCall>,
}

impl Run {
    /// A run of which nothing is known yet.
    pub fn new(id: RunId) -> Self {
        Self { id, state: State::Idle }
    }

    /// The run that these events tell of.
    pub fn fold<'a>(id: RunId, events: impl IntoIterator<Item = (&'a RunEvent, Timestamp)>) -> Self {
        let mut run = Self::new(id);
        for (event, at) in events {
            run.apply(event, at);
        }
        run
    }

    /// Says what `input` leads to, or refuses it. Changes nothing.
    ///
    /// # Errors
    /// The refusal says why the input was turned away.
    pub fn handle(&self, input: Input, now: Timestamp) -> Result<Vec<RunEvent>, Refusal> {
        self.clone().advance(input, now)
    }

    /// Like [`Run::handle`], and takes the events as fact at once. A refused input changes nothing.
    ///
    /// # Errors
    /// The refusal says why the input was turned away.
    pub fn advance(&mut self, input: Input, now: Timestamp) -> Result<Vec<RunEvent>, Refusal> {
        let mut events = match &self.state {
            State::Idle => match input {
                Input::Start(start) => start::begin(start)?,
                input => return Err(Refusal::OutOfTurn { state: "not started", input: input.name() }),
            },
            State::Begun(begun) => begun.respond(self.id, input, now)?,
        };
        for event in &events {
            self.apply(event, now);
        }
        // What follows without anybody's doing: an inner agent's output answers the outer call, and so on.
        while let Some(event) = self.begun().and_then(Begun::consequence) {
            self.apply(&event, now);
            events.push(event);
        }
        Ok(events)
    }

    /// Takes a committed event as fact. Cannot fail; what does not fit changes nothing.
    pub fn apply(&mut self, event: &RunEvent, at: Timestamp) {
        match (&mut self.state, event) {
            (State::Idle, RunEvent::RunStarted(started)) => self.state = State::Begun(Begun::new(started, at)),
            (State::Idle, _) => {}
            (State::Begun(begun), event) => begun.apply(self.id, event, at),
        }
    }

    fn begun(&self) -> Option<&Begun> {
        match &self.state {
            State::Idle => None,
            State::Begun(begun) => Some(begun),
        }
    }
}

impl Begun {
    /// The table of the machine: which station reads which input.
    fn respond(&self, id: RunId, input: Input, now: Timestamp) -> Result<Vec<RunEvent>, Refusal> {
        match input {
            // A tool that was under way when the run ended has still done what it did.
            Input::CallEnded { call, outcome } => tool_outcome::end(self, call, outcome),
            Input::Decision(decision) => decide::close(self, id, decision, now),
            Input::Decisions(decisions) => decide::close_all(self, id, decisions, now),
            Input::DeadlinePassed(pause) => hold::expire(self, pause, now),
            // A rule of the session outlives the run that made it.
            Input::RevokeRule { rule, by } => decide::revoke(self, rule, by),
            _ if self.end.is_some() => Err(Refusal::RunFinished(id)),
            Input::InputChecked { frame, results } => start::checked(self, frame, results),
            Input::ModelReply(reply) => model_reply::read(self, reply),
            Input::Screened(screenings) => screen::settle(self, id, screenings, now),
            Input::StartCalls(calls) => tool_outcome::begin(self, calls),
            Input::Blocked { call, results, message } => screen::block(self, call, results, message),
            Input::Worded(words) => decide::word(self, words),
            Input::Orphaned(calls) => tool_outcome::orphan(self, calls),
            Input::HoldAgain { calls, reason, expires_at } => hold::again(self, calls, reason, expires_at),
            Input::OutputChecked { frame, results } => finish::checked(self, frame, results),
            Input::Supersede(message) => supersede::close(self, message, now),
            Input::Stage { content, by, request } => start::stage(self, content, by, request),
            Input::SetContext(context) => Ok(start::set_context(context)),
            Input::SetAgent { frame, agent } => start::set_agent(self, frame, agent),
            Input::Cancel { by, reason, request } => finish::cancel(self, by, reason, request),
            Input::Fail { code, message } => Ok(finish::fail(self, code, message)),
            Input::Start(_) => Err(Refusal::OutOfTurn { state: self.state_name(), input: "a start" }),
        }
    }

    fn frame(&self, path: &FramePath) -> Option<&Frame> {
        self.frames.get(path)
    }

    fn call(&self, path: &CallPath) -> Option<&Call> {
        let place = path.place()?;
        let turn = self.frames.get(&path.frame())?.turn()?;
        (turn.number == place.turn).then(|| turn.calls.get(place.index as usize)).flatten()
    }

    fn call_mut(&mut self, path: &CallPath) -> Option<&mut Call> {
        let place = path.place()?;
        let turn = self.frames.get_mut(&path.frame())?.turn_mut()?;
        if turn.number != place.turn {
            return None;
        }
        turn.calls.get_mut(place.index as usize)
    }

    /// The call, if it is in the state that `input` needs.
    fn call_for(
        &self,
        path: &CallPath,
        input: &'static str,
        fits: impl Fn(&CallState) -> bool,
    ) -> Result<&Call, Refusal> {
        let out_of_turn = |state| Refusal::CallOutOfTurn { call: path.clone(), state, input };
        let call = self.call(path).ok_or_else(|| out_of_turn("not part of the turn"))?;
        if fits(&call.state) { Ok(call) } else { Err(out_of_turn(call.state.name())) }
    }

    /// Whether what happens in a frame still leads anywhere. An inner agent that was given up may leave calls behind
    /// which had started: their outcomes are recorded, and nothing follows from them.
    fn is_live(&self, path: &FramePath) -> bool {
        path.is_root() || self.call(path).is_some_and(|call| call.state == CallState::Started)
    }

    fn open_pauses(&self) -> impl Iterator<Item = &Pause> {
        self.pauses.iter().filter(|pause| pause.is_open())
    }

    fn next_pause_number(&self) -> u32 {
        u32::try_from(self.pauses.len()).unwrap_or(u32::MAX).saturating_add(1)
    }

    fn state_name(&self) -> &'static str {
        match &self.end {
            Some(_) => "finished",
            None if self.open_pauses().next().is_some() => "paused",
            None => "under way",
        }
    }
}

/// Refuses an input that names a call twice: both would be read against the state before the first.
fn check_once<'a>(calls: impl IntoIterator<Item = &'a CallPath>, input: &'static str) -> Result<(), Refusal> {
    let mut named = BTreeSet::new();
    match calls.into_iter().find(|call| !named.insert(*call)) {
        Some(call) => Err(Refusal::CallOutOfTurn { call: call.clone(), state: "named twice", input }),
        None => Ok(()),
    }
}

/// Items are shared, so that a copy of a run is cheap.
type SharedItem = Arc<crate::message::Item>;
