//! The only way to write a run. Everything is checked before anything is written, so that a refused append leaves the
//! transaction as it found it and its neighbours are committed.

use holdpoint_core::ids::RunId;
use holdpoint_core::record;
use holdpoint_core::time::Timestamp;
use holdpoint_runtime::ports::store::{Append, AppendError, Appended, RunStatus};
use rusqlite::{Connection, OptionalExtension, Row};

use super::columns::Column;
use super::fault::WriteError;
use super::{definitions, pauses, rules, sessions};
use crate::admit::{self, Found, LeaseSlot, Mover};

/// An append with its entry as bytes: made where it is asked for, so that the writer's thread only writes.
pub(super) struct PreparedAppend {
    append: Append,
    body: Vec<u8>,
}

/// A run's row.
pub(super) struct RunRecord {
    pub(super) key: i64,
    pub(super) session: i64,
    pub(super) agent: i64,
    pub(super) found: Found,
}

impl PreparedAppend {
    pub(super) fn new(append: Append) -> Self {
        let body = record::encode(&append.events);
        Self { append, body }
    }

    /// About how many bytes it writes.
    pub(super) fn size(&self) -> usize {
        self.body.len() + self.append.definitions.iter().map(|(_, bytes)| bytes.len()).sum::<usize>()
    }

    /// Writes it in the open transaction.
    pub(super) fn write(&self, connection: &Connection, now: Timestamp) -> Result<Appended, WriteError> {
        let append = &self.append;
        let known = find(connection, append.run, append.session.as_str())?;
        let found = known.as_ref().map(|run| &run.found);
        let place = match &known {
            Some(run) => Place { session: Some(run.session), agent: Some(run.agent) },
            None => Place::find(connection, append)?,
        };
        if admit::begins(append, found)? {
            place.check_free(connection)?;
        }
        let lease = admit::lease_after(append, found, now)?;
        let changed_rules = rules::check(connection, append, place.session)?;

        // Nothing is refused from here on.
        let session = place.session.map_or_else(|| sessions::add(connection, &append.session), Ok)?;
        let key = match &known {
            Some(run) => update(connection, run, append.status, &lease)?,
            None => insert(connection, append, session, &lease)?,
        };
        let numbers = self.write_entry(connection, key, session)?;
        if !append.pauses.is_empty() {
            pauses::write(connection, key, &append.pauses, numbers.pause_group)?;
        }
        rules::write(connection, &changed_rules, session)?;
        definitions::write(connection, &append.definitions)?;
        Ok(Appended {
            revision: append.expected + 1,
            seq: numbers.seq,
            pause_group: numbers.pause_group,
            epoch: admit::epoch_of(append, &lease),
        })
    }

    fn write_entry(&self, connection: &Connection, run: i64, session: i64) -> rusqlite::Result<Numbers> {
        let (last_seq, pause_groups) = sessions::counters(connection, session)?;
        let opens = self.append.opens_pauses();
        let pause_groups = pause_groups + u64::from(opens);
        connection
            .prepare_cached(
                "INSERT INTO entry (run, revision, session, last_seq, pause_groups, at, body)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            )?
            .execute((
                run,
                Column(self.append.expected + 1),
                session,
                Column(last_seq + self.append.events.len() as u64),
                Column(pause_groups),
                Column(self.append.at),
                &self.body,
            ))?;
        Ok(Numbers { seq: last_seq + 1, pause_group: opens.then_some(pause_groups) })
    }
}

/// The session's numbers of an entry.
struct Numbers {
    seq: u64,
    pause_group: Option<u64>,
}

/// Where a run belongs, as far as the file knows the names.
struct Place {
    session: Option<i64>,
    agent: Option<i64>,
}

impl Place {
    fn find(connection: &Connection, append: &Append) -> rusqlite::Result<Self> {
        Ok(Self {
            session: sessions::find(connection, &append.session)?,
            agent: sessions::find_name(connection, append.agent.as_str())?,
        })
    }

    /// Refuses a second run of the agent in the session.
    fn check_free(&self, connection: &Connection) -> Result<(), WriteError> {
        let (Some(session), Some(agent)) = (self.session, self.agent) else { return Ok(()) };
        let busy = connection
            .prepare_cached("SELECT id FROM run WHERE session = ?1 AND agent = ?2 AND status < 2")?
            .query_row((session, agent), |row| row.get(0))
            .optional()?;
        busy.map_or(Ok(()), |Column(run)| Err(AppendError::SessionBusy { run }.into()))
    }
}

/// A run, and whether it is in the session of that name.
pub(super) fn find(connection: &Connection, run: RunId, session: &str) -> rusqlite::Result<Option<RunRecord>> {
    connection
        .prepare_cached(
            "SELECT run.key, run.session, agent, revision, status, epoch, owner, since, session.name = ?2
             FROM run JOIN session ON session.key = run.session WHERE id = ?1",
        )?
        .query_row((Column(run), session), |row| {
            Ok(RunRecord {
                key: row.get(0)?,
                session: row.get(1)?,
                agent: row.get(2)?,
                found: Found {
                    revision: row.get::<_, Column<u64>>(3)?.0,
                    status: row.get::<_, Column<RunStatus>>(4)?.0,
                    lease: lease(row, 5)?,
                    is_here: row.get(8)?,
                },
            })
        })
        .optional()
}

/// The lease in the columns `epoch`, `owner` and `since`, the first of which has this index.
pub(super) fn lease(row: &Row<'_>, first: usize) -> rusqlite::Result<LeaseSlot> {
    let Column(since) = row.get(first + 2)?;
    let mover = match row.get(first + 1)? {
        Some(owner) => Mover::Holder { owner, until: since },
        None => Mover::Nobody { since },
    };
    Ok(LeaseSlot { epoch: row.get::<_, Column<u64>>(first)?.0, mover })
}

/// The columns `owner` and `since` of a lease.
pub(super) fn mover(lease: &LeaseSlot) -> (Option<&str>, Column<Timestamp>) {
    match &lease.mover {
        Mover::Holder { owner, until } => (Some(owner), Column(*until)),
        Mover::Nobody { since } => (None, Column(*since)),
    }
}

fn insert(connection: &Connection, append: &Append, session: i64, lease: &LeaseSlot) -> rusqlite::Result<i64> {
    let agent = sessions::name(connection, append.agent.as_str())?;
    let (owner, since) = mover(lease);
    connection
        .prepare_cached(
            "INSERT INTO run (id, session, agent, revision, status, epoch, owner, since)
             VALUES (?1, ?2, ?3, 1, ?4, ?5, ?6, ?7)",
        )?
        .insert((Column(append.run), session, agent, Column(append.status), Column(lease.epoch), owner, since))
}

fn update(connection: &Connection, run: &RunRecord, status: RunStatus, lease: &LeaseSlot) -> rusqlite::Result<i64> {
    let revision = Column(run.found.revision + 1);
    if run.found.status == status && run.found.lease == *lease {
        // Most appends of a run in motion: no index is touched.
        connection.prepare_cached("UPDATE run SET revision = ?2 WHERE key = ?1")?.execute((run.key, revision))?;
    } else {
        let (owner, since) = mover(lease);
        connection
            .prepare_cached(
                "UPDATE run SET revision = ?2, status = ?3, epoch = ?4, owner = ?5, since = ?6 WHERE key = ?1",
            )?
            .execute((run.key, revision, Column(status), Column(lease.epoch), owner, since))?;
    }
    Ok(run.key)
}
