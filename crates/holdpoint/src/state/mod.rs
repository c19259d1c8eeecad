//! A run's whole state in the caller's hands: to a file, to another process, and back. It never runs anything.

mod context;
mod document;
mod signature;

use std::sync::Arc;

use holdpoint_core::decision::{Decision, DecisionInput};
use holdpoint_core::event::{RunEnd, RunEvent};
use holdpoint_core::ids::{ActorId, RunId};
use holdpoint_core::input::Input;
use holdpoint_core::json::Digest;
use holdpoint_core::message::{Content, Item, Usage};
use holdpoint_core::pause::{Pause, PauseView, Subject};
use holdpoint_core::record::{Entry, replay};
use holdpoint_core::refusal::Refusal;
use holdpoint_core::run::Run;
use holdpoint_core::time::Timestamp;
use holdpoint_runtime::RunError;
use holdpoint_runtime::agent::{Agent, AgentGraph, check_stored};
use holdpoint_runtime::context::Context;
use holdpoint_runtime::ports::clock::{Clock as _, SystemClock};

use crate::decide::{Always, PauseRef};
use crate::runner::Runner;

pub use context::ContextStrategy;
pub use document::Include;
pub use signature::StateKey;

/// A run's whole state. Deciding here records the decision in the state; it counts once the state is resumed.
#[derive(Clone)]
pub struct RunState {
    run: Run,
    entries: Vec<Entry>,
    graph: Arc<AgentGraph>,
    definitions: Vec<(Digest, Arc<[u8]>)>,
    history: Vec<Arc<Item>>,
    given: Option<Context>,
    tracing_key: Option<String>,
    key: Option<StateKey>,
    by: ActorId,
}

impl RunState {
    pub(crate) async fn of(runner: &Runner, agent: &Agent, id: RunId) -> Result<Self, RunError> {
        let runtime = runner.runtime();
        let entries = runtime.read_journal(id).await?;
        let run = replay(id, &entries)?;
        let graph = agent.graph()?;
        let mut definitions = Vec::new();
        for digest in digests(&run) {
            if let Some(bytes) = runtime.store().definition(&digest).await? {
                definitions.push((digest, bytes));
            }
        }
        let history = runtime.read_history(&run).await?.to_vec();
        let state = Self {
            run,
            entries,
            graph,
            definitions,
            history,
            given: None,
            tracing_key: None,
            key: runner.state_key().cloned(),
            by: ActorId::local(),
        };
        state.check_graph()?;
        Ok(state)
    }

    /// Reads a state that was kept. Nothing runs, nothing is stored.
    ///
    /// # Errors
    /// A newer format, a text that is no state or contradicts itself, or an agent or tool that it needs and the graph
    /// lacks.
    pub fn from_json(agent: &Agent, json: &str) -> Result<Self, Refusal> {
        Self::read(agent, json, None)
    }

    /// Reads a state that was signed with this key, and no other.
    ///
    /// # Errors
    /// As [`RunState::from_json`], and a signature that is missing or does not match.
    pub fn from_json_signed(agent: &Agent, json: &str, key: &StateKey) -> Result<Self, Refusal> {
        Self::read(agent, json, Some(key))
    }

    /// The run.
    pub fn run_id(&self) -> RunId {
        self.run.id()
    }

    /// The run as the state tells it.
    pub fn run(&self) -> &Run {
        &self.run
    }

    /// What is still asked. Copies: changing them changes nothing here.
    pub fn pauses(&self) -> Vec<PauseView> {
        self.run.open_pauses()
    }

    /// Every pause there ever was, with its answer.
    pub fn all_pauses(&self) -> &[Pause] {
        self.run.pauses()
    }

    /// What was said so far.
    pub fn items(&self) -> Vec<Arc<Item>> {
        self.run.items()
    }

    /// What model calls cost so far.
    pub fn usage(&self) -> Usage {
        self.run.usage()
    }

    /// How the run ended, once it has.
    pub fn end(&self) -> Option<&RunEnd> {
        self.run.end()
    }

    /// The application's context: the one given, or the stored one.
    pub fn context(&self) -> Context {
        self.given.clone().unwrap_or_else(|| Context::stored(self.run.context()))
    }

    /// Who decides from here on; `local` unless said otherwise.
    ///
    /// # Errors
    /// A name that is empty, too long or hides characters.
    pub fn acting_as(&mut self, who: impl AsRef<str>) -> Result<&mut Self, Refusal> {
        self.by = ActorId::new(who).map_err(|bad| Refusal::InvalidDefinition(bad.to_string()))?;
        Ok(self)
    }

    /// Lets a held call run as shown.
    ///
    /// # Errors
    /// As [`RunState::decide`].
    pub fn approve(&mut self, pause: impl PauseRef) -> Result<&Pause, Refusal> {
        self.decide(pause, Decision::Approve, None)
    }

    /// Lets a held call run, and those like it.
    ///
    /// # Errors
    /// As [`RunState::decide`].
    pub fn approve_always(&mut self, pause: impl PauseRef, always: Always) -> Result<&Pause, Refusal> {
        self.decide(pause, Decision::Approve, Some(always))
    }

    /// Turns a held call down; the words for the model are found when the run goes on.
    ///
    /// # Errors
    /// As [`RunState::decide`].
    pub fn deny(&mut self, pause: impl PauseRef) -> Result<&Pause, Refusal> {
        self.decide(pause, Decision::Deny { message: None }, None)
    }

