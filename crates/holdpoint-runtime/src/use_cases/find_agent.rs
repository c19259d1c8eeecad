//! Which agent a stored run goes on with: whoever moves it finds or rebuilds that one.

use std::sync::Arc;

use holdpoint_core::agent::AgentBrief;
use holdpoint_core::ids::{FramePath, RunId};
use holdpoint_core::refusal::Refusal;
use holdpoint_core::run::Run;

use crate::driver::stored_definition;
use crate::fault::RunError;
use crate::runtime::Runtime;
use crate::worker::AgentWanted;

impl Runtime {
    /// The agent that a run goes on with: its root, and the definition that it began with or that was set since.
    ///
    /// # Errors
    /// There is no such run.
    pub async fn agent_wanted(&self, run: RunId) -> Result<AgentWanted, RunError> {
        let stored = self.stored_run(run).await?;
        let root = root_agent(&stored.run).ok_or(Refusal::RunNotFound(run))?.clone();
        // Whoever asks is about to move the run.
        self.recent().keep(Arc::new(stored.run.clone()), stored.revision, stored.lease.is_none());
        self.agent_begun_with(&root).await
    }

    /// The root agent of a run as its start names it, whatever was set since.
    ///
    /// # Errors
    /// The store is out of order.
    pub async fn agent_begun_with(&self, root: &AgentBrief) -> Result<AgentWanted, RunError> {
        let definition = stored_definition(self.store().as_ref(), &root.digest).await?;
        let source = definition.map(|definition| definition.source).filter(|source| !source.is_null());
        Ok(AgentWanted { root: root.id.clone(), digest: root.digest, source })
    }
}

/// The root agent as the run knows it last. While another agent has the conversation, it is as it was at the start.
fn root_agent(run: &Run) -> Option<&AgentBrief> {
    let root = run.agent()?;
    let at_work = run.frame(&FramePath::root()).map(|frame| &frame.agent);
    Some(at_work.filter(|agent| agent.id == root.id).unwrap_or(root))
}
