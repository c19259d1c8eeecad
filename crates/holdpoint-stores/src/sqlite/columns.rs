//! How values stand in columns. What does not read as what it should be is a corrupt file, said by the column's error.

use std::str::FromStr;

use holdpoint_core::ids::RunId;
use holdpoint_core::json::Digest;
use holdpoint_core::pause::PauseKind;
use holdpoint_core::time::Timestamp;
use holdpoint_runtime::ports::notifier::NoticeKind;
use holdpoint_runtime::ports::store::{NoticeStatus, PauseStatus, RunStatus};
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSql, ToSqlOutput, ValueRef};
use uuid::Uuid;

use crate::outbox;

/// A value with a column form of its own.
pub(super) struct Column<T>(pub(super) T);

impl FromSql for Column<RunId> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let bytes: [u8; 16] = FromSql::column_result(value)?;
        Ok(Self(RunId::new(Uuid::from_bytes(bytes))))
    }
}

impl ToSql for Column<RunId> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(ValueRef::Blob(self.0.uuid().as_bytes())))
    }
}

impl FromSql for Column<Timestamp> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        i64::column_result(value).map(|millis| Self(Timestamp::from_millis(millis)))
    }
}

impl ToSql for Column<Timestamp> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::from(self.0.as_millis()))
    }
}

/// A count, which no file holds more of than the largest signed number.
impl FromSql for Column<u64> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let number = i64::column_result(value)?;
        u64::try_from(number).map(Self).map_err(|_| FromSqlError::OutOfRange(number))
    }
}

impl ToSql for Column<u64> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::from(i64::try_from(self.0).unwrap_or(i64::MAX)))
    }
}

/// A most, as in `LIMIT`.
impl ToSql for Column<usize> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::from(i64::try_from(self.0).unwrap_or(i64::MAX)))
    }
}

impl FromSql for Column<RunStatus> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        match i64::column_result(value)? {
            0 => Ok(Self(RunStatus::Working)),
            1 => Ok(Self(RunStatus::Waiting)),
            2 => Ok(Self(RunStatus::Finished)),
            other => Err(FromSqlError::OutOfRange(other)),
        }
    }
}

impl ToSql for Column<RunStatus> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::from(match self.0 {
            RunStatus::Working => 0,
            RunStatus::Waiting => 1,
            RunStatus::Finished => 2,
        }))
    }
}

impl FromSql for Column<PauseStatus> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        match i64::column_result(value)? {
            0 => Ok(Self(PauseStatus::Open)),
            1 => Ok(Self(PauseStatus::Decided)),
            2 => Ok(Self(PauseStatus::Expired)),
            3 => Ok(Self(PauseStatus::Withdrawn)),
            other => Err(FromSqlError::OutOfRange(other)),
        }
    }
}

impl ToSql for Column<PauseStatus> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::from(match self.0 {
            PauseStatus::Open => 0,
            PauseStatus::Decided => 1,
            PauseStatus::Expired => 2,
            PauseStatus::Withdrawn => 3,
        }))
    }
}

impl FromSql for Column<PauseKind> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        match i64::column_result(value)? {
            0 => Ok(Self(PauseKind::Approval)),
            1 => Ok(Self(PauseKind::Question)),
            2 => Ok(Self(PauseKind::Confirmation)),
            3 => Ok(Self(PauseKind::InDoubt)),
            other => Err(FromSqlError::OutOfRange(other)),
        }
    }
}

impl ToSql for Column<PauseKind> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::from(match self.0 {
            PauseKind::Approval => 0,
            PauseKind::Question => 1,
            PauseKind::Confirmation => 2,
            PauseKind::InDoubt => 3,
        }))
    }
}

impl FromSql for Column<NoticeKind> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        match i64::column_result(value)? {
            0 => Ok(Self(NoticeKind::Opened)),
            1 => Ok(Self(NoticeKind::Settled)),
            other => Err(FromSqlError::OutOfRange(other)),
        }
    }
}

impl ToSql for Column<NoticeKind> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::from(match self.0 {
            NoticeKind::Opened => 0,
            NoticeKind::Settled => 1,
        }))
    }
}

impl FromSql for Column<NoticeStatus> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let code = i64::column_result(value)?;
        outbox::status_of(code).map(Self).ok_or(FromSqlError::OutOfRange(code))
    }
}

impl ToSql for Column<NoticeStatus> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::from(outbox::status_code(self.0)))
    }
}

impl FromSql for Column<Digest> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        FromSql::column_result(value).map(|bytes| Self(Digest::from_bytes(bytes)))
    }
}

impl ToSql for Column<Digest> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(ValueRef::Blob(self.0.as_bytes())))
    }
}

/// A name that is kept as it prints.
pub(super) struct Name<T>(pub(super) T);

impl<T: FromStr<Err: std::error::Error + Send + Sync + 'static>> FromSql for Name<T> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        value.as_str()?.parse().map(Self).map_err(FromSqlError::other)
    }
}
