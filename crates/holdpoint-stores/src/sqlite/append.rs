//! The only way to write a run. Everything is checked before anything is written, so that a refused append leaves the
//! transaction as it found it and its neighbours are committed.

use holdpoint_core::ids::{ActorId, RunId, SessionId};
use holdpoint_core::json::CanonicalJson;
use holdpoint_core::record;
use holdpoint_core::time::Timestamp;
use holdpoint_runtime::ports::store::{Append, AppendError, Appended, RunStatus, StoreFault};
use rusqlite::{Connection, OptionalExtension, Row};

use super::book::{Book, Counters};
use super::columns::{Column, Name};
use super::fault::{self, WriteError};
use super::{audit, definitions, keys, notices, pauses, rules, sessions};
use crate::admit::{self, Found, LeaseSlot, Mover};

/// An append with its entry as bytes: made where it is asked for, so that the writer's thread only writes.
pub(super) struct PreparedAppend {
    append: Append,
    body: Vec<u8>,
    audit: Vec<CanonicalJson>,
}

/// A run's row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RunRecord {
    key: i64,
    session: SessionId,
    agent: i64,
    revision: u64,
    status: RunStatus,
    lease: LeaseSlot,
}

impl RunRecord {
    /// The run as a writer finds it who names this session.
    fn as_seen_from(&self, session: &SessionId) -> Found {
        let (revision, status, lease) = (self.revision, self.status, self.lease.clone());
        Found { is_here: self.session == *session, revision, status, lease }
    }
}

impl PreparedAppend {
    /// # Errors
    /// The append has no events, or a note that cannot be written.
    pub(super) fn new(append: Append) -> Result<Self, StoreFault> {
        if append.events.is_empty() {
            return Err(fault::no_events(append.run));
        }
        let (body, audit) = (record::encode(&append.events), audit::bodies(&append)?);
        Ok(Self { append, body, audit })
    }

    /// About how many bytes it writes.
    pub(super) fn size(&self) -> usize {
        self.body.len() + self.append.definitions.iter().map(|(_, bytes)| bytes.len()).sum::<usize>()
    }

    /// Writes it in the open transaction.
    pub(super) fn write(&self, book: &mut Book, now: Timestamp) -> Result<Appended, WriteError> {
        let append = &self.append;
        let known = find(book, append.run)?;
        let found = known.as_ref().map(|run| run.as_seen_from(&append.session));
        let place = match &known {
            Some(run) => Place { session: Some(keys::session_of(run.key)), agent: Some(run.agent) },
            None => Place::find(book, append)?,
        };
        if admit::begins(append, found.as_ref())? {
            if known.is_none() && append.only_owner {
                place.check_owner(&book.connection, append)?;
            }
            place.check_free(&book.connection)?;
        }
        let lease = admit::lease_after(append, found.as_ref(), now)?;
        let changed_rules = rules::check(&book.connection, append, place.session)?;

        // Nothing is refused from here on.
        let session = match place.session {
            Some(session) => session,
            None => {
                let owner = append.starter().cloned().unwrap_or_else(ActorId::local);
                sessions::add(book, &append.session, &owner)?
            }
        };
        let numbers = self.numbers(book, session)?;
        let run = match known {
            Some(run) => update(&book.connection, run, append.status, numbers.last_seq, lease)?,
            None => insert(book, append, session, &numbers, lease)?,
        };
        self.write_entry(&book.connection, &run, &numbers)?;
        pauses::write(book, run.key, append, numbers.pause_group())?;
        notices::write(&book.connection, append)?;
        rules::write(&book.connection, &changed_rules, session)?;
        definitions::write(book, &append.definitions)?;
        audit::write(book, &self.audit)?;
        let appended = Appended {
            revision: append.expected + 1,
            seq: numbers.seq,
            pause_group: numbers.pause_group(),
            epoch: admit::epoch_of(append, &run.lease),
        };
        book.memory.keep_counters(session, Counters { events: numbers.last_seq, pause_groups: numbers.pause_groups });
        match run.status {
            RunStatus::Finished => book.memory.forget_run(append.run),
            RunStatus::Working | RunStatus::Waiting => book.memory.keep_run(append.run, run),
        }
        Ok(appended)
    }

    /// What the session's counters give the entry.
    fn numbers(&self, book: &Book, session: i64) -> rusqlite::Result<Numbers> {
        let Counters { events, pause_groups } = sessions::counters(book, session)?;
        let opens_pauses = self.append.opens_pauses();
        Ok(Numbers {
            seq: events + 1,
            last_seq: events + self.append.events.len() as u64,
            pause_groups: pause_groups + u64::from(opens_pauses),
            opens_pauses,
        })
    }

