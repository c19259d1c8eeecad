//! The history's messages as clients are sent them, spelt as the specification spells them.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

/// One message of a session's history.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[schema(as = HistoryMessage)]
pub struct Message {
    /// `user`, `assistant` or `tool`.
    pub role: Role,
    /// `step`, on what the assistant did on its way to its final words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_type: Option<MessageType>,
    /// What was said, thought or asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<Vec<Block>>,
    /// The calls that the assistant made.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// The call that a tool answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// The tool that answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// How the call went.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<Status>,
    /// Where it stands on a page.
    pub display_type: DisplayType,
    /// What a group of work was, at its first and last message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
}

/// Whose message it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = HistoryRole)]
pub enum Role {
    /// A person's.
    User,
    /// The agent's.
    Assistant,
    /// A tool's.
    Tool,
}

/// What kind of message it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = HistoryMessageType)]
pub enum MessageType {
    /// Something on the way to the final words.
    Step,
}

/// How a call went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = HistoryToolStatus)]
pub enum Status {
    /// It ran.
    Success,
    /// It ran and failed, or could not run.
    Error,
    /// It was not let run.
    Rejected,
    /// Nobody let it run in time.
    Timeout,
}

/// Where a message stands on a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = HistoryDisplayType)]
pub enum DisplayType {
    /// For the person, outside of the groups.
    Content,
    /// The first of a group of work.
    GroupStart,
    /// Within a group of work.
    GroupItem,
    /// The last of a group of work.
    GroupEnd,
}

/// A call that the assistant made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = HistoryToolCall)]
pub struct ToolCall {
    /// The provider's id of the call.
    pub id: String,
    /// The tool.
    pub name: String,
    /// A sentence for the call.
    pub tool_content_message: Option<String>,
}

/// What was said, thought or asked.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
#[schema(as = HistoryBlock)]
pub enum Block {
    /// Words.
    Text(Text),
    /// Thoughts.
    Thinking(Thinking),
    /// What a person was asked.
    ApprovalRequest(Box<Request>),
}

/// Words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = HistoryText)]
pub struct Text {
    /// The words.
    pub text: String,
    /// Set on the words with which a run ended.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_final: bool,
    /// The nested agent that spoke.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subagent: Option<Value>,
}

/// Thoughts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = HistoryThinking)]
pub struct Thinking {
    /// The thoughts.
    pub thinking: String,
    /// The nested agent that thought.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subagent: Option<Value>,
}

/// What a person was asked, and what became of it.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = HistoryApprovalRequest)]
pub struct Request {
    /// Whether it no longer waits for anybody.
    pub is_resolved: bool,
    /// What it was asked about. A question's answers stand among its arguments.
    pub action_requests: Vec<ActionRequest>,
    /// The answers to a question, by its text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub submitted_answers: Option<BTreeMap<String, String>>,
    /// What was decided about each action, in order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub submitted_decisions: Option<Value>,
    /// How it ended, where nobody decided: `expired`, `withdrawn` or `superseded`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<&'static str>,
    /// What a decision names it by, as long as it is open.
    #[serde(rename = "approval_key", skip_serializing_if = "Option::is_none")]
    pub approval_key: Option<String>,
    /// The pauses behind it, as long as it is open: as in the stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pause: Option<Value>,
    /// The nested agent that asks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subagent: Option<Value>,
}

/// What a person was asked about.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[schema(as = HistoryActionRequest)]
pub struct ActionRequest {
    /// The tool.
    pub name: String,
    /// Its arguments.
    pub args: Value,
    /// The id of its call; absent for a question, whose call is not shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_use_id: Option<String>,
}
