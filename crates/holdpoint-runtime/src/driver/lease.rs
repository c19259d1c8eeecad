//! Keeps a lease alive while its run is moved, whatever the driver is waiting for.

use tokio::task::AbortHandle;

use crate::ports::store::{AppendError, Lease};
use crate::runtime::Runtime;

/// Renews a lease at a third of its length, until it is dropped or the lease is lost.
///
/// A lease that is lost needs no word: the next append of its holder is fenced off.
pub(super) struct LeaseKeeper(AbortHandle);

impl LeaseKeeper {
    pub(super) fn keep(runtime: &Runtime, lease: Lease) -> Self {
        let runtime = runtime.clone();
        let task = tokio::spawn(async move {
            let mut lease = lease;
            loop {
                let length = runtime.settings().lease;
                runtime.clock().sleep(length / 3).await;
                match runtime.store().renew(&lease, length).await {
                    Ok(renewed) => lease = renewed,
                    // A store that is away for a moment may be back before the lease ends.
                    Err(AppendError::Fault(fault)) => {
                        tracing::warn!(run.id = %lease.run, %fault, "the lease could not be renewed");
                    }
                    Err(_) => return,
                }
            }
        });
        Self(task.abort_handle())
    }
}

impl Drop for LeaseKeeper {
    fn drop(&mut self) {
        self.0.abort();
    }
}
