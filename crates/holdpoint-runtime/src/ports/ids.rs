//! Where new names come from.

use holdpoint_core::ids::RunId;
use uuid::Uuid;

/// What names new runs.
pub trait Ids: Send + Sync + 'static {
    /// A name that no run has had.
    fn new_run(&self) -> RunId;
}

/// Names in the order of time (UUID version 7).
#[derive(Debug, Clone, Copy, Default)]
pub struct TimeOrderedIds;

impl Ids for TimeOrderedIds {
    fn new_run(&self) -> RunId {
        RunId::new(Uuid::now_v7())
    }
}
