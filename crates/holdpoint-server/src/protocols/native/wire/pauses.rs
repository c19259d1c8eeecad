//! Questions to people, and their answers.

use std::collections::BTreeMap;

use holdpoint_core::json::CanonicalJson;
use serde::Serialize;
use utoipa::ToSchema;

use super::DecisionType;

/// A page of pauses.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PauseList {
    /// Oldest first.
    pub(crate) pauses: Vec<Pause>,
    /// Where the next page begins; null after the last one.
    pub(crate) next_cursor: Option<String>,
}

/// A question to a person.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Pause {
    /// Its name.
    #[schema(example = "pau_0198c0ffee007000800000000000beef_1")]
    pub(crate) id: String,
    /// The name that pauses opened together share.
    pub(crate) key: String,
    /// What is asked.
    pub(crate) kind: PauseKind,
    /// How it stands.
    pub(crate) status: PauseStatus,
    /// The conversation.
    pub(crate) session_id: String,
    /// The run.
    pub(crate) run_id: String,
    /// The agent that asks, by its place.
    pub(crate) agent: String,
    /// Where in the run the call stands: turn and position, from the root agent inwards.
    pub(crate) path: Vec<String>,
    /// The tool that would run; null where the model's own words are the question.
    pub(crate) tool: Option<String>,
    /// The provider's id of the call.
    pub(crate) tool_call_id: Option<String>,
    /// Exactly what would run.
    #[schema(value_type = Option<Object>)]
    pub(crate) args: Option<CanonicalJson>,
    /// The same as text, to the byte: what people must be shown, since readers of JSON round large numbers.
    pub(crate) args_text: Option<String>,
    /// The digest of what would run; a decision may name it.
    #[schema(min_length = 64, max_length = 64)]
    pub(crate) args_sha256: Option<String>,
    /// What is asked, in a pause of kind `question`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) questions: Option<Vec<Question>>,
    /// Why it is asked. In a confirmation: the model's own words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    /// The rule of the policy that holds the call.
    pub(crate) rule: Option<String>,
    /// The decisions that answer it.
    pub(crate) allowed_decisions: Vec<DecisionType>,
    /// Who may decide; empty for everybody whose role allows it.
    pub(crate) approvers: Vec<String>,
    /// How many different people must approve.
    pub(crate) approvals_needed: u32,
    /// Who has approved so far, where several must.
    pub(crate) approvals: Vec<Vote>,
    /// Since when.
    #[schema(format = DateTime)]
    pub(crate) created_at: String,
    /// Until when; null for ever.
    #[schema(format = DateTime)]
    pub(crate) expires_at: Option<String>,
    /// What happens when nobody decides in time.
    pub(crate) on_timeout: OnTimeout,
    /// The request for approval that it belongs to, where an agent elsewhere asks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) request_id: Option<String>,
    /// The answer, once there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) decision: Option<Decision>,
    /// Whether what is stored of the run cannot be read any more. What was asked is then not known here, and nobody can
    /// decide it; the server's log says more.
    #[serde(skip_serializing_if = "is_false")]
    #[schema(required = false)]
    pub(crate) unreadable: bool,
}

fn is_false(value: &bool) -> bool {
    !value
}

/// What is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PauseKind {
    /// May this call run?
    Approval,
    /// What is the answer?
    Question,
    /// The model asks in its own words: go on?
    Confirmation,
    /// Did this call take effect before the process died?
    InDoubt,
}

/// How a pause stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PauseStatus {
    /// It waits.
    Open,
    /// Somebody answered.
    Decided,
    /// Nobody did in time.
    Expired,
    /// The question no longer arises.
    Withdrawn,
    /// A newer message took its place.
    Superseded,
}

/// Which pauses are listed.
#[derive(Debug, ToSchema, Serialize)]
#[serde(rename_all = "snake_case")]
#[allow(dead_code, reason = "describes a parameter")]
pub(crate) enum PauseFilterStatus {
    /// Those that wait.
    Open,
    /// Those that somebody answered.
    Decided,
    /// Those that nobody answered in time.
    Expired,
    /// Those whose question no longer arises.
    Withdrawn,
    /// Those whose place a newer message took.
    Superseded,
    /// All of them.
    All,
}

/// What happens when nobody decides in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OnTimeout {
    /// The call does not run.
    Deny,
    /// The call runs as shown.
    Approve,
}

/// One question.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Question {
    /// The text; answers are given under it.
    pub(crate) question: String,
    /// A short title.
    pub(crate) header: Option<String>,
    /// What can be chosen; empty for free text.
    pub(crate) options: Vec<QuestionOption>,
    /// Whether several options may be chosen.
    pub(crate) multi_select: bool,
}

/// One option of a question.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct QuestionOption {
    /// What is chosen.
    pub(crate) label: String,
    /// What it means.
    pub(crate) description: Option<String>,
    /// Whether words of one's own are taken in its place.
    pub(crate) input: bool,
}

/// An approval of one of several who must approve.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Vote {
    /// Who approved.
    pub(crate) by: String,
    /// When.
    #[schema(format = DateTime)]
    pub(crate) at: String,
    /// Through which door.
    pub(crate) via: Option<String>,
}

/// The answer to a pause.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Decision {
    /// What was decided.
    #[serde(rename = "type")]
    pub(crate) kind: DecisionType,
    /// Who decided.
    pub(crate) by: String,
    /// When.
    #[schema(format = DateTime)]
    pub(crate) at: String,
    /// Through which door.
    pub(crate) via: Option<String>,
    /// What the model is told with a denial.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<String>,
    /// What runs instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub(crate) args: Option<CanonicalJson>,
    /// The words that stand in place of the tool's result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) content: Option<String>,
    /// The answers, by question.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) answers: Option<BTreeMap<String, Vec<String>>>,
}
