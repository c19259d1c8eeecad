//! How a notice's state stands in two columns: a word, and what goes with it.

use holdpoint_runtime::ports::store::{NoticeState, NoticeStatus};

/// What goes with a state: a receipt, or why it was given up.
pub(crate) fn note(state: &NoticeState) -> Option<&str> {
    match state {
        NoticeState::Waiting => None,
        NoticeState::Delivered { receipt } => receipt.as_deref(),
        NoticeState::Failed { why } => Some(why),
    }
}

/// The state of a word and what goes with it.
pub(crate) fn state(status: NoticeStatus, note: Option<String>) -> NoticeState {
    match status {
        NoticeStatus::Waiting => NoticeState::Waiting,
        NoticeStatus::Delivered => NoticeState::Delivered { receipt: note },
        NoticeStatus::Failed => NoticeState::Failed { why: note.unwrap_or_default() },
    }
}

/// The number of a state, as databases have it.
pub(crate) fn status_code(status: NoticeStatus) -> u8 {
    match status {
        NoticeStatus::Waiting => 0,
        NoticeStatus::Delivered => 1,
        NoticeStatus::Failed => 2,
    }
}

/// The state of a number.
pub(crate) fn status_of(code: i64) -> Option<NoticeStatus> {
    match code {
        0 => Some(NoticeStatus::Waiting),
        1 => Some(NoticeStatus::Delivered),
        2 => Some(NoticeStatus::Failed),
        _ => None,
    }
}
