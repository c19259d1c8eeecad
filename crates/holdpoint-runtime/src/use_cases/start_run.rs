//! A message starts a run.

use std::sync::Arc;

use holdpoint_core::ids::{ActorId, RunId, SessionId};
use holdpoint_core::input::{Input, StartInput};
use holdpoint_core::message::Content;
use holdpoint_core::refusal::Refusal;
use holdpoint_core::run::Run;

use crate::agent::AgentGraph;
use crate::driver::{Drive, DriveOptions};
use crate::fault::RunError;
use crate::runtime::Runtime;

/// What starts a run.
pub struct StartRun {
    /// The agent that begins, with all that it can reach.
    pub graph: Arc<AgentGraph>,
    /// What is asked of it.
    pub content: Content,
    /// The conversation; a new one when none is named.
    pub session: Option<SessionId>,
    /// How many model calls the root agent may make; `None` for no limit.
    pub turns_max: Option<u32>,
    /// Who asks.
    pub by: ActorId,
    /// How the run is driven.
    pub options: DriveOptions,
    /// Whether the run is refused where its session is somebody else's: whoever begins a session's first run owns it.
    pub only_owner: bool,
    /// The run's name, where the caller must know it before; otherwise a new one.
    pub run: Option<RunId>,
}

impl Runtime {
    /// A name for a run that is about to start.
    pub fn name_run(&self) -> RunId {
        self.new_run_id()
    }

    /// Starts a run and drives it to its first stop: a pause, or its end.
    ///
    /// # Errors
    /// The input is refused, the agent already has a run under way in the session, the session is somebody else's and
    /// must not be, or the world failed. A run that was stored before that can be resumed.
    pub async fn start_run(&self, start: StartRun) -> Result<Run, RunError> {
        let id = start.run.unwrap_or_else(|| self.new_run_id());
        let session = start.session.unwrap_or_else(|| Self::own_session(id));
        let root = start.graph.root();
        let agent = start.graph.brief(root).ok_or_else(|| Refusal::AgentMissing(root.clone()))?.clone();
        let context = match &start.options.context {
            None => None,
            Some(context) => context
                .to_stored()
                .map_err(|problem| Refusal::InvalidDefinition(format!("the context cannot be stored: {problem}")))?,
        };
        let input = StartInput {
            session,
            agent,
            content: start.content,
            context,
            turns_max: start.turns_max,
            by: start.by,
            holds_every_call: start.options.hold_every_call,
        };
        let drive = Drive::new(self.clone(), start.graph, Run::new(id), 0, start.options);
        let mut drive = drive.only_owner(start.only_owner);
        drive.advance(Input::Start(input))?;
        drive.drive().await
    }
}
