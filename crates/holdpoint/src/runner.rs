//! The runner: starts runs, takes answers, goes on. It stands on a store; what it acknowledged is in it.

use std::sync::Arc;
use std::time::Duration;

use holdpoint_core::decision::{Answers, Decision};
use holdpoint_core::ids::{ActorId, PauseId, RuleId, RunId, SessionId};
use holdpoint_core::message::{Content, Item};
use holdpoint_core::pause::PauseView;
use holdpoint_core::refusal::Refusal;
use holdpoint_core::run::Run;
use holdpoint_runtime::agent::{Agent, AgentGraph};
use holdpoint_runtime::memory::MemoryStore;
use holdpoint_runtime::ports::clock::{Clock, SystemClock};
use holdpoint_runtime::ports::model::Model;
use holdpoint_runtime::ports::observer::Observer;
use holdpoint_runtime::ports::store::{PauseFilter, Store, StoredRule};
use holdpoint_runtime::settings::{DenialFormatter, DriftPolicy, Settings};
use holdpoint_runtime::use_cases::PausePage;
use holdpoint_runtime::worker::Worker;
use holdpoint_runtime::{RunError, Runtime};

use crate::decide::{DecideRequest, PauseRef};
use crate::request::{ResumeRequest, RunRequest};
use crate::state::{RunState, StateKey};
use crate::stream::RunStream;

/// Starts runs, takes answers, goes on. Cheap to clone.
#[derive(Clone)]
pub struct Runner {
    runtime: Runtime,
    state_key: Option<StateKey>,
}

/// Builds a [`Runner`].
pub struct RunnerBuilder {
    store: Option<Arc<dyn Store>>,
    model: Option<Arc<dyn Model>>,
    clock: Arc<dyn Clock>,
    settings: Settings,
    state_key: Option<StateKey>,
    observer: Option<Arc<dyn Observer>>,
}

impl Runner {
    /// Begins a runner.
    pub fn builder() -> RunnerBuilder {
        RunnerBuilder {
            store: None,
            model: None,
            clock: SystemClock::shared(),
            settings: Settings::default(),
            state_key: None,
            observer: None,
        }
    }

    /// A runner that keeps its runs in memory: for tests, and for callers that keep the state themselves.
    pub fn in_memory(model: impl Model) -> Self {
        Self::builder().model(Arc::new(model)).build()
    }

    /// Runs an agent to its first stop. `.await` runs it; before that, session, context and more can be said.
    pub fn run(&self, agent: &Agent, input: impl Into<Content>) -> RunRequest {
        RunRequest::new(self.clone(), agent, input.into())
    }

    /// Runs an agent and tells what happens on the way.
    pub fn stream(&self, agent: &Agent, input: impl Into<Content>) -> RunStream {
        self.run(agent, input).stream()
    }

    /// Goes on with a run, from any process that has the same agents. `.await` runs it.
    pub fn resume(&self, agent: &Agent, run: RunId) -> ResumeRequest {
        ResumeRequest::stored(self.clone(), agent, run)
    }

    /// Goes on with a run whose state the caller kept. `.await` runs it.
    pub fn resume_state(&self, agent: &Agent, state: RunState) -> ResumeRequest {
        ResumeRequest::kept(self.clone(), agent, state)
    }

    /// Lets a held call run as shown.
    pub fn approve(&self, pause: impl PauseRef) -> DecideRequest {
        self.decide(pause, Decision::Approve)
    }

    /// Turns a held call, question or confirmation down.
    pub fn deny(&self, pause: impl PauseRef) -> DecideRequest {
        self.decide(pause, Decision::Deny { message: None })
    }

    /// Answers in the tool's place: nothing runs, these words are the outcome.
    pub fn respond(&self, pause: impl PauseRef, content: impl Into<String>) -> DecideRequest {
        self.decide(pause, Decision::Respond { content: content.into() })
    }

    /// Answers questions.
    pub fn answer(&self, pause: impl PauseRef, answers: Answers) -> DecideRequest {
        self.decide(pause, Decision::Answer { answers })
    }

    /// A call in doubt took effect, and this came of it.
    pub fn happened(&self, pause: impl PauseRef, result: impl Into<Content>) -> DecideRequest {
        self.decide(pause, Decision::Happened { result: result.into() })
    }

    /// A call in doubt is to run (again).
    pub fn run_again(&self, pause: impl PauseRef) -> DecideRequest {
        self.decide(pause, Decision::RunAgain)
    }

    /// A call in doubt stays open; the model is told so.
    pub fn abandon(&self, pause: impl PauseRef) -> DecideRequest {
        self.decide(pause, Decision::Abandon)
    }

    /// Answers a pause.
    pub fn decide(&self, pause: impl PauseRef, decision: Decision) -> DecideRequest {
        DecideRequest::new(self.runtime.clone(), pause, decision)
    }

    /// A run's whole state, to be kept by the caller.
    ///
    /// # Errors
    /// There is no such run, or the agent is not the one it began with.
    pub async fn state(&self, agent: &Agent, run: RunId) -> Result<RunState, RunError> {
        RunState::of(self, agent, run).await
    }

    /// Reads a state that was kept, with this runner's key where it has one.
    ///
    /// # Errors
    /// See [`RunState::from_json`].
    pub fn read_state(&self, agent: &Agent, json: &str) -> Result<RunState, Refusal> {
        RunState::read(agent, json, self.state_key.as_ref())
    }

