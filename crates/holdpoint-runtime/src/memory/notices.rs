//! The outbox.

use std::time::Duration;

use holdpoint_core::time::Timestamp;

use crate::memory::tables::Tables;
use crate::ports::notifier::{Destination, NoticeKey};
use crate::ports::store::{NoticeFilter, NoticeOutcome, NoticeRow, NoticeState, PAGE_MAX};

pub(super) fn add(tables: &mut Tables, keys: &[NoticeKey], at: Timestamp) {
    for key in keys {
        let new = || NoticeRow { key: key.clone(), state: NoticeState::Waiting, attempts: 0, at };
        tables.notices.entry(key.clone()).or_insert_with(new);
    }
}

pub(super) fn claim(
    tables: &mut Tables,
    destinations: &[Destination],
    limit: usize,
    hold: Duration,
    now: Timestamp,
) -> Vec<NoticeRow> {
    let is_due = |row: &&NoticeRow| {
        row.state == NoticeState::Waiting
            && row.at <= now
            && destinations.contains(&row.key.destination)
            && !is_behind(tables, &row.key)
    };
    let mut due: Vec<(Timestamp, NoticeKey)> =
        tables.notices.values().filter(is_due).map(|row| (row.at, row.key.clone())).collect();
    due.sort_unstable();
    due.truncate(limit.min(PAGE_MAX));
    let begun = due.into_iter().filter_map(|(_, key)| {
        let row = tables.notices.get_mut(&key)?;
        row.attempts = row.attempts.saturating_add(1);
        row.at = now.after(hold);
        Some(row.clone())
    });
    begun.collect()
}

/// Whether something else about the pause is still to be told there first.
fn is_behind(tables: &Tables, key: &NoticeKey) -> bool {
    key.opened().is_some_and(|opened| tables.notices.get(&opened).is_some_and(|row| row.state == NoticeState::Waiting))
}

pub(super) fn settle(
    tables: &mut Tables,
    key: &NoticeKey,
    attempt: u32,
    outcome: NoticeOutcome,
    now: Timestamp,
) -> bool {
    match tables.notices.get_mut(key) {
        Some(row) if row.state == NoticeState::Waiting && row.attempts == attempt => {
            *row = outcome.settle(row.clone(), now);
            true
        }
        _ => false,
    }
}

pub(super) fn list(tables: &Tables, filter: &NoticeFilter) -> Vec<NoticeRow> {
    tables.notices.values().filter(|row| filter.admits(row)).take(filter.limit.min(PAGE_MAX)).cloned().collect()
}
