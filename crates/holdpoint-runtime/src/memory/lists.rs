//! Pages of sessions, runs and rules.

use holdpoint_core::ids::{RunId, SessionId};
use holdpoint_core::time::Timestamp;

use crate::memory::tables::{Rule, Run, Tables};
use crate::ports::store::{PAGE_MAX, RuleFilter, RuleRow, RunFilter, RunSummary, SessionFilter, SessionRow};

pub(super) fn session(tables: &Tables, id: &SessionId) -> Option<SessionRow> {
    let session = tables.sessions.get(id)?;
    let at = |place: Option<&(RunId, u64)>| {
        let (run, revision) = place.expect("a session has an entry");
        tables.runs[run].entries[*revision as usize - 1].at
    };
    Some(SessionRow {
        session: id.clone(),
        owner: session.owner.clone(),
        created_at: at(session.entries.first()),
        last_at: at(session.entries.last()),
        runs: session.runs.len() as u64,
        events: session.events,
    })
}

pub(super) fn sessions(tables: &Tables, filter: &SessionFilter) -> Vec<SessionRow> {
    let until = match &filter.after {
        None => tables.session_order.len(),
        Some(after) => tables.session_order.iter().position(|id| id == after).unwrap_or(0),
    };
    let rows = tables.session_order[..until].iter().rev().filter_map(|id| session(tables, id));
    let is_wanted = |row: &SessionRow| filter.owner.as_ref().is_none_or(|owner| *owner == row.owner);
    rows.filter(is_wanted).take(filter.limit.min(PAGE_MAX)).collect()
}

pub(super) fn runs(tables: &Tables, filter: &RunFilter) -> Vec<RunSummary> {
    let is_wanted = |id: RunId, run: &Run| {
        filter.after.is_none_or(|after| id < after)
            && filter.session.as_ref().is_none_or(|session| *session == run.session)
            && filter.owner.as_ref().is_none_or(|owner| *owner == tables.sessions[&run.session].owner)
            && filter.agent.as_ref().is_none_or(|agent| *agent == run.agent)
            && filter.status.is_none_or(|status| status == run.status)
    };
    let wanted = tables.runs.iter().filter(|(id, run)| is_wanted(**id, run));
    let mut rows: Vec<RunSummary> = wanted.map(|(id, run)| summary(*id, run)).collect();
    rows.sort_unstable_by_key(|row| std::cmp::Reverse(row.run));
    rows.truncate(filter.limit.min(PAGE_MAX));
    rows
}

fn summary(id: RunId, run: &Run) -> RunSummary {
    let at = |entry: Option<&holdpoint_core::record::Entry>| entry.expect("a run has an entry").at;
    RunSummary {
        run: id,
        session: run.session.clone(),
        agent: run.agent.clone(),
        status: run.status,
        started_at: at(run.entries.first()),
        last_at: at(run.entries.last()),
    }
}

pub(super) fn rules(tables: &Tables, filter: &RuleFilter, now: Timestamp) -> Vec<RuleRow> {
    let is_wanted = |rule: &&Rule| {
        filter.after.is_none_or(|after| rule.rule.id > after)
            && filter.session.as_ref().is_none_or(|session| *session == rule.session)
            && !rule.is_revoked
            && rule.rule.is_alive(now, rule.uses)
    };
    let row = |rule: &Rule| RuleRow { session: rule.session.clone(), rule: rule.rule.clone(), uses: rule.uses };
    tables.rules.values().filter(is_wanted).take(filter.limit.min(PAGE_MAX)).map(row).collect()
}
