//! Reading runs back. Rows are copied out of the file first and decoded afterwards, so that a connection is held only
//! for as long as SQLite works.

use holdpoint_core::event::RunEvent;
use holdpoint_core::ids::{AgentId, RunId, SessionId};
use holdpoint_core::record::{self, Entry};
use holdpoint_core::time::Timestamp;
use holdpoint_runtime::ports::store::{Lease, LoadedRun, StoreFault};
use rusqlite::{Connection, OptionalExtension, Row};

use super::columns::{Column, Name};
use super::{append, fault, keys};
use crate::admit::Mover;

/// A run as it stands in the file.
pub(super) struct RawRun {
    revision: u64,
    session: SessionId,
    agent: AgentId,
    lease: Option<Lease>,
    entries: Vec<RawEntry>,
}

/// An entry as it stands in the file.
pub(super) struct RawEntry {
    revision: u64,
    last_seq: u64,
    pause_groups: u64,
    at: Timestamp,
    body: Vec<u8>,
}

/// A run's rows, with the entries after a revision.
pub(super) fn run(connection: &Connection, id: RunId, after: u64, now: Timestamp) -> rusqlite::Result<Option<RawRun>> {
    let found = connection
        .prepare_cached(
            "SELECT run.key, last_seq, revision, session.name, name.text, epoch, owner, since
             FROM run JOIN session ON session.key = run.key >> 32 JOIN name ON name.key = run.agent WHERE id = ?1",
        )?
        .query_row([Column(id)], |row| {
            let (Column(revision), Name(session), Name(agent)) = (row.get(2)?, row.get(3)?, row.get(4)?);
            let slot = append::lease(row, 5)?;
            let lease = match slot.mover {
                Mover::Holder { owner, until } if now < until => {
                    Some(Lease { run: id, epoch: slot.epoch, owner, until })
                }
                Mover::Holder { .. } | Mover::Nobody { .. } => None,
            };
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
    let rows = newest.query_map((key, last, Column(keys::seq_of(key)), new), |row| RawEntry::read(row, 0))?;
    run.entries = rows.collect::<rusqlite::Result<_>>()?;
    run.entries.reverse();
    Ok(Some(run))
}

impl RawRun {
    /// # Errors
    /// What the file holds cannot be read, or is not all there.
    pub(super) fn decode(self, id: RunId, after: u64) -> Result<LoadedRun, StoreFault> {
        let expected = after.saturating_add(1)..=self.revision;
        if !self.entries.iter().map(|entry| entry.revision).eq(expected) {
            return Err(fault::incomplete(id));
        }
        let entries = self.entries.into_iter().map(|entry| entry.decode(id)).collect::<Result<_, _>>()?;
        Ok(LoadedRun { revision: self.revision, session: self.session, agent: self.agent, entries, lease: self.lease })
    }
}

impl RawEntry {
    /// The entry in the columns `key`, `revision`, `pause_groups`, `at` and `body`, from this index on.
    pub(super) fn read(row: &Row<'_>, first: usize) -> rusqlite::Result<Self> {
        let (Column(revision), Column(pause_groups)) = (row.get(first + 1)?, row.get(first + 2)?);
        let (last_seq, Column(at)) = (keys::seq_of(row.get(first)?), row.get(first + 3)?);
        Ok(Self { revision, last_seq, pause_groups, at, body: row.get(first + 4)? })
    }

    /// # Errors
    /// What the file holds cannot be read.
    pub(super) fn decode(self, run: RunId) -> Result<Entry, StoreFault> {
        let events = record::decode(&self.body).map_err(|refusal| fault::unreadable(run, self.revision, &refusal))?;
        let opens = events.iter().any(|event| matches!(event, RunEvent::PauseOpened(_)));
        Ok(Entry {
            revision: self.revision,
            seq: (self.last_seq + 1).saturating_sub(events.len() as u64),
            pause_group: opens.then_some(self.pause_groups),
            at: self.at,
            events: events.into(),
        })
    }
}
