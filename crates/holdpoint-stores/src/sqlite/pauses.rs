//! Pauses: the inbox and the deadlines.

use holdpoint_core::ids::{PauseId, RunId};
use holdpoint_core::time::Timestamp;
use holdpoint_runtime::ports::store::{Append, PauseFilter, PauseRow, PauseStatus};
use rusqlite::{Connection, OptionalExtension, Row, named_params};

use super::book::Book;
use super::columns::{Column, Name};
use super::sessions;
use crate::admit;

/// Writes the rows that an append opens or changes; those that it opens take its number.
pub(super) fn write(book: &mut Book, run: i64, append: &Append, group: Option<u64>) -> rusqlite::Result<()> {
    for row in &append.pauses {
        if admit::opens(append, row) || !change(&book.connection, run, row)? {
            open(book, run, row, group)?;
        }
    }
    Ok(())
}

/// Changes how a pause stands, and its deadline while it waits: what was asked stays as it was. Says if it is there.
fn change(connection: &Connection, run: i64, row: &PauseRow) -> rusqlite::Result<bool> {
    let changed = match row.status {
        PauseStatus::Open => connection
            .prepare_cached("UPDATE pause SET status = 0, expires_at = ?3 WHERE run = ?1 AND number = ?2")?
            .execute((run, row.id.number, row.expires_at.map(Column)))?,
        PauseStatus::Decided | PauseStatus::Expired | PauseStatus::Withdrawn => connection
            .prepare_cached("UPDATE pause SET status = ?3 WHERE run = ?1 AND number = ?2")?
            .execute((run, row.id.number, Column(row.status)))?,
    };
    Ok(changed > 0)
}

fn open(book: &mut Book, run: i64, row: &PauseRow, group: Option<u64>) -> rusqlite::Result<()> {
    let agent = sessions::name(book, row.agent.as_str())?;
    let tool = row.tool.as_ref().map(|tool| sessions::name(book, tool.as_str())).transpose()?;
    book.connection
        .prepare_cached(
            "INSERT INTO pause (run, number, kind, status, agent, tool, opened_at, expires_at, pause_group)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
             ON CONFLICT (run, number) DO UPDATE SET status = excluded.status",
        )?
        .execute((
            run,
            row.id.number,
            Column(row.kind),
            Column(row.status),
            agent,
            tool,
            Column(row.opened_at),
            row.expires_at.map(Column),
            Column(group.unwrap_or_default()),
        ))?;
    Ok(())
}

/// Open pauses whose time is up, earliest deadline first.
pub(super) fn due(connection: &Connection, limit: usize, now: Timestamp) -> rusqlite::Result<Vec<PauseId>> {
    connection
        .prepare_cached(
            "SELECT run.id, number FROM pause INDEXED BY pause_by_deadline CROSS JOIN run ON run.key = pause.run
             WHERE pause.status = 0 AND expires_at IS NOT NULL AND expires_at <= ?1
             ORDER BY expires_at, run.id, number LIMIT ?2",
        )?
        .query_map((Column(now), Column(limit)), |row| {
            let Column(run) = row.get(0)?;
            Ok(PauseId { run, number: row.get(1)? })
        })?
        .collect()
}

/// The earliest deadline of an open pause.
pub(super) fn next_deadline(connection: &Connection) -> rusqlite::Result<Option<Timestamp>> {
    let earliest: Option<Column<Timestamp>> = connection
        .prepare_cached(
            "SELECT expires_at FROM pause INDEXED BY pause_by_deadline
             WHERE status = 0 AND expires_at IS NOT NULL ORDER BY expires_at LIMIT 1",
        )?
        .query_row([], |row| row.get(0))
        .optional()?;
    Ok(earliest.map(|Column(time)| time))
}

/// A page of pauses, oldest first.
pub(super) fn list(connection: &Connection, filter: &PauseFilter) -> rusqlite::Result<Vec<PauseRow>> {
    let limit = filter.limit.min(PauseFilter::LIMIT_MAX);
    let all = [PauseStatus::Open, PauseStatus::Decided, PauseStatus::Expired, PauseStatus::Withdrawn];
    let statuses = filter.status.as_ref().map_or(all.as_slice(), std::slice::from_ref);
    // Each status is a stretch of the index in the order of time; a page of all is merged from a page of each.
    let mut rows = Vec::new();
    for status in statuses {
        rows.extend(list_with(connection, filter, *status, limit)?);
    }
    if statuses.len() > 1 {
        rows.sort_unstable_by_key(PauseRow::cursor);
        rows.truncate(limit);
    }
    Ok(rows)
}

