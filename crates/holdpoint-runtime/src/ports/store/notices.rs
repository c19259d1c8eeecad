//! The outbox: what people are still to be told, and what was told already.

use holdpoint_core::text::clamp;
use holdpoint_core::time::Timestamp;

use crate::ports::notifier::{Destination, NoticeKey, RECEIPT_BYTES_MAX};

/// One notice as the store keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoticeRow {
    /// Names it.
    pub key: NoticeKey,
    /// How it stands.
    pub state: NoticeState,
    /// How many attempts were begun.
    pub attempts: u32,
    /// While it waits: when the next attempt is due. Once it is settled: since when.
    pub at: Timestamp,
}

/// How a notice stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoticeState {
    /// It is still to be told.
    Waiting,
    /// They know.
    Delivered {
        /// What the notifier wants to see again.
        receipt: Option<String>,
    },
    /// Nobody tries any more.
    Failed {
        /// Why not.
        why: String,
    },
}

impl NoticeState {
    /// The state without what goes with it.
    pub fn status(&self) -> NoticeStatus {
        match self {
            Self::Waiting => NoticeStatus::Waiting,
            Self::Delivered { .. } => NoticeStatus::Delivered,
            Self::Failed { .. } => NoticeStatus::Failed,
        }
    }
}

/// How a notice stands, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NoticeStatus {
    /// It is still to be told.
    Waiting,
    /// They know.
    Delivered,
    /// Nobody tries any more.
    Failed,
}

/// What became of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoticeOutcome {
    /// They know.
    Delivered {
        /// What the notifier wants to see again.
        receipt: Option<String>,
    },
    /// The next attempt is due at this time.
    Retry(Timestamp),
    /// Nobody tries any more.
    Failed {
        /// Why not.
        why: String,
    },
}

/// The longest reason that is kept.
pub const WHY_BYTES_MAX: usize = 1_024;

impl NoticeOutcome {
    /// The outcome as every store can keep it: a reason is cut to its bound, and a receipt that is beyond its bound, or has
    /// a letter that not every database takes, is left out, since a part of it would mean nothing.
    #[must_use]
    pub fn bounded(self) -> Self {
        match self {
            Self::Delivered { receipt } => {
                let fits = |receipt: &String| receipt.len() <= RECEIPT_BYTES_MAX && !receipt.contains('\0');
                Self::Delivered { receipt: receipt.filter(fits) }
            }
            Self::Retry(at) => Self::Retry(at),
            Self::Failed { why } => Self::Failed { why: clamp(&why.replace('\0', " "), WHY_BYTES_MAX).to_owned() },
        }
    }

    /// A row that waits, after this came of its last attempt at this time.
    #[must_use]
    pub fn settle(self, row: NoticeRow, now: Timestamp) -> NoticeRow {
        let (state, at) = match self.bounded() {
            Self::Delivered { receipt } => (NoticeState::Delivered { receipt }, now),
            Self::Retry(at) => (NoticeState::Waiting, at),
            Self::Failed { why } => (NoticeState::Failed { why }, now),
        };
        NoticeRow { state, at, ..row }
    }
}

/// Which notices are listed. They come in the order of their keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoticeFilter {
    /// Only to this destination.
    pub destination: Option<Destination>,
    /// Only those that stand so.
    pub status: Option<NoticeStatus>,
    /// Only those that come after this one.
    pub after: Option<NoticeKey>,
    /// At most so many.
    pub limit: usize,
}

impl Default for NoticeFilter {
    fn default() -> Self {
        Self { destination: None, status: None, after: None, limit: 100 }
    }
}

impl NoticeFilter {
    /// Whether a row is listed.
    pub fn admits(&self, row: &NoticeRow) -> bool {
        self.destination.as_ref().is_none_or(|destination| *destination == row.key.destination)
            && self.status.is_none_or(|status| status == row.state.status())
            && self.after.as_ref().is_none_or(|after| row.key > *after)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_long_or_odd_to_keep_is_cut_or_left_out() {
        let receipt = |text: &str| NoticeOutcome::Delivered { receipt: Some(text.to_owned()) }.bounded();
        let longest = "x".repeat(RECEIPT_BYTES_MAX);
        assert_eq!(receipt(&longest), NoticeOutcome::Delivered { receipt: Some(longest.clone()) });
        assert_eq!(receipt(&format!("{longest}x")), NoticeOutcome::Delivered { receipt: None });
        assert_eq!(receipt("a\0b"), NoticeOutcome::Delivered { receipt: None });
        let failed = |why: String| match (NoticeOutcome::Failed { why }).bounded() {
            NoticeOutcome::Failed { why } => why,
            other => panic!("{other:?}"),
        };
        assert_eq!(failed("a\0b".to_owned()), "a b");
        let cut = failed("ä".repeat(WHY_BYTES_MAX));
        assert_eq!(cut, "ä".repeat(WHY_BYTES_MAX / 2));
    }
}
