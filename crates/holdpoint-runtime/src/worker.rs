//! Does what nobody else does: expires pauses whose time is up, and goes on with runs whose process is gone. It looks now
//! and then, and at once when another instance tells of a run that needs somebody.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use holdpoint_core::Refusal;
use holdpoint_core::ids::{AgentId, RunId};
use holdpoint_core::json::Digest;
use holdpoint_core::time::Timestamp;
use serde_json::Value;
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;

use crate::agent::AgentGraph;
use crate::driver::DriveOptions;
use crate::fault::{Fault, RunError};
use crate::runtime::Runtime;

/// Where a worker finds the agents of the runs that it goes on with.
#[async_trait]
pub trait AgentSource: Send + Sync + 'static {
    /// The graph that is wanted: one with this root, of this definition if there is a choice.
    async fn graph(&self, wanted: &AgentWanted) -> Option<Arc<AgentGraph>>;
}

/// The agent that a run goes on with.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentWanted {
    /// The root agent's id.
    pub root: AgentId,
    /// The digest of the root's definition, as the run began or as it was set since.
    pub digest: Digest,
    /// What the application said that the agent is built from, where it did.
    pub source: Option<Value>,
}

/// The same graphs always, whatever a run began with: the drift policy says what a difference means.
#[async_trait]
impl AgentSource for Vec<Arc<AgentGraph>> {
    async fn graph(&self, wanted: &AgentWanted) -> Option<Arc<AgentGraph>> {
        self.iter().find(|graph| *graph.root() == wanted.root).cloned()
    }
}

#[async_trait]
impl<T: AgentSource + ?Sized> AgentSource for Arc<T> {
    async fn graph(&self, wanted: &AgentWanted) -> Option<Arc<AgentGraph>> {
        (**self).graph(wanted).await
    }
}

/// Goes on with runs that nobody moves.
pub struct Worker {
    runtime: Runtime,
    agents: Arc<dyn AgentSource>,
    parallel_max: usize,
    poll: Duration,
    resting: Mutex<HashMap<RunId, Resting>>,
}

/// A run that could not go on, and when it is tried again.
struct Resting {
    failures: u32,
    until: Timestamp,
}

/// How many sweeps may wait for their runs at once.
const SWEEPS_MAX: usize = 16;

/// How many runs are remembered as resting.
const RESTING_MAX: usize = 10_000;

/// What a sweep did.
#[derive(Debug, Default)]
pub struct Sweep {
    /// Runs in which a pause expired.
    pub expired: Vec<RunId>,
    /// Runs that were driven to their next stop.
    pub driven: Vec<RunId>,
    /// Runs that could not go on, and why; they are tried again with the next sweep.
    pub failed: Vec<(RunId, RunError)>,
}

impl Sweep {
    /// Whether there was nothing to do.
    pub fn is_idle(&self) -> bool {
        self.expired.is_empty() && self.driven.is_empty() && self.failed.is_empty()
    }
}

impl Worker {
    /// A worker over a runtime, for runs of these agents.
    pub fn new(runtime: Runtime, agents: impl AgentSource) -> Self {
        Self {
            runtime,
            agents: Arc::new(agents),
            parallel_max: 64,
            poll: Duration::from_secs(1),
            resting: Mutex::default(),
        }
    }

    /// How many runs are driven at once.
    #[must_use]
    pub fn parallel_max(mut self, parallel_max: usize) -> Self {
        self.parallel_max = parallel_max.max(1);
        self
    }

    /// How long the worker rests when there was nothing to do.
    #[must_use]
    pub fn poll(mut self, poll: Duration) -> Self {
        self.poll = poll;
        self
    }

    /// Does once what there is to do now.
    ///
    /// # Errors
    /// The store is out of order. What a single run runs into is told in the sweep.
    pub async fn sweep(&self) -> Result<Sweep, RunError> {
        let (expired, failed) = self.runtime.expire_due(1_024).await?;
        let mut sweep = Sweep { expired, driven: Vec::new(), failed };
        let runs = self.next_runs().await?;
        let mut drives: FuturesUnordered<_> =
            runs.into_iter().map(|run| async move { (run, self.go_on(run).await) }).collect();
        while let Some((run, driven)) = drives.next().await {
            match driven {
                Ok(()) => {
                    self.rest().remove(&run);
                    sweep.driven.push(run);
                }
                // Somebody else was faster, or goes on when this process has stopped.
                Err(RunError::Refused(Refusal::RunBusy { .. }) | RunError::Fault(Fault::Left { .. })) => {}
                Err(error) => {
                    self.let_rest(run);
                    sweep.failed.push((run, error));
                }
            }
        }
        Ok(sweep)
    }

