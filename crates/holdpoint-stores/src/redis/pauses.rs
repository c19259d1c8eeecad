//! Pauses: the inbox and the deadlines. A record says what was asked. How a pause stands is told by the list that it is in:
//! one for those that are open, one for those that expired, and one for those that were withdrawn. In none of them are those
//! that were decided, which are the most by far, so that a decision only takes its pause out of one.

use std::borrow::Cow;
use std::sync::LazyLock;

use ::redis::aio::ConnectionManager;
use ::redis::{Pipeline, Script};
use holdpoint_core::ids::PauseId;
use holdpoint_core::time::Timestamp;
use holdpoint_runtime::ports::store::{Append, PAGE_MAX, PauseFilter, PauseRow, PauseStatus};

use super::change::Change;
use super::fault::Broken;
use super::keys::{self, Keys};
use super::records::{self, PauseRecord};
use super::script::Call;
use crate::admit;

static NEXT_DECIDED: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("next_decided.lua")));

/// The statuses that have a list of their own.
const LISTED: [PauseStatus; 3] = [PauseStatus::Open, PauseStatus::Expired, PauseStatus::Withdrawn];

/// How many pauses are looked at before those in between that stand otherwise are passed over.
const LOOK_MAX: usize = 100;

/// What becomes of a row with an append.
enum Move {
    Opens,
    IsDecided,
    /// It stays open, expires or is withdrawn.
    Other,
}

impl Move {
    fn of(append: &Append, row: &PauseRow) -> Self {
        match row.status {
            _ if admit::opens(append, row) => Self::Opens,
            PauseStatus::Decided => Self::IsDecided,
            PauseStatus::Open | PauseStatus::Expired | PauseStatus::Withdrawn => Self::Other,
        }
    }
}

/// The names of those of an append's pauses whose records must be read before it is written.
pub(super) fn names_asked_for(append: &Append) -> impl Iterator<Item = String> {
    let asked_for = append.pauses.iter().filter(|row| matches!(Move::of(append, row), Move::Other));
    asked_for.map(|row| keys::pause_name(row.id).to_string())
}

/// Writes the rows that an append opens or changes; those that it opens take its number. `found` has the records that were
/// asked for. One that is there keeps what it was opened with, and only stands otherwise.
pub(super) fn write(
    change: &mut Change,
    keys: &Keys,
    append: &Append,
    found: &[Option<PauseRecord>],
    group: Option<u64>,
) -> Result<(), Broken> {
    let mut found = found.iter();
    for row in &append.pauses {
        match Move::of(append, row) {
            Move::Opens => open(change, keys, row, group)?,
            Move::IsDecided => take_out(change, keys, row.id, &[PauseStatus::Open]),
            Move::Other => match found.next() {
                Some(Some(before)) => alter(change, keys, row, before)?,
                // Never heard of: as one that opens.
                Some(None) | None => open(change, keys, row, group)?,
            },
        }
    }
    Ok(())
}

fn open(change: &mut Change, keys: &Keys, row: &PauseRow, group: Option<u64>) -> Result<(), Broken> {
    let name = keys::pause_name(row.id);
    let record = PauseRecord::of(row, group.unwrap_or_default());
    change.set_field(keys.pauses(), name, records::encode(&record)?);
    change.place_member(keys.pause_order(), record.opened_at, name);
    change.place_member(keys.pauses_of(&row.session), record.opened_at, name);
    place(change, keys, row, &record);
    Ok(())
}

/// Gives a pause its place among those that stand like it, and among the deadlines.
fn place(change: &mut Change, keys: &Keys, row: &PauseRow, record: &PauseRecord) {
    let name = keys::pause_name(row.id);
    if let Some(order) = keys.pause_order_of(row.status) {
        change.place_member(order, record.opened_at, name);
    }
    if let (PauseStatus::Open, Some(expires_at)) = (row.status, record.expires_at) {
        change.place_member(keys.deadlines(), expires_at, name);
    }
}

/// Takes a pause out of the lists of these statuses, and its deadline, if it has one.
fn take_out(change: &mut Change, keys: &Keys, id: PauseId, statuses: &[PauseStatus]) {
    let name = keys::pause_name(id);
    for order in statuses.iter().filter_map(|status| keys.pause_order_of(*status)) {
        change.remove_member(order, name);
    }
    change.remove_member(keys.deadlines(), name);
}

