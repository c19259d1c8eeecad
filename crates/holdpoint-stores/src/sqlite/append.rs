//! The only way to write a run. Everything is checked before anything is written, so that a refused append leaves the
//! transaction as it found it and its neighbours are committed.

use holdpoint_core::ids::RunId;
use holdpoint_core::record;
use holdpoint_core::time::Timestamp;
use holdpoint_runtime::ports::store::{Append, AppendError, Appended, RunStatus, StoreFault};
use rusqlite::{Connection, OptionalExtension, Row};

use super::columns::Column;
use super::fault::{self, WriteError};
use super::{definitions, keys, pauses, rules, sessions};
use crate::admit::{self, Found, LeaseSlot, Mover};

/// An append with its entry as bytes: made where it is asked for, so that the writer's thread only writes.
pub(super) struct PreparedAppend {
    append: Append,
    body: Vec<u8>,
}

/// A run's row.
struct RunRecord {
    key: i64,
    agent: i64,
    found: Found,
}

impl PreparedAppend {
    /// # Errors
    /// The append has no events.
    pub(super) fn new(append: Append) -> Result<Self, StoreFault> {
        if append.events.is_empty() {
            return Err(fault::no_events(append.run));
        }
        let body = record::encode(&append.events);
        Ok(Self { append, body })
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
            Some(run) => Place { session: Some(keys::session_of(run.key)), agent: Some(run.agent) },
            None => Place::find(connection, append)?,
        };
        if admit::begins(append, found)? {
            place.check_free(connection)?;
        }
        let lease = admit::lease_after(append, found, now)?;
        let changed_rules = rules::check(connection, append, place.session)?;

        // Nothing is refused from here on.
        let session = place.session.map_or_else(|| sessions::add(connection, &append.session), Ok)?;
        let numbers = self.numbers(connection, session)?;
        let run = match &known {
            Some(run) => update(connection, run, append.status, numbers.last_seq, &lease)?,
            None => insert(connection, append, session, &numbers, &lease)?,
        };
        self.write_entry(connection, &run, &numbers)?;
        pauses::write(connection, run.key, append, numbers.pause_group())?;
        rules::write(connection, &changed_rules, session)?;
        definitions::write(connection, &append.definitions)?;
        Ok(Appended {
            revision: append.expected + 1,
            seq: numbers.seq,
            pause_group: numbers.pause_group(),
            epoch: admit::epoch_of(append, &lease),
        })
    }

    /// What the session's counters give the entry.
    fn numbers(&self, connection: &Connection, session: i64) -> rusqlite::Result<Numbers> {
        let (events, pause_groups) = sessions::counters(connection, session)?;
        let opens_pauses = self.append.opens_pauses();
        Ok(Numbers {
            seq: events + 1,
            last_seq: events + self.append.events.len() as u64,
            pause_groups: pause_groups + u64::from(opens_pauses),
            opens_pauses,
        })
    }

    fn write_entry(&self, connection: &Connection, run: &RunKeys, numbers: &Numbers) -> rusqlite::Result<()> {
        connection
            .prepare_cached(
                "INSERT INTO entry (key, run, revision, pause_groups, at, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            )?
            .execute((
                keys::key(keys::session_of(run.key), numbers.last_seq)?,
                Column(keys::seq_of(run.key)),
                Column(self.append.expected + 1),
                Column(numbers.pause_groups),
                Column(self.append.at),
                &self.body,
            ))?;
        Ok(())
    }
}

/// The session's numbers of an entry.
struct Numbers {
    seq: u64,
    last_seq: u64,
    pause_groups: u64,
    opens_pauses: bool,
}

impl Numbers {
    fn pause_group(&self) -> Option<u64> {
        self.opens_pauses.then_some(self.pause_groups)
    }
}

