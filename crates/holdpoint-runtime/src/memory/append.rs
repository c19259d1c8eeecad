//! The only way to write a run: every check first, then everything is written.

use std::sync::Arc;

use holdpoint_core::ids::{ActorId, RunId};
use holdpoint_core::record::Entry;
use holdpoint_core::time::Timestamp;

use crate::memory::tables::{LeaseSlot, Run, Session, Tables};
use crate::memory::{audit, lease, notices, rules};
use crate::ports::store::{
    Append, AppendError, Appended, LeaseChange, PauseRow, PauseStatus, RunStatus, StoreFault, StoreFaultKind,
};

pub(super) fn append(tables: &mut Tables, append: Append, now: Timestamp) -> Result<Appended, AppendError> {
    if append.events.is_empty() {
        let why = format!("an append to {} has no events", append.run);
        return Err(StoreFault::because("append", StoreFaultKind::Corrupt, why).into());
    }
    check_run(tables, &append)?;
    let slot = tables.runs.get(&append.run).map(|run| run.lease.clone()).unwrap_or_default();
    let slot = lease::change(append.run, slot, &append.lease, append.status, now)?;
    let changed_rules = rules::change(tables, &append)?;
    let records = audit::following(tables, &append)?;

    // Nothing is refused from here on.
    tables.rules.extend(changed_rules);
    tables.audit.extend(records);
    for (digest, bytes) in &append.definitions {
        tables.definitions.entry(*digest).or_insert_with(|| Arc::clone(bytes));
    }
    notices::add(tables, &append.notices, append.at);
    let entry = write_entry(tables, &append);
    write_pauses(tables, append.pauses, entry.pause_group);
    let epoch = match append.lease {
        LeaseChange::Take { .. } | LeaseChange::Hold { .. } if slot.holder.is_some() => Some(slot.epoch),
        _ => None,
    };
    let appended = Appended { revision: entry.revision, seq: entry.seq, pause_group: entry.pause_group, epoch };
    let run = tables.runs.get_mut(&append.run).expect("its entry was just written");
    if is_left_alone(run, &slot, append.status) {
        run.alone_since = now;
    }
    run.status = append.status;
    run.lease = slot;
    run.entries.push(entry);
    Ok(appended)
}

fn check_run(tables: &Tables, append: &Append) -> Result<(), AppendError> {
    let run = tables.runs.get(&append.run);
    let begins = match run {
        None if append.expected > 0 => return Err(AppendError::NoRun(append.run)),
        Some(run) if run.session != append.session => return Err(AppendError::NoRun(append.run)),
        None => true,
        Some(run) => run.is_finished() && append.status != RunStatus::Finished,
    };
    if run.is_none() && append.only_owner {
        check_owner(tables, append)?;
    }
    if let Some(other) = begins.then(|| under_way(tables, append)).flatten() {
        return Err(AppendError::SessionBusy { run: other });
    }
    let revision = run.map_or(0, Run::revision);
    if revision != append.expected {
        return Err(AppendError::Conflict { run: append.run, revision });
    }
    Ok(())
}

/// Refuses to begin a run in a session that somebody else began.
fn check_owner(tables: &Tables, append: &Append) -> Result<(), AppendError> {
    let owner = tables.sessions.get(&append.session).map(|session| &session.owner);
    match owner.is_none_or(|owner| Some(owner) == append.starter()) {
        true => Ok(()),
        false => Err(AppendError::SessionForeign { session: append.session.clone() }),
    }
}

/// Another unfinished run of the same agent in the session.
fn under_way(tables: &Tables, append: &Append) -> Option<RunId> {
    let agent = tables.runs.get(&append.run).map_or(&append.agent, |run| &run.agent);
    let session = tables.sessions.get(&append.session)?;
    let is_busy = |id: &&RunId| {
        let run = &tables.runs[*id];
        **id != append.run && run.agent == *agent && !run.is_finished()
    };
    session.runs.iter().find(is_busy).copied()
}

/// Writes down what numbers the session gives the entry, and the run if it begins; the caller adds the entry to it.
fn write_entry(tables: &mut Tables, append: &Append) -> Entry {
    let session = tables.sessions.entry(append.session.clone()).or_insert_with(|| {
        tables.session_order.push(append.session.clone());
        Session::of(append.starter().cloned().unwrap_or_else(ActorId::local))
    });
    let run = tables.runs.entry(append.run).or_insert_with(|| {
        session.runs.push(append.run);
        Run {
            session: append.session.clone(),
            agent: append.agent.clone(),
            status: RunStatus::Waiting,
            entries: Vec::new(),
            lease: LeaseSlot::default(),
            alone_since: append.at,
        }
    });
    let pause_group = append.opens_pauses().then(|| {
        session.pause_groups += 1;
        session.pause_groups
    });
    let entry = Entry {
        revision: run.revision() + 1,
        seq: session.events + 1,
        pause_group,
        at: append.at,
        events: Arc::clone(&append.events),
    };
    session.events += append.events.len() as u64;
    session.entries.push((append.run, entry.revision));
    entry
}

fn write_pauses(tables: &mut Tables, rows: Vec<PauseRow>, group: Option<u64>) {
    for row in rows {
        let row = match tables.pauses.get(&row.id) {
            None => PauseRow { group: group.unwrap_or_default(), ..row },
            Some(known) if row.status == PauseStatus::Open => {
                PauseRow { status: row.status, expires_at: row.expires_at, ..known.clone() }
            }
            Some(known) => PauseRow { status: row.status, ..known.clone() },
        };
        tables.pauses.insert(row.id, row);
    }
}

/// Whether a run that somebody must move has just lost whoever would.
fn is_left_alone(before: &Run, after: &LeaseSlot, status: RunStatus) -> bool {
    let was_alone = before.status == RunStatus::Working && before.lease.holder.is_none();
    status == RunStatus::Working && after.holder.is_none() && !was_alone
}
