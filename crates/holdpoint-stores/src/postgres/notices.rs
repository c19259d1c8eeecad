//! The outbox: notices are written with the append that they tell of, claimed, and settled.

use std::time::{Duration, Instant};

use holdpoint_core::ids::PauseId;
use holdpoint_core::time::Timestamp;
use holdpoint_runtime::ports::notifier::{Destination, NoticeKey, NoticeKind};
use holdpoint_runtime::ports::store::{
    Append, NoticeFilter, NoticeOutcome, NoticeRow, NoticeState, NoticeStatus, PAGE_MAX,
};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use super::columns;
use super::connection::{Connection, Pipeline};
use super::fault::Broken;
use crate::clock::StoreClock;
use crate::outbox;

/// Writes the notices of an append; one that is there already is left as it is.
pub(super) fn write<'a>(pipeline: &mut Pipeline<'a>, append: &'a Append) {
    for key in &append.notices {
        pipeline.add(
            "INSERT INTO notice (run, number, kind, destination, state, attempts, at) VALUES ($1, $2, $3, $4, 0, 0, $5)
             ON CONFLICT DO NOTHING",
            [
                Box::new(*key.pause.run.uuid()),
                Box::new(i64::from(key.pause.number)),
                Box::new(kind(key.kind)),
                Box::new(key.destination.as_str()),
                Box::new(append.at.as_millis()),
            ],
        );
    }
}

fn kind(kind: NoticeKind) -> i16 {
    match kind {
        NoticeKind::Opened => 0,
        NoticeKind::Settled => 1,
    }
}

/// Begins an attempt at what is due, longest first; at nothing about the end of a pause whose opening waits too. What
/// somebody else is taking at this moment is left to them.
const CLAIM: &str = "
    WITH due AS (
        SELECT run, number, kind, destination, at FROM notice
        WHERE state = 0 AND destination = ANY($1) AND at <= $2 AND NOT (kind = 1 AND EXISTS (
            SELECT 1 FROM notice AS opened WHERE opened.run = notice.run AND opened.number = notice.number
                AND opened.kind = 0 AND opened.destination = notice.destination AND opened.state = 0))
        ORDER BY at, run, number, kind, destination LIMIT $3 FOR NO KEY UPDATE SKIP LOCKED
    )
    UPDATE notice SET attempts = notice.attempts + 1, at = $4 FROM due
    WHERE notice.run = due.run AND notice.number = due.number AND notice.kind = due.kind
        AND notice.destination = due.destination
    RETURNING notice.run, notice.number, notice.kind, notice.destination, notice.state, notice.attempts, notice.at,
        notice.note, due.at";

pub(super) async fn claim(
    connection: &Connection,
    clock: &StoreClock,
    destinations: &[Destination],
    limit: usize,
    hold: Duration,
) -> Result<Vec<NoticeRow>, Broken> {
    let now = now(connection, clock).await?;
    let names: Vec<&str> = destinations.iter().map(Destination::as_str).collect();
    let params: [&(dyn ToSql + Sync); 4] =
        [&names, &now.as_millis(), &columns::most(limit.min(PAGE_MAX)), &now.after(hold).as_millis()];
    let rows = connection.query(CLAIM, &params).await?;
    let read = |found: &Row| Ok((columns::get_time(found, 8)?, row(found)?));
    let mut begun = rows.iter().map(read).collect::<Result<Vec<(Timestamp, NoticeRow)>, Broken>>()?;
    begun.sort_unstable_by(|(one_at, one), (other_at, other)| (one_at, &one.key).cmp(&(other_at, &other.key)));
    Ok(begun.into_iter().map(|(_, row)| row).collect())
}

/// The time that arbitrates.
async fn now(connection: &Connection, clock: &StoreClock) -> Result<Timestamp, Broken> {
    let asked = Instant::now();
    let row = connection.query_opt(columns::CLOCK, &[]).await?;
    let millis = row.map_or(Ok(0), |row| columns::get(&row, 0))?;
    Ok(clock.arbiter(asked, millis))
}

