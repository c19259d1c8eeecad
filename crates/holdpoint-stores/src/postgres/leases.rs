//! Who moves a run. The epoch counts holders: who writes under an old one is told that the lease was lost.

use std::time::Instant;

use holdpoint_core::ids::RunId;
use holdpoint_core::time::Timestamp;
use holdpoint_runtime::ports::store::{AppendError, Lease};
use tokio_postgres::Row;

use super::columns;
use super::connection::{Connection, Param, Pipeline};
use super::fault::{Broken, WriteError};
use crate::admit::{LeaseSlot, Mover};
use crate::clock::StoreClock;
use crate::lease_moves::LeaseMove;

/// Begins a transaction that holds the run's row, and says what becomes of the lease.
pub(super) async fn begin(
    connection: &Connection,
    clock: &StoreClock,
    change: &LeaseMove,
) -> Result<LeaseSlot, WriteError> {
    let mut pipeline = Pipeline::default();
    pipeline.text("BEGIN ISOLATION LEVEL READ COMMITTED");
    pipeline
        .add("SELECT epoch, owner, since FROM run WHERE id = $1 FOR NO KEY UPDATE", [Box::new(*change.run().uuid())]);
    pipeline.add(columns::CLOCK, []);
    let asked = Instant::now();
    let answers = pipeline.run(connection).await?;
    let [_, found, time] = answers.as_slice() else { return Err(AppendError::NoRun(change.run()).into()) };
    let row = found.first().ok_or(AppendError::NoRun(change.run()))?;
    let millis = time.first().map_or(Ok(0), |row| columns::get(row, 0))?;
    Ok(change.apply(&slot(row, 0)?, clock.arbiter(asked, millis))?)
}

/// What is written at the end of the transaction.
pub(super) fn end<'a>(change: &LeaseMove, after: &'a LeaseSlot) -> Pipeline<'a> {
    let mut pipeline = Pipeline::default();
    let (owner, since) = mover(after);
    pipeline.add(
        "UPDATE run SET epoch = $2, owner = $3, since = $4 WHERE id = $1",
        [Box::new(*change.run().uuid()), Box::new(columns::count(after.epoch)), owner, since],
    );
    pipeline
}

/// The lease as its holder knows it, if anybody holds it.
pub(super) fn held(change: &LeaseMove, after: LeaseSlot) -> Option<Lease> {
    match after.mover {
        Mover::Holder { owner, until } => Some(Lease { run: change.run(), epoch: after.epoch, owner, until }),
        Mover::Nobody { .. } => None,
    }
}

/// The lease in the columns `epoch`, `owner` and `since`, the first of which has this index.
pub(super) fn slot(row: &Row, first: usize) -> Result<LeaseSlot, Broken> {
    let (epoch, since) = (columns::get_count(row, first)?, columns::get_time(row, first + 2)?);
    let mover = match columns::get(row, first + 1)? {
        Some(owner) => Mover::Holder { owner, until: since },
        None => Mover::Nobody { since },
    };
    Ok(LeaseSlot { epoch, mover })
}

/// The columns `owner` and `since` of a lease.
pub(super) fn mover<'a>(lease: &'a LeaseSlot) -> (Param<'a>, Param<'a>) {
    match &lease.mover {
        Mover::Holder { owner, until } => (Box::new(owner.as_str()), Box::new(until.as_millis())),
        Mover::Nobody { since } => (Box::new(None::<&str>), Box::new(since.as_millis())),
    }
}

/// Runs that have something to do and are moved by nobody, longest waiting first.
pub(super) async fn claimable(connection: &Connection, limit: usize, now: Timestamp) -> Result<Vec<RunId>, Broken> {
    let sql = "SELECT id FROM run WHERE status = 0 AND (owner IS NULL OR since <= $1) ORDER BY since, id LIMIT $2";
    let rows = connection.query(sql, &[&now.as_millis(), &columns::most(limit)]).await?;
    rows.iter().map(|row| columns::get_run(row, 0)).collect()
}
