//! Confirmations: the model's own words ask a person to go on.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::confirmation::Phrases;
use crate::seconds;

/// An agent's `interrupt`: whether and how the model's own words ask for a confirmation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InterruptSpec {
    /// Whether replies are looked through at all.
    pub enabled: bool,
    /// The store that the file demands; `None` for the server's. A server that is not connected to the one demanded
    /// must not start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint_backend: Option<CheckpointBackend>,
    /// How long somebody may take to answer.
    #[serde(default = "InterruptSpec::default_timeout", rename = "timeout_seconds", with = "seconds")]
    pub timeout: Duration,
    /// Which replies ask.
    #[serde(default)]
    pub phrases: Phrases,
    /// What the person fills in; one field `confirm` unless the file says otherwise.
    #[serde(default = "InterruptSpec::default_fields")]
    pub fields: Vec<InputField>,
}

impl InterruptSpec {
    /// Five minutes.
    pub(crate) fn default_timeout() -> Duration {
        Duration::from_secs(300)
    }

    pub(crate) fn default_fields() -> Vec<InputField> {
        vec![InputField {
            name: "confirm".to_owned(),
            kind: FieldKind::Confirm,
            label: "Confirm".to_owned(),
            required: true,
        }]
    }
}

/// A store that a file demands for its agent's pauses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckpointBackend {
    /// The process's memory. Any durable store keeps more than is asked for here.
    Memory,
    /// Redis.
    Redis,
}

/// One thing that a person fills in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InputField {
    /// Its key in the answer.
    pub name: String,
    /// What it takes.
    #[serde(rename = "type")]
    pub kind: FieldKind,
    /// What the person reads.
    pub label: String,
    /// Whether it must be filled in.
    pub required: bool,
}

/// What a field takes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FieldKind {
    /// Any text.
    Text,
    /// Yes or no.
    Confirm,
    /// One of several.
    Select {
        /// What can be chosen; one at least.
        options: Vec<String>,
    },
}