/// Writes down what came of an attempt, unless a later one was begun or the notice is settled.
pub(super) async fn settle(
    connection: &Connection,
    clock: &StoreClock,
    key: &NoticeKey,
    attempt: u32,
    outcome: &NoticeOutcome,
) -> Result<bool, Broken> {
    let sql = "UPDATE notice SET state = $5, at = $6, note = $7
               WHERE run = $1 AND number = $2 AND kind = $3 AND destination = $4 AND state = 0 AND attempts = $8
               RETURNING 1";
    let waiting =
        NoticeRow { key: key.clone(), state: NoticeState::Waiting, attempts: attempt, at: Timestamp::from_millis(0) };
    let row = outcome.clone().settle(waiting, now(connection, clock).await?);
    let params: [&(dyn ToSql + Sync); 8] = [
        key.pause.run.uuid(),
        &i64::from(key.pause.number),
        &kind(key.kind),
        &key.destination.as_str(),
        &status(row.state.status()),
        &row.at.as_millis(),
        &outbox::note(&row.state),
        &i64::from(attempt),
    ];
    Ok(connection.query_opt(sql, &params).await?.is_some())
}

fn status(status: NoticeStatus) -> i16 {
    i16::from(outbox::status_code(status))
}

/// A notice, if there is one of this key.
pub(super) async fn find(connection: &Connection, key: &NoticeKey) -> Result<Option<NoticeRow>, Broken> {
    let sql = "SELECT run, number, kind, destination, state, attempts, at, note FROM notice
               WHERE run = $1 AND number = $2 AND kind = $3 AND destination = $4";
    let params: [&(dyn ToSql + Sync); 4] =
        [key.pause.run.uuid(), &i64::from(key.pause.number), &kind(key.kind), &key.destination.as_str()];
    connection.query_opt(sql, &params).await?.as_ref().map(row).transpose()
}

/// A page of any state, in the order of keys.
const LIST: &str = "
    SELECT run, number, kind, destination, state, attempts, at, note FROM notice
    WHERE (run, number, kind, destination) > ($1, $2, $3, $4) AND ($5::text IS NULL OR destination = $5)
        AND ($6::smallint IS NULL OR state = $6)
    ORDER BY run, number, kind, destination LIMIT $7";

/// A page of those that failed, which have an index of their own: they are few among many, and what an operator asks for.
const LIST_FAILED: &str = "
    SELECT run, number, kind, destination, state, attempts, at, note FROM notice
    WHERE state = 2 AND (run, number, kind, destination) > ($1, $2, $3, $4) AND ($5::text IS NULL OR destination = $5)
        AND ($6::smallint IS NULL OR state = $6)
    ORDER BY run, number, kind, destination LIMIT $7";

/// A page of notices, in the order of their keys.
pub(super) async fn list(connection: &Connection, filter: &NoticeFilter) -> Result<Vec<NoticeRow>, Broken> {
    // Before every notice: no run has the least of all ids.
    let (run, number, after_kind, after) = filter.after.as_ref().map_or((Uuid::nil(), -1, 0, ""), |after| {
        let PauseId { run, number } = after.pause;
        (*run.uuid(), i64::from(number), kind(after.kind), after.destination.as_str())
    });
    let sql = if filter.status == Some(NoticeStatus::Failed) { LIST_FAILED } else { LIST };
    let params: [&(dyn ToSql + Sync); 7] = [
        &run,
        &number,
        &after_kind,
        &after,
        &filter.destination.as_ref().map(Destination::as_str),
        &filter.status.map(status),
        &columns::most(filter.limit.min(PAGE_MAX)),
    ];
    connection.query(sql, &params).await?.iter().map(row).collect()
}

fn row(row: &Row) -> Result<NoticeRow, Broken> {
    let odd = |what: &str, found: &dyn std::fmt::Display| Broken::Unreadable(format!("notice {what} {found}"));
    let kind = match columns::get::<i16>(row, 2)? {
        0 => NoticeKind::Opened,
        1 => NoticeKind::Settled,
        other => return Err(odd("kind", &other)),
    };
    let name: &str = columns::get(row, 3)?;
    let destination = Destination::new(name).ok_or_else(|| odd("destination", &name))?;
    let code = columns::get::<i16>(row, 4)?;
    let status = outbox::status_of(i64::from(code)).ok_or_else(|| odd("state", &code))?;
    let pause = PauseId { run: columns::get_run(row, 0)?, number: columns::get_number(row, 1)? };
    Ok(NoticeRow {
        key: NoticeKey { pause, kind, destination },
        state: outbox::state(status, columns::get(row, 7)?),
        attempts: columns::get_number(row, 5)?,
        at: columns::get_time(row, 6)?,
    })
}
