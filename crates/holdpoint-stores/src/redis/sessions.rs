//! Sessions: their runs and entries.

use ::redis::aio::ConnectionManager;
use holdpoint_core::ids::{RunId, SessionId};
use holdpoint_runtime::ports::store::RunRow;

use super::fault::Broken;
use super::keys::{self, Keys};
use super::{load, records};
use crate::raw::RawEntry;

/// A session's runs, newest first.
pub(super) async fn runs(
    connection: &mut ConnectionManager,
    keys: &Keys,
    session: &SessionId,
    limit: usize,
) -> Result<Vec<RunRow>, Broken> {
    if limit == 0 {
        return Ok(Vec::new());
    }
    let last = i64::try_from(limit - 1).unwrap_or(i64::MAX);
    let mut command = ::redis::cmd("ZRANGE");
    command.arg(keys.runs_of(session)).arg(0).arg(last).arg("REV");
    let names: Vec<String> = command.query_async(connection).await?;
    let found = load::find_all(connection, keys, &names).await?;
    let row = |(run, record): (RunId, records::RunRecord)| {
        Ok(RunRow { run, agent: record.agent.clone(), status: record.status()? })
    };
    found.into_iter().map(row).collect()
}

/// The member of an entry in its session's log.
pub(super) fn entry_name(run: RunId, revision: u64) -> String {
    format!("{}:{revision}", keys::run_name(run))
}

/// A session's entries that have events from a number on, in order.
pub(super) async fn entries(
    connection: &mut ConnectionManager,
    keys: &Keys,
    session: &SessionId,
    from: u64,
    limit: usize,
) -> Result<Vec<(RunId, RawEntry)>, Broken> {
    let mut command = ::redis::cmd("ZRANGE");
    command.arg(keys.log(session)).arg(from).arg("+inf").arg("BYSCORE");
    command.arg("LIMIT").arg(0).arg(i64::try_from(limit).unwrap_or(i64::MAX));
    let names: Vec<String> = command.query_async(connection).await?;
    let mut places = Vec::with_capacity(names.len());
    let mut pipe = ::redis::pipe();
    for name in &names {
        let broken = || Broken::Unreadable(format!("{name} where an entry should be"));
        let (run, revision) = name.split_once(':').ok_or_else(broken)?;
        let run = keys::parse_run(run).ok_or_else(broken)?;
        let revision: u64 = revision.parse().map_err(|_| broken())?;
        pipe.cmd("HGET").arg(keys.journal(run)).arg(revision);
        places.push((run, revision));
    }
    if places.is_empty() {
        return Ok(Vec::new());
    }
    let found: Vec<Option<Vec<u8>>> = pipe.query_async(connection).await?;
    let read = |((run, revision), bytes): ((RunId, u64), Option<Vec<u8>>)| {
        let bytes = bytes.ok_or_else(|| Broken::Unreadable(format!("entry {revision} of {run} is missing")))?;
        Ok((run, load::entry(revision, bytes)?))
    };
    places.into_iter().zip(found).map(read).collect()
}

/// The number of the last event in each of these sessions.
pub(super) async fn heads(
    connection: &mut ConnectionManager,
    keys: &Keys,
    sessions: &[SessionId],
) -> Result<Vec<(SessionId, u64)>, Broken> {
    if sessions.is_empty() {
        return Ok(Vec::new());
    }
    let mut command = ::redis::cmd("HMGET");
    command.arg(keys.sessions());
    for session in sessions {
        command.arg(session.as_str());
    }
    let found: Vec<Option<Vec<u8>>> = command.query_async(connection).await?;
    let there = sessions.iter().zip(found).filter_map(|(session, bytes)| Some((session, bytes?)));
    let head = |(session, bytes): (&SessionId, Vec<u8>)| {
        Ok((session.clone(), records::decode::<records::SessionRecord>(&bytes)?.row(session.as_str())?.events))
    };
    there.map(head).collect()
}
