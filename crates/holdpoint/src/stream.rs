//! A run that tells what happens on the way. Events are told after they are durable; words are told as they come.

use std::future::Future;

use holdpoint_core::event::RunEvent;
use holdpoint_core::ids::{FramePath, RunId, SessionId};
use holdpoint_core::pause::PauseView;
use holdpoint_core::refusal::Refusal;
use holdpoint_core::run::Run;
use holdpoint_runtime::ports::model::Delta;
use holdpoint_runtime::use_cases::{WatchItem, WatchSession};
use holdpoint_runtime::{RunError, Runtime};
use std::collections::VecDeque;
use tokio::task::JoinHandle;

use crate::outcome::RunOutcome;

/// What happens on the way.
#[derive(Debug, Clone, PartialEq)]
pub enum StreamEvent {
    /// Something happened; it is durable.
    Event {
        /// The session's number of it.
        seq: u64,
        /// What.
        event: RunEvent,
    },
    /// A model says more.
    Delta {
        /// Which agent's: the frame within the run.
        frame: FramePath,
        /// What it says.
        delta: Delta,
    },
}

/// A run that is under way. Dropping it does not stop the run.
pub struct RunStream {
    run: RunId,
    watch: WatchSession,
    state: State,
    rest: VecDeque<StreamEvent>,
}

enum State {
    Running(JoinHandle<Result<Run, RunError>>),
    Over(Option<Result<RunOutcome, RunError>>),
}

impl RunStream {
    pub(crate) fn start(
        runtime: Runtime,
        run: RunId,
        session: SessionId,
        driving: impl Future<Output = Result<Run, RunError>> + Send + 'static,
    ) -> Self {
        // Watching begins before driving, so that nothing is missed.
        let watch = runtime.watch_run(&session, run);
        Self { run, watch, state: State::Running(tokio::spawn(driving)), rest: VecDeque::new() }
    }

    pub(crate) fn resume(
        runtime: Runtime,
        run: RunId,
        session: SessionId,
        from: u64,
        driving: impl Future<Output = Result<Run, RunError>> + Send + 'static,
    ) -> Self {
        // Watching begins before driving, so that nothing is missed.
        let watch = runtime.watch_session(&session, from);
        Self { run, watch, state: State::Running(tokio::spawn(driving)), rest: VecDeque::new() }
    }

    pub(crate) fn refused(runtime: Runtime, run: RunId, refusal: Refusal) -> Self {
        let watch = runtime.watch_session(&Runtime::own_session(run), 1);
        Self { run, watch, state: State::Over(Some(Err(refusal.into()))), rest: VecDeque::new() }
    }

    /// The run.
    pub fn run_id(&self) -> RunId {
        self.run
    }

    /// What happens next; `None` when the run has come to its stop.
    pub async fn next(&mut self) -> Option<StreamEvent> {
        loop {
            if let Some(event) = self.rest.pop_front() {
                return Some(event);
            }
            let State::Running(task) = &mut self.state else { return None };
            tokio::select! {
                biased;
                item = self.watch.next() => match item {
                    Ok(item) => self.rest.extend(of_run(self.run, item)),
                    Err(error) => self.state = State::Over(Some(Err(error))),
                },
                ended = task => {
                    let outcome = flatten(ended);
                    // Told last, and already durable: nothing of it is lost.
                    if let Ok(items) = self.watch.caught_up().await {
                        self.rest.extend(items.into_iter().filter_map(|item| of_run(self.run, item)));
                    }
                    self.state = State::Over(Some(outcome));
                }
            }
        }
    }

    /// Waits for the run's stop and says how far it came; what was not read is skipped.
    ///
    /// # Errors
    /// What the run ran into.
    pub async fn completed(&mut self) -> Result<RunOutcome, RunError> {
        if let State::Running(task) = &mut self.state {
            let outcome = flatten(task.await);
            self.state = State::Over(Some(outcome));
        }
        match &mut self.state {
            State::Over(outcome) => match outcome {
                Some(Ok(known)) => Ok(known.clone()),
                other => other.take().unwrap_or(Err(Refusal::RunNotFound(self.run).into())),
            },
            State::Running(_) => Err(Refusal::RunNotFound(self.run).into()),
        }
    }

    /// What is asked, once the run has come to its stop.
    pub fn pauses(&self) -> &[PauseView] {
        match &self.state {
            State::Over(Some(Ok(outcome))) => outcome.pauses(),
            _ => &[],
        }
    }
}

fn flatten(ended: Result<Result<Run, RunError>, tokio::task::JoinError>) -> Result<RunOutcome, RunError> {
    match ended {
        Ok(Ok(run)) => Ok(RunOutcome::of(&run)),
        Ok(Err(error)) => Err(error),
        // The driver catches panics of tools and guardrails; one of its own must not be swallowed.
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

fn of_run(wanted: RunId, item: WatchItem) -> Option<StreamEvent> {
    match item {
        WatchItem::Event { seq, run, event, .. } if run == wanted => Some(StreamEvent::Event { seq, event }),
        WatchItem::Delta { run, frame, delta } if run == wanted => Some(StreamEvent::Delta { frame, delta }),
        _ => None,
    }
}
