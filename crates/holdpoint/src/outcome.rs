//! How far a run came: done, paused, failed, or ended by somebody.

use holdpoint_core::event::RunEnd;
use holdpoint_core::ids::{ActorId, RunId};
use holdpoint_core::message::{Content, Usage};
use holdpoint_core::pause::PauseView;
use holdpoint_core::run::Run;

/// How far a run came.
#[derive(Debug, Clone, PartialEq)]
pub enum RunOutcome {
    /// It has an output.
    Done(Done),
    /// Somebody must look. Pauses of nested agents and of agents reached by hand-off are in the same list.
    Paused {
        /// The run.
        run_id: RunId,
        /// What is asked.
        pauses: Vec<PauseView>,
    },
    /// It could not go on.
    Failed {
        /// The run.
        run_id: RunId,
        /// A stable code, such as `turns_exhausted`.
        code: String,
        /// What was wrong.
        message: String,
    },
    /// Somebody ended it.
    Cancelled {
        /// The run.
        run_id: RunId,
        /// Who.
        by: ActorId,
        /// Why.
        reason: String,
    },
}

/// A run that has an output.
#[derive(Debug, Clone, PartialEq)]
pub struct Done {
    /// The run.
    pub run_id: RunId,
    /// What it gave out.
    pub output: Content,
    /// What its model calls cost.
    pub usage: Usage,
}

impl RunOutcome {
    /// How far this run came.
    pub fn of(run: &Run) -> Self {
        let run_id = run.id();
        match run.end().cloned() {
            None => Self::Paused { run_id, pauses: run.open_pauses() },
            Some(RunEnd::Done(output)) => Self::Done(Done { run_id, output, usage: run.usage() }),
            Some(RunEnd::Failed { code, message }) => Self::Failed { run_id, code, message },
            Some(RunEnd::Cancelled { by, reason, .. }) => Self::Cancelled { run_id, by, reason },
        }
    }

    /// The run.
    pub fn run_id(&self) -> RunId {
        match self {
            Self::Done(done) => done.run_id,
            Self::Paused { run_id, .. } | Self::Failed { run_id, .. } | Self::Cancelled { run_id, .. } => *run_id,
        }
    }

    /// What is asked; empty unless the run is paused.
    pub fn pauses(&self) -> &[PauseView] {
        match self {
            Self::Paused { pauses, .. } => pauses,
            _ => &[],
        }
    }

    /// What it gave out, if it is done.
    pub fn output(&self) -> Option<&Content> {
        match self {
            Self::Done(done) => Some(&done.output),
            _ => None,
        }
    }

    /// What it gave out as text, if it is done.
    pub fn text(&self) -> Option<String> {
        self.output().map(Content::to_text)
    }

    /// Whether somebody must look.
    pub fn is_paused(&self) -> bool {
        matches!(self, Self::Paused { .. })
    }
}
