//! A run moves in a task of the server's own: a client that goes away changes nothing.

use holdpoint_core::ids::{ActorId, RunId, SessionId};
use holdpoint_core::refusal::Refusal;
use holdpoint_core::run::Run;
use holdpoint_runtime::use_cases::{StartRun, WatchItem};
use holdpoint_runtime::{Fault, RunError};

use crate::app::App;
use crate::problem::Problem;

/// Starts a run in a task of its own, and waits until its start is durable.
///
/// # Errors
/// The start was refused, or the world failed before it was written.
pub(super) async fn begin(app: &App, start: StartRun, session: &SessionId, run: RunId) -> Result<(), RunError> {
    // Watching begins before the start, so that nothing falls in between.
    let mut watch = app.runtime().watch_run(session, run);
    let (told, mut ended) = tokio::sync::oneshot::channel();
    let (mover, by) = (app.clone(), start.by.clone());
    app.tasks().spawn(async move {
        let moved = mover.runtime().start_run(start).await;
        let failed = mover.runtime().read_run(run).await.is_err();
        match (moved, failed) {
            // It was never written, and whoever waits for that is told.
            (Err(error), true) => drop(told.send(error)),
            (moved, _) => settle(&mover, run, by, moved).await,
        }
    });
    loop {
        tokio::select! {
            biased;
            item = watch.next() => match item? {
                // Another agent speaks in the same session meanwhile.
                WatchItem::Delta { .. } => {}
                WatchItem::Event { .. } => return Ok(()),
            },
            error = &mut ended => return error.map_or(Ok(()), Err),
        }
    }
}

/// Goes on with a run in a task of its own: somebody decided, or said more.
pub(super) fn go_on(app: &App, run: RunId, by: ActorId) {
    let mover = app.clone();
    app.tasks().spawn(async move {
        let moved = mover.drive(run).await;
        settle(&mover, run, by, moved).await;
    });
}

/// What may pass is tried again by the server's worker. A run whose model will not reply is ended, or those who watch it
/// would wait for ever.
async fn settle(app: &App, run: RunId, by: ActorId, moved: Result<Run, RunError>) {
    match moved {
        // Who moves it already was told; who is next goes on with what was left.
        Ok(_) | Err(RunError::Refused(Refusal::RunBusy { .. }) | RunError::Fault(Fault::Left { .. })) => {}
        Err(RunError::Fault(Fault::Model { source, .. })) if !source.may_retry => {
            tracing::warn!(run.id = %run, error = %source, "a run is ended: its model gave no reply");
            if let Err(error) = app.runtime().cancel_run(run, by, "its model gave no reply").await {
                tracing::warn!(run.id = %run, %error, "a run whose model gave no reply could not be ended");
            }
        }
        Err(error) => {
            let problem = Problem::from(error);
            tracing::warn!(run.id = %run, code = problem.code(), "a run could not go on; the worker tries again");
        }
    }
}
