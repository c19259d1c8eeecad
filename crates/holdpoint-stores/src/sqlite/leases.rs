//! Who moves a run. The epoch counts holders: who writes under an old one is told that the lease was lost.

use std::time::Duration;

use holdpoint_core::ids::RunId;
use holdpoint_core::time::Timestamp;
use holdpoint_runtime::ports::store::{AppendError, Lease};
use rusqlite::{Connection, OptionalExtension};

use super::append;
use super::book::Book;
use super::columns::Column;
use super::fault::WriteError;
use crate::admit::{self, LeaseSlot, Mover};

pub(super) fn claim(
    book: &mut Book,
    run: RunId,
    owner: &str,
    duration: Duration,
    now: Timestamp,
) -> Result<Lease, WriteError> {
    let (key, before) = find(&book.connection, run)?.ok_or(AppendError::NoRun(run))?;
    let after = admit::take(run, &before, owner, duration, now)?;
    write(book, run, key, &after)?;
    Ok(Lease { run, epoch: after.epoch, owner: owner.to_owned(), until: now.after(duration) })
}

pub(super) fn renew(book: &mut Book, lease: &Lease, duration: Duration, now: Timestamp) -> Result<Lease, WriteError> {
    let run = lease.run;
    match find(&book.connection, run)?.ok_or(AppendError::NoRun(run))? {
        (key, LeaseSlot { epoch, mover: Mover::Holder { owner, until } }) if epoch == lease.epoch => {
            let until = until.max(now.after(duration));
            write(book, run, key, &LeaseSlot { epoch, mover: Mover::Holder { owner: owner.clone(), until } })?;
            Ok(Lease { run, epoch, owner, until })
        }
        _ => Err(AppendError::Fenced { run }.into()),
    }
}

pub(super) fn release(book: &mut Book, lease: &Lease, now: Timestamp) -> Result<(), WriteError> {
    match find(&book.connection, lease.run)? {
        Some((key, slot)) if slot.is_held_at(lease.epoch) => Ok(write(book, lease.run, key, &slot.given_back(now))?),
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

fn write(book: &mut Book, run: RunId, key: i64, lease: &LeaseSlot) -> rusqlite::Result<()> {
    book.memory.forget_run(run);
    let (owner, since) = append::mover(lease);
    book.connection.prepare_cached("UPDATE run SET epoch = ?2, owner = ?3, since = ?4 WHERE key = ?1")?.execute((
        key,
        Column(lease.epoch),
        owner,
        since,
    ))?;
    Ok(())
}
