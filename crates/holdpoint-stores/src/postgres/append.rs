//! The only way to write a run: one transaction, in which the session's row is locked first. Everything is checked
//! before anything is written, and the commit is sent with the last of what is written.

use std::collections::BTreeMap;
use std::time::Instant;

use holdpoint_core::ids::{ActorId, RuleId};
use holdpoint_core::json::CanonicalJson;
use holdpoint_core::record;
use holdpoint_core::time::Timestamp;
use holdpoint_runtime::ports::store::{Append, AppendError, Appended, RunStatus, StoreFault};
use tokio_postgres::Row;
use uuid::Uuid;

use super::connection::{Connection, Pipeline};
use super::definitions::Known;
use super::fault::{self, Broken, WriteError};
use super::sessions::{self, Locked};
use super::{audit, columns, definitions, leases, notices, pauses, rules};
use crate::admit::{self, Found, LeaseSlot};
use crate::clock::StoreClock;
use crate::rule_changes::RuleRecord;

/// An append with its entry as bytes.
pub(super) struct PreparedAppend {
    pub(super) append: Append,
    pub(super) body: Vec<u8>,
    pub(super) audit: Vec<CanonicalJson>,
    /// By which its entry is found again where the commit is in doubt.
    pub(super) token: Uuid,
}

/// An append that was admitted; nothing is refused from here on.
pub(super) struct Admitted {
    session: Locked,
    /// Whether the run's row is there already.
    is_known: bool,
    lease: LeaseSlot,
    rules: BTreeMap<RuleId, RuleRecord>,
}

impl PreparedAppend {
    /// # Errors
    /// The append has no events, or a note that cannot be written.
    pub(super) fn new(append: Append) -> Result<Self, StoreFault> {
        if append.events.is_empty() {
            return Err(fault::no_events(append.run));
        }
        let (body, audit) = (record::encode(&append.events), audit::bodies(&append)?);
        Ok(Self { append, body, audit, token: Uuid::now_v7() })
    }

    /// Begins the transaction, locks the session and the run, and says whether the append is admitted.
    pub(super) async fn begin(&self, connection: &Connection, clock: &StoreClock) -> Result<Admitted, WriteError> {
        let append = &self.append;
        let asked = Instant::now();
        let mut answers = self.lock().run(connection).await?;
        let (time, run, session) = (answers.pop(), answers.pop(), answers.pop());
        let rows = |answer: Option<Vec<Row>>| answer.unwrap_or_default().into_iter().next();
        let session = match rows(session) {
            Some(session) => session,
            // It was there a moment ago, and was removed for its age before it could be held: it begins anew.
            None if append.expected == 0 => return Err(Broken::SessionGone.into()),
            None => return Err(AppendError::NoRun(append.run).into()),
        };
        let session = Locked::read(&session)?;
        let known = rows(run).map(|row| RunRecord::read(&row, session.key)).transpose()?;
        let now = rows(time).map_or(Ok(0), |row| columns::get(&row, 0))?;
        let now = clock.arbiter(asked, now);

        let found = known.as_ref().map(|known| &known.found);
        if admit::begins(append, found)? {
            if known.is_none() && append.only_owner && !self.is_owner(&session) {
                return Err(AppendError::SessionForeign { session: append.session.clone() }.into());
            }
            let agent = known.as_ref().map_or(append.agent.as_str(), |known| &known.agent);
            check_free(connection, session.key, agent).await?;
        }
        let lease = admit::lease_after(append, found, now)?;
        let rules = rules::check(connection, append, session.key).await?;
        Ok(Admitted { session, is_known: known.is_some(), lease, rules })
    }

