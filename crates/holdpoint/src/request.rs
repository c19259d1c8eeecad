//! Runs and resumes that are about to happen: say what is special about them, then await or stream them.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;

use holdpoint_core::ids::{ActorId, BadId, RunId, SessionId};
use holdpoint_core::message::Content;
use holdpoint_core::refusal::Refusal;
use holdpoint_core::run::Run;
use holdpoint_runtime::agent::{Agent, AgentGraph};
use holdpoint_runtime::context::Context;
use holdpoint_runtime::settings::{DenialFormatter, DriftPolicy};
use holdpoint_runtime::use_cases::StartRun;
use holdpoint_runtime::{DriveOptions, RunError, Runtime};

use crate::outcome::RunOutcome;
use crate::runner::Runner;
use crate::state::RunState;
use crate::stream::RunStream;

type Running = Pin<Box<dyn Future<Output = Result<RunOutcome, RunError>> + Send>>;

/// A run that is about to start: `.await` runs it to its first stop, `.stream()` also tells what happens on the way.
#[must_use = "nothing runs before it is awaited"]
pub struct RunRequest {
    runner: Runner,
    graph: Result<Arc<AgentGraph>, Refusal>,
    content: Content,
    session: Option<Result<SessionId, BadId>>,
    turns_max: Option<u32>,
    by: Result<ActorId, BadId>,
    options: DriveOptions,
    only_owner: bool,
}

impl RunRequest {
    pub(crate) fn new(runner: Runner, agent: &Agent, content: Content) -> Self {
        let turns_max = runner.runtime().settings().turns_max;
        Self {
            graph: agent.graph(),
            runner,
            content,
            session: None,
            turns_max,
            by: Ok(ActorId::local()),
            options: DriveOptions::default(),
            only_owner: false,
        }
    }

    /// The conversation that the run belongs to.
    pub fn session(mut self, session: impl AsRef<str>) -> Self {
        self.session = Some(SessionId::new(session));
        self
    }

    /// The application's context.
    pub fn context(mut self, context: Context) -> Self {
        self.options.context = Some(context);
        self
    }

    /// How many model calls the root agent may make; `None` for no limit.
    pub fn turns_max(mut self, turns: impl Into<Option<u32>>) -> Self {
        self.turns_max = turns.into();
        self
    }

    /// Who asks.
    pub fn by(mut self, who: impl AsRef<str>) -> Self {
        self.by = ActorId::new(who);
        self
    }

    /// Refuses the run where its session was begun by somebody else.
    pub fn only_owner(mut self) -> Self {
        self.only_owner = true;
        self
    }

    /// Words for denials, instead of the runner's formatter.
    pub fn denial_formatter(mut self, formatter: DenialFormatter) -> Self {
        self.options.denial_formatter = Some(formatter);
        self
    }

    /// Whether guardrails on calls also look before a person is asked.
    pub fn guardrails_before_pause(mut self, also: bool) -> Self {
        self.options.guardrails_before_pause = Some(also);
        self
    }

    /// Makes the start durable before the first model call.
    pub fn commit_first(mut self) -> Self {
        self.options.commit_first = true;
        self
    }

    /// Runs it and tells what happens on the way.
    pub fn stream(self) -> RunStream {
        let runtime = self.runner.runtime().clone();
        let run = runtime.name_run();
        match self.prepare(Some(run)) {
            Ok(start) => {
                let session = start.session.clone().unwrap_or_else(|| Runtime::own_session(run));
                RunStream::start(runtime.clone(), run, session, async move { runtime.start_run(start).await })
            }
            Err(refusal) => RunStream::refused(runtime, run, refusal),
        }
    }

    fn prepare(self, run: Option<RunId>) -> Result<StartRun, Refusal> {
        let bad = |bad: BadId| Refusal::InvalidDefinition(bad.to_string());
        Ok(StartRun {
            graph: self.graph?,
            content: self.content,
            session: self.session.transpose().map_err(bad)?,
            turns_max: self.turns_max,
            by: self.by.map_err(bad)?,
            options: self.options,
            only_owner: self.only_owner,
            run,
        })
    }
}

