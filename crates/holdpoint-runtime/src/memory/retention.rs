//! Sessions in which nothing has happened for long are removed whole.

use std::collections::HashSet;

use holdpoint_core::ids::{RunId, SessionId};
use holdpoint_core::time::Timestamp;

use crate::memory::tables::{Run, Tables};

/// Removes sessions without an unfinished run whose last entry is older, the oldest first; says how many.
pub(super) fn remove_old(tables: &mut Tables, before: Timestamp, limit: usize) -> u64 {
    let old: Vec<SessionId> =
        tables.session_order.iter().filter(|session| is_old(tables, session, before)).take(limit).cloned().collect();
    for session in &old {
        let removed = tables.sessions.remove(session);
        let runs: HashSet<RunId> = removed.into_iter().flat_map(|session| session.runs).collect();
        tables.runs.retain(|id, _| !runs.contains(id));
        tables.pauses.retain(|id, _| !runs.contains(&id.run));
        tables.rules.retain(|id, _| !runs.contains(&id.run));
        tables.notices.retain(|key, _| !runs.contains(&key.pause.run));
    }
    tables.session_order.retain(|session| !old.contains(session));
    old.len() as u64
}

fn is_old(tables: &Tables, session: &SessionId, before: Timestamp) -> bool {
    let Some(session) = tables.sessions.get(session) else { return false };
    let runs = || session.runs.iter().map(|id| &tables.runs[id]);
    let is_older = |run: &Run| run.entries.iter().all(|entry| entry.at < before);
    runs().all(|run| run.is_finished() && is_older(run))
}