/// The keys of a run that is being written.
struct RunKeys {
    key: i64,
    agent: i64,
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
            .prepare_cached(
                "SELECT run.id FROM under_way JOIN run ON run.key = under_way.run
                 WHERE under_way.session = ?1 AND under_way.agent = ?2",
            )?
            .query_row((session, agent), |row| row.get(0))
            .optional()?;
        busy.map_or(Ok(()), |Column(run)| Err(AppendError::SessionBusy { run }.into()))
    }
}

/// A run, and whether it is in the session of that name.
fn find(connection: &Connection, run: RunId, session: &str) -> rusqlite::Result<Option<RunRecord>> {
    connection
        .prepare_cached(
            "SELECT run.key, agent, revision, status, epoch, owner, since, session.name = ?2
             FROM run JOIN session ON session.key = run.key >> 32 WHERE id = ?1",
        )?
        .query_row((Column(run), session), |row| {
            let (Column(revision), Column(status)) = (row.get(2)?, row.get(3)?);
            let found = Found { revision, status, lease: lease(row, 4)?, is_here: row.get(7)? };
            Ok(RunRecord { key: row.get(0)?, agent: row.get(1)?, found })
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

fn insert(
    connection: &Connection,
    append: &Append,
    session: i64,
    numbers: &Numbers,
    lease: &LeaseSlot,
) -> rusqlite::Result<RunKeys> {
    let run =
        RunKeys { key: keys::key(session, numbers.seq)?, agent: sessions::name(connection, append.agent.as_str())? };
    let (owner, since) = mover(lease);
    connection
        .prepare_cached(
            "INSERT INTO run (key, id, agent, revision, last_seq, status, epoch, owner, since)
             VALUES (?1, ?2, ?3, 1, ?4, ?5, ?6, ?7, ?8)",
        )?
        .execute((
            run.key,
            Column(append.run),
            run.agent,
            Column(numbers.last_seq),
            Column(append.status),
            Column(lease.epoch),
            owner,
            since,
        ))?;
    if append.status != RunStatus::Finished {
        set_under_way(connection, &run)?;
    }
    Ok(run)
}

fn update(
    connection: &Connection,
    record: &RunRecord,
    status: RunStatus,
    last_seq: u64,
    lease: &LeaseSlot,
) -> rusqlite::Result<RunKeys> {
    let (run, before) = (RunKeys { key: record.key, agent: record.agent }, &record.found);
    let (revision, last_seq) = (Column(before.revision + 1), Column(last_seq));
    if before.status == status && before.lease == *lease {
        // Most appends of a run in motion: no index is touched.
        connection
            .prepare_cached("UPDATE run SET revision = ?2, last_seq = ?3 WHERE key = ?1")?
            .execute((run.key, revision, last_seq))?;
        return Ok(run);
    }
    let (owner, since) = mover(lease);
    connection
        .prepare_cached(
            "UPDATE run SET revision = ?2, last_seq = ?3, status = ?4, epoch = ?5, owner = ?6, since = ?7
             WHERE key = ?1",
        )?
        .execute((run.key, revision, last_seq, Column(status), Column(lease.epoch), owner, since))?;
    match (before.status == RunStatus::Finished, status == RunStatus::Finished) {
        (false, true) => clear_under_way(connection, &run)?,
        (true, false) => set_under_way(connection, &run)?,
        (true, true) | (false, false) => {}
    }
    Ok(run)
}

fn set_under_way(connection: &Connection, run: &RunKeys) -> rusqlite::Result<()> {
    connection.prepare_cached("INSERT INTO under_way (session, agent, run) VALUES (?1, ?2, ?3)")?.execute((
        keys::session_of(run.key),
        run.agent,
        run.key,
    ))?;
    Ok(())
}

fn clear_under_way(connection: &Connection, run: &RunKeys) -> rusqlite::Result<()> {
    connection
        .prepare_cached("DELETE FROM under_way WHERE session = ?1 AND agent = ?2")?
        .execute((keys::session_of(run.key), run.agent))?;
    Ok(())
}
