//! A tool's own rule: whether a person looks before it runs, and on what terms.

use std::time::Duration;

use holdpoint_core::policy::OnTimeout;
use serde::{Deserialize, Serialize};

use crate::expression::Expression;
use crate::seconds;

/// A tool's `approval`. A tool without one is held unless a rule of a policy file allows it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalSpec {
    /// The tool itself asks for nobody. A policy file may still.
    Never,
    /// A person looks: always, or when an expression says so.
    Held(HeldApproval),
}

/// When and how a person looks.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HeldApproval {
    /// Which calls are held; `None` for all. One that cannot be worked out holds the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<Expression>,
    /// Why, in the operator's words; shown to who decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Until when somebody must have decided.
    #[serde(default, skip_serializing_if = "Deadline::is_default")]
    pub deadline: Deadline,
    /// What happens when nobody did.
    #[serde(default)]
    pub on_timeout: OnTimeout,
    /// Who may decide: names of actors, roles or groups; empty for everybody who may decide at all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approvers: Vec<String>,
    /// How many different people must approve; `None` for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quorum: Option<u32>,
    /// What happens to further calls of the same turn that a decision does not name; `None` where the file does not say,
    /// so that each wire does what it is known for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fill: Option<Fill>,
    /// What words that a person gives together with an approval do.
    #[serde(default, skip_serializing_if = "OnNote::is_default")]
    pub on_note: OnNote,
}

/// Until when somebody must have decided.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Deadline {
    /// As the server has it.
    #[default]
    Default,
    /// There is no end.
    Never,
    /// So long after the question.
    #[serde(rename = "after_seconds", with = "seconds")]
    After(Duration),
}

impl Deadline {
    fn is_default(&self) -> bool {
        *self == Self::Default
    }

    /// The tighter of two: a written one goes before the server's default, and of two written ones the sooner counts,
    /// where never is the latest.
    #[must_use]
    pub fn tighter(self, other: Self) -> Self {
        match (self, other) {
            (Self::Default, other) => other,
            (deadline, Self::Default) => deadline,
            (Self::Never, other) => other,
            (deadline, Self::Never) => deadline,
            (Self::After(one), Self::After(two)) => Self::After(one.min(two)),
        }
    }
}

/// What happens to calls of one turn that are shown together, when a decision names fewer than there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fill {
    /// The first decision counts for the rest.
    First,
    /// Each needs a decision of its own.
    None,
}

/// What words that a person gives together with an approval do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnNote {
    /// The call runs, and the model is told them beside its outcome.
    #[default]
    Append,
    /// The call does not run, and the model is asked for a revised one.
    Revise,
}

impl OnNote {
    fn is_default(&self) -> bool {
        *self == Self::Append
    }
}
