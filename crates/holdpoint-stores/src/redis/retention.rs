//! Sessions in which nothing has happened for long are removed whole: each by one script, if it still stands as it was
//! seen.

use std::collections::BTreeSet;

use ::redis::aio::ConnectionManager;
use holdpoint_core::ids::{RuleId, RunId, SessionId};
use holdpoint_core::run::limits::RULES_MAX;
use holdpoint_core::time::Timestamp;
use holdpoint_runtime::ports::store::{PAGE_MAX, PauseStatus};

use super::change::Change;
use super::fault::{Broken, WriteError};
use super::keys::{self, Keys};
use super::notices;
use super::records::{self, SessionRecord};

/// A session that may be removed, as it was seen.
pub(super) struct Old {
    name: String,
    bytes: Vec<u8>,
}

/// Sessions that may be removed, the oldest first.
pub(super) async fn old(
    connection: &mut ConnectionManager,
    keys: &Keys,
    before: Timestamp,
    limit: usize,
) -> Result<Vec<Old>, Broken> {
    let (mut found, mut from) = (Vec::new(), 0);
    while found.len() < limit {
        let mut command = ::redis::cmd("ZRANGE");
        command.arg(keys.session_order(None)).arg(from).arg(from + PAGE_MAX - 1);
        let names: Vec<String> = command.query_async(connection).await?;
        if names.is_empty() {
            break;
        }
        from += names.len();
        let mut command = ::redis::cmd("HMGET");
        command.arg(keys.sessions()).arg(&names);
        let there: Vec<Option<Vec<u8>>> = command.query_async(connection).await?;
        for (name, bytes) in names.into_iter().zip(there) {
            let Some(bytes) = bytes else { continue };
            let record: SessionRecord = records::decode(&bytes)?;
            if record.last_at < before.as_millis() && found.len() < limit {
                found.push(Old { name, bytes });
            }
        }
    }
    Ok(found)
}

/// One try to remove a session; says whether it was removed.
pub(super) async fn remove(connection: &ConnectionManager, keys: &Keys, old: Old) -> Result<bool, WriteError> {
    let session: SessionId = records::parse(&old.name)?;
    let owner = records::decode::<SessionRecord>(&old.bytes)?.owner;
    let mut pipe = ::redis::pipe();
    pipe.atomic();
    pipe.cmd("HLEN").arg(keys.under_way(&session));
    pipe.cmd("ZRANGE").arg(keys.runs_of(&session)).arg(0).arg(-1);
    pipe.cmd("ZRANGE").arg(keys.pauses_of(&session)).arg(0).arg(-1);
    pipe.cmd("ZRANGE").arg(keys.rule_order(Some(&session))).arg(0).arg(-1);
    let (under_way, runs, pauses, mut rules): (u64, Vec<String>, Vec<String>, Vec<String>) =
        pipe.query_async(&mut connection.clone()).await?;
    if under_way > 0 {
        return Ok(false);
    }
    rules.extend(rules_of(connection, keys, &pauses).await?);
    let told = notices_of(connection, keys, &runs).await?;

    let mut change = Change::default();
    // Whatever is written to the session changes its record.
    change.expect_field(keys.sessions(), &old.name, Some(&old.bytes));
    for run in runs.iter().filter_map(|name| keys::parse_run(name)) {
        change.remove_key(keys.journal(run));
    }
    change.remove_fields(keys.runs(), &runs);
    for order in [keys.run_order(None), keys.run_order(Some(&owner)), keys.work().to_owned()] {
        change.remove_members(&order, &runs);
    }
    change.remove_fields(keys.pauses(), &pauses);
    let statuses = [PauseStatus::Open, PauseStatus::Expired, PauseStatus::Withdrawn];
    let by_status = statuses.into_iter().filter_map(|status| keys.pause_order_of(status));
    for order in [keys.pause_order().into(), keys.deadlines().into()].into_iter().chain(by_status) {
        change.remove_members(&order, &pauses);
    }
    change.remove_fields(&keys.rules(), &rules);
    change.remove_members(&keys.rule_order(None), &rules);
    notices::remove(&mut change, keys, &told)?;
    let own = [keys.runs_of(&session), keys.under_way(&session), keys.log(&session), keys.pauses_of(&session)];
    for key in own.into_iter().chain([keys.rule_order(Some(&session))]) {
        change.remove_key(key);
    }
    for order in [keys.session_order(None), keys.session_order(Some(&owner))] {
        change.remove_member(order, &old.name);
    }
    change.remove_field(keys.sessions(), old.name);
    match change.commit(connection).await {
        Ok(()) => Ok(true),
        // Somebody wrote to it: it is not old any more.
        Err(WriteError::Overtaken) => Ok(false),
        Err(error) => Err(error),
    }
}

/// The rules that were made in runs with these pauses: each is made with a decision. Those that were taken back stand in
/// no order, and are found by their numbers.
async fn rules_of(connection: &ConnectionManager, keys: &Keys, pauses: &[String]) -> Result<Vec<String>, Broken> {
    let runs: BTreeSet<RunId> =
        pauses.iter().filter_map(|name| keys::parse_numbered(name)).map(|(run, _)| run).collect();
    let mut found = Vec::new();
    for run in runs {
        let numbers = 1..=u32::try_from(RULES_MAX).unwrap_or(u32::MAX);
        let names: Vec<String> = numbers.map(|number| keys::rule_name(RuleId { run, number }).to_string()).collect();
        let mut command = ::redis::cmd("HMGET");
        command.arg(keys.rules()).arg(&names);
        let there: Vec<Option<Vec<u8>>> = command.query_async(&mut connection.clone()).await?;
        found.extend(names.into_iter().zip(there).filter_map(|(name, bytes)| bytes.map(|_| name)));
    }
    Ok(found)
}

/// The names of the notices about these runs.
async fn notices_of(connection: &ConnectionManager, keys: &Keys, runs: &[String]) -> Result<Vec<String>, Broken> {
    if runs.is_empty() {
        return Ok(Vec::new());
    }
    let mut pipe = ::redis::pipe();
    for run in runs {
        // All that begin with the run's name and a colon: the sign after it is a semicolon.
        pipe.cmd("ZRANGE").arg(keys.notice_order()).arg(format!("[{run}:")).arg(format!("({run};")).arg("BYLEX");
    }
    let found: Vec<Vec<String>> = pipe.query_async(&mut connection.clone()).await?;
    Ok(found.into_iter().flatten().collect())
}
