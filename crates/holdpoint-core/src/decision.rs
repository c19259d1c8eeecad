//! A person's answer to a pause.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::ids::{ActorId, PauseId};
use crate::json::{CanonicalJson, Digest};
use crate::message::Content;
use crate::policy::{NewRule, StandingRule};

/// The answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Decision {
    /// Run it as shown.
    Approve,
    /// Run it with these arguments instead.
    ApproveEdited {
        /// What runs.
        arguments: CanonicalJson,
    },
    /// Do not run it.
    Deny {
        /// What the model is told; an empty text counts. `None` leaves it to rule, formatter and default.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
    },
    /// Do not run it: these words are the outcome.
    Respond {
        /// The person's words.
        content: String,
    },
    /// The answers to the questions asked.
    Answer {
        /// One for each question.
        answers: Answers,
    },
    /// In doubt: it took effect, and this came of it.
    Happened {
        /// What the model is told as the tool's result.
        result: Content,
    },
    /// In doubt: it did not take effect, or may take effect again.
    RunAgain,
    /// In doubt: leave it open and tell the model so.
    Abandon,
}

/// How a decision came about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Manner {
    /// Somebody gave it for this very pause.
    #[default]
    Given,
    /// Somebody decided other pauses of the same request, and this one was filled in from theirs.
    Implied,
    /// Somebody sent a new message instead of deciding.
    Superseded,
}

impl Manner {
    /// The manner's name, as wires spell it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Given => "given",
            Self::Implied => "implied",
            Self::Superseded => "superseded",
        }
    }

    pub(crate) fn is_given(&self) -> bool {
        *self == Self::Given
    }
}

/// Answers by the text of the question: the chosen labels, or free text.
pub type Answers = BTreeMap<String, Vec<String>>;

impl Decision {
    /// A denial with these words.
    pub fn deny(message: impl Into<String>) -> Self {
        Self::Deny { message: Some(message.into()) }
    }

    /// The decision's name, as wires spell it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Approve => "approve",
            Self::ApproveEdited { .. } => "approve_edited",
            Self::Deny { .. } => "deny",
            Self::Respond { .. } => "respond",
            Self::Answer { .. } => "answer",
            Self::Happened { .. } => "happened",
            Self::RunAgain => "run_again",
            Self::Abandon => "abandon",
        }
    }
}

/// A decision on its way into a run: what, by whom, and having seen what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecisionInput {
    /// The pause that is answered.
    pub pause: PauseId,
    /// The answer.
    pub decision: Decision,
    /// Who answers.
    pub by: ActorId,
    /// Through which door.
    pub via: Option<String>,
    /// Names of roles and groups under which the actor may also act, for pauses that not everybody may decide.
    pub groups: Vec<String>,
    /// The caller's own name of the request, recorded with the decision.
    pub request: Option<String>,
    /// Whether it was given for this very pause, or filled in.
    pub manner: Manner,
    /// The person's own words for the model, beside the decision: it sees them with its next call. They change no
    /// argument. An answer that was recorded before brings no second copy of them.
    pub note: Option<String>,
    /// Whether the person was offered to answer questions in words of their own, whatever options they have.
    pub in_own_words: bool,
    /// The digest of the arguments that the person saw; checked when given.
    pub seen: Option<Digest>,
    /// A standing rule made together with the decision.
    pub rule: Option<NewRule>,
    /// Rules of other runs that stand in the session: a rule that is applied to open pauses passes over what they deny.
    pub session_rules: Vec<StandingRule>,
}

impl DecisionInput {
    /// `by` answers `pause` with `decision`, and nothing more.
    pub fn new(pause: PauseId, decision: Decision, by: ActorId) -> Self {
        Self {
            pause,
            decision,
            by,
            via: None,
            groups: Vec::new(),
            request: None,
            manner: Manner::Given,
            note: None,
            in_own_words: false,
            seen: None,
            rule: None,
            session_rules: Vec::new(),
        }
    }
}
