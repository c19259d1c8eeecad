//! Reading runs back. A run's row and its entries are asked for together; entries never change, so that those up to the
//! row's revision are the run as it stood then, whatever was written in between.

use std::time::Instant;

use holdpoint_core::ids::RunId;
use holdpoint_core::time::Timestamp;
use tokio_postgres::Row;
use uuid::Uuid;

use super::connection::{Connection, Pipeline};
use super::fault::Broken;
use super::group::Desk;
use super::{columns, leases};
use crate::raw::{self, RawEntry, RawRun};

/// Several runs, each with the entries after a revision, as those who ask at once read them.
pub(super) async fn together(wanted: Vec<(RunId, u64)>, desk: &Desk) -> Result<Vec<Option<RawRun>>, Broken> {
    let connection = desk.pools.reader().await?;
    if desk.clock.is_stale() {
        let asked = Instant::now();
        if let Some(row) = connection.query_opt(columns::CLOCK, &[]).await? {
            desk.clock.arbiter(asked, columns::get(&row, 0)?);
        }
    }
    let now = desk.clock.now();
    let found = match wanted[..] {
        [(id, after)] => vec![run(&connection, id, after, now).await?],
        _ => runs(&connection, &wanted, now).await?,
    };
    connection.give_back();
    Ok(found)
}

/// A run's rows, with the entries after a revision.
pub(super) async fn run(
    connection: &Connection,
    id: RunId,
    after: u64,
    now: Timestamp,
) -> Result<Option<RawRun>, Broken> {
    let mut pipeline = Pipeline::default();
    pipeline.add(
        "SELECT revision, session.name, agent, epoch, owner, since
         FROM run JOIN session ON session.key = run.session WHERE id = $1",
        [Box::new(*id.uuid())],
    );
    pipeline.add(
        "SELECT revision, last_seq, pause_groups, at, body FROM entry WHERE run = $1 AND revision > $2
         ORDER BY revision",
        [Box::new(*id.uuid()), Box::new(columns::count(after))],
    );
    let answers = pipeline.run(connection).await?;
    let [found, entries] = answers.as_slice() else { return Ok(None) };
    let Some(row) = found.first() else { return Ok(None) };
    let mut run = read(row, id, now)?;
    take(&mut run, entries)?;
    Ok(Some(run))
}

/// Several runs' rows, each with the entries after a revision.
async fn runs(connection: &Connection, wanted: &[(RunId, u64)], now: Timestamp) -> Result<Vec<Option<RawRun>>, Broken> {
    let ids: Vec<Uuid> = wanted.iter().map(|(run, _)| *run.uuid()).collect();
    let after: Vec<i64> = wanted.iter().map(|(_, after)| columns::count(*after)).collect();
    let mut pipeline = Pipeline::default();
    pipeline.add(
        "SELECT revision, session.name, agent, epoch, owner, since, place
         FROM unnest($1::uuid[]) WITH ORDINALITY AS wanted (run, place)
             JOIN run ON run.id = wanted.run JOIN session ON session.key = run.session",
        [Box::new(ids.clone())],
    );
    pipeline.add(
        "SELECT revision, last_seq, pause_groups, at, body, place
         FROM unnest($1::uuid[], $2::bigint[]) WITH ORDINALITY AS wanted (run, after, place)
             JOIN entry ON entry.run = wanted.run AND entry.revision > wanted.after
         ORDER BY place, revision",
        [Box::new(ids), Box::new(after)],
    );
    let answers = pipeline.run(connection).await?;
    let mut runs: Vec<Option<RawRun>> = wanted.iter().map(|_| None).collect();
    let [found, entries] = answers.as_slice() else { return Ok(runs) };
    for row in found {
        let place = place(row, 6)?;
        if let (Some(run), Some((id, _))) = (runs.get_mut(place), wanted.get(place)) {
            *run = Some(read(row, *id, now)?);
        }
    }
    let places = entries.iter().map(|row| place(row, 5)).collect::<Result<Vec<_>, _>>()?;
    let mut rest = entries.as_slice();
    for of_run in places.chunk_by(|one, next| one == next) {
        let (these, others) = rest.split_at(of_run.len());
        rest = others;
        if let Some(Some(run)) = of_run.first().and_then(|place| runs.get_mut(*place)) {
            take(run, these)?;
        }
    }
    Ok(runs)
}

/// A place among those that were asked for, which the server counts from one.
fn place(row: &Row, column: usize) -> Result<usize, Broken> {
    Ok(columns::get_count(row, column)?.saturating_sub(1) as usize)
}

/// The run in the columns `revision`, `session.name`, `agent`, `epoch`, `owner` and `since`, without its entries.
fn read(row: &Row, id: RunId, now: Timestamp) -> Result<RawRun, Broken> {
    let lease = raw::lease_at(id, leases::slot(row, 3)?, now);
    let (revision, session, agent) =
        (columns::get_count(row, 0)?, columns::get_name(row, 1)?, columns::get_name(row, 2)?);
    Ok(RawRun { revision, session, agent, lease, entries: Vec::new() })
}

/// Gives a run its entries, except for those that were written since.
fn take(run: &mut RawRun, entries: &[Row]) -> Result<(), Broken> {
    run.entries = entries.iter().map(|row| entry(row, 0)).collect::<Result<Vec<_>, _>>()?;
    run.entries.retain(|entry| entry.revision <= run.revision);
    Ok(())
}

/// The entry in the columns `revision`, `last_seq`, `pause_groups`, `at` and `body`, from this index on.
pub(super) fn entry(row: &Row, first: usize) -> Result<RawEntry, Broken> {
    Ok(RawEntry {
        revision: columns::get_count(row, first)?,
        last_seq: columns::get_count(row, first + 1)?,
        pause_groups: columns::get_count(row, first + 2)?,
        at: columns::get_time(row, first + 3)?,
        body: columns::get(row, first + 4)?,
    })
}