    /// A run as it stands.
    ///
    /// # Errors
    /// There is no such run.
    pub async fn read(&self, run: RunId) -> Result<Run, RunError> {
        self.runtime.read_run(run).await
    }

    /// One pause with everything that a person needs to decide it.
    ///
    /// # Errors
    /// There is no such pause, or its turn is over.
    pub async fn pause(&self, pause: PauseId) -> Result<PauseView, RunError> {
        self.runtime.read_pause(pause).await
    }

    /// The inbox: what waits for a person.
    ///
    /// # Errors
    /// The page is larger than one may be, or the store is out of order.
    pub async fn list_pauses(&self, filter: &PauseFilter) -> Result<PausePage, RunError> {
        self.runtime.list_pauses(filter).await
    }

    /// Ends a run.
    ///
    /// # Errors
    /// There is no such run, or it is over.
    pub async fn cancel(&self, run: RunId, by: ActorId, reason: impl Into<String>) -> Result<Run, RunError> {
        self.runtime.cancel_run(run, by, reason).await
    }

    /// Says more to a run that is paused or under way.
    ///
    /// # Errors
    /// There is no such run, it is over, or too much is staged.
    pub async fn stage_input(&self, run: RunId, content: impl Into<Content>) -> Result<Run, RunError> {
        self.runtime.stage_input(run, content.into(), ActorId::local()).await
    }

    /// What was said in a session with an agent, oldest first.
    ///
    /// # Errors
    /// The store is out of order.
    pub async fn session_items(&self, session: &SessionId, agent: &Agent) -> Result<Vec<Arc<Item>>, RunError> {
        self.runtime.read_memory(session, agent.name()).await
    }

    /// The rules that stand in a session.
    ///
    /// # Errors
    /// The store is out of order.
    pub async fn session_rules(&self, session: &SessionId) -> Result<Vec<StoredRule>, RunError> {
        self.runtime.session_rules(session).await
    }

    /// Takes a rule back.
    ///
    /// # Errors
    /// There is no such rule, or its run is over.
    pub async fn revoke_rule(&self, rule: RuleId) -> Result<(), RunError> {
        self.runtime.revoke_rule(rule, ActorId::local()).await
    }

    /// A worker that expires pauses and goes on with runs of these agents that nobody moves.
    ///
    /// # Errors
    /// An agent's graph is not valid.
    pub fn worker(&self, agents: &[Agent]) -> Result<Worker, Refusal> {
        let graphs = agents.iter().map(Agent::graph).collect::<Result<Vec<Arc<AgentGraph>>, _>>()?;
        Ok(Worker::new(self.runtime.clone(), graphs))
    }

    /// The runtime underneath, for what is not offered here.
    pub fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    pub(crate) fn state_key(&self) -> Option<&StateKey> {
        self.state_key.as_ref()
    }
}

impl RunnerBuilder {
    /// Where runs are kept; without one, in memory.
    #[must_use]
    pub fn store(mut self, store: Arc<dyn Store>) -> Self {
        self.store = Some(store);
        self
    }

    /// The model of agents that have none of their own.
    #[must_use]
    pub fn model(mut self, model: Arc<dyn Model>) -> Self {
        self.model = Some(model);
        self
    }

    /// What the runner waits by.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// How long a pause waits before it expires.
    #[must_use]
    pub fn pause_deadline(mut self, deadline: Duration) -> Self {
        self.settings.pause_deadline = Some(deadline);
        self
    }

    /// How many model calls a run's root agent may make, unless its start says otherwise.
    #[must_use]
    pub fn turns_max(mut self, turns: u32) -> Self {
        self.settings.turns_max = Some(turns);
        self
    }

    /// Words for denials that came without any.
    #[must_use]
    pub fn denial_formatter(mut self, formatter: DenialFormatter) -> Self {
        self.settings.denial_formatter = Some(formatter);
        self
    }

    /// Guardrails on calls also look before a person is asked.
    #[must_use]
    pub fn guardrails_before_pause(mut self, also: bool) -> Self {
        self.settings.guardrails_before_pause = also;
        self
    }

    /// What happens when an agent changed while its run was paused.
    #[must_use]
    pub fn drift(mut self, policy: DriftPolicy) -> Self {
        self.settings.drift = policy;
        self
    }

    /// The key that states are signed with, and without which none is read.
    #[must_use]
    pub fn state_key(mut self, key: StateKey) -> Self {
        self.state_key = Some(key);
        self
    }

    /// Who counts and times what happens here.
    #[must_use]
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observer = Some(observer);
        self
    }

    /// Everything else that can be set.
    #[must_use]
    pub fn settings(mut self, change: impl FnOnce(&mut Settings)) -> Self {
        change(&mut self.settings);
        self
    }

    /// The runner.
    pub fn build(self) -> Runner {
        let store = self.store.unwrap_or_else(|| Arc::new(MemoryStore::new(self.clock.clone())));
        let builder = Runtime::builder(store).clock(self.clock).settings(self.settings);
        let builder = match self.model {
            Some(model) => builder.model(model),
            None => builder,
        };
        let builder = match self.observer {
            Some(observer) => builder.observer(observer),
            None => builder,
        };
        Runner { runtime: builder.build(), state_key: self.state_key }
    }
}