    /// Turns a held call down with these words for the model.
    ///
    /// # Errors
    /// As [`RunState::decide`].
    pub fn deny_with(&mut self, pause: impl PauseRef, message: impl Into<String>) -> Result<&Pause, Refusal> {
        self.decide(pause, Decision::deny(message), None)
    }

    /// Turns a held call down, and those like it.
    ///
    /// # Errors
    /// As [`RunState::decide`].
    pub fn deny_always(
        &mut self,
        pause: impl PauseRef,
        message: Option<&str>,
        always: Always,
    ) -> Result<&Pause, Refusal> {
        self.decide(pause, Decision::Deny { message: message.map(str::to_owned) }, Some(always))
    }

    /// Answers a pause in the state. The first answer stands.
    ///
    /// # Errors
    /// The pause is not of this run, was settled before, does not take this answer, or holds other arguments than were
    /// shown.
    pub fn decide(
        &mut self,
        pause: impl PauseRef,
        decision: Decision,
        always: Option<Always>,
    ) -> Result<&Pause, Refusal> {
        let id = pause.pause_id();
        if let Decision::ApproveEdited { arguments } = &decision {
            self.check_edit(id, arguments)?;
        }
        let input = DecisionInput {
            seen: pause.seen(),
            rule: always.map(Always::into_rule),
            ..DecisionInput::new(id, decision, self.by.clone())
        };
        self.advance(Input::Decision(input))?;
        self.run.pause(id)
    }

    fn check_edit(
        &self,
        id: holdpoint_core::ids::PauseId,
        arguments: &holdpoint_core::json::CanonicalJson,
    ) -> Result<(), Refusal> {
        let Subject::Call { path, .. } = &self.run.pause(id)?.subject else { return Ok(()) };
        let (Some(call), Some(frame)) = (self.run.call(path), self.run.frame(&path.frame())) else { return Ok(()) };
        let Some(turn) = frame.turn() else { return Ok(()) };
        // The run goes on with the definition that it knows, whatever the tool takes now.
        let known = self.definitions.iter().find(|(digest, _)| *digest == frame.agent.digest);
        let known = known.filter(|_| turn.agent == frame.agent.id);
        let checked = match known.and_then(|(_, bytes)| check_stored(bytes, &call.record.tool, arguments)) {
            Some(checked) => checked,
            None => self.graph.validate(&turn.agent, &call.record.tool, arguments)?,
        };
        checked.map_err(|problem| Refusal::InvalidArguments { pause: id, problem })
    }

    /// Says more: the model sees it after the pending results.
    ///
    /// # Errors
    /// The run is over or out of model calls, or too much is staged.
    pub fn add_input(&mut self, content: impl Into<Content>) -> Result<(), Refusal> {
        self.advance(Input::Stage { content: content.into(), by: self.by.clone(), request: None })
    }

    /// Lets another agent of the graph go on with the conversation. Nothing else changes.
    ///
    /// # Errors
    /// The agent is not in the graph, or the run is over.
    pub fn set_current_agent(&mut self, agent: &Agent) -> Result<(), Refusal> {
        let unknown = || Refusal::InvalidDefinition(format!("agent {:?} is not in the agent graph", agent.name()));
        let id = self.graph.id_of(agent).ok_or_else(unknown)?;
        let brief = self.graph.brief(id).ok_or_else(unknown)?.clone();
        self.advance(Input::SetAgent { frame: holdpoint_core::ids::FramePath::root(), agent: brief })
    }

    /// The agent that is at work in the root conversation.
    pub fn current_agent(&self) -> Option<&holdpoint_core::ids::AgentId> {
        self.run.frame(&holdpoint_core::ids::FramePath::root()).map(|frame| &frame.agent.id)
    }

    /// A key for tracing that travels with the state only where that is asked for.
    pub fn set_tracing_key(&mut self, key: impl Into<String>) {
        self.tracing_key = Some(key.into());
    }

    /// The key for tracing, where there is one.
    pub fn tracing_key(&self) -> Option<&str> {
        self.tracing_key.as_deref()
    }

    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    pub(crate) fn definitions(&self) -> &[(Digest, Arc<[u8]>)] {
        &self.definitions
    }

    pub(crate) fn given_context(&self) -> Option<&Context> {
        self.given.as_ref()
    }

    pub(crate) fn history(&self) -> Option<Vec<Arc<Item>>> {
        (!self.history.is_empty()).then(|| self.history.clone())
    }

    fn advance(&mut self, input: Input) -> Result<(), Refusal> {
        let now = SystemClock.now();
        let events = self.run.advance(input, now)?;
        self.push(events, now);
        Ok(())
    }

    fn push(&mut self, events: Vec<RunEvent>, at: Timestamp) {
        if events.is_empty() {
            return;
        }
        let revision = self.entries.len() as u64 + 1;
        let seq = self.entries.last().map_or(1, |last| last.seq + last.events.len() as u64);
        self.entries.push(Entry { revision, seq, pause_group: None, at, events: events.into() });
    }

    /// Every agent and tool that the run still needs must be in the graph.
    fn check_graph(&self) -> Result<(), Refusal> {
        self.graph.check_run(&self.run)
    }
}

/// The definitions that the run goes on with, now or after a decision.
fn digests(run: &Run) -> Vec<Digest> {
    let at_work = run.frames().map(|(_, frame)| &frame.agent);
    let mut digests: Vec<Digest> = at_work.chain(run.agents_ahead()).map(|agent| agent.digest).collect();
    digests.sort_unstable();
    digests.dedup();
    digests
}

impl std::fmt::Debug for RunState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunState").field("run", &self.run.id()).finish_non_exhaustive()
    }
}
