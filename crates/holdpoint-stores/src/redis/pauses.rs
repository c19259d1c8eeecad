//! Pauses: the inbox and the deadlines.

use std::sync::Arc;

use ::redis::aio::ConnectionManager;
use holdpoint_core::event::RunEvent;
use holdpoint_core::ids::PauseId;
use holdpoint_core::time::Timestamp;
use holdpoint_runtime::ports::store::{Append, PAGE_MAX, PauseFilter, PauseRow, PauseStatus};

use super::change::Change;
use super::fault::Broken;
use super::keys::{self, Keys};
use super::records::{self, Held, PauseRecord};

/// Writes the rows that an append opens or changes; those that it opens take its number. `before` has what stands there
/// for each of them; gives what stands there then.
pub(super) fn write(
    change: &mut Change,
    keys: &Keys,
    append: &Append,
    before: &[Option<Arc<Held<PauseRecord>>>],
    group: Option<u64>,
) -> Result<Vec<Arc<Held<PauseRecord>>>, Broken> {
    let mut written = Vec::with_capacity(append.pauses.len());
    for (row, before) in append.pauses.iter().zip(before) {
        let before = before.as_deref().map(|before| &before.record);
        let after = Held::new(after(append, row, before, group))?;
        let name = keys::pause_name(row.id);
        let (status, opened_at) = (after.record.status, after.record.opened_at);
        // One that is there keeps its place in the lists of all, and changes from one state's list to another's.
        match before.map(|before| before.status) {
            None => {
                change.place_member(keys.pause_order(None), opened_at, name);
                change.place_member(keys.pauses_of(&append.session), opened_at, name);
                change.place_member(keys.pause_order(Some(status)), opened_at, name);
            }
            Some(other) if other != status => {
                change.remove_member(keys.pause_order(Some(other)), name);
                change.place_member(keys.pause_order(Some(status)), opened_at, name);
            }
            Some(_) => {}
        }
        match after.record.expires_at {
            Some(expires_at) if row.status == PauseStatus::Open => {
                change.place_member(keys.deadlines(), expires_at, name);
            }
            None if before.is_some_and(|before| before.expires_at.is_none()) => {}
            _ => change.remove_member(keys.deadlines(), name),
        }
        change.set_field(keys.pauses(), name, &after.bytes);
        written.push(after);
    }
    Ok(written)
}

/// A pause after the append: one that is there keeps what it was opened with, and only stands otherwise.
fn after(append: &Append, row: &PauseRow, before: Option<&PauseRecord>, group: Option<u64>) -> PauseRecord {
    let new = PauseRecord::of(row, group.unwrap_or_default());
    let opens = |event: &RunEvent| matches!(event, RunEvent::PauseOpened(opened) if opened.number == row.id.number);
    match before {
        None => new,
        Some(before) if row.status == PauseStatus::Open && !append.events.iter().any(opens) => {
            PauseRecord { status: new.status, expires_at: new.expires_at, ..before.clone() }
        }
        Some(before) => PauseRecord { status: new.status, ..before.clone() },
    }
}

/// Open pauses whose time is up, earliest deadline first.
pub(super) async fn due(
    connection: &mut ConnectionManager,
    keys: &Keys,
    limit: usize,
    now: Timestamp,
) -> Result<Vec<PauseId>, Broken> {
    let mut command = ::redis::cmd("ZRANGE");
    command.arg(keys.deadlines()).arg("-inf").arg(now.as_millis()).arg("BYSCORE");
    command.arg("LIMIT").arg(0).arg(i64::try_from(limit).unwrap_or(i64::MAX));
    let names: Vec<String> = command.query_async(connection).await?;
    names.iter().map(|name| parse(name)).collect()
}

fn parse(name: &str) -> Result<PauseId, Broken> {
    let found = keys::parse_numbered(name).map(|(run, number)| PauseId { run, number });
    found.ok_or_else(|| Broken::Unreadable(format!("{name} where a pause should be")))
}

/// The earliest deadline of an open pause.
pub(super) async fn next_deadline(
    connection: &mut ConnectionManager,
    keys: &Keys,
) -> Result<Option<Timestamp>, Broken> {
    let mut command = ::redis::cmd("ZRANGE");
    command.arg(keys.deadlines()).arg(0).arg(0).arg("WITHSCORES");
    let found: Vec<(String, f64)> = command.query_async(connection).await?;
    Ok(found.first().map(|(_, millis)| Timestamp::from_millis(*millis as i64)))
}

/// A page of pauses, oldest first.
pub(super) async fn list(
    connection: &mut ConnectionManager,
    keys: &Keys,
    filter: &PauseFilter,
) -> Result<Vec<PauseRow>, Broken> {
    let limit = filter.limit.min(PauseFilter::LIMIT_MAX);
    let order = match (&filter.session, filter.status) {
        (Some(session), _) => keys.pauses_of(session).into(),
        (None, status) => keys.pause_order(status.map(records::pause_status_code)),
    };
    let from = filter.after.map_or(0, |after| after.opened_at.as_millis());
    let (mut rows, mut offset) = (Vec::new(), 0);
    // Whether a pause is of this agent or tool stands in its record: read on until the page is full or nothing is left.
    while rows.len() < limit {
        let mut command = ::redis::cmd("ZRANGE");
        command.arg(&*order).arg(from).arg("+inf").arg("BYSCORE").arg("LIMIT").arg(offset).arg(PAGE_MAX);
        let names: Vec<String> = command.query_async(connection).await?;
        if names.is_empty() {
            break;
        }
        offset += names.len();
        let mut command = ::redis::cmd("HMGET");
        command.arg(keys.pauses()).arg(&names);
        let found: Vec<Option<Vec<u8>>> = command.query_async(connection).await?;
        for (name, bytes) in names.iter().zip(found) {
            let Some(bytes) = bytes else { continue };
            let row = records::decode::<PauseRecord>(&bytes)?.row(parse(name)?)?;
            if filter.admits(&row) && rows.len() < limit {
                rows.push(row);
            }
        }
    }
    Ok(rows)
}
