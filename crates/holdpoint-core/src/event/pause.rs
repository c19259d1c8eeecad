//! What happens to pauses: they open, are voted on, and end once.

use serde::{Deserialize, Serialize};

use crate::decision::{Decision, Manner};
use crate::ids::{ActorId, CallPath, RuleId};
use crate::json::Digest;
use crate::pause::PauseKind;
use crate::policy::{OnTimeout, PauseTerms};
use crate::time::Timestamp;

/// A person is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PauseOpened {
    /// Counts the run's pauses from one.
    pub number: u32,
    /// What is asked.
    pub kind: PauseKind,
    /// The call; for a confirmation the frame.
    pub at: CallPath,
    /// The digest of the call's arguments that a decision binds to; absent for a confirmation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<Digest>,
    /// Why it is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Until when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// The policy's rule that holds the call, by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// Who may decide; empty for everybody.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approvers: Vec<String>,
    /// How many different actors must approve.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub quorum: u32,
    /// What happens when nobody decides in time.
    #[serde(default, skip_serializing_if = "OnTimeout::is_deny")]
    pub on_timeout: OnTimeout,
}

impl PauseOpened {
    /// The pause of this number about a call or a frame, on the usual terms, without a deadline.
    pub fn new(number: u32, kind: PauseKind, at: CallPath, sha256: Option<Digest>) -> Self {
        let PauseTerms { rule, approvers, quorum, on_timeout } = PauseTerms::default();
        Self { number, kind, at, sha256, reason: None, expires_at: None, rule, approvers, quorum, on_timeout }
    }

    /// On what terms it is asked.
    pub fn terms(&self) -> PauseTerms {
        PauseTerms {
            rule: self.rule.clone(),
            approvers: self.approvers.clone(),
            quorum: self.quorum,
            on_timeout: self.on_timeout,
        }
    }
}

/// One of several who must approve did; the pause stays open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PauseVoted {
    /// The pause.
    pub number: u32,
    /// Who approved.
    pub by: ActorId,
    /// Through which door.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<String>,
    /// The caller's own name of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
}

/// A pause was answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PauseDecided {
    /// The pause.
    pub number: u32,
    /// The answer.
    pub decision: Decision,
    /// Who gave it.
    pub by: ActorId,
    /// Through which door.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<String>,
    /// The rule that gave it, where it was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<RuleId>,
    /// The caller's own name of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
    /// Whether it was given for this very pause.
    #[serde(default, skip_serializing_if = "Manner::is_given")]
    pub manner: Manner,
}

impl PauseDecided {
    /// Whether a person's approval stands behind it, which counts beside the votes before it.
    pub(crate) fn completes_votes(&self) -> bool {
        self.decision == Decision::Approve && self.rule.is_none() && self.by != ActorId::timeout()
    }
}

/// Nobody answered in time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PauseExpired {
    /// The pause.
    pub number: u32,
}

/// The question no longer arises.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PauseWithdrawn {
    /// The pause.
    pub number: u32,
    /// Why.
    pub reason: String,
}

fn one() -> u32 {
    1
}

fn is_one(number: &u32) -> bool {
    *number == 1
}
