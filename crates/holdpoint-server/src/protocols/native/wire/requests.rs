//! Messages about requests for approval.

use holdpoint_core::json::CanonicalJson;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Pause;

/// What an agent that runs elsewhere asks approval for.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MakeRequest {
    /// Who wants to run it: the agent's name, as people know it.
    #[schema(min_length = 1, max_length = 128)]
    pub(crate) agent: String,
    /// What it wants to run.
    #[schema(min_length = 1, max_length = 128, pattern = "^[A-Za-z0-9_.:-]{1,128}$")]
    pub(crate) tool: String,
    /// With which arguments: an object.
    #[schema(value_type = Object)]
    pub(crate) args: CanonicalJson,
    /// What the person who decides should know.
    #[serde(default)]
    #[schema(max_length = 2048)]
    pub(crate) context: Option<String>,
    /// How long to wait for a decision; after that the request has expired.
    #[serde(default)]
    #[schema(minimum = 1, maximum = 31_536_000)]
    pub(crate) timeout_seconds: Option<u64>,
    /// Who may decide: names of people, groups, or roles as `role:approver`.
    #[serde(default)]
    #[schema(max_items = 64)]
    pub(crate) approvers: Option<Vec<String>>,
    /// Where to send what was decided, signed as Standard Webhooks say.
    #[serde(default)]
    #[schema(max_length = 2048)]
    pub(crate) callback_url: Option<String>,
}

/// A request for approval, and what became of it.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Request {
    /// Its name.
    #[schema(example = "req_0198c0ffee007000800000000000beef")]
    pub(crate) id: String,
    /// What became of it.
    pub(crate) status: RequestStatus,
    /// Who wants to run it.
    pub(crate) agent: String,
    /// What it wants to run.
    pub(crate) tool: String,
    /// With which arguments. Where they were edited: those that were approved.
    #[schema(value_type = Object)]
    pub(crate) args: CanonicalJson,
    /// What was said with the decision: the words of a denial, or those that stand in place of a result.
    pub(crate) message: Option<String>,
    /// Who asked.
    pub(crate) requested_by: Option<String>,
    /// Since when.
    #[schema(format = DateTime)]
    pub(crate) created_at: Option<String>,
    /// Who decided: a person, `policy`, or `timeout`; null as long as nobody has.
    pub(crate) decided_by: Option<String>,
    /// When it was settled.
    #[schema(format = DateTime)]
    pub(crate) decided_at: Option<String>,
    /// The pause at which a person decides; null where a policy settled it.
    pub(crate) pause: Option<Pause>,
    /// Whether the callback was sent, where one is wanted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) callback: Option<Callback>,
}

/// What became of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RequestStatus {
    /// Nobody has decided yet.
    Pending,
    /// It may run, with the arguments shown.
    Approved,
    /// It must not run.
    Denied,
    /// Nobody decided in time: it must not run.
    Expired,
    /// The question no longer arises: it must not run.
    Cancelled,
    /// It must not run: the message is the outcome.
    Answered,
}

/// Whether a callback was sent.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Callback {
    /// How it stands.
    pub(crate) status: CallbackStatus,
    /// How often it was tried.
    pub(crate) attempts: usize,
    /// When it is tried again.
    #[schema(format = DateTime)]
    pub(crate) next_at: Option<String>,
}

/// How a callback stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CallbackStatus {
    /// It will be sent.
    Pending,
    /// It arrived.
    Delivered,
    /// It is tried no more.
    Failed,
}

/// What a callback says: the body of a Standard Webhooks message.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CallbackBody {
    /// Always `request.settled`.
    #[serde(rename = "type")]
    pub(crate) kind: &'static str,
    /// When it was sent.
    #[schema(format = DateTime)]
    pub(crate) timestamp: String,
    /// The request.
    pub(crate) data: Request,
}
