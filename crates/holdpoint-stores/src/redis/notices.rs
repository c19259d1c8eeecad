//! The outbox: notices are written with the append that they tell of, claimed, and settled.

use std::time::{Duration, Instant};

use ::redis::aio::ConnectionManager;
use holdpoint_core::ids::PauseId;
use holdpoint_core::time::Timestamp;
use holdpoint_runtime::ports::notifier::{Destination, NoticeKey, NoticeKind};
use holdpoint_runtime::ports::store::{Append, NoticeFilter, NoticeOutcome, NoticeRow, NoticeState, PAGE_MAX};
use serde::{Deserialize, Serialize};

use super::change::Change;
use super::fault::{Broken, WriteError};
use super::keys::{self, Keys};
use super::open::millis;
use super::records;
use crate::clock::StoreClock;
use crate::outbox;

/// A notice as it is stored.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct NoticeRecord {
    /// 0 waiting, 1 delivered, 2 failed
    state: u8,
    attempts: u32,
    /// While it waits, when the next attempt is due; then since when it is settled.
    at: i64,
    /// What the notifier kept, or why it was given up.
    note: Option<String>,
}

impl NoticeRecord {
    fn of(row: &NoticeRow) -> Self {
        Self {
            state: outbox::status_code(row.state.status()),
            attempts: row.attempts,
            at: row.at.as_millis(),
            note: outbox::note(&row.state).map(str::to_owned),
        }
    }

    fn row(self, key: NoticeKey) -> Result<NoticeRow, Broken> {
        let status = outbox::status_of(i64::from(self.state))
            .ok_or_else(|| Broken::Unreadable(format!("notice state {}", self.state)))?;
        let state = outbox::state(status, self.note);
        Ok(NoticeRow { key, state, attempts: self.attempts, at: Timestamp::from_millis(self.at) })
    }
}

/// A notice's name, in whose order notices are.
fn name(key: &NoticeKey) -> String {
    let kind = u8::from(key.kind == NoticeKind::Settled);
    format!("{}:{kind}:{}", keys::pause_name(key.pause), key.destination)
}

fn parse(name: &str) -> Result<NoticeKey, Broken> {
    let read = || {
        let mut parts = name.rsplitn(3, ':');
        let (destination, kind, pause) = (parts.next()?, parts.next()?, parts.next()?);
        let kind = match kind {
            "0" => NoticeKind::Opened,
            "1" => NoticeKind::Settled,
            _ => return None,
        };
        let (run, number) = keys::parse_numbered(pause)?;
        Some(NoticeKey { pause: PauseId { run, number }, kind, destination: Destination::new(destination)? })
    };
    read().ok_or_else(|| Broken::Unreadable(format!("{name} where a notice should be")))
}

/// Writes the notices of an append; one that is there already is left as it is. Notices come and go with appends to their
/// run alone, whose record is compared when this is written.
pub(super) async fn write(
    change: &mut Change,
    connection: &ConnectionManager,
    keys: &Keys,
    append: &Append,
) -> Result<(), Broken> {
    if append.notices.is_empty() {
        return Ok(());
    }
    let there = get(connection, keys, &append.notices.iter().map(name).collect::<Vec<_>>()).await?;
    for (key, _) in append.notices.iter().zip(there).filter(|(_, there)| there.is_none()) {
        let row = NoticeRow { key: key.clone(), state: NoticeState::Waiting, attempts: 0, at: append.at };
        change.place_member(keys.notice_order(), 0, name(key));
        place(change, keys, &row)?;
    }
    Ok(())
}

/// Writes a notice, and gives it its place among those that are due if it waits.
fn place(change: &mut Change, keys: &Keys, row: &NoticeRow) -> Result<(), Broken> {
    let (name, due) = (name(&row.key), keys.notices_due(&row.key.destination));
    match row.state {
        NoticeState::Waiting => change.place_member(due, row.at.as_millis(), &name),
        NoticeState::Delivered { .. } | NoticeState::Failed { .. } => change.remove_member(due, &name),
    }
    change.set_field(keys.notices(), name, records::encode(&NoticeRecord::of(row))?);
    Ok(())
}

