//! One run as it stands, or as it was written down.

use holdpoint_core::ids::{RunId, SessionId};
use holdpoint_core::message::Item;
use holdpoint_core::record::Entry;
use holdpoint_core::refusal::Refusal;
use holdpoint_core::run::Run;
use std::sync::Arc;

use crate::fault::RunError;
use crate::runtime::Runtime;

impl Runtime {
    /// A run as it stands.
    ///
    /// # Errors
    /// There is no such run.
    pub async fn read_run(&self, run: RunId) -> Result<Run, RunError> {
        Ok(self.stored_run(run).await?.run)
    }

    /// Everything that was written down about a run.
    ///
    /// # Errors
    /// There is no such run.
    pub async fn read_journal(&self, run: RunId) -> Result<Vec<Entry>, RunError> {
        Ok(self.store().load(run, 0).await?.ok_or(Refusal::RunNotFound(run))?.entries)
    }

    /// What was said in a session with an agent, oldest first: its memory.
    ///
    /// # Errors
    /// The store is out of order.
    pub async fn read_memory(&self, session: &SessionId, agent: &str) -> Result<Vec<Arc<Item>>, RunError> {
        let mut rows = self.store().session_runs(session, self.settings().history_runs_max).await?;
        rows.reverse();
        let mut items = Vec::new();
        for row in rows.iter().filter(|row| row.agent.as_str() == agent) {
            items.extend(self.read_run(row.run).await?.items());
        }
        Ok(items)
    }
}
