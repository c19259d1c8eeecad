//! Sessions in which nothing has happened for long are removed whole: each in a transaction of its own, in which it is
//! looked at once more.

use holdpoint_core::time::Timestamp;
use rusqlite::Connection;

use super::book::Book;
use super::columns::Column;
use super::fault::WriteError;
use super::keys;

/// Whether the session with the keys from `?1` to `?2` has no unfinished run and no entry as young as `?3`.
const IS_OLD: &str = "
    NOT EXISTS (SELECT 1 FROM run WHERE run.key BETWEEN ?1 AND ?2 AND run.status <> 2)
    AND NOT EXISTS (SELECT 1 FROM entry WHERE entry.key BETWEEN ?1 AND ?2 AND entry.at >= ?3)";

/// What a session consists of, from its keys.
const REMOVE: [&str; 7] = [
    "DELETE FROM notice WHERE run IN (SELECT id FROM run WHERE key BETWEEN ?1 AND ?2)",
    "DELETE FROM pause WHERE run BETWEEN ?1 AND ?2",
    "DELETE FROM rule WHERE session = ?1 >> 32 AND ?2 > 0",
    "DELETE FROM under_way WHERE session = ?1 >> 32 AND ?2 > 0",
    "DELETE FROM entry WHERE key BETWEEN ?1 AND ?2",
    "DELETE FROM run WHERE key BETWEEN ?1 AND ?2",
    "DELETE FROM session WHERE key = ?1 >> 32 AND ?2 > 0",
];

/// The keys of sessions that may be removed, the oldest first.
pub(super) fn old(connection: &Connection, before: Timestamp, limit: usize) -> rusqlite::Result<Vec<i64>> {
    let mut found = Vec::new();
    let mut sessions = connection.prepare_cached("SELECT key FROM session ORDER BY key")?;
    let mut rows = sessions.query([])?;
    while let Some(row) = rows.next()? {
        if found.len() >= limit {
            break;
        }
        let session = row.get(0)?;
        if is_old(connection, session, before)? {
            found.push(session);
        }
    }
    Ok(found)
}

fn is_old(connection: &Connection, session: i64, before: Timestamp) -> rusqlite::Result<bool> {
    let (first, last) = keys::keys_of(session);
    connection.prepare_cached(&format!("SELECT {IS_OLD}"))?.query_row((first, last, Column(before)), |row| row.get(0))
}

/// Removes a session if it may be removed still; says whether it was.
pub(super) fn remove(book: &mut Book, session: i64, before: Timestamp) -> Result<bool, WriteError> {
    if !is_old(&book.connection, session, before)? {
        return Ok(false);
    }
    let mut removed = 0;
    for sql in REMOVE {
        removed = book.connection.prepare_cached(sql)?.execute(keys::keys_of(session))?;
    }
    // Whoever writes to the session next begins it anew.
    book.forget_all();
    Ok(removed > 0)
}
