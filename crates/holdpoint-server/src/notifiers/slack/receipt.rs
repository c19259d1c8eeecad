//! Where a message stands, so that it can be changed when its pause ends.

use serde::{Deserialize, Serialize};

/// The place of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Receipt {
    pub(super) channel: String,
    pub(super) ts: String,
}

impl Receipt {
    pub(super) fn to_text(&self) -> String {
        // Two texts make JSON.
        serde_json::to_string(self).unwrap_or_default()
    }

    pub(super) fn read(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }
}
