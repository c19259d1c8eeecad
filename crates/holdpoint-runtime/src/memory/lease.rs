//! Who moves a run. The epoch counts holders: who writes under an old one is told that the lease was lost.

use std::time::Duration;

use holdpoint_core::ids::RunId;
use holdpoint_core::time::Timestamp;

use crate::memory::tables::{Holder, LeaseSlot, Run, Tables};
use crate::ports::store::{AppendError, Lease, LeaseChange, RunStatus};

/// What an append makes of the lease.
pub(super) fn change(
    run: RunId,
    slot: LeaseSlot,
    change: &LeaseChange,
    status: RunStatus,
    now: Timestamp,
) -> Result<LeaseSlot, AppendError> {
    let changed = match change {
        LeaseChange::Keep => slot,
        LeaseChange::Take { owner, duration } => take(run, &slot, owner, *duration, now)?,
        LeaseChange::Hold { epoch } | LeaseChange::Release { epoch } if !slot.is_held_at(*epoch) => {
            return Err(AppendError::Fenced { run });
        }
        LeaseChange::Hold { .. } => slot,
        LeaseChange::Release { .. } => LeaseSlot { holder: None, ..slot },
    };
    Ok(match status {
        RunStatus::Working | RunStatus::Waiting => changed,
        RunStatus::Finished => LeaseSlot { holder: None, ..changed },
    })
}

fn take(
    run: RunId,
    slot: &LeaseSlot,
    owner: &str,
    duration: Duration,
    now: Timestamp,
) -> Result<LeaseSlot, AppendError> {
    if let Some(holder) = slot.standing(now) {
        return Err(AppendError::Leased { run, owner: holder.owner.clone(), until: holder.until });
    }
    Ok(LeaseSlot {
        epoch: slot.epoch + 1,
        holder: Some(Holder { owner: owner.to_owned(), until: now.after(duration) }),
    })
}

pub(super) fn claim(
    tables: &mut Tables,
    id: RunId,
    owner: &str,
    duration: Duration,
    now: Timestamp,
) -> Result<Lease, AppendError> {
    let run = tables.runs.get_mut(&id).ok_or(AppendError::NoRun(id))?;
    run.lease = take(id, &run.lease, owner, duration, now)?;
    Ok(Lease { run: id, epoch: run.lease.epoch, owner: owner.to_owned(), until: now.after(duration) })
}

pub(super) fn renew(
    tables: &mut Tables,
    lease: &Lease,
    duration: Duration,
    now: Timestamp,
) -> Result<Lease, AppendError> {
    let run = tables.runs.get_mut(&lease.run).ok_or(AppendError::NoRun(lease.run))?;
    match &mut run.lease {
        LeaseSlot { epoch, holder: Some(holder) } if *epoch == lease.epoch => {
            holder.until = holder.until.max(now.after(duration));
            Ok(Lease { run: lease.run, epoch: *epoch, owner: holder.owner.clone(), until: holder.until })
        }
        _ => Err(AppendError::Fenced { run: lease.run }),
    }
}

pub(super) fn release(tables: &mut Tables, lease: &Lease, now: Timestamp) {
    let held = tables.runs.get_mut(&lease.run).filter(|run| run.lease.is_held_at(lease.epoch));
    if let Some(run) = held {
        run.lease.holder = None;
        run.alone_since = now;
    }
}

pub(super) fn claimable(tables: &Tables, limit: usize, now: Timestamp) -> Vec<RunId> {
    let is_free = |run: &Run| run.status == RunStatus::Working && run.lease.standing(now).is_none();
    let mut free: Vec<(Timestamp, RunId)> =
        tables.runs.iter().filter(|(_, run)| is_free(run)).map(|(id, run)| (alone_since(run), *id)).collect();
    free.sort_unstable();
    free.into_iter().map(|(_, id)| id).take(limit).collect()
}

/// A lease that ran out left the run alone when it did.
fn alone_since(run: &Run) -> Timestamp {
    run.lease.holder.as_ref().map_or(run.alone_since, |holder| holder.until)
}
