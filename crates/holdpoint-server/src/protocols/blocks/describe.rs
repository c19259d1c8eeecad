//! What `/openapi.json` says of this protocol's routes: commands and answers in their shapes, and errors in this protocol's
//! form. Nothing here is sent or read.

#![allow(dead_code, reason = "describes what other modules read and write")]

use std::collections::BTreeMap;

use serde::Serialize;
use utoipa::openapi::content::ContentBuilder;
use utoipa::openapi::{Ref, RefOr, Response, ResponseBuilder};
use utoipa::{IntoResponses, ToSchema};

/// A command, as a plain request carries it.
#[derive(Serialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
#[schema(as = BlocksCommand)]
pub(crate) enum Command {
    /// Starts a run.
    Message(MessageCommand),
    /// Decides what a request asks.
    Approval(ApprovalCommand),
    /// Ends what is under way in the session.
    Cancel(CancelCommand),
    /// Asks whether anybody is there.
    Ping(PingCommand),
}

/// Starts a run.
#[derive(Serialize, ToSchema)]
#[schema(as = BlocksMessageCommand)]
pub(crate) struct MessageCommand {
    /// The agent.
    agent_id: String,
    /// A text.
    content: String,
    /// The session, which must be the one in the address.
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<String>,
    /// The client's own name of the command: sent again, it does nothing twice.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 128)]
    request_id: Option<String>,
}

/// Decides what a request asks: with decisions about actions, or with answers to questions.
#[derive(Serialize, ToSchema)]
#[schema(as = BlocksApprovalCommand)]
pub(crate) struct ApprovalCommand {
    /// The session, which must be the one in the address; over a socket it must be named.
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<String>,
    /// The request.
    approval_key: String,
    /// One for each action, in order. Where fewer come, the first is meant for the others too.
    #[serde(skip_serializing_if = "Option::is_none")]
    decisions: Option<Vec<Decision>>,
    /// Answers by the text of their question: a text, or a list of texts.
    #[serde(skip_serializing_if = "Option::is_none")]
    answers: Option<BTreeMap<String, serde_json::Value>>,
    /// The person's own words for the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    user_edit_content: Option<String>,
    /// The client's own name of the command: sent again, it does nothing twice.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 128)]
    request_id: Option<String>,
}

/// A decision about one action.
#[derive(Serialize, ToSchema)]
#[schema(as = BlocksDecision)]
pub(crate) struct Decision {
    /// What is decided.
    #[serde(rename = "type")]
    kind: DecisionType,
    /// What the model is told of a rejection, or the person's words in the place of an outcome.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    /// What runs instead, where the decision is `edit`.
    #[serde(skip_serializing_if = "Option::is_none")]
    edited_action: Option<EditedAction>,
    /// The call that is meant.
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_use_id: Option<String>,
    /// The digest of the arguments that the person saw.
    #[serde(skip_serializing_if = "Option::is_none")]
    args_sha256: Option<String>,
}

/// What is decided.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = BlocksDecisionType)]
pub(crate) enum DecisionType {
    /// The call runs as it was asked for.
    Approve,
    /// It does not run.
    Reject,
    /// It runs with other arguments.
    Edit,
    /// The person's words stand in its place.
    Respond,
    /// It did run, and this came of it.
    Happened,
    /// It runs once more.
    RunAgain,
    /// Nobody will know what came of it.
    Abandon,
}

/// What runs in the place of what was asked for.
#[derive(Serialize, ToSchema)]
#[schema(as = BlocksEditedAction)]
pub(crate) struct EditedAction {
    /// The tool, which cannot be changed.
    name: String,
    /// Its arguments.
    args: BTreeMap<String, serde_json::Value>,
}

/// Ends what is under way in the session.
#[derive(Serialize, ToSchema)]
#[schema(as = BlocksCancelCommand)]
pub(crate) struct CancelCommand {
    /// The session, which must be the one in the address; over a socket it must be named.
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<String>,
    /// The client's own name of the command.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 128)]
    request_id: Option<String>,
}

/// Asks whether anybody is there.
#[derive(Serialize, ToSchema)]
#[schema(as = BlocksPingCommand)]
pub(crate) struct PingCommand {
    /// The client's own name of the command.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 128)]
    request_id: Option<String>,
}

/// An event of a session, or the answer to a command. What else it carries depends on its type.
#[derive(Serialize, ToSchema)]
#[schema(as = BlocksEvent)]
pub(crate) struct Event {
    /// What it is, such as `message_start`, `approval_resolved` or `content_block_delta`.
    #[serde(rename = "type")]
    kind: String,
    /// The session.
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<String>,
    /// The run's message that it is part of.
    #[serde(skip_serializing_if = "Option::is_none")]
    message_id: Option<String>,
    /// The client's own name of the command that it answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<String>,
    /// Its number in the session, where it is durable.
    #[serde(skip_serializing_if = "Option::is_none")]
    seq: Option<u64>,
    /// The same number as text that sorts.
    #[serde(skip_serializing_if = "Option::is_none")]
    event_id: Option<String>,
}

/// Why a command was turned away. Nothing was changed by it.
#[derive(Serialize, ToSchema)]
#[schema(as = BlocksError)]
pub(crate) struct Error {
    /// `error`.
    #[serde(rename = "type")]
    kind: String,
    /// What is wrong.
    error: ErrorBody,
    /// The client's own name of the command.
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<String>,
}

/// What is wrong.
#[derive(Serialize, ToSchema)]
#[schema(as = BlocksErrorBody)]
pub(crate) struct ErrorBody {
    /// A stable name: match on this.
    #[schema(example = "already_decided")]
    code: String,
    /// What is wrong and what to do, for people.
    message: String,
    /// Who was first, when, and with what; or which request waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<BTreeMap<String, serde_json::Value>>,
}

/// What may be wrong with a request to a session.
pub(crate) struct Refusals;

/// What may be wrong with a command.
pub(crate) struct CommandRefusals;

/// Statuses that both this protocol and the layers in front of it answer with.
const ALWAYS: [(&str, &str); 5] = [
    ("400", "The request cannot be read."),
    ("403", "The caller may not do this; or the request comes from another web page."),
    ("404", "There is no such session, agent or request, or none that the caller may see."),
    ("500", "The server made a mistake, or what is stored cannot be read."),
    ("503", "The store is out of order, or too much is asked at once: try again."),
];

const OF_COMMANDS: [(&str, &str); 3] = [
    ("409", "The state has moved on: already decided, expired, withdrawn, or a run is under way."),
    ("413", "The command is too large."),
    ("422", "The command can be read and does not fit: what it is about takes something else."),
];

impl IntoResponses for Refusals {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        ALWAYS.iter().map(|(status, description)| described(status, description)).collect()
    }
}

impl IntoResponses for CommandRefusals {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        ALWAYS.iter().chain(&OF_COMMANDS).map(|(status, description)| described(status, description)).collect()
    }
}

fn described(status: &str, description: &str) -> (String, RefOr<Response>) {
    let shape = |name: &str| ContentBuilder::new().schema(Some(RefOr::Ref(Ref::from_schema_name(name)))).build();
    let response = ResponseBuilder::new()
        .description(description)
        .content("application/json", shape("BlocksError"))
        .content("application/problem+json", shape("Problem"));
    (status.to_owned(), RefOr::T(response.build()))
}
