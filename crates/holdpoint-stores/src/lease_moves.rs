//! What becomes of a lease that somebody claims, renews or gives back, where the database is asked about nothing else.

use std::time::Duration;

use holdpoint_core::ids::RunId;
use holdpoint_core::time::Timestamp;
use holdpoint_runtime::ports::store::{AppendError, Lease};

use crate::admit::{LeaseSlot, Mover, take};

/// What somebody wants to become of a lease.
#[derive(Debug, Clone)]
pub(crate) enum LeaseMove {
    Claim { run: RunId, owner: String, duration: Duration },
    Renew { lease: Lease, duration: Duration },
    Release { lease: Lease },
}

impl LeaseMove {
    /// The run that it is about.
    pub(crate) fn run(&self) -> RunId {
        match self {
            Self::Claim { run, .. } => *run,
            Self::Renew { lease, .. } | Self::Release { lease } => lease.run,
        }
    }

    /// The lease afterwards.
    ///
    /// # Errors
    /// It is somebody else's.
    pub(crate) fn apply(&self, before: &LeaseSlot, now: Timestamp) -> Result<LeaseSlot, AppendError> {
        match self {
            Self::Claim { run, owner, duration } => take(*run, before, owner, *duration, now),
            Self::Renew { lease, duration } => match &before.mover {
                Mover::Holder { owner, until } if before.epoch == lease.epoch => {
                    let until = (*until).max(now.after(*duration));
                    Ok(LeaseSlot { epoch: before.epoch, mover: Mover::Holder { owner: owner.clone(), until } })
                }
                Mover::Holder { .. } | Mover::Nobody { .. } => Err(AppendError::Fenced { run: lease.run }),
            },
            Self::Release { lease } if before.is_held_at(lease.epoch) => Ok(before.given_back(now)),
            Self::Release { .. } => Ok(before.clone()),
        }
    }
}
