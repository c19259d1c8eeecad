//! Who moves a run. The epoch counts holders: who writes under an old one is told that the lease was lost.

use std::time::Instant;

use ::redis::aio::ConnectionManager;
use holdpoint_core::ids::RunId;
use holdpoint_core::time::Timestamp;
use holdpoint_runtime::ports::store::{AppendError, Lease};

use super::change::Change;
use super::fault::{Broken, WriteError};
use super::group::Desk;
use super::keys::{self, Keys};
use super::open::millis;
use super::records::{self, Held, RunRecord};
use crate::admit::Mover;
use crate::lease_moves::LeaseMove;

/// One try to change a lease; gives it back as it is then, if anybody holds it.
pub(super) async fn change(desk: &Desk, wanted: &LeaseMove) -> Result<Option<Lease>, WriteError> {
    let (connection, keys) = (&desk.connection, &desk.keys);
    let (run, name) = (wanted.run(), keys::run_name(wanted.run()));
    let mut pipe = ::redis::pipe();
    pipe.atomic().cmd("HGET").arg(keys.runs()).arg(&*name).cmd("TIME");
    let asked = Instant::now();
    let (found, time): (Option<Vec<u8>>, (i64, i64)) = pipe.query_async(&mut connection.clone()).await?;
    let found = found.ok_or(AppendError::NoRun(run))?;
    let record: RunRecord = records::decode(&found)?;
    let after = wanted.apply(&record.lease(), desk.clock.arbiter(asked, millis(time)))?;
    let record = Held::new(record.with_lease(&after))?;
    let mut change = Change::default();
    change.replace_field(keys.runs(), name, Some(&found), &record.bytes);
    place_work(&mut change, keys, run, &record.record);
    change.commit(connection).await?;
    desk.remembered.keep_run(run, record);
    Ok(match after.mover {
        Mover::Holder { owner, until } => Some(Lease { run, epoch: after.epoch, owner, until }),
        Mover::Nobody { .. } => None,
    })
}

/// Gives a run its place among those with something to do.
pub(super) fn place_work(change: &mut Change, keys: &Keys, run: RunId, record: &RunRecord) {
    match record.status {
        0 => change.place_member(keys.work(), record.since, keys::run_name(run)),
        _ => change.remove_member(keys.work(), keys::run_name(run)),
    }
}

/// Runs that have something to do and are moved by nobody, longest waiting first: those whose lease has ended, and those
/// that nobody has held since a time that is past.
pub(super) async fn claimable(
    connection: &mut ConnectionManager,
    keys: &Keys,
    limit: usize,
    now: Timestamp,
) -> Result<Vec<RunId>, Broken> {
    let mut command = ::redis::cmd("ZRANGE");
    command.arg(keys.work()).arg("-inf").arg(now.as_millis()).arg("BYSCORE");
    command.arg("LIMIT").arg(0).arg(i64::try_from(limit).unwrap_or(i64::MAX));
    let names: Vec<String> = command.query_async(connection).await?;
    let read = |name: &String| {
        keys::parse_run(name).ok_or_else(|| Broken::Unreadable(format!("{name} where a run should be")))
    };
    names.iter().map(read).collect()
}
