//! Reading runs back. Entries never change, so that those up to the revision of the run's record are the run as it stood
//! then.

use std::ops::RangeInclusive;

use ::redis::aio::ConnectionManager;
use holdpoint_core::ids::RunId;
use holdpoint_core::time::Timestamp;

use super::fault::Broken;
use super::keys::{self, Keys};
use super::records::{self, EntryRecord, RunRecord};
use crate::raw::{self, RawEntry, RawRun};

/// How many entries are asked for at once.
const ENTRIES_AT_ONCE: u64 = 500;

/// How many entries are asked for together with their run.
const ENTRIES_WITH_RUN: u64 = 8;

/// Runs, each with the entries after a revision.
pub(super) async fn runs(
    connection: &mut ConnectionManager,
    keys: &Keys,
    wanted: &[(RunId, u64)],
    now: Timestamp,
) -> Result<Vec<Option<RawRun>>, Broken> {
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    let mut pipe = ::redis::pipe();
    pipe.cmd("HMGET").arg(keys.runs());
    wanted.iter().for_each(|(id, _)| {
        pipe.arg(&*keys::run_name(*id));
    });
    // Mostly a run has few entries, and all of them come with it.
    for (id, after) in wanted {
        pipe.cmd("HMGET").arg(keys.journal(*id));
        first_after(*after).for_each(|revision| {
            pipe.arg(revision);
        });
    }
    let mut answers: Vec<Vec<Option<Vec<u8>>>> = pipe.query_async(connection).await?;
    let early = answers.split_off(1);
    let mut found = Vec::with_capacity(wanted.len());
    for (((id, after), run), early) in wanted.iter().zip(answers.into_iter().flatten()).zip(early) {
        let Some(run) = run.as_deref().map(records::decode::<RunRecord>).transpose()? else {
            found.push(None);
            continue;
        };
        let mut entries = Vec::new();
        for (revision, bytes) in first_after(*after).zip(early).filter(|(revision, _)| *revision <= run.revision) {
            entries.extend(bytes.map(|bytes| entry(revision, bytes)).transpose()?);
        }
        let from = after.saturating_add(ENTRIES_WITH_RUN).saturating_add(1);
        read_on(connection, keys, *id, from..=run.revision, &mut entries).await?;
        let lease = raw::lease_at(*id, run.lease(), now);
        let RunRecord { revision, session, agent, .. } = run;
        found.push(Some(RawRun { revision, session, agent, lease, entries }));
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
