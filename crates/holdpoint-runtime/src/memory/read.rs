//! What can be asked of the store. Answers are copies.

use holdpoint_core::ids::{PauseId, RunId, SessionId};
use holdpoint_core::record::Entry;
use holdpoint_core::time::Timestamp;

use crate::memory::tables::Tables;
use crate::ports::store::{Lease, LoadedRun, PauseFilter, PauseRow, PauseStatus, RunRow};

pub(super) fn load(tables: &Tables, id: RunId, after: u64, now: Timestamp) -> Option<LoadedRun> {
    let run = tables.runs.get(&id)?;
    let lease = run.lease.standing(now).map(|holder| Lease {
        run: id,
        epoch: run.lease.epoch,
        owner: holder.owner.clone(),
        until: holder.until,
    });
    Some(LoadedRun {
        revision: run.revision(),
        session: run.session.clone(),
        agent: run.agent.clone(),
        entries: run.entries.iter().filter(|entry| entry.revision > after).cloned().collect(),
        lease,
    })
}

pub(super) fn due_pauses(tables: &Tables, limit: usize, now: Timestamp) -> Vec<PauseId> {
    let mut due: Vec<(Timestamp, PauseId)> = deadlines(tables).filter(|(deadline, _)| *deadline <= now).collect();
    due.sort_unstable();
    due.into_iter().map(|(_, id)| id).take(limit).collect()
}

pub(super) fn next_deadline(tables: &Tables) -> Option<Timestamp> {
    deadlines(tables).map(|(deadline, _)| deadline).min()
}

fn deadlines(tables: &Tables) -> impl Iterator<Item = (Timestamp, PauseId)> {
    let open = tables.pauses.values().filter(|row| row.status == PauseStatus::Open);
    open.filter_map(|row| row.expires_at.map(|deadline| (deadline, row.id)))
}

pub(super) fn list_pauses(tables: &Tables, filter: &PauseFilter) -> Vec<PauseRow> {
    let mut rows: Vec<PauseRow> = tables.pauses.values().filter(|row| filter.admits(row)).cloned().collect();
    rows.sort_unstable_by_key(PauseRow::cursor);
    rows.truncate(filter.limit.min(PauseFilter::LIMIT_MAX));
    rows
}

pub(super) fn session_runs(tables: &Tables, session: &SessionId, limit: usize) -> Vec<RunRow> {
    let runs = tables.sessions.get(session).into_iter().flat_map(|session| session.runs.iter().rev());
    let row = |id: &RunId| {
        let run = &tables.runs[id];
        RunRow { run: *id, agent: run.agent.clone(), status: run.status }
    };
    runs.take(limit).map(row).collect()
}

pub(super) fn session_entries(tables: &Tables, session: &SessionId, from: u64, limit: usize) -> Vec<(RunId, Entry)> {
    let places = tables.sessions.get(session).into_iter().flat_map(|session| session.entries.iter());
    let entries = places.map(|(run, revision)| (*run, &tables.runs[run].entries[*revision as usize - 1]));
    let has_events_from = |entry: &Entry| entry.seq + entry.events.len() as u64 > from;
    entries.filter(|(_, entry)| has_events_from(entry)).take(limit).map(|(run, entry)| (run, entry.clone())).collect()
}
