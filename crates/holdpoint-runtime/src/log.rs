//! The lines by which an operator follows a run: it started, paused, was decided, is in doubt, finished. Ids and names of
//! agents and tools stand in them, never arguments and never what a model said.

use holdpoint_core::event::{RunEnd, RunEvent};
use holdpoint_core::ids::{RunId, SessionId};
use holdpoint_core::pause::PauseKind;

use crate::ports::observer::{Change, PauseChange};

/// Whether anybody reads these lines.
pub(crate) fn is_read() -> bool {
    tracing::enabled!(tracing::Level::INFO)
}

/// A line for what happened to a pause.
pub(crate) fn pause_changed(change: &PauseChange) {
    let (pause, session) = (change.pause, &change.session);
    let (agent, tool) = (&change.agent, change.tool.as_ref().map(|tool| tool.as_str()));
    let kind = change.kind.name();
    match change.change {
        Change::Opened if change.kind == PauseKind::InDoubt => tracing::warn!(
            run.id = %pause.run, session.id = %session, pause.id = %pause, %agent, tool,
            "a call is in doubt: it may or may not have run"
        ),
        Change::Opened => tracing::info!(
            run.id = %pause.run, session.id = %session, pause.id = %pause, %agent, tool, kind, "paused for a person"
        ),
        Change::Decided(decision) => tracing::info!(
            run.id = %pause.run, session.id = %session, pause.id = %pause, %agent, tool, kind, decision, "pause decided"
        ),
        Change::Voted | Change::Expired | Change::Withdrawn => tracing::info!(
            run.id = %pause.run, session.id = %session, pause.id = %pause, %agent, tool, kind,
            "pause {}", change.change.name()
        ),
    }
}

/// A line for the start or the end of a run.
pub(crate) fn happened(run: RunId, session: &SessionId, event: &RunEvent) {
    match event {
        RunEvent::RunStarted(started) => {
            tracing::info!(run.id = %run, session.id = %session, agent = %started.agent.id, "run started");
        }
        RunEvent::RunFinished(RunEnd::Done(_)) => {
            tracing::info!(run.id = %run, session.id = %session, outcome = "done", "run finished");
        }
        RunEvent::RunFinished(RunEnd::Failed { code, .. }) => {
            tracing::info!(run.id = %run, session.id = %session, outcome = "failed", code, "run finished");
        }
        RunEvent::RunFinished(RunEnd::Cancelled { .. }) => {
            tracing::info!(run.id = %run, session.id = %session, outcome = "cancelled", "run finished");
        }
        _ => {}
    }
}
