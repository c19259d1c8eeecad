//! A stored run goes on: somebody decided, or the process that moved it is gone.

use std::sync::Arc;

use holdpoint_core::ids::RunId;
use holdpoint_core::refusal::Refusal;
use holdpoint_core::run::Run;

use crate::agent::AgentGraph;
use crate::driver::{Drive, DriveOptions};
use crate::fault::RunError;
use crate::runtime::Runtime;

impl Runtime {
    /// Drives a stored run to its next stop. A run that is over, or in which nothing was decided, stays as it is.
    ///
    /// # Errors
    /// There is no such run, somebody else moves it, an agent or tool it needs is gone or changed, or the world failed.
    pub async fn resume_run(&self, run: RunId, graph: Arc<AgentGraph>, options: DriveOptions) -> Result<Run, RunError> {
        let stored = self.run_to_drive(run).await?;
        if stored.run.end().is_some() {
            return Ok(stored.run);
        }
        if let Some(lease) = stored.lease {
            return Err(Refusal::RunBusy { run, owner: lease.owner, until: lease.until }.into());
        }
        let mut drive = Drive::new(self.clone(), graph, stored.run, stored.revision, options);
        drive.reconcile().await?;
        drive.adopt_orphans().await?;
        drive.expire_overdue()?;
        drive.drive().await
    }
}