/// Removes the notices of these names.
pub(super) fn remove(change: &mut Change, keys: &Keys, names: &[String]) -> Result<(), Broken> {
    change.remove_fields(&keys.notices(), names);
    change.remove_members(&keys.notice_order(), names);
    for name in names {
        change.remove_member(keys.notices_due(&parse(name)?.destination), name);
    }
    Ok(())
}

/// What stands under each of these names.
async fn get(connection: &ConnectionManager, keys: &Keys, names: &[String]) -> Result<Vec<Option<Vec<u8>>>, Broken> {
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let mut command = ::redis::cmd("HMGET");
    command.arg(keys.notices()).arg(names);
    Ok(command.query_async(&mut connection.clone()).await?)
}

/// The time that arbitrates.
async fn now(connection: &ConnectionManager, clock: &StoreClock) -> Result<Timestamp, Broken> {
    let asked = Instant::now();
    let time = ::redis::cmd("TIME").query_async(&mut connection.clone()).await?;
    Ok(clock.arbiter(asked, millis(time)))
}

/// A notice as it was seen: the row, and the bytes that must still stand there when it is changed.
type Seen = (NoticeRow, Vec<u8>);

/// One try to begin an attempt at what is due.
pub(super) async fn claim(
    connection: &ConnectionManager,
    keys: &Keys,
    clock: &StoreClock,
    destinations: &[Destination],
    limit: usize,
    hold: Duration,
) -> Result<Vec<NoticeRow>, WriteError> {
    let (limit, now) = (limit.min(PAGE_MAX), now(connection, clock).await?);
    let mut due: Vec<Seen> = Vec::new();
    for (index, destination) in destinations.iter().enumerate() {
        if !destinations[..index].contains(destination) {
            due.extend(due_to(connection, keys, destination, limit, now).await?);
        }
    }
    due.sort_unstable_by(|(one, _), (other, _)| (one.at, &one.key).cmp(&(other.at, &other.key)));
    due.truncate(limit);
    if due.is_empty() {
        return Ok(Vec::new());
    }
    let mut change = Change::default();
    let mut begun = Vec::with_capacity(due.len());
    for (row, bytes) in due {
        let row = NoticeRow { attempts: row.attempts.saturating_add(1), at: now.after(hold), ..row };
        change.expect_field(keys.notices(), name(&row.key), Some(&bytes));
        place(&mut change, keys, &row)?;
        begun.push(row);
    }
    change.commit(connection).await?;
    Ok(begun)
}

/// What is due to a destination, longest first; nothing about the end of a pause whose opening waits too.
async fn due_to(
    connection: &ConnectionManager,
    keys: &Keys,
    destination: &Destination,
    limit: usize,
    now: Timestamp,
) -> Result<Vec<Seen>, Broken> {
    let (mut due, mut offset) = (Vec::new(), 0);
    while due.len() < limit {
        let mut command = ::redis::cmd("ZRANGE");
        command.arg(keys.notices_due(destination)).arg("-inf").arg(now.as_millis()).arg("BYSCORE");
        command.arg("LIMIT").arg(offset).arg(PAGE_MAX);
        let names: Vec<String> = command.query_async(&mut connection.clone()).await?;
        if names.is_empty() {
            break;
        }
        offset += names.len();
        let found = seen(connection, keys, &names).await?;
        let openings: Vec<NoticeKey> = found.iter().flatten().filter_map(|(row, _)| row.key.opened()).collect();
        let opened = seen(connection, keys, &openings.iter().map(name).collect::<Vec<_>>()).await?;
        let is_waiting = |key: &NoticeKey| {
            let waits = |(row, _): &Seen| row.key == *key && row.state == NoticeState::Waiting;
            opened.iter().flatten().any(waits)
        };
        let is_due = |(row, _): &Seen| {
            row.state == NoticeState::Waiting && row.at <= now && !row.key.opened().is_some_and(|key| is_waiting(&key))
        };
        due.extend(found.into_iter().flatten().filter(is_due).take(limit - due.len()));
    }
    Ok(due)
}