    /// Locks the session, then the run, then looks at the clock.
    fn lock(&self) -> Pipeline<'_> {
        let append = &self.append;
        let mut pipeline = Pipeline::default();
        pipeline.text("BEGIN ISOLATION LEVEL READ COMMITTED");
        if append.expected == 0 {
            self.add_session(&mut pipeline);
        }
        pipeline.add(sessions::LOCK, [Box::new(append.session.as_str())]);
        pipeline.add(FIND_RUN, [Box::new(*append.run.uuid())]);
        pipeline.add(columns::CLOCK, []);
        pipeline
    }

    /// Begins the session if it is not there. It is gone again if the append is refused.
    fn add_session<'a>(&'a self, pipeline: &mut Pipeline<'a>) {
        let owner = self.append.starter().cloned().unwrap_or_else(ActorId::local);
        pipeline.add(
            sessions::ADD,
            [
                Box::new(self.append.session.as_str()),
                Box::new(owner.as_str().to_owned()),
                Box::new(self.append.at.as_millis()),
            ],
        );
    }

    /// Whether who begins the run owns the session, as one does whose first run it is.
    fn is_owner(&self, session: &Locked) -> bool {
        session.events == 0 || self.append.starter() == Some(&session.owner)
    }

    /// What is written of an append that was admitted, except for the commit.
    pub(super) fn write<'a>(
        &'a self,
        admitted: Admitted,
        known: &Known,
    ) -> Result<(Pipeline<'a>, Appended), WriteError> {
        let append = &self.append;
        let session = admitted.session.key;
        let numbers = self.numbers(&admitted.session);
        let mut pipeline = Pipeline::default();
        pipeline.add(
            "UPDATE session SET events = $2, pause_groups = $3, last_at = $4, runs = runs + $5 WHERE key = $1",
            [
                Box::new(session),
                Box::new(columns::count(numbers.last_seq)),
                Box::new(columns::count(numbers.pause_groups)),
                Box::new(append.at.as_millis()),
                Box::new(i64::from(!admitted.is_known)),
            ],
        );
        let appended = Appended {
            revision: append.expected + 1,
            seq: numbers.seq,
            pause_group: numbers.pause_group(),
            epoch: admit::epoch_of(append, &admitted.lease),
        };
        write_run(&mut pipeline, append, &admitted, numbers.seq);
        self.write_entry(&mut pipeline, session, &numbers);
        pauses::write(&mut pipeline, session, append, numbers.pause_group());
        notices::write(&mut pipeline, append);
        rules::write(&mut pipeline, admitted.rules, session)?;
        definitions::write(&mut pipeline, known, &append.definitions);
        audit::write(&mut pipeline, &self.audit);
        Ok((pipeline, appended))
    }

    /// What the session's counters give the entry.
    pub(super) fn numbers(&self, session: &Locked) -> Numbers {
        let opens_pauses = self.append.opens_pauses();
        Numbers {
            seq: session.events + 1,
            last_seq: session.events + self.append.events.len() as u64,
            pause_groups: session.pause_groups + u64::from(opens_pauses),
            opens_pauses,
        }
    }

    fn write_entry<'a>(&'a self, pipeline: &mut Pipeline<'a>, session: i64, numbers: &Numbers) {
        pipeline.add(
            "INSERT INTO entry (session, last_seq, run, revision, pause_groups, at, token, body)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
            [
                Box::new(session),
                Box::new(columns::count(numbers.last_seq)),
                Box::new(*self.append.run.uuid()),
                Box::new(columns::count(self.append.expected + 1)),
                Box::new(columns::count(numbers.pause_groups)),
                Box::new(self.append.at.as_millis()),
                Box::new(self.token),
                Box::new(self.body.as_slice()),
            ],
        );
    }

    /// Whether the entry is there, after its commit was in doubt.
    ///
    /// The transaction that it was written in holds the session until it ends, also where nobody is connected to it any
    /// more; so whoever gets hold of the session sees what became of it.
    pub(super) async fn is_written(&self, connection: &Connection) -> Result<bool, Broken> {
        let mut pipeline = Pipeline::default();
        pipeline.text("BEGIN ISOLATION LEVEL READ COMMITTED");
        self.add_session(&mut pipeline);
        pipeline.add(sessions::LOCK, [Box::new(self.append.session.as_str())]);
        pipeline.add(
            "SELECT 1 FROM entry WHERE run = $1 AND revision = $2 AND token = $3",
            [
                Box::new(*self.append.run.uuid()),
                Box::new(columns::count(self.append.expected + 1)),
                Box::new(self.token),
            ],
        );
        let answers = pipeline.run(connection).await?;
        Ok(answers.last().is_some_and(|rows| !rows.is_empty()))
    }
}

/// The session's numbers of an entry.
pub(super) struct Numbers {
    pub(super) seq: u64,
    pub(super) last_seq: u64,
    pub(super) pause_groups: u64,
    opens_pauses: bool,
}

impl Numbers {
    pub(super) fn pause_group(&self) -> Option<u64> {
        self.opens_pauses.then_some(self.pause_groups)
    }
}

const FIND_RUN: &str = "
    SELECT session, agent, revision, status, epoch, owner, since FROM run WHERE id = $1 FOR NO KEY UPDATE";

/// A run's row.
struct RunRecord {
    agent: String,
    found: Found,
}

impl RunRecord {
    /// The run as a writer finds it who holds this session.
    fn read(row: &Row, session: i64) -> Result<Self, Broken> {
        let found = Found {
            is_here: columns::get::<i64>(row, 0)? == session,
            revision: columns::get_count(row, 2)?,
            status: columns::get_status(row, 3)?,
            lease: leases::slot(row, 4)?,
        };
        Ok(Self { agent: columns::get(row, 1)?, found })
    }
}

/// Refuses a second run of the agent in the session.
async fn check_free(connection: &Connection, session: i64, agent: &str) -> Result<(), WriteError> {
    let sql = "SELECT id FROM run WHERE session = $1 AND agent = $2 AND status <> 2";
    match connection.query_opt(sql, &[&session, &agent]).await? {
        None => Ok(()),
        Some(row) => Err(AppendError::SessionBusy { run: columns::get_run(&row, 0)? }.into()),
    }
}

fn write_run<'a>(pipeline: &mut Pipeline<'a>, append: &'a Append, admitted: &Admitted, seq: u64) {
    let (id, status) = (*append.run.uuid(), columns::status(append.status));
    let (epoch, at) = (columns::count(admitted.lease.epoch), append.at.as_millis());
    let (owner, since): (Option<String>, Timestamp) = match admitted.lease.mover.clone() {
        admit::Mover::Holder { owner, until } => (Some(owner), until),
        admit::Mover::Nobody { since } => (None, since),
    };
    let (owner, since) = (Box::new(owner), Box::new(since.as_millis()));
    debug_assert!(append.status != RunStatus::Finished || owner.is_none(), "a run that is over is moved by nobody");
    if admitted.is_known {
        pipeline.add(
            "UPDATE run SET revision = $2, status = $3, epoch = $4, owner = $5, since = $6, last_at = $7 WHERE id = $1",
            [
                Box::new(id),
                Box::new(columns::count(append.expected + 1)),
                Box::new(status),
                Box::new(epoch),
                owner,
                since,
                Box::new(at),
            ],
        );
    } else {
        pipeline.add(
            "INSERT INTO run (id, session, agent, first_seq, revision, status, started_at, last_at, epoch, owner, since)
             VALUES ($1, $2, $3, $4, 1, $5, $6, $6, $7, $8, $9)",
            [
                Box::new(id),
                Box::new(admitted.session.key),
                Box::new(append.agent.as_str()),
                Box::new(columns::count(seq)),
                Box::new(status),
                Box::new(at),
                Box::new(epoch),
                owner,
                since,
            ],
        );
    }
}
