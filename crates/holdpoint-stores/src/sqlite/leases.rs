//! Who moves a run. The epoch counts holders: who writes under an old one is told that the lease was lost.

use std::time::Duration;

use holdpoint_core::ids::RunId;
use holdpoint_core::time::Timestamp;
use holdpoint_runtime::ports::store::{AppendError, Lease};
use rusqlite::{Connection, OptionalExtension};

use super::append;
use super::columns::Column;
use super::fault::WriteError;
use crate::admit::{self, LeaseSlot, Mover};

pub(super) fn claim(
    connection: &Connection,
    run: RunId,
    owner: &str,
    duration: Duration,
    now: Timestamp,
) -> Result<Lease, WriteError> {
    let (key, before) = find(connection, run)?.ok_or(AppendError::NoRun(run))?;
    let after = admit::take(run, &before, owner, duration, now)?;
    write(connection, key, &after)?;
    Ok(Lease { run, epoch: after.epoch, owner: owner.to_owned(), until: now.after(duration) })
}

pub(super) fn renew(
    connection: &Connection,
    lease: &Lease,
    duration: Duration,
    now: Timestamp,
) -> Result<Lease, WriteError> {
    let run = lease.run;
    match find(connection, run)?.ok_or(AppendError::NoRun(run))? {
        (key, LeaseSlot { epoch, mover: Mover::Holder { owner, until } }) if epoch == lease.epoch => {
            let until = until.max(now.after(duration));
            write(connection, key, &LeaseSlot { epoch, mover: Mover::Holder { owner: owner.clone(), until } })?;
            Ok(Lease { run, epoch, owner, until })
        }
        _ => Err(AppendError::Fenced { run }.into()),
    }
}

pub(super) fn release(connection: &Connection, lease: &Lease, now: Timestamp) -> Result<(), WriteError> {
    match find(connection, lease.run)? {
        Some((key, slot)) if slot.is_held_at(lease.epoch) => Ok(write(connection, key, &slot.given_back(now))?),
        _ => Ok(()),
    }
}

/// Runs that have something to do and are moved by nobody, longest waiting first.
pub(super) fn claimable(connection: &Connection, limit: usize, now: Timestamp) -> rusqlite::Result<Vec<RunId>> {
    connection
        .prepare_cached(
            "SELECT id FROM run INDEXED BY run_at_work
             WHERE status = 0 AND (owner IS NULL OR since <= ?1) ORDER BY since, id LIMIT ?2",
        )?
        .query_map((Column(now), Column(limit)), |row| row.get(0).map(|Column(run)| run))?
        .collect()
}

fn find(connection: &Connection, run: RunId) -> rusqlite::Result<Option<(i64, LeaseSlot)>> {
    connection
        .prepare_cached("SELECT key, epoch, owner, since FROM run WHERE id = ?1")?
        .query_row([Column(run)], |row| Ok((row.get(0)?, append::lease(row, 1)?)))
        .optional()
}

fn write(connection: &Connection, run: i64, lease: &LeaseSlot) -> rusqlite::Result<()> {
    let (owner, since) = append::mover(lease);
    connection.prepare_cached("UPDATE run SET epoch = ?2, owner = ?3, since = ?4 WHERE key = ?1")?.execute((
        run,
        Column(lease.epoch),
        owner,
        since,
    ))?;
    Ok(())
}
