//! What is decided. Unknown fields are refused: a misspelt one might be what was meant.

use std::collections::BTreeMap;

use holdpoint_core::json::CanonicalJson;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Pause, Run};
use crate::limits::{object, objects};

/// What can be decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum DecisionType {
    /// Run it as shown.
    Approve,
    /// Run it with other arguments.
    ApproveEdited,
    /// Do not run it.
    Deny,
    /// Do not run it: these words are the outcome.
    Respond,
    /// Answers to the questions asked.
    Answer,
    /// In doubt: it took effect.
    Happened,
    /// In doubt: it may run again.
    RunAgain,
    /// In doubt: leave it open, and tell the model so.
    Abandon,
}

/// What is decided. A field that does not belong to the decision is refused, as is one that is not known.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DecideBody {
    /// What is decided.
    pub(crate) decision: DecisionType,
    /// With `approve_edited`: what runs.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    pub(crate) args: Option<CanonicalJson>,
    /// With `deny`: what the model is told.
    #[serde(default)]
    #[schema(max_length = 1_000_000)]
    pub(crate) message: Option<String>,
    /// With `answer`: for each question, by its text, the chosen labels or words.
    #[serde(default)]
    pub(crate) answers: Option<BTreeMap<String, Answer>>,
    /// With `respond`: the words. With `happened`: what came of the call.
    #[serde(default)]
    #[schema(max_length = 1_000_000)]
    pub(crate) content: Option<String>,
    /// The digest of the arguments that were seen; other ones are not decided about.
    #[serde(default)]
    #[schema(min_length = 64, max_length = 64, pattern = "^[0-9a-f]{64}$")]
    pub(crate) args_sha256: Option<String>,
    /// With `approve` or `deny`: a standing rule, which settles later calls alike.
    #[serde(default, deserialize_with = "object")]
    pub(crate) always: Option<Always>,
}

/// An answer: one text, or several.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum Answer {
    /// One label, or words.
    One(String),
    /// Several labels.
    Several(Vec<String>),
}

/// A standing rule to make with a decision: it speaks of this agent's calls of this tool.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Always {
    /// How far it reaches.
    pub(crate) scope: RuleScope,
    /// Until when it stands; only with `session`.
    #[serde(default)]
    #[schema(format = DateTime)]
    pub(crate) until: Option<String>,
    /// How many calls it may settle.
    #[serde(default)]
    #[schema(minimum = 1)]
    pub(crate) uses_max: Option<u32>,
    /// With which arguments; all must hold.
    #[serde(default, rename = "where", deserialize_with = "objects")]
    #[schema(max_items = 32)]
    pub(crate) constraints: Vec<Constraint>,
}

/// How far a standing rule reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RuleScope {
    /// To the end of the run.
    Run,
    /// To the end of the session.
    Session,
}

/// A condition on one place in the arguments: exactly one test.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Constraint {
    /// The place, as a JSON pointer such as `/path`; empty for the whole.
    pub(crate) at: String,
    /// Equal to this value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    pub(crate) equals: Option<CanonicalJson>,
    /// Equal to one of these values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<serde_json::Value>>)]
    pub(crate) one_of: Option<Vec<CanonicalJson>>,
    /// A number no greater than this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) at_most: Option<i64>,
    /// A text that begins so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) starts_with: Option<String>,
}

/// The pause after a decision; with `?wait=` also what followed.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DecidedPause {
    /// The pause.
    #[serde(flatten)]
    pub(crate) pause: Pause,
    /// The run, where it was waited for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) run: Option<Run>,
}
