//! The outbox: notices are written with the append that they tell of, claimed, and settled.

use std::time::Duration;

use holdpoint_core::ids::{PauseId, RunId};
use holdpoint_core::time::Timestamp;
use holdpoint_runtime::ports::notifier::{Destination, NoticeKey, NoticeKind};
use holdpoint_runtime::ports::store::{
    Append, NoticeFilter, NoticeOutcome, NoticeRow, NoticeState, NoticeStatus, PAGE_MAX,
};
use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension, Row, ToSql, named_params};

use super::book::Book;
use super::columns::Column;
use super::fault::WriteError;

/// Writes the notices of an append; one that is there already is left as it is.
pub(super) fn write(connection: &Connection, append: &Append) -> rusqlite::Result<()> {
    for key in &append.notices {
        connection
            .prepare_cached(
                "INSERT INTO notice (run, number, kind, destination, state, attempts, at) VALUES (?1, ?2, ?3, ?4, 0, 0, ?5)
                 ON CONFLICT DO NOTHING",
            )?
            .execute((
                Column(key.pause.run),
                key.pause.number,
                Column(key.kind),
                key.destination.as_str(),
                Column(append.at),
            ))?;
    }
    Ok(())
}

/// What waits for a destination and is due, longest first; nothing about the end of a pause whose opening waits too.
const DUE: &str = "
    SELECT run, number, kind, destination, state, attempts, at, note FROM notice INDEXED BY notice_due
    WHERE state = 0 AND destination = ?1 AND at <= ?2 AND NOT (kind = 1 AND EXISTS (
        SELECT 1 FROM notice AS opened WHERE opened.run = notice.run AND opened.number = notice.number
            AND opened.kind = 0 AND opened.destination = notice.destination AND opened.state = 0))
    ORDER BY at, run, number, kind LIMIT ?3";

/// What is due to these destinations, longest first.
fn due(
    connection: &Connection,
    destinations: &[Destination],
    limit: usize,
    now: Timestamp,
) -> rusqlite::Result<Vec<NoticeRow>> {
    let limit = limit.min(PAGE_MAX);
    let mut rows: Vec<NoticeRow> = Vec::new();
    for (index, destination) in destinations.iter().enumerate() {
        if !destinations[..index].contains(destination) {
            let mut due = connection.prepare_cached(DUE)?;
            let found = due.query_map((destination.as_str(), Column(now), Column(limit)), row)?;
            rows.extend(found.collect::<rusqlite::Result<Vec<_>>>()?);
        }
    }
    rows.sort_unstable_by(|one, other| (one.at, &one.key).cmp(&(other.at, &other.key)));
    rows.truncate(limit);
    Ok(rows)
}

/// Whether anything is due: a look that writes nothing, and so costs no flush.
pub(super) fn is_due(
    connection: &Connection,
    destinations: &[Destination],
    limit: usize,
    now: Timestamp,
) -> rusqlite::Result<bool> {
    Ok(!due(connection, destinations, limit.min(1), now)?.is_empty())
}

/// Begins an attempt at what is due.
pub(super) fn claim(
    book: &mut Book,
    destinations: &[Destination],
    limit: usize,
    hold: Duration,
    now: Timestamp,
) -> Result<Vec<NoticeRow>, WriteError> {
    let due = due(&book.connection, destinations, limit, now)?;
    let begin = |row: NoticeRow| {
        let row = NoticeRow { attempts: row.attempts.saturating_add(1), at: now.after(hold), ..row };
        update(&book.connection, &row)?;
        Ok(row)
    };
    due.into_iter().map(begin).collect()
}

/// Writes down what came of an attempt, unless a later one was begun or the notice is settled.
pub(super) fn settle(
    book: &mut Book,
    key: &NoticeKey,
    attempt: u32,
    outcome: NoticeOutcome,
    now: Timestamp,
) -> Result<bool, WriteError> {
    match find(&book.connection, key)? {
        Some(row) if row.state == NoticeState::Waiting && row.attempts == attempt => {
            update(&book.connection, &outcome.settle(row, now))?;
            Ok(true)
        }
        _ => Ok(false),
    }
}

