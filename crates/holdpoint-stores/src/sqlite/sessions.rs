//! Sessions: their names, their counters, their runs and entries. Also the names of agents and tools, kept once.

use holdpoint_core::ids::{ActorId, AgentId, RunId, SessionId};
use holdpoint_runtime::ports::store::{RunRow, RunStatus};
use rusqlite::{Connection, OptionalExtension};

use super::book::{Book, Counters};
use super::columns::{Column, Name};
use super::{keys, load};
use crate::raw::RawEntry;

/// A session's key, if it has been used.
pub(super) fn find(connection: &Connection, session: &SessionId) -> rusqlite::Result<Option<i64>> {
    connection
        .prepare_cached("SELECT key FROM session WHERE name = ?1")?
        .query_row([session.as_str()], |row| row.get(0))
        .optional()
}

/// The key of a session that is used for the first time.
pub(super) fn add(book: &mut Book, session: &SessionId, owner: &ActorId) -> rusqlite::Result<i64> {
    let key = book
        .connection
        .prepare_cached("INSERT INTO session (name, began_by) VALUES (?1, ?2)")?
        .insert([session.as_str(), owner.as_str()])?;
    book.memory.keep_session(session, key);
    book.memory.keep_counters(key, Counters::default());
    Ok(key)
}

/// Whether this actor owns a session.
pub(super) fn is_owner(connection: &Connection, session: i64, actor: Option<&ActorId>) -> rusqlite::Result<bool> {
    connection
        .prepare_cached("SELECT began_by = ?2 FROM session WHERE key = ?1")?
        .query_row((session, actor.map(ActorId::as_str)), |row| Ok(row.get::<_, Option<bool>>(0)?.unwrap_or(false)))
}

/// The key of an agent's or a tool's name, if it has been used.
pub(super) fn find_name(connection: &Connection, text: &str) -> rusqlite::Result<Option<i64>> {
    connection.prepare_cached("SELECT key FROM name WHERE text = ?1")?.query_row([text], |row| row.get(0)).optional()
}

/// The key of an agent's or a tool's name.
pub(super) fn name(book: &mut Book, text: &str) -> rusqlite::Result<i64> {
    if let Some(key) = book.memory.name(text) {
        return Ok(key);
    }
    let connection = &book.connection;
    let add = || connection.prepare_cached("INSERT INTO name (text) VALUES (?1)")?.insert([text]);
    let key = find_name(connection, text)?.map_or_else(add, Ok)?;
    book.memory.keep_name(text, key);
    Ok(key)
}

/// How many events a session has, and how many times pauses opened in it: the last entry knows.
pub(super) fn counters(book: &Book, session: i64) -> rusqlite::Result<Counters> {
    if let Some(counters) = book.memory.counters(session) {
        return Ok(counters);
    }
    let last = book
        .connection
        .prepare_cached("SELECT key, pause_groups FROM entry WHERE key BETWEEN ?1 AND ?2 ORDER BY key DESC LIMIT 1")?
        .query_row(keys::keys_of(session), |row| {
            let Column(pause_groups) = row.get(1)?;
            Ok(Counters { events: keys::seq_of(row.get(0)?), pause_groups })
        })
        .optional()?;
    Ok(last.unwrap_or_default())
}

/// A session's runs, newest first.
pub(super) fn runs(connection: &Connection, session: &SessionId, limit: usize) -> rusqlite::Result<Vec<RunRow>> {
    let Some((first, last)) = keys::keys_of_name(connection, session)? else { return Ok(Vec::new()) };
    connection
        .prepare_cached(
            "SELECT run.id, name.text, run.status FROM run JOIN name ON name.key = run.agent
             WHERE run.key BETWEEN ?1 AND ?2 ORDER BY run.key DESC LIMIT ?3",
        )?
        .query_map((first, last, Column(limit)), |row| {
            let (Column(run), Name(agent)): (Column<RunId>, Name<AgentId>) = (row.get(0)?, row.get(1)?);
            let Column(status): Column<RunStatus> = row.get(2)?;
            Ok(RunRow { run, agent, status })
        })?
        .collect()
}

/// A session's entries that have events from a number on, in order.
pub(super) fn entries(
    connection: &Connection,
    session: &SessionId,
    from: u64,
    limit: usize,
) -> rusqlite::Result<Vec<(RunId, RawEntry)>> {
    let Some((first, last)) = keys::keys_of_name(connection, session)? else { return Ok(Vec::new()) };
    let from = first.saturating_add(i64::try_from(from).unwrap_or(i64::MAX));
    connection
        .prepare_cached(
            "SELECT run.id, entry.key, entry.revision, pause_groups, at, body
             FROM entry JOIN run ON run.key = ?1 + entry.run
             WHERE entry.key BETWEEN ?2 AND ?3 ORDER BY entry.key LIMIT ?4",
        )?
        .query_map((first, from, last, Column(limit)), |row| {
            let Column(run) = row.get(0)?;
            Ok((run, load::entry(row, 1)?))
        })?
        .collect()
}