/// Changes how a pause stands, or until when.
fn alter(change: &mut Change, keys: &Keys, row: &PauseRow, before: &PauseRecord) -> Result<(), Broken> {
    take_out(change, keys, row.id, &LISTED);
    let mut record = before.clone();
    if row.status == PauseStatus::Open {
        record.expires_at = row.expires_at.map(Timestamp::as_millis);
        change.set_field(keys.pauses(), keys::pause_name(row.id), records::encode(&record)?);
    }
    place(change, keys, row, &record);
    Ok(())
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
    let is_decided = filter.session.is_none() && filter.status == Some(PauseStatus::Decided);
    let order = match (&filter.session, filter.status) {
        (Some(session), _) => Some(keys.pauses_of(session).into()),
        (None, status) => status.and_then(|status| keys.pause_order_of(status)),
    };
    let order = order.unwrap_or_else(|| keys.pause_order().into());
    // Where all that are read are listed, no more are than there is room for.
    let is_sifted = filter.agent.is_some() || filter.tool.is_some() || filter.session.is_some();
    let at_once = match (is_decided, is_sifted) {
        (true, _) => LOOK_MAX,
        (false, true) => PAGE_MAX,
        (false, false) => limit,
    };
    let mut walk = Walk::new(order, filter, at_once);
    let mut rows = Vec::new();
    // Whether a pause is of this agent or tool stands in its record: read on until the page is full or nothing is left.
    while rows.len() < limit {
        let names = walk.next(connection).await?;
        if names.is_empty() {
            break;
        }
        let found = read(connection, keys, &names).await?;
        if is_decided && found.iter().all(|row| row.status != PauseStatus::Decided) {
            let Some(next) = next_decided(connection, keys, walk.time()).await? else { break };
            walk.pass_on_to(next);
        }
        let room = limit - rows.len();
        rows.extend(found.into_iter().filter(|row| filter.admits(row)).take(room));
    }
    Ok(rows)
}

/// Goes through a list from place to place: what others take out of it or put into it meanwhile moves nothing.
struct Walk<'a> {
    order: Cow<'a, str>,
    /// How far it has come: a time, and the last name of those that have it.
    place: Option<(f64, String)>,
    at_once: usize,
}

impl<'a> Walk<'a> {
    fn new(order: Cow<'a, str>, filter: &PauseFilter, at_once: usize) -> Self {
        let place = filter.after.map(|after| {
            // As the server keeps it.
            (after.opened_at.as_millis() as f64, keys::pause_name(after.id).to_string())
        });
        // The one at the place comes again.
        Self { order, place, at_once: at_once + 1 }
    }

    /// The names behind the place; none at the end.
    async fn next(&mut self, connection: &mut ConnectionManager) -> Result<Vec<String>, Broken> {
        loop {
            let mut command = ::redis::cmd("ZRANGE");
            match &self.place {
                Some((time, _)) => command.arg(&*self.order).arg(time.to_string()),
                None => command.arg(&*self.order).arg("-inf"),
            };
            command.arg("+inf").arg("BYSCORE").arg("LIMIT").arg(0).arg(self.at_once).arg("WITHSCORES");
            let mut found: Vec<(String, f64)> = command.query_async(connection).await?;
            let is_all = found.len() < self.at_once;
            if let Some((time, name)) = &self.place {
                found.retain(|(other, at)| at > time || other > name);
            }
            match found.last() {
                Some((name, time)) => {
                    self.place = Some((*time, name.clone()));
                    return Ok(found.into_iter().map(|(name, _)| name).collect());
                }
                None if is_all => return Ok(Vec::new()),
                // So many are of one moment.
                None => self.at_once *= 2,
            }
        }
    }

    /// The time that it has come to.
    fn time(&self) -> i64 {
        self.place.as_ref().map_or(0, |(time, _)| *time as i64)
    }

    /// Passes over all before a time, unless it has come so far.
    fn pass_on_to(&mut self, time: i64) {
        if time > self.time() {
            self.place = Some((time as f64, String::new()));
        }
    }
}

/// The pauses of these names, as far as they are there, each as it stands.
async fn read(connection: &mut ConnectionManager, keys: &Keys, names: &[String]) -> Result<Vec<PauseRow>, Broken> {
    let mut pipe = Pipeline::new();
    // At one moment: a pause that changes from one list to another is never in both, nor in none.
    pipe.atomic().cmd("HMGET").arg(keys.pauses()).arg(names);
    for order in LISTED.iter().filter_map(|status| keys.pause_order_of(*status)) {
        pipe.cmd("ZMSCORE").arg(&*order).arg(names);
    }
    type Scores = Vec<Option<f64>>;
    let (records, open, expired, withdrawn): (Vec<Option<Vec<u8>>>, Scores, Scores, Scores) =
        pipe.query_async(connection).await?;
    let listed = open.into_iter().zip(expired).zip(withdrawn);
    let mut rows = Vec::with_capacity(names.len());
    for ((name, bytes), ((open, expired), withdrawn)) in names.iter().zip(records).zip(listed) {
        let Some(bytes) = bytes else { continue };
        let status = match (open, expired, withdrawn) {
            (Some(_), _, _) => PauseStatus::Open,
            (None, Some(_), _) => PauseStatus::Expired,
            (None, None, Some(_)) => PauseStatus::Withdrawn,
            (None, None, None) => PauseStatus::Decided,
        };
        rows.push(records::decode::<PauseRecord>(&bytes)?.row(parse(name)?, status)?);
    }
    Ok(rows)
}

/// When the first pause opened, from a time on, that was decided.
async fn next_decided(connection: &mut ConnectionManager, keys: &Keys, from: i64) -> Result<Option<i64>, Broken> {
    let mut call = Call::reading(&NEXT_DECIDED, 1 + LISTED.len());
    call.cmd.arg(keys.pause_order());
    for order in LISTED.iter().filter_map(|status| keys.pause_order_of(*status)) {
        call.cmd.arg(&*order);
    }
    call.cmd.arg(from);
    Ok(call.send(connection).await?)
}
