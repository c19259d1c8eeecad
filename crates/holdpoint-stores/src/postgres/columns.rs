//! How values stand in columns. What does not read as what it should be is a corrupt store.

use std::str::FromStr;

use holdpoint_core::ids::RunId;
use holdpoint_core::json::Digest;
use holdpoint_core::pause::PauseKind;
use holdpoint_core::time::Timestamp;
use holdpoint_runtime::ports::store::{PauseStatus, RunStatus};
use tokio_postgres::Row;
use tokio_postgres::types::FromSql;
use uuid::Uuid;

use super::fault::Broken;

/// What the database's clock says now, in milliseconds.
pub(super) const CLOCK: &str = "SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint";

/// A count or a most, which no table holds more of than the largest signed number.
pub(super) fn count(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A most, as in `LIMIT`.
pub(super) fn most(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

pub(super) fn status(status: RunStatus) -> i16 {
    match status {
        RunStatus::Working => 0,
        RunStatus::Waiting => 1,
        RunStatus::Finished => 2,
    }
}

pub(super) fn pause_status(status: PauseStatus) -> i16 {
    match status {
        PauseStatus::Open => 0,
        PauseStatus::Decided => 1,
        PauseStatus::Expired => 2,
        PauseStatus::Withdrawn => 3,
    }
}

pub(super) fn pause_kind(kind: PauseKind) -> i16 {
    match kind {
        PauseKind::Approval => 0,
        PauseKind::Question => 1,
        PauseKind::Confirmation => 2,
        PauseKind::InDoubt => 3,
    }
}

/// A column as PostgreSQL has it.
pub(super) fn get<'a, T: FromSql<'a>>(row: &'a Row, column: usize) -> Result<T, Broken> {
    row.try_get(column).map_err(|error| Broken::Unreadable(error.to_string()))
}

pub(super) fn get_run(row: &Row, column: usize) -> Result<RunId, Broken> {
    get::<Uuid>(row, column).map(RunId::new)
}

pub(super) fn get_time(row: &Row, column: usize) -> Result<Timestamp, Broken> {
    get(row, column).map(Timestamp::from_millis)
}

pub(super) fn get_count(row: &Row, column: usize) -> Result<u64, Broken> {
    let number: i64 = get(row, column)?;
    u64::try_from(number).map_err(|_| Broken::Unreadable(format!("{number} where a count should be")))
}

/// The number of a pause or a rule, or a count of uses.
pub(super) fn get_number(row: &Row, column: usize) -> Result<u32, Broken> {
    let number: i64 = get(row, column)?;
    u32::try_from(number).map_err(|_| Broken::Unreadable(format!("{number} where a number should be")))
}

/// A name that is kept as it prints.
pub(super) fn get_name<T: FromStr<Err: std::fmt::Display>>(row: &Row, column: usize) -> Result<T, Broken> {
    get::<&str>(row, column)?.parse().map_err(|error: T::Err| Broken::Unreadable(error.to_string()))
}

pub(super) fn get_digest(row: &Row, column: usize) -> Result<Digest, Broken> {
    let bytes: &[u8] = get(row, column)?;
    let bytes = <[u8; 32]>::try_from(bytes).map_err(|_| Broken::Unreadable("a hash of another length".to_owned()))?;
    Ok(Digest::from_bytes(bytes))
}

pub(super) fn get_status(row: &Row, column: usize) -> Result<RunStatus, Broken> {
    match get::<i16>(row, column)? {
        0 => Ok(RunStatus::Working),
        1 => Ok(RunStatus::Waiting),
        2 => Ok(RunStatus::Finished),
        other => Err(Broken::Unreadable(format!("run status {other}"))),
    }
}

pub(super) fn get_pause_status(row: &Row, column: usize) -> Result<PauseStatus, Broken> {
    match get::<i16>(row, column)? {
        0 => Ok(PauseStatus::Open),
        1 => Ok(PauseStatus::Decided),
        2 => Ok(PauseStatus::Expired),
        3 => Ok(PauseStatus::Withdrawn),
        other => Err(Broken::Unreadable(format!("pause status {other}"))),
    }
}

pub(super) fn get_pause_kind(row: &Row, column: usize) -> Result<PauseKind, Broken> {
    match get::<i16>(row, column)? {
        0 => Ok(PauseKind::Approval),
        1 => Ok(PauseKind::Question),
        2 => Ok(PauseKind::Confirmation),
        3 => Ok(PauseKind::InDoubt),
        other => Err(Broken::Unreadable(format!("pause kind {other}"))),
    }
}
