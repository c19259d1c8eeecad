//! What all connections of this protocol share: who holds sockets open, which commands are being carried out, and what is
//! known of sessions.

use std::sync::Arc;

use holdpoint_core::ids::ActorId;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::idempotency::Names;
use super::kept::Kept;
use crate::limits::{Limits, StreamPermit, StreamSlots};
use crate::problem::Problem;

/// What all connections share.
pub(crate) struct Shared {
    sockets: StreamSlots,
    unknown: Arc<Semaphore>,
    names: Names,
    kept: Kept,
}

impl Shared {
    /// Nobody is connected yet.
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            sockets: StreamSlots::new(limits.sockets_per_caller, limits.sockets_max),
            unknown: Arc::new(Semaphore::new(limits.sockets_unknown_max)),
            names: Names::default(),
            kept: Kept::default(),
        }
    }

    /// The right of a known caller to hold a socket open.
    pub(super) fn take_socket(&self, actor: &ActorId) -> Result<StreamPermit, Problem> {
        self.sockets.take(actor)
    }

    /// The right of an unknown caller to hold a socket open until they have said who they are.
    pub(super) fn take_unknown(&self) -> Option<OwnedSemaphorePermit> {
        self.unknown.clone().try_acquire_owned().ok()
    }

    /// The commands that are being carried out.
    pub(crate) fn names(&self) -> &Names {
        &self.names
    }

    /// The sessions that somebody looked at.
    pub(super) fn kept(&self) -> &Kept {
        &self.kept
    }
}