impl IntoFuture for RunRequest {
    type Output = Result<RunOutcome, RunError>;
    type IntoFuture = Running;

    fn into_future(self) -> Running {
        Box::pin(async move {
            let runtime = self.runner.runtime().clone();
            let run = runtime.start_run(self.prepare(None)?).await?;
            Ok(RunOutcome::of(&run))
        })
    }
}

/// A run that is about to go on: `.await` drives it to its next stop, `.stream()` also tells what happens on the way.
#[must_use = "nothing runs before it is awaited"]
pub struct ResumeRequest {
    runner: Runner,
    graph: Result<Arc<AgentGraph>, Refusal>,
    from: From,
    options: DriveOptions,
}

enum From {
    Store(RunId),
    State(Box<RunState>),
}

impl ResumeRequest {
    pub(crate) fn stored(runner: Runner, agent: &Agent, run: RunId) -> Self {
        Self { runner, graph: agent.graph(), from: From::Store(run), options: DriveOptions::default() }
    }

    pub(crate) fn kept(runner: Runner, agent: &Agent, state: RunState) -> Self {
        let options = DriveOptions {
            context: state.given_context().cloned(),
            history: state.history(),
            ..DriveOptions::default()
        };
        Self { runner, graph: agent.graph(), from: From::State(Box::new(state)), options }
    }

    /// The application's context: its fields win over the stored ones, its secrets are there again.
    pub fn context(mut self, context: Context) -> Self {
        self.options.context = Some(context);
        self
    }

    /// Words for denials, instead of the runner's formatter.
    pub fn denial_formatter(mut self, formatter: DenialFormatter) -> Self {
        self.options.denial_formatter = Some(formatter);
        self
    }

    /// Whether guardrails on calls also look before a person is asked.
    pub fn guardrails_before_pause(mut self, also: bool) -> Self {
        self.options.guardrails_before_pause = Some(also);
        self
    }

    /// What happens when an agent changed while the run was paused.
    pub fn drift(mut self, policy: DriftPolicy) -> Self {
        self.options.drift = Some(policy);
        self
    }

    /// Goes on and tells what happens on the way: only what is new.
    pub async fn stream(self) -> Result<RunStream, RunError> {
        let runtime = self.runner.runtime().clone();
        let (run, graph, options) = self.settle().await?;
        let entries = runtime.read_journal(run).await?;
        let seen = entries.last().map_or(0, |entry| entry.seq + entry.events.len() as u64);
        let stored = runtime.read_run(run).await?;
        let session = stored.session().cloned().unwrap_or_else(|| Runtime::own_session(run));
        let driving = runtime.clone();
        Ok(RunStream::resume(runtime, run, session, seen, async move { driving.resume_run(run, graph, options).await }))
    }

    async fn drive(self) -> Result<Run, RunError> {
        let runtime = self.runner.runtime().clone();
        let (run, graph, options) = self.settle().await?;
        runtime.resume_run(run, graph, options).await
    }

    /// Brings a state that was kept (back) into the store.
    async fn settle(self) -> Result<(RunId, Arc<AgentGraph>, DriveOptions), RunError> {
        let graph = self.graph?;
        let run = match self.from {
            From::Store(run) => run,
            From::State(state) => {
                let runtime = self.runner.runtime();
                runtime.import_run(state.run_id(), state.entries(), state.definitions(), &graph).await?;
                state.run_id()
            }
        };
        Ok((run, graph, self.options))
    }
}

impl IntoFuture for ResumeRequest {
    type Output = Result<RunOutcome, RunError>;
    type IntoFuture = Running;

    fn into_future(self) -> Running {
        Box::pin(async move { Ok(RunOutcome::of(&self.drive().await?)) })
    }
}
