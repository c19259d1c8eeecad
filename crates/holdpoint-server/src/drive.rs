//! Runs move in tasks of the server's own, never in a client's connection: who hangs up changes nothing.

use std::collections::VecDeque;
use std::sync::Arc;

use holdpoint_core::ids::{RunId, SessionId};
use holdpoint_core::refusal::Refusal;
use holdpoint_core::run::Run;
use holdpoint_runtime::agent::AgentGraph;
use holdpoint_runtime::use_cases::{StartRun, WatchItem, WatchSession};
use holdpoint_runtime::worker::AgentSource;
use holdpoint_runtime::{DriveOptions, Fault, RunError, Runtime};
use tokio::task::{JoinError, JoinHandle};

use crate::app::App;
use crate::problem::Problem;

/// A run that is about to start, or has.
pub struct Starting {
    /// The run.
    pub run: RunId,
    /// Its conversation.
    pub session: SessionId,
    /// Everything that happens in it, from its first event on; nothing was missed.
    watch: WatchSession,
    seen: VecDeque<WatchItem>,
    task: JoinHandle<Result<Run, RunError>>,
    has_stopped: bool,
    /// Why it could not go on, where that was known before what happened was told.
    failed: Option<Problem>,
}

impl Starting {
    /// Waits until the start is durable.
    ///
    /// # Errors
    /// The start was refused, or the world failed before it was written.
    pub async fn begun(&mut self) -> Result<(), Problem> {
        if self.has_stopped || !self.seen.is_empty() {
            return Ok(());
        }
        let ended = tokio::select! {
            biased;
            ended = &mut self.task => ended,
            item = self.watch.next() => {
                self.seen.push_back(item?);
                return Ok(());
            }
        };
        let is_fault = matches!(ended, Ok(Err(RunError::Fault(_))));
        let Err(problem) = self.take_end(ended).await else { return Ok(()) };
        if is_fault {
            // Something failed, perhaps after the start was stored.
            self.seen.extend(self.watch.caught_up().await.unwrap_or_default());
        }
        if self.seen.is_empty() {
            return Err(problem);
        }
        self.failed = Some(problem);
        Ok(())
    }

    /// The next thing that happens in the session; `None` once the run has come to its first stop, a pause or its end,
    /// and everything up to there was seen.
    ///
    /// # Errors
    /// The run could not go on for now. It is stored, and the worker tries again.
    pub async fn next(&mut self) -> Result<Option<WatchItem>, Problem> {
        while self.seen.is_empty() && !self.has_stopped {
            tokio::select! {
                item = self.watch.next() => self.seen.push_back(item?),
                ended = &mut self.task => self.take_end(ended).await?,
            }
        }
        match self.seen.pop_front() {
            None => self.failed.take().map_or(Ok(None), Err),
            item => Ok(item),
        }
    }

    async fn take_end(&mut self, ended: Result<Result<Run, RunError>, JoinError>) -> Result<(), Problem> {
        self.has_stopped = true;
        ended.map_err(|_| panicked())??;
        self.seen.extend(self.watch.caught_up().await?);
        Ok(())
    }
}

fn panicked() -> Problem {
    Problem::internal("the task that moves a run panicked")
}

impl App {
    /// Starts a run, and drives it to its first stop in a task of its own. Its start is made durable before the model
    /// is called.
    pub fn start(&self, mut start: StartRun) -> Starting {
        let run = *start.run.get_or_insert_with(|| self.runtime().name_run());
        let session = start.session.get_or_insert_with(|| Runtime::own_session(run)).clone();
        start.options.commit_first = true;
        start.options.commit_before_models = true;
        // Watching begins before the start, so that nothing falls in between.
        let watch = self.runtime().watch_run(&session, run);
        let runtime = self.runtime().clone();
        let task = self.tasks().spawn(async move { runtime.start_run(start).await });
        Starting { run, session, watch, seen: VecDeque::new(), task, has_stopped: false, failed: None }
    }

    /// Goes on with a run in the background: somebody decided. What cannot go on now is tried again by the worker.
    pub fn go_on(&self, run: RunId) {
        let app = self.clone();
        self.tasks().spawn(async move {
            match app.drive(run).await {
                // Who moves it already was told of the decision.
                Ok(_) | Err(RunError::Refused(Refusal::RunBusy { .. })) => {}
                // Whoever is next goes on with it.
                Err(RunError::Fault(Fault::Left { .. })) => {}
                // A callback that did not arrive waits for its time.
                Err(RunError::Fault(Fault::Model { source, .. })) if source.is_waiting() => {}
                Err(error) => tracing::warn!(run.id = %run, %error, "a run could not go on; the worker tries again"),
            }
        });
    }

    /// Drives a stored run to its next stop, with the definition that it was paused with.
    ///
    /// # Errors
    /// As [`Runtime::resume_run`] says; also when its agent can no longer be found.
    pub async fn drive(&self, run: RunId) -> Result<Run, RunError> {
        let graph = self.graph_of(run).await?;
        let options = DriveOptions { commit_before_models: true, ..DriveOptions::default() };
        self.runtime().resume_run(run, graph, options).await
    }

    /// The agents that a stored run goes on with.
    pub(crate) async fn graph_of(&self, run: RunId) -> Result<Arc<AgentGraph>, RunError> {
        let wanted = self.runtime().agent_wanted(run).await?;
        Ok(self.sources().graph(&wanted).await.ok_or(Refusal::AgentMissing(wanted.root))?)
    }
}
