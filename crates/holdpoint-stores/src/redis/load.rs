//! Reading runs back. Entries never change, so that those up to the revision of the run's record are the run as it stood
//! then.

use std::ops::RangeInclusive;
use std::sync::{Arc, LazyLock};

use ::redis::Script;
use ::redis::aio::ConnectionManager;
use holdpoint_core::ids::RunId;
use holdpoint_core::time::Timestamp;

use super::fault::Broken;
use super::keys::{self, Keys};
use super::records::{self, EntryRecord, Held, RunRecord, SessionRecord};
use super::script::Call;
use crate::raw::{self, RawEntry, RawRun};

/// How many entries are asked for at once.
const ENTRIES_AT_ONCE: u64 = 500;

/// How many entries are asked for together with their run.
const ENTRIES_WITH_RUN: u64 = 8;

static SCRIPT: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("load.lua")));

/// A run as it was read.
pub(super) struct Loaded {
    pub(super) raw: RawRun,
    pub(super) run: Arc<Held<RunRecord>>,
    /// Its session's record at that moment, where it came along.
    pub(super) session: Option<Arc<Held<SessionRecord>>>,
}

/// Runs, each with the entries after a revision. Who reads a run often writes to it next: its session comes along.
pub(super) async fn runs(
    connection: &mut ConnectionManager,
    keys: &Keys,
    wanted: &[(RunId, u64)],
    now: Timestamp,
) -> Result<Vec<Option<Loaded>>, Broken> {
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    let mut call = Call::reading(&SCRIPT, 2);
    call.cmd.arg(keys.runs()).arg(keys.sessions());
    for (id, _) in wanted {
        call.cmd.arg(&*keys::run_name(*id));
    }
    // Mostly a run has few entries, and all of them come with it.
    let early = wanted.iter().map(|(id, after)| {
        let mut command = ::redis::cmd("HMGET");
        command.arg(keys.journal(*id));
        first_after(*after).for_each(|revision| {
            command.arg(revision);
        });
        command
    });
    let mut answers: Vec<Vec<Option<Vec<u8>>>> = call.send_before(early, connection).await?;
    let early = answers.split_off(1);
    let mut records = answers.into_iter().flatten();
    let mut found = Vec::with_capacity(wanted.len());
    for ((id, after), early) in wanted.iter().zip(early) {
        let (run, session) = (records.next().flatten(), records.next().flatten());
        let Some(run) = run.map(Held::<RunRecord>::read).transpose()? else {
            found.push(None);
            continue;
        };
        // One that cannot be read is told to whoever writes to it.
        let session = session.and_then(|bytes| Held::read(bytes).ok());
        let (last, mut entries) = (run.record.revision, Vec::new());
        for (revision, bytes) in first_after(*after).zip(early).filter(|(revision, _)| *revision <= last) {
            entries.extend(bytes.map(|bytes| entry(revision, bytes)).transpose()?);
        }
        let from = after.saturating_add(ENTRIES_WITH_RUN).saturating_add(1);
        read_on(connection, keys, *id, from..=last, &mut entries).await?;
        let RunRecord { session: name, agent, .. } = &run.record;
        let lease = raw::lease_at(*id, run.record.lease(), now);
        let raw = RawRun { revision: last, session: name.clone(), agent: agent.clone(), lease, entries };
        found.push(Some(Loaded { raw, run, session }));
    }
    Ok(found)
}

/// The revisions after one that are asked for together with their run.
fn first_after(after: u64) -> RangeInclusive<u64> {
    after.saturating_add(1)..=after.saturating_add(ENTRIES_WITH_RUN)
}

/// Reads the entries of these revisions.
async fn read_on(
    connection: &mut ConnectionManager,
    keys: &Keys,
    run: RunId,
    revisions: RangeInclusive<u64>,
    entries: &mut Vec<RawEntry>,
) -> Result<(), Broken> {
    let (mut from, last) = revisions.into_inner();
    while from <= last {
        let end = last.min(from + ENTRIES_AT_ONCE - 1);
        let mut command = ::redis::cmd("HMGET");
        command.arg(keys.journal(run));
        (from..=end).for_each(|revision| {
            command.arg(revision);
        });
        let found: Vec<Option<Vec<u8>>> = command.query_async(connection).await?;
        for (revision, bytes) in (from..=end).zip(found) {
            entries.extend(bytes.map(|bytes| entry(revision, bytes)).transpose()?);
        }
        from = end + 1;
    }
    Ok(())
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

/// An entry from its bytes.
pub(super) fn entry(revision: u64, bytes: Vec<u8>) -> Result<RawEntry, Broken> {
    let EntryRecord { last_seq, pause_groups, at, body, .. } = EntryRecord::from_bytes(bytes)?;
    Ok(RawEntry { revision, last_seq, pause_groups, at: Timestamp::from_millis(at), body })
}