/// The notices of these names, where they are there.
async fn seen(connection: &ConnectionManager, keys: &Keys, names: &[String]) -> Result<Vec<Option<Seen>>, Broken> {
    let found = get(connection, keys, names).await?;
    let read = |(name, bytes): (&String, Option<Vec<u8>>)| {
        let Some(bytes) = bytes else { return Ok(None) };
        Ok(Some((records::decode::<NoticeRecord>(&bytes)?.row(parse(name)?)?, bytes)))
    };
    names.iter().zip(found).map(read).collect()
}

/// One try to write down what came of an attempt, unless a later one was begun or the notice is settled.
pub(super) async fn settle(
    connection: &ConnectionManager,
    keys: &Keys,
    clock: &StoreClock,
    key: &NoticeKey,
    attempt: u32,
    outcome: &NoticeOutcome,
) -> Result<bool, WriteError> {
    let now = now(connection, clock).await?;
    match seen(connection, keys, &[name(key)]).await?.into_iter().flatten().next() {
        Some((row, bytes)) if row.state == NoticeState::Waiting && row.attempts == attempt => {
            let mut change = Change::default();
            change.expect_field(keys.notices(), name(key), Some(&bytes));
            place(&mut change, keys, &outcome.clone().settle(row, now))?;
            change.commit(connection).await?;
            Ok(true)
        }
        _ => Ok(false),
    }
}

/// A notice, if there is one of this key.
pub(super) async fn find(
    connection: &ConnectionManager,
    keys: &Keys,
    key: &NoticeKey,
) -> Result<Option<NoticeRow>, Broken> {
    let found = seen(connection, keys, &[name(key)]).await?;
    Ok(found.into_iter().flatten().next().map(|(row, _)| row))
}

/// A page of notices, in the order of their keys.
pub(super) async fn list(
    connection: &ConnectionManager,
    keys: &Keys,
    filter: &NoticeFilter,
) -> Result<Vec<NoticeRow>, Broken> {
    let limit = filter.limit.min(PAGE_MAX);
    let mut rows = Vec::new();
    let mut from = filter.after.as_ref().map_or("-".to_owned(), |after| format!("({}", name(after)));
    // How a notice stands is in its record: read on until the page is full or nothing is left.
    while rows.len() < limit {
        let mut command = ::redis::cmd("ZRANGE");
        command.arg(keys.notice_order()).arg(&from).arg("+").arg("BYLEX").arg("LIMIT").arg(0).arg(PAGE_MAX);
        let names: Vec<String> = command.query_async(&mut connection.clone()).await?;
        let Some(last) = names.last() else { break };
        from = format!("({last}");
        let found = seen(connection, keys, &names).await?.into_iter().flatten().map(|(row, _)| row);
        rows.extend(found.filter(|row| filter.admits(row)).take(limit - rows.len()));
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back_and_keep_the_order_of_keys() {
        let run = "run_0198c0ffee007000800000000000beef".parse().unwrap();
        let mut keys = Vec::new();
        for number in [1, 9, 10, u32::MAX] {
            for kind in [NoticeKind::Opened, NoticeKind::Settled] {
                for destination in ["a", "a-b", "ops", "ops2", "z_"] {
                    let destination = Destination::new(destination).unwrap();
                    keys.push(NoticeKey { pause: PauseId { run, number }, kind, destination });
                }
            }
        }
        assert!(keys.is_sorted());
        let names: Vec<String> = keys.iter().map(name).collect();
        assert!(names.is_sorted());
        assert_eq!(names.iter().map(|name| parse(name).unwrap()).collect::<Vec<_>>(), keys);
        for bad in ["", "x", "a:b:c", &names[0].replace(":0:", ":2:"), &format!("{}!", names[0])] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