/// Driven by the order of time.
const LIST: &str = "
    SELECT run.id, number, kind, pause.status, session.name, agent.text, tool.text, opened_at, expires_at, pause_group
    FROM pause INDEXED BY pause_by_time
    CROSS JOIN run ON run.key = pause.run
    CROSS JOIN session ON session.key = run.key >> 32
    CROSS JOIN name AS agent ON agent.key = pause.agent
    LEFT JOIN name AS tool ON tool.key = pause.tool
    WHERE pause.status = :status AND opened_at >= :opened_after
        AND (opened_at, run.id, number) > (:opened_after, :after_run, :after_number)
        AND (:agent IS NULL OR agent.text = :agent)
        AND (:tool IS NULL OR tool.text = :tool)
        AND :session IS NULL
    ORDER BY opened_at, run.id, number LIMIT :limit";

/// Driven by the keys of one session. The plus signs keep the planner from going through every open pause instead.
const LIST_OF_SESSION: &str = "
    SELECT run.id, number, kind, pause.status, session.name, agent.text, tool.text, opened_at, expires_at, pause_group
    FROM session
    CROSS JOIN pause ON pause.run BETWEEN session.key << 32 AND (session.key << 32) + 4294967295
    CROSS JOIN run ON run.key = pause.run
    CROSS JOIN name AS agent ON agent.key = pause.agent
    LEFT JOIN name AS tool ON tool.key = pause.tool
    WHERE session.name = :session AND +pause.status = :status
        AND (+opened_at, run.id, number) > (:opened_after, :after_run, :after_number)
        AND (:agent IS NULL OR agent.text = :agent)
        AND (:tool IS NULL OR tool.text = :tool)
    ORDER BY opened_at, run.id, number LIMIT :limit";

fn list_with(
    connection: &Connection,
    filter: &PauseFilter,
    status: PauseStatus,
    limit: usize,
) -> rusqlite::Result<Vec<PauseRow>> {
    let sql = if filter.session.is_some() { LIST_OF_SESSION } else { LIST };
    let after = filter.after;
    connection
        .prepare_cached(sql)?
        .query_map(
            named_params! {
                ":status": Column(status),
                ":session": filter.session.as_ref().map(|session| session.as_str()),
                ":agent": filter.agent.as_ref().map(|agent| agent.as_str()),
                ":tool": filter.tool.as_ref().map(|tool| tool.as_str()),
                // Before the first of all: no time is negative.
                ":opened_after": after.map_or(-1, |after| after.opened_at.as_millis()),
                ":after_run": after.map(|after| Column(after.id.run)),
                ":after_number": after.map(|after| after.id.number),
                ":limit": Column(limit),
            },
            row,
        )?
        .collect()
}

fn row(row: &Row<'_>) -> rusqlite::Result<PauseRow> {
    let Column(run): Column<RunId> = row.get(0)?;
    let (Column(kind), Column(status), Name(session)) = (row.get(2)?, row.get(3)?, row.get(4)?);
    let (Name(agent), tool): (_, Option<Name<_>>) = (row.get(5)?, row.get(6)?);
    let (Column(opened_at), expires_at): (_, Option<Column<_>>) = (row.get(7)?, row.get(8)?);
    let Column(group) = row.get(9)?;
    Ok(PauseRow {
        id: PauseId { run, number: row.get(1)? },
        kind,
        status,
        session,
        agent,
        tool: tool.map(|Name(tool)| tool),
        opened_at,
        expires_at: expires_at.map(|Column(time)| time),
        group,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(sql: &str) -> Vec<String> {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch(include_str!("migrations/0001_runs.sql")).unwrap();
        let mut explain = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        explain.raw_query().mapped(|row| row.get(3)).collect::<rusqlite::Result<_>>().unwrap()
    }

    #[test]
    fn a_page_is_read_from_the_index_in_the_order_of_time() {
        let plan = plan(LIST);
        assert_eq!(plan[0], "SEARCH pause USING INDEX pause_by_time (status=? AND opened_at>?)");
        assert!(plan.iter().any(|line| line.contains("TEMP B-TREE FOR LAST 2 TERMS OF ORDER BY")), "{plan:?}");
    }

    #[test]
    fn a_sessions_pauses_lie_together() {
        let plan = plan(LIST_OF_SESSION);
        assert!(plan.contains(&"SEARCH pause USING PRIMARY KEY (run>? AND run<?)".to_owned()), "{plan:?}");
        assert!(!plan.iter().any(|line| line.starts_with("SCAN")), "{plan:?}");
    }
}
