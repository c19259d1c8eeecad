//! Pages of sessions, runs and rules.

use ::redis::aio::ConnectionManager;
use holdpoint_core::ids::{RunId, SessionId};
use holdpoint_core::time::Timestamp;
use holdpoint_runtime::ports::store::{
    PAGE_MAX, RuleFilter, RuleRow, RunFilter, RunSummary, SessionFilter, SessionRow,
};

use super::fault::Broken;
use super::keys::{self, Keys};
use super::records::{self, RunRecord, SessionRecord};
use super::{load, rules};

/// One session, if it has been used.
pub(super) async fn session(
    connection: &mut ConnectionManager,
    keys: &Keys,
    session: &SessionId,
) -> Result<Option<SessionRow>, Broken> {
    let mut command = ::redis::cmd("HGET");
    command.arg(keys.sessions()).arg(session.as_str());
    let found: Option<Vec<u8>> = command.query_async(connection).await?;
    found.map(|bytes| records::decode::<SessionRecord>(&bytes)?.row(session.as_str())).transpose()
}

/// A page of sessions, the one that began last first.
pub(super) async fn sessions(
    connection: &mut ConnectionManager,
    keys: &Keys,
    filter: &SessionFilter,
) -> Result<Vec<SessionRow>, Broken> {
    let limit = filter.limit.min(PAGE_MAX);
    let order = keys.session_order(filter.owner.as_ref());
    // Where the one before the page is somebody else's, its time has its place among those of the owner.
    let before = match &filter.after {
        None => "+inf".to_owned(),
        Some(after) => {
            let mut command = ::redis::cmd("ZSCORE");
            command.arg(keys.session_order(None)).arg(after.as_str());
            let score: Option<f64> = command.query_async(connection).await?;
            match score {
                Some(score) => (score as i64).to_string(),
                None => return Ok(Vec::new()),
            }
        }
    };
    let (mut names, mut offset): (Vec<String>, usize) = (Vec::new(), 0);
    while names.len() < limit {
        let mut command = ::redis::cmd("ZRANGE");
        command.arg(&order).arg(&before).arg("-inf").arg("BYSCORE").arg("REV");
        command.arg("LIMIT").arg(offset).arg(limit + 1).arg("WITHSCORES");
        let found: Vec<(String, f64)> = command.query_async(connection).await?;
        if found.is_empty() {
            break;
        }
        offset += found.len();
        // Of those that began at the same time, those before the page come again.
        let is_behind = |(name, score): &(String, f64)| match &filter.after {
            Some(after) if (*score as i64).to_string() == before => name.as_str() < after.as_str(),
            _ => true,
        };
        names.extend(found.into_iter().filter(is_behind).map(|(name, _)| name));
    }
    names.truncate(limit);
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let mut command = ::redis::cmd("HMGET");
    command.arg(keys.sessions()).arg(&names);
    let found: Vec<Option<Vec<u8>>> = command.query_async(connection).await?;
    let there = names.iter().zip(found).filter_map(|(name, bytes)| Some((name, bytes?)));
    there.map(|(name, bytes)| records::decode::<SessionRecord>(&bytes)?.row(name)).collect()
}

/// A page of runs, in the order of their ids from the last one on.
pub(super) async fn runs(
    connection: &mut ConnectionManager,
    keys: &Keys,
    filter: &RunFilter,
) -> Result<Vec<RunSummary>, Broken> {
    let limit = filter.limit.min(PAGE_MAX);
    let mut page = Vec::new();
    if let Some(session) = &filter.session {
        let is_theirs = match (&filter.owner, self::session(connection, keys, session).await?) {
            (_, None) => false,
            (None, Some(_)) => true,
            (Some(owner), Some(row)) => row.owner == *owner,
        };
        if !is_theirs {
            return Ok(page);
        }
        let mut command = ::redis::cmd("ZRANGE");
        command.arg(keys.runs_of(session)).arg(0).arg(-1);
        let mut names: Vec<String> = command.query_async(connection).await?;
        names.sort_unstable_by(|one, other| other.cmp(one));
        let after = filter.after.map(keys::run_name);
        names.retain(|name| after.is_none_or(|after| **name < *after));
        for names in names.chunks(PAGE_MAX) {
            let found = load::find_all(connection, keys, names).await?;
            take(&mut page, found, filter, limit)?;
            if page.len() >= limit {
                break;
            }
        }
        return Ok(page);
    }
    let order = keys.run_order(filter.owner.as_ref());
    let mut before = filter.after.map_or_else(|| "+".to_owned(), |after| format!("({}", keys::run_name(after)));
    // Whether a run is of this agent stands in its record: read on until the page is full or nothing is left.
    while page.len() < limit {
        let mut command = ::redis::cmd("ZRANGE");
        command.arg(&order).arg(&before).arg("-").arg("BYLEX").arg("REV").arg("LIMIT").arg(0).arg(PAGE_MAX);
        let names: Vec<String> = command.query_async(connection).await?;
        let Some(last) = names.last() else { break };
        before = format!("({last}");
        let found = load::find_all(connection, keys, &names).await?;
        take(&mut page, found, filter, limit)?;
    }
    Ok(page)
}

/// Puts those that are listed on the page, as far as there is room.
fn take(
    page: &mut Vec<RunSummary>,
    found: Vec<(RunId, RunRecord)>,
    filter: &RunFilter,
    limit: usize,
) -> Result<(), Broken> {
    let agent = filter.agent.as_ref();
    let status = filter.status.map(records::status_code);
    let listed = found.into_iter().filter(|(_, record)| {
        agent.is_none_or(|agent| record.agent == *agent) && status.is_none_or(|status| record.status == status)
    });
    let room = limit - page.len();
    for (run, record) in listed.take(room) {
        page.push(record.summary(run)?);
    }
    Ok(())
}

/// A page of the rules that may still be used, in the order of their ids.
pub(super) async fn rules(
    connection: &mut ConnectionManager,
    keys: &Keys,
    filter: &RuleFilter,
    now: Timestamp,
) -> Result<Vec<RuleRow>, Broken> {
    let limit = filter.limit.min(PAGE_MAX);
    let order = keys.rule_order(filter.session.as_ref());
    let mut after = filter.after.map_or_else(|| "-".to_owned(), |after| format!("({}", keys::rule_name(after)));
    let mut page = Vec::new();
    // Whether a rule's time is up stands in its record: read on until the page is full or nothing is left.
    while page.len() < limit {
        let mut command = ::redis::cmd("ZRANGE");
        command.arg(&order).arg(&after).arg("+").arg("BYLEX").arg("LIMIT").arg(0).arg(PAGE_MAX);
        let names: Vec<String> = command.query_async(connection).await?;
        let Some(last) = names.last() else { break };
        after = format!("({last}");
        let found = rules::find_all(connection, keys, &names).await?;
        let alive = found.into_iter().filter(|record| !record.is_revoked && record.rule.is_alive(now, record.uses));
        for record in alive.take(limit - page.len()) {
            let session = records::parse(&record.session)?;
            page.push(RuleRow { session, rule: record.rule, uses: record.uses });
        }
    }
    Ok(page)
}
