//! Commands as clients send them, one JSON object each. What they mean is not known here.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

/// What every command has, whatever it is.
#[derive(Debug, Deserialize)]
pub struct Head {
    /// What kind of command it is.
    #[serde(rename = "type", default)]
    pub kind: Option<Box<RawValue>>,
    /// The client's own name of it.
    #[serde(default)]
    pub request_id: Option<Box<RawValue>>,
}

/// `message`: starts a run.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Message {
    #[serde(rename = "type")]
    _kind: IgnoredAny,
    #[serde(default, rename = "request_id")]
    _request_id: IgnoredAny,
    /// The agent.
    pub agent_id: String,
    /// A text, or blocks of type `text`.
    pub content: Box<RawValue>,
    /// The conversation; a new one where none is named.
    #[serde(default)]
    pub session_id: Option<String>,
}

/// `approval`: decides what a request asks about.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Approval {
    #[serde(rename = "type")]
    _kind: IgnoredAny,
    #[serde(default, rename = "request_id")]
    _request_id: IgnoredAny,
    /// The conversation.
    #[serde(default)]
    pub session_id: Option<String>,
    /// The request.
    pub approval_key: String,
    /// One for each action, in order.
    #[serde(default)]
    pub decisions: Option<Box<RawValue>>,
    /// One for each question, by its text.
    #[serde(default)]
    pub answers: Option<Box<RawValue>>,
    /// The person's own words for the model.
    #[serde(default)]
    pub user_edit_content: Option<String>,
}

/// One decision of an `approval`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Decision {
    /// What is decided.
    #[serde(rename = "type")]
    pub kind: String,
    /// What the model is told of a rejection, or the person's words in the place of an outcome.
    #[serde(default)]
    pub message: Option<String>,
    /// What runs instead.
    #[serde(default, deserialize_with = "crate::limits::object")]
    pub edited_action: Option<EditedAction>,
    /// The call that is meant.
    #[serde(default)]
    pub tool_use_id: Option<String>,
    /// The digest of the arguments that the person saw.
    #[serde(default)]
    pub args_sha256: Option<String>,
}

/// What runs in the place of what was asked for.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EditedAction {
    /// The tool, which cannot be changed.
    pub name: String,
    /// Its arguments.
    pub args: holdpoint_core::json::CanonicalJson,
}

/// `subscribe`: shows what happens in a session, from a cursor on.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Subscribe {
    #[serde(rename = "type")]
    _kind: IgnoredAny,
    #[serde(default, rename = "request_id")]
    _request_id: IgnoredAny,
    /// The conversation.
    #[serde(default)]
    pub session_id: Option<String>,
    /// The number of the last event that was seen.
    #[serde(default)]
    pub after: Option<u64>,
    /// The same as text.
    #[serde(default)]
    pub last_event_id: Option<String>,
}

/// `cancel`: ends what is under way in a session.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cancel {
    #[serde(rename = "type")]
    _kind: IgnoredAny,
    #[serde(default, rename = "request_id")]
    _request_id: IgnoredAny,
    /// The conversation.
    #[serde(default)]
    pub session_id: Option<String>,
}

/// `auth`: says who it is, where no header could.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Auth {
    #[serde(rename = "type")]
    _kind: IgnoredAny,
    #[serde(default, rename = "request_id")]
    _request_id: IgnoredAny,
    /// The credential, as it would stand in the header.
    pub token: String,
}

/// `ping`: asks whether anybody is there.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ping {
    #[serde(rename = "type")]
    _kind: IgnoredAny,
    #[serde(default, rename = "request_id")]
    _request_id: IgnoredAny,
}
