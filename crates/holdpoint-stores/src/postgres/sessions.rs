//! Sessions: their rows, which every append locks first, and their runs and entries.

use holdpoint_core::ids::{ActorId, RunId, SessionId};
use holdpoint_runtime::ports::store::RunRow;
use tokio_postgres::Row;

use super::connection::Connection;
use super::fault::Broken;
use super::{columns, load};
use crate::raw::RawEntry;

/// Begins a session that is not there yet. Waits for somebody else who is about to begin it.
pub(super) const ADD: &str = "
    INSERT INTO session (name, began_by, created_at, last_at) VALUES ($1, $2, $3, $3) ON CONFLICT (name) DO NOTHING";

/// Locks a session: until the commit nobody else writes to it.
pub(super) const LOCK: &str = "
    SELECT key, began_by, events, pause_groups FROM session WHERE name = $1 FOR NO KEY UPDATE";

/// A session under its lock.
pub(super) struct Locked {
    pub(super) key: i64,
    pub(super) owner: ActorId,
    /// How many events it has.
    pub(super) events: u64,
    /// How many times pauses opened in it.
    pub(super) pause_groups: u64,
}

impl Locked {
    pub(super) fn read(row: &Row) -> Result<Self, Broken> {
        Ok(Self {
            key: columns::get(row, 0)?,
            owner: columns::get_name(row, 1)?,
            events: columns::get_count(row, 2)?,
            pause_groups: columns::get_count(row, 3)?,
        })
    }
}

/// A session's runs, newest first.
pub(super) async fn runs(connection: &Connection, session: &SessionId, limit: usize) -> Result<Vec<RunRow>, Broken> {
    let sql = "SELECT id, agent, status FROM run WHERE session = (SELECT key FROM session WHERE name = $1)
               ORDER BY first_seq DESC LIMIT $2";
    let rows = connection.query(sql, &[&session.as_str(), &columns::most(limit)]).await?;
    let read = |row| {
        let (run, agent) = (columns::get_run(row, 0)?, columns::get_name(row, 1)?);
        Ok(RunRow { run, agent, status: columns::get_status(row, 2)? })
    };
    rows.iter().map(read).collect()
}

/// A session's entries that have events from a number on, in order.
pub(super) async fn entries(
    connection: &Connection,
    session: &SessionId,
    from: u64,
    limit: usize,
) -> Result<Vec<(RunId, RawEntry)>, Broken> {
    let sql = "SELECT run, revision, last_seq, pause_groups, at, body FROM entry
               WHERE session = (SELECT key FROM session WHERE name = $1) AND last_seq >= $2
               ORDER BY last_seq LIMIT $3";
    let rows = connection.query(sql, &[&session.as_str(), &columns::count(from), &columns::most(limit)]).await?;
    rows.iter().map(|row| Ok((columns::get_run(row, 0)?, load::entry(row, 1)?))).collect()
}

/// The number of the last event in each of these sessions.
pub(super) async fn heads(connection: &Connection, sessions: &[SessionId]) -> Result<Vec<(SessionId, u64)>, Broken> {
    let sql = "SELECT name, events FROM session WHERE name = ANY($1)";
    let names: Vec<&str> = sessions.iter().map(SessionId::as_str).collect();
    let rows = connection.query(sql, &[&names]).await?;
    rows.iter().map(|row| Ok((columns::get_name(row, 0)?, columns::get_count(row, 1)?))).collect()
}
