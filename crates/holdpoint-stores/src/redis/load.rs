//! Reading runs back. Entries never change, so that those up to the revision of the run's record are the run as it stood
//! then.

use ::redis::aio::ConnectionManager;
use holdpoint_core::event::RunEvent;
use holdpoint_core::ids::{AgentId, RunId, SessionId};
use holdpoint_core::record::{self, Entry};
use holdpoint_core::time::Timestamp;
use holdpoint_runtime::ports::store::{Lease, LoadedRun, StoreFault};

use super::fault::{self, Broken};
use super::keys::{self, Keys};
use super::records::{self, EntryRecord, RunRecord};
use crate::admit::Mover;

/// How many entries are asked for at once.
const ENTRIES_AT_ONCE: u64 = 500;

/// How many entries are asked for together with their run.
const ENTRIES_WITH_RUN: u64 = 8;

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
    record: EntryRecord,
}

/// A run's record, with the entries after a revision.
pub(super) async fn run(
    connection: &mut ConnectionManager,
    keys: &Keys,
    id: RunId,
    after: u64,
    now: Timestamp,
) -> Result<Option<RawRun>, Broken> {
    let mut pipe = ::redis::pipe();
    pipe.cmd("HGET").arg(keys.runs()).arg(keys::run_name(id));
    // Mostly a run has few entries, and all of them come with it.
    pipe.cmd("HMGET").arg(keys.journal(id));
    let first = after.saturating_add(1)..=after.saturating_add(ENTRIES_WITH_RUN);
    first.clone().for_each(|revision| {
        pipe.arg(revision);
    });
    let (run, early): (Option<Vec<u8>>, Vec<Option<Vec<u8>>>) = pipe.query_async(connection).await?;
    let Some(run) = run.as_deref().map(records::decode::<RunRecord>).transpose()? else { return Ok(None) };
    let slot = run.lease();
    let lease = match slot.mover {
        Mover::Holder { owner, until } if now < until => Some(Lease { run: id, epoch: slot.epoch, owner, until }),
        Mover::Holder { .. } | Mover::Nobody { .. } => None,
    };
    let mut entries = Vec::new();
    for (revision, bytes) in first.zip(early).filter(|(revision, _)| *revision <= run.revision) {
        entries.extend(bytes.map(|bytes| RawEntry::read(revision, &bytes)).transpose()?);
    }
    let mut from = after.saturating_add(ENTRIES_WITH_RUN).saturating_add(1);
    while from <= run.revision {
        let end = run.revision.min(from + ENTRIES_AT_ONCE - 1);
        let mut command = ::redis::cmd("HMGET");
        command.arg(keys.journal(id));
        (from..=end).for_each(|revision| {
            command.arg(revision);
        });
        let found: Vec<Option<Vec<u8>>> = command.query_async(connection).await?;
        for (revision, bytes) in (from..=end).zip(found) {
            entries.extend(bytes.map(|bytes| RawEntry::read(revision, &bytes)).transpose()?);
        }
        from = end + 1;
    }
    let (session, agent) = (records::parse(&run.session)?, records::parse(&run.agent)?);
    Ok(Some(RawRun { revision: run.revision, session, agent, lease, entries }))
}

/// The records of these runs, as far as they are there.
pub(super) async fn find_all(
    connection: &mut ConnectionManager,
    keys: &Keys,
    names: &[String],
) -> Result<Vec<(RunId, RunRecord)>, Broken> {
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let mut command = ::redis::cmd("HMGET");
    command.arg(keys.runs()).arg(names);
    let found: Vec<Option<Vec<u8>>> = command.query_async(connection).await?;
    let there = names.iter().zip(found).filter_map(|(name, bytes)| Some((keys::parse_run(name)?, bytes?)));
    there.map(|(run, bytes)| Ok((run, records::decode(&bytes)?))).collect()
}

impl RawRun {
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
    pub(super) fn read(revision: u64, bytes: &[u8]) -> Result<Self, Broken> {
        Ok(Self { revision, record: EntryRecord::from_bytes(bytes)? })
    }

    /// # Errors
    /// What the database holds cannot be read.
    pub(super) fn decode(self, run: RunId) -> Result<Entry, StoreFault> {
        let Self { revision, record } = self;
        let events = record::decode(&record.body).map_err(|refusal| fault::unreadable(run, revision, &refusal))?;
        let opens = events.iter().any(|event| matches!(event, RunEvent::PauseOpened(_)));
        Ok(Entry {
            revision,
            seq: (record.last_seq + 1).saturating_sub(events.len() as u64),
            pause_group: opens.then_some(record.pause_groups),
            at: Timestamp::from_millis(record.at),
            events: events.into(),
        })
    }
}
