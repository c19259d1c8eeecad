//! Whether an append is admitted to a run, and who moves the run after it: the rules that every database shares, as
//! pure functions of what was found there. Whether the session is busy and rules still stand is each store's to ask.

use std::time::Duration;

use holdpoint_core::event::RunEvent;
use holdpoint_core::ids::RunId;
use holdpoint_core::time::Timestamp;
use holdpoint_runtime::ports::store::{Append, AppendError, LeaseChange, PauseRow, RunStatus};

/// A run as a store found it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    /// Whether it is in the session that the writer named.
    pub(crate) is_here: bool,
    pub(crate) revision: u64,
    pub(crate) status: RunStatus,
    pub(crate) lease: LeaseSlot,
}

/// Who moves a run, and how many have so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LeaseSlot {
    pub(crate) epoch: u64,
    pub(crate) mover: Mover,
}

/// Who moves a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Mover {
    Nobody { since: Timestamp },
    Holder { owner: String, until: Timestamp },
}

/// Whether the append begins a run, or begins it again: then no other run of the agent may be under way.
///
/// # Errors
/// There is no such run in the session.
pub(crate) fn begins(append: &Append, found: Option<&Found>) -> Result<bool, AppendError> {
    match found {
        None if append.expected > 0 => Err(AppendError::NoRun(append.run)),
        Some(found) if !found.is_here => Err(AppendError::NoRun(append.run)),
        None => Ok(true),
        Some(found) => Ok(found.status == RunStatus::Finished && append.status != RunStatus::Finished),
    }
}

/// The lease after the append.
///
/// # Errors
/// The run stands at another revision, or the lease is not the writer's.
pub(crate) fn lease_after(append: &Append, found: Option<&Found>, now: Timestamp) -> Result<LeaseSlot, AppendError> {
    let revision = found.map_or(0, |found| found.revision);
    if revision != append.expected {
        return Err(AppendError::Conflict { run: append.run, revision });
    }
    let new = LeaseSlot { epoch: 0, mover: Mover::Nobody { since: now } };
    let before = found.map_or(&new, |found| &found.lease);
    let changed = match &append.lease {
        LeaseChange::Keep => before.clone(),
        LeaseChange::Take { owner, duration } => take(append.run, before, owner, *duration, now)?,
        LeaseChange::Hold { epoch } | LeaseChange::Release { epoch } if !before.is_held_at(*epoch) => {
            return Err(AppendError::Fenced { run: append.run });
        }
        LeaseChange::Hold { .. } => before.clone(),
        LeaseChange::Release { .. } => before.given_back(now),
    };
    let was_at_work = found.is_some_and(|found| found.status == RunStatus::Working);
    Ok(match append.status {
        RunStatus::Finished => changed.given_back(now),
        // Work that nobody does yet: the wait for somebody begins.
        RunStatus::Working if !was_at_work && !changed.is_held() => changed.given_back(now),
        RunStatus::Working | RunStatus::Waiting => changed,
    })
}

/// The epoch that an append answers with: that of a lease which is the writer's and still stands.
pub(crate) fn epoch_of(append: &Append, lease: &LeaseSlot) -> Option<u64> {
    match append.lease {
        LeaseChange::Take { .. } | LeaseChange::Hold { .. } if lease.is_held() => Some(lease.epoch),
        _ => None,
    }
}

/// The lease after somebody takes it.
///
/// # Errors
/// An unexpired lease stands, be it the taker's own.
pub(crate) fn take(
    run: RunId,
    before: &LeaseSlot,
    owner: &str,
    duration: Duration,
    now: Timestamp,
) -> Result<LeaseSlot, AppendError> {
    match &before.mover {
        Mover::Holder { owner, until } if now < *until => {
            Err(AppendError::Leased { run, owner: owner.clone(), until: *until })
        }
        Mover::Holder { .. } | Mover::Nobody { .. } => Ok(LeaseSlot {
            epoch: before.epoch + 1,
            mover: Mover::Holder { owner: owner.to_owned(), until: now.after(duration) },
        }),
    }
}

impl LeaseSlot {
    /// Whether somebody holds it, be the time up or not.
    pub(crate) fn is_held(&self) -> bool {
        matches!(self.mover, Mover::Holder { .. })
    }

    /// Whether `epoch` is that of the holder, be the time up or not.
    pub(crate) fn is_held_at(&self, epoch: u64) -> bool {
        self.is_held() && self.epoch == epoch
    }

    /// The lease after its holder lets go.
    pub(crate) fn given_back(&self, now: Timestamp) -> Self {
        Self { epoch: self.epoch, mover: Mover::Nobody { since: now } }
    }
}

/// Whether an append opens the pause of one of its rows; otherwise it is there, and changes.
pub(crate) fn opens(append: &Append, row: &PauseRow) -> bool {
    append.events.iter().any(|event| matches!(event, RunEvent::PauseOpened(opened) if opened.number == row.id.number))
}
