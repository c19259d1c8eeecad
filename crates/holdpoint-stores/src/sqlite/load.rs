//! Reading runs back.

use holdpoint_core::ids::RunId;
use holdpoint_core::time::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row};

use super::columns::{Column, Name};
use super::{append, keys};
use crate::raw::{self, RawEntry, RawRun};

/// A run's rows, with the entries after a revision.
pub(super) fn run(connection: &Connection, id: RunId, after: u64, now: Timestamp) -> rusqlite::Result<Option<RawRun>> {
    let found = connection
        .prepare_cached(
            "SELECT run.key, last_seq, revision, session.name, name.text, epoch, owner, since
             FROM run JOIN session ON session.key = run.key >> 32 JOIN name ON name.key = run.agent WHERE id = ?1",
        )?
        .query_row([Column(id)], |row| {
            let (Column(revision), Name(session), Name(agent)) = (row.get(2)?, row.get(3)?, row.get(4)?);
            let lease = raw::lease_at(id, append::lease(row, 5)?, now);
            let (key, Column(last_seq)): (i64, _) = (row.get(0)?, row.get(1)?);
            Ok((key, last_seq, RawRun { revision, session, agent, lease, entries: Vec::new() }))
        })
        .optional()?;
    let Some((key, last_seq, mut run)) = found else { return Ok(None) };
    // From the run's last entry backwards, past those of other runs in the session, until all that are new are found.
    let mut newest = connection.prepare_cached(
        "SELECT key, revision, pause_groups, at, body FROM entry WHERE key BETWEEN ?1 AND ?2 AND run = ?3
         ORDER BY key DESC LIMIT ?4",
    )?;
    let last = keys::key(keys::session_of(key), last_seq)?;
    let new = Column(run.revision.saturating_sub(after));
    let rows = newest.query_map((key, last, Column(keys::seq_of(key)), new), |row| entry(row, 0))?;
    run.entries = rows.collect::<rusqlite::Result<_>>()?;
    run.entries.reverse();
    Ok(Some(run))
}

/// The entry in the columns `key`, `revision`, `pause_groups`, `at` and `body`, from this index on.
pub(super) fn entry(row: &Row<'_>, first: usize) -> rusqlite::Result<RawEntry> {
    let (Column(revision), Column(pause_groups)) = (row.get(first + 1)?, row.get(first + 2)?);
    let (last_seq, Column(at)) = (keys::seq_of(row.get(first)?), row.get(first + 3)?);
    Ok(RawEntry { revision, last_seq, pause_groups, at, body: row.get(first + 4)? })
}