fn update(connection: &Connection, row: &NoticeRow) -> rusqlite::Result<()> {
    let key = &row.key;
    connection
        .prepare_cached(
            "UPDATE notice SET state = ?5, attempts = ?6, at = ?7, note = ?8
             WHERE run = ?1 AND number = ?2 AND kind = ?3 AND destination = ?4",
        )?
        .execute((
            Column(key.pause.run),
            key.pause.number,
            Column(key.kind),
            key.destination.as_str(),
            Column(row.state.status()),
            row.attempts,
            Column(row.at),
            crate::outbox::note(&row.state),
        ))?;
    Ok(())
}

/// A notice, if there is one of this key.
pub(super) fn find(connection: &Connection, key: &NoticeKey) -> rusqlite::Result<Option<NoticeRow>> {
    connection
        .prepare_cached(
            "SELECT run, number, kind, destination, state, attempts, at, note FROM notice
             WHERE run = ?1 AND number = ?2 AND kind = ?3 AND destination = ?4",
        )?
        .query_row((Column(key.pause.run), key.pause.number, Column(key.kind), key.destination.as_str()), row)
        .optional()
}

/// A page of notices, in the order of their keys.
pub(super) fn list(connection: &Connection, filter: &NoticeFilter) -> rusqlite::Result<Vec<NoticeRow>> {
    // Those that failed have an index of their own: they are few among many, and what an operator asks for.
    let of = match filter.status {
        None => "notice WHERE TRUE",
        Some(NoticeStatus::Waiting) => "notice WHERE state = 0",
        Some(NoticeStatus::Delivered) => "notice WHERE state = 1",
        Some(NoticeStatus::Failed) => "notice INDEXED BY notice_failed WHERE state = 2",
    };
    let sql = format!(
        "SELECT run, number, kind, destination, state, attempts, at, note FROM {of}
             AND (run, number, kind, destination) > (:run, :number, :kind, :after)
             AND (:destination IS NULL OR destination = :destination)
         ORDER BY run, number, kind, destination LIMIT :limit"
    );
    // Before every run: an id that is shorter.
    let start: &[u8] = &[];
    let after = filter.after.as_ref();
    let run = after.map(|after| Column(after.pause.run));
    connection
        .prepare_cached(&sql)?
        .query_map(
            named_params! {
                ":run": run.as_ref().map_or(&start as &dyn ToSql, |run: &Column<RunId>| run),
                ":number": after.map_or(0, |after| after.pause.number),
                ":kind": after.map_or(0, |after| i64::from(after.kind == NoticeKind::Settled)),
                ":after": after.map_or("", |after| after.destination.as_str()),
                ":destination": filter.destination.as_ref().map(Destination::as_str),
                ":limit": Column(filter.limit.min(PAGE_MAX)),
            },
            row,
        )?
        .collect()
}

fn row(row: &Row<'_>) -> rusqlite::Result<NoticeRow> {
    let (Column(run), Column(kind), Column(status), Column(at)) = (row.get(0)?, row.get(2)?, row.get(4)?, row.get(6)?);
    let odd = |column| rusqlite::Error::InvalidColumnType(column, "destination".to_owned(), Type::Text);
    let destination = Destination::new(row.get_ref(3)?.as_str()?).ok_or_else(|| odd(3))?;
    Ok(NoticeRow {
        key: NoticeKey { pause: PauseId { run, number: row.get(1)? }, kind, destination },
        state: crate::outbox::state(status, row.get(7)?),
        attempts: row.get(5)?,
        at,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_due_is_found_by_its_index_in_the_order_of_time() {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch(include_str!("migrations/0005_notices.sql")).unwrap();
        let mut explain = connection.prepare(&format!("EXPLAIN QUERY PLAN {DUE}")).unwrap();
        let plan: Vec<String> = explain.raw_query().mapped(|row| row.get(3)).collect::<rusqlite::Result<_>>().unwrap();
        assert_eq!(plan[0], "SEARCH notice USING INDEX notice_due (destination=? AND at<?)", "{plan:?}");
        assert!(!plan.iter().any(|line| line.starts_with("SCAN")), "{plan:?}");
    }
}
