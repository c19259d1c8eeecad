//! Reading runs back. A run's row and its entries are asked for together; entries never change, so that those up to the
//! row's revision are the run as it stood then, whatever was written in between.

use holdpoint_core::event::RunEvent;
use holdpoint_core::ids::{AgentId, RunId, SessionId};
use holdpoint_core::record::{self, Entry};
use holdpoint_core::time::Timestamp;
use holdpoint_runtime::ports::store::{Lease, LoadedRun, StoreFault};
use tokio_postgres::Row;
use uuid::Uuid;

use super::connection::{Connection, Pipeline};
use super::fault::{self, Broken};
use super::{columns, leases};
use crate::admit::Mover;

/// A run as it stands in the database.
pub(super) struct RawRun {
    revision: u64,
    session: SessionId,
    agent: AgentId,
    lease: Option<Lease>,
    entries: Vec<RawEntry>,
}

/// An entry as it stands in the database.
pub(super) struct RawEntry {
    revision: u64,
    last_seq: u64,
    pause_groups: u64,
    at: Timestamp,
    body: Vec<u8>,
}

/// A run's rows, with the entries after a revision.
pub(super) async fn run(
    connection: &Connection,
    id: RunId,
    after: u64,
    now: Timestamp,
) -> Result<Option<RawRun>, Broken> {
    let mut pipeline = Pipeline::default();
    pipeline.add(
        "SELECT revision, session.name, agent, epoch, owner, since
         FROM run JOIN session ON session.key = run.session WHERE id = $1",
        [Box::new(*id.uuid())],
    );
    pipeline.add(
        "SELECT revision, last_seq, pause_groups, at, body FROM entry WHERE run = $1 AND revision > $2
         ORDER BY revision",
        [Box::new(*id.uuid()), Box::new(columns::count(after))],
    );
    let answers = pipeline.run(connection).await?;
    let [found, entries] = answers.as_slice() else { return Ok(None) };
    let Some(row) = found.first() else { return Ok(None) };
    let mut run = RawRun::read(row, id, now)?;
    run.take(entries)?;
    Ok(Some(run))
}

/// Several runs' rows, each with the entries after a revision.
pub(super) async fn runs(
    connection: &Connection,
    wanted: &[(RunId, u64)],
    now: Timestamp,
) -> Result<Vec<Option<RawRun>>, Broken> {
    let ids: Vec<Uuid> = wanted.iter().map(|(run, _)| *run.uuid()).collect();
    let after: Vec<i64> = wanted.iter().map(|(_, after)| columns::count(*after)).collect();
    let mut pipeline = Pipeline::default();
    pipeline.add(
        "SELECT revision, session.name, agent, epoch, owner, since, place
         FROM unnest($1::uuid[]) WITH ORDINALITY AS wanted (run, place)
             JOIN run ON run.id = wanted.run JOIN session ON session.key = run.session",
        [Box::new(ids.clone())],
    );
    pipeline.add(
        "SELECT revision, last_seq, pause_groups, at, body, place
         FROM unnest($1::uuid[], $2::bigint[]) WITH ORDINALITY AS wanted (run, after, place)
             JOIN entry ON entry.run = wanted.run AND entry.revision > wanted.after
         ORDER BY place, revision",
        [Box::new(ids), Box::new(after)],
    );
    let answers = pipeline.run(connection).await?;
    let mut runs: Vec<Option<RawRun>> = wanted.iter().map(|_| None).collect();
    let [found, entries] = answers.as_slice() else { return Ok(runs) };
    for row in found {
        let place = place(row, 6)?;
        if let (Some(run), Some((id, _))) = (runs.get_mut(place), wanted.get(place)) {
            *run = Some(RawRun::read(row, *id, now)?);
        }
    }
    let places = entries.iter().map(|row| place(row, 5)).collect::<Result<Vec<_>, _>>()?;
    let mut rest = entries.as_slice();
    for of_run in places.chunk_by(|one, next| one == next) {
        let (these, others) = rest.split_at(of_run.len());
        rest = others;
        if let Some(Some(run)) = of_run.first().and_then(|place| runs.get_mut(*place)) {
            run.take(these)?;
        }
    }
    Ok(runs)
}

/// A place among those that were asked for, which the server counts from one.
fn place(row: &Row, column: usize) -> Result<usize, Broken> {
    Ok(columns::get_count(row, column)?.saturating_sub(1) as usize)
}

impl RawRun {
    /// The run in the columns `revision`, `session.name`, `agent`, `epoch`, `owner` and `since`, without its entries.
    fn read(row: &Row, id: RunId, now: Timestamp) -> Result<Self, Broken> {
        let slot = leases::slot(row, 3)?;
        let lease = match slot.mover {
            Mover::Holder { owner, until } if now < until => Some(Lease { run: id, epoch: slot.epoch, owner, until }),
            Mover::Holder { .. } | Mover::Nobody { .. } => None,
        };
        let (revision, session, agent) =
            (columns::get_count(row, 0)?, columns::get_name(row, 1)?, columns::get_name(row, 2)?);
        Ok(Self { revision, session, agent, lease, entries: Vec::new() })
    }

    /// Takes its entries, except for those that were written since.
    fn take(&mut self, entries: &[Row]) -> Result<(), Broken> {
        self.entries = entries.iter().map(|row| RawEntry::read(row, 0)).collect::<Result<Vec<_>, _>>()?;
        self.entries.retain(|entry| entry.revision <= self.revision);
        Ok(())
    }

    /// # Errors
    /// What the database holds cannot be read, or is not all there.
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
    /// The entry in the columns `revision`, `last_seq`, `pause_groups`, `at` and `body`, from this index on.
    pub(super) fn read(row: &Row, first: usize) -> Result<Self, Broken> {
        Ok(Self {
            revision: columns::get_count(row, first)?,
            last_seq: columns::get_count(row, first + 1)?,
            pause_groups: columns::get_count(row, first + 2)?,
            at: columns::get_time(row, first + 3)?,
            body: columns::get(row, first + 4)?,
        })
    }

    /// # Errors
    /// What the database holds cannot be read.
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