    /// Runs to go on with now. Those that could not go on a moment ago rest, and do not stand in the way of others.
    async fn next_runs(&self) -> Result<Vec<RunId>, RunError> {
        let now = self.runtime.store().now();
        let resting = self.rest().len();
        let runs = self.runtime.store().claimable(self.parallel_max.saturating_add(resting)).await?;
        let rest = self.rest();
        let is_ready = |run: &RunId| rest.get(run).is_none_or(|resting| resting.until <= now);
        Ok(runs.into_iter().filter(is_ready).take(self.parallel_max).collect())
    }

    /// Twice as long after each failure, up to a minute.
    fn let_rest(&self, run: RunId) {
        let now = self.runtime.store().now();
        let mut rest = self.rest();
        if rest.len() >= RESTING_MAX {
            rest.clear();
        }
        let failures = rest.get(&run).map_or(0, |resting| resting.failures) + 1;
        let seconds = 1_u64 << failures.min(6);
        rest.insert(run, Resting { failures, until: now.after(Duration::from_secs(seconds.min(60))) });
    }

    fn rest(&self) -> MutexGuard<'_, HashMap<RunId, Resting>> {
        self.resting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn go_on(&self, run: RunId) -> Result<(), RunError> {
        let wanted = self.runtime.agent_wanted(run).await?;
        let graph = self.agents.graph(&wanted).await.ok_or(Refusal::AgentMissing(wanted.root))?;
        let options = DriveOptions { commit_before_models: true, ..DriveOptions::default() };
        self.runtime.resume_run(run, graph, options).await?;
        Ok(())
    }

    /// Sweeps until it is stopped. A run that takes its time holds up nobody: the next sweep begins all the same.
    pub fn spawn(self) -> WorkerHandle {
        let stop = CancellationToken::new();
        let (worker, token) = (Arc::new(self), stop.clone());
        // Heard from other instances as soon as there is somebody who goes on.
        let _ = worker.runtime.link();
        let task = tokio::spawn(async move {
            let mut sweeps = JoinSet::new();
            while !token.is_cancelled() {
                let (found, mut has_found) = (worker.clone(), false);
                if sweeps.len() < SWEEPS_MAX {
                    sweeps.spawn(async move { found.sweep_and_tell().await });
                }
                tokio::select! {
                    () = token.cancelled() => {}
                    Some(swept) = sweeps.join_next() => has_found = swept.unwrap_or(false),
                    () = worker.runtime.hub().work_elsewhere() => continue,
                    () = worker.runtime.clock().sleep(worker.poll) => continue,
                }
                if !has_found {
                    tokio::select! {
                        () = token.cancelled() => {}
                        () = worker.runtime.hub().work_elsewhere() => {}
                        () = worker.runtime.clock().sleep(worker.poll) => {}
                    }
                }
            }
            while sweeps.join_next().await.is_some() {}
        });
        WorkerHandle { stop, task }
    }

    /// Sweeps, and tells operators what could not go on; says whether there was something to do.
    async fn sweep_and_tell(&self) -> bool {
        match self.sweep().await {
            Ok(sweep) => {
                for (run, error) in &sweep.failed {
                    match error {
                        RunError::Fault(Fault::Model { source, .. }) if source.is_waiting() => {
                            tracing::debug!(run.id = %run, %error, "a run waits for its time");
                        }
                        _ => tracing::warn!(run.id = %run, %error, "a run could not go on"),
                    }
                }
                !sweep.driven.is_empty() || !sweep.expired.is_empty()
            }
            Err(error) => {
                tracing::warn!(%error, "the worker could not look for work");
                false
            }
        }
    }
}

/// A worker that sweeps by itself.
pub struct WorkerHandle {
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl WorkerHandle {
    /// Lets what is under way come to its stop, then ends.
    pub async fn stop(self) {
        self.stop.cancel();
        // A panic of the worker was its own; there is nothing left to wait for.
        let _ = self.task.await;
    }
}
