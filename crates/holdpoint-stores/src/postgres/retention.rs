//! Sessions in which nothing has happened for long are removed whole: each in a transaction of its own, in which it is
//! locked as an append locks it, and looked at once more.

use holdpoint_core::time::Timestamp;

use super::columns;
use super::connection::{Connection, Pipeline};
use super::fault::{Broken, WriteError};

/// The keys of sessions that may be removed, the oldest first.
pub(super) async fn old(connection: &Connection, before: Timestamp, limit: usize) -> Result<Vec<i64>, Broken> {
    let sql = "SELECT key FROM session WHERE last_at < $1
               AND NOT EXISTS (SELECT 1 FROM run WHERE run.session = session.key AND run.status <> 2)
               ORDER BY key LIMIT $2";
    let rows = connection.query(sql, &[&before.as_millis(), &columns::most(limit)]).await?;
    rows.iter().map(|row| columns::get(row, 0)).collect()
}

/// Begins a transaction that holds the session; says whether it may be removed. One that somebody writes to, or that
/// somebody else is about to remove, is left to them.
pub(super) async fn begin(connection: &Connection, session: i64, before: Timestamp) -> Result<bool, Broken> {
    connection.batch("BEGIN ISOLATION LEVEL READ COMMITTED").await?;
    let lock = "SELECT 1 FROM session WHERE key = $1 FOR UPDATE SKIP LOCKED";
    if connection.query_opt(lock, &[&session]).await?.is_none() {
        return Ok(false);
    }
    // In a statement of its own: it sees what was committed before the lock was had.
    let sql = "SELECT 1 FROM session WHERE key = $1 AND last_at < $2
               AND NOT EXISTS (SELECT 1 FROM run WHERE run.session = session.key AND run.status <> 2)
               AND NOT EXISTS (SELECT 1 FROM entry WHERE entry.session = session.key AND entry.at >= $2)";
    Ok(connection.query_opt(sql, &[&session, &before.as_millis()]).await?.is_some())
}

/// What is done at the end of the transaction.
fn removal<'a>(session: i64) -> Pipeline<'a> {
    let mut pipeline = Pipeline::default();
    for sql in [
        "DELETE FROM notice WHERE run IN (SELECT id FROM run WHERE session = $1)",
        "DELETE FROM pause WHERE session = $1",
        "DELETE FROM rule WHERE session = $1",
        "DELETE FROM entry WHERE session = $1",
        "DELETE FROM run WHERE session = $1",
        "DELETE FROM session WHERE key = $1",
    ] {
        pipeline.add(sql, [Box::new(session)]);
    }
    pipeline
}

/// Removes a session that is held.
pub(super) async fn end(connection: &Connection, session: i64) -> Result<(), WriteError> {
    removal(session).commit(connection).await
}