    fn write_entry(&self, connection: &Connection, run: &RunRecord, numbers: &Numbers) -> rusqlite::Result<()> {
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

/// Where a run belongs, as far as the file knows the names.
struct Place {
    session: Option<i64>,
    agent: Option<i64>,
}

impl Place {
    fn find(book: &mut Book, append: &Append) -> rusqlite::Result<Self> {
        let session = match book.memory.session(&append.session) {
            Some(session) => Some(session),
            None => sessions::find(&book.connection, &append.session)?,
        };
        let agent = match book.memory.name(append.agent.as_str()) {
            Some(agent) => Some(agent),
            None => sessions::find_name(&book.connection, append.agent.as_str())?,
        };
        Ok(Self { session, agent })
    }

    /// Refuses a session that somebody else began.
    fn check_owner(&self, connection: &Connection, append: &Append) -> Result<(), WriteError> {
        let Some(session) = self.session else { return Ok(()) };
        match sessions::is_owner(connection, session, append.starter())? {
            true => Ok(()),
            false => Err(AppendError::SessionForeign { session: append.session.clone() }.into()),
        }
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

/// A run as it stands.
fn find(book: &Book, run: RunId) -> rusqlite::Result<Option<RunRecord>> {
    if let Some(record) = book.memory.run(run) {
        return Ok(Some(record.clone()));
    }
    book.connection
        .prepare_cached(
            "SELECT run.key, agent, revision, status, epoch, owner, since, session.name
             FROM run JOIN session ON session.key = run.key >> 32 WHERE id = ?1",
        )?
        .query_row([Column(run)], |row| {
            let (Column(revision), Column(status), Name(session)) = (row.get(2)?, row.get(3)?, row.get(7)?);
            let (key, agent, lease) = (row.get(0)?, row.get(1)?, lease(row, 4)?);
            Ok(RunRecord { key, session, agent, revision, status, lease })
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
    book: &mut Book,
    append: &Append,
    session: i64,
    numbers: &Numbers,
    lease: LeaseSlot,
) -> rusqlite::Result<RunRecord> {
    let run = RunRecord {
        key: keys::key(session, numbers.seq)?,
        session: append.session.clone(),
        agent: sessions::name(book, append.agent.as_str())?,
        revision: 1,
        status: append.status,
        lease,
    };
    let (owner, since) = mover(&run.lease);
    book.connection
        .prepare_cached(
            "INSERT INTO run (key, id, agent, revision, last_seq, status, epoch, owner, since)
             VALUES (?1, ?2, ?3, 1, ?4, ?5, ?6, ?7, ?8)",
        )?
        .execute((
            run.key,
            Column(append.run),
            run.agent,
            Column(numbers.last_seq),
            Column(run.status),
            Column(run.lease.epoch),
            owner,
            since,
        ))?;
    if run.status != RunStatus::Finished {
        set_under_way(&book.connection, &run)?;
    }
    Ok(run)
}

fn update(
    connection: &Connection,
    before: RunRecord,
    status: RunStatus,
    last_seq: u64,
    lease: LeaseSlot,
) -> rusqlite::Result<RunRecord> {
    let is_settled = before.status == status && before.lease == lease;
    let was_finished = before.status == RunStatus::Finished;
    let run = RunRecord { revision: before.revision + 1, status, lease, ..before };
    let (revision, last_seq) = (Column(run.revision), Column(last_seq));
    if is_settled {
        // Most appends of a run in motion: no index is touched.
        connection
            .prepare_cached("UPDATE run SET revision = ?2, last_seq = ?3 WHERE key = ?1")?
            .execute((run.key, revision, last_seq))?;
        return Ok(run);
    }
    let (owner, since) = mover(&run.lease);
    connection
        .prepare_cached(
            "UPDATE run SET revision = ?2, last_seq = ?3, status = ?4, epoch = ?5, owner = ?6, since = ?7
             WHERE key = ?1",
        )?
        .execute((run.key, revision, last_seq, Column(status), Column(run.lease.epoch), owner, since))?;
    match (was_finished, status == RunStatus::Finished) {
        (false, true) => clear_under_way(connection, &run)?,
        (true, false) => set_under_way(connection, &run)?,
        (true, true) | (false, false) => {}
    }
    Ok(run)
}

fn set_under_way(connection: &Connection, run: &RunRecord) -> rusqlite::Result<()> {
    connection.prepare_cached("INSERT INTO under_way (session, agent, run) VALUES (?1, ?2, ?3)")?.execute((
        keys::session_of(run.key),
        run.agent,
        run.key,
    ))?;
    Ok(())
}

fn clear_under_way(connection: &Connection, run: &RunRecord) -> rusqlite::Result<()> {
    connection
        .prepare_cached("DELETE FROM under_way WHERE session = ?1 AND agent = ?2")?
        .execute((keys::session_of(run.key), run.agent))?;
    Ok(())
}
