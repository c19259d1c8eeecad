//! Events as clients are sent them: one JSON object each, spelt as the specification spells them. Nothing is decided here.

use std::collections::BTreeMap;

use holdpoint_core::json::CanonicalJson;
use serde::Serialize;

/// One event of a session.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Event {
    /// What it says.
    #[serde(flatten)]
    pub body: Body,
    /// The conversation.
    pub session_id: String,
    /// The run's message; absent where none is meant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    /// The name of the command that led to it; set for the connection that sent it, never by the projection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// Its number, where it is durable.
    #[serde(flatten)]
    pub number: Option<Number>,
}

impl Event {
    /// The event's number, where it is durable.
    pub fn seq(&self) -> Option<u64> {
        self.number.as_ref().map(|number| number.seq)
    }

    /// Says what time it is for the server, where the event tells that. Who counts down a deadline needs the time at which
    /// the event is sent, not at which it happened.
    pub fn stamp(&mut self, now: holdpoint_core::time::Timestamp) {
        if let Body::ContentBlockStart { content_block: Block::ApprovalRequest(request), .. } = &mut self.body {
            request.pause.server_time = now.to_string();
        }
    }
}

/// The number of a durable event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Number {
    /// Grows by one within the session.
    pub seq: u64,
    /// The same as text that sorts.
    pub event_id: String,
    /// Whether what it numbers is not stored yet: who comes back goes on from the last number before it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub provisional: bool,
}

impl Number {
    /// The number as both.
    pub fn new(seq: u64) -> Self {
        Self { seq, event_id: format!("{seq:010}"), provisional: false }
    }
}

/// What an event says.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Body {
    /// A run began.
    MessageStart {
        /// Seconds since 1970.
        timestamp: f64,
        /// `agent`.
        display_mode: &'static str,
        /// The message, still empty.
        message: MessageHead,
    },
    /// Work begins.
    GroupStart {
        /// Names the group within its message.
        group_id: String,
        /// What the work is, as far as it is known.
        summary: String,
    },
    /// Work rests.
    GroupEnd {
        /// The group.
        group_id: String,
        /// What the work was.
        summary: String,
        /// Thoughts and calls in it.
        items: u32,
        /// `done`, `waiting` or `cancelled`.
        status: GroupStatus,
    },
    /// A block begins. One whose index was started and not stopped is replaced.
    ContentBlockStart {
        /// Its place in the message.
        index: u32,
        /// What it is.
        content_block: Block,
    },
    /// A block goes on.
    ContentBlockDelta {
        /// Its place in the message.
        index: u32,
        /// What is added.
        delta: BlockDelta,
    },
    /// A block is whole.
    ContentBlockStop {
        /// Its place in the message.
        index: u32,
    },
    /// What was asked of a person is settled.
    ApprovalResolved {
        /// The request.
        approval_key: String,
        /// `decided`, `expired`, `withdrawn` or `superseded`.
        outcome: RequestOutcome,
        /// Who decided; nobody where it expired or was withdrawn.
        decided_by: Option<String>,
        /// The answers to a question, by its text.
        #[serde(skip_serializing_if = "Option::is_none")]
        answers: Option<BTreeMap<String, String>>,
    },
    /// The message is about to end.
    MessageDelta {
        /// How.
        delta: StopDelta,
    },
    /// The run is over.
    MessageStop {
        /// How it ended.
        stop_reason: StopReason,
        /// How long it took, pauses included.
        duration_ms: u64,
        /// What went wrong, where something did.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<StopError>,
    },
    /// What came after a number is void: events with a larger one, and blocks that were not stopped. The true ones follow.
    Rewind {
        /// The last number that stands.
        after: u64,
    },
}

/// A message that just began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MessageHead {
    /// Its name.
    pub id: String,
    /// `message`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// `assistant`.
    pub role: &'static str,
    /// Empty.
    pub content: [(); 0],
}

/// How a group of work rests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum GroupStatus {
    /// What was begun in it is settled.
    Done,
    /// A call in it is not settled.
    Waiting,
    /// The run was ended.
    Cancelled,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// With an output.
    EndTurn,
    /// Somebody ended it.
    Cancelled,
    /// It could not go on.
    Error,
    /// It may make no more model calls.
    MaxTurns,
}

/// How a message is about to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct StopDelta {
    /// How.
    pub stop_reason: StopReason,
}

/// Why a run could not go on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StopError {
    /// A stable code.
    pub code: String,
    /// What was wrong.
    pub message: String,
}

/// How a request to a person ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestOutcome {
    /// Somebody decided.
    Decided,
    /// Nobody did in time.
    Expired,
    /// It no longer matters.
    Withdrawn,
    /// Somebody sent a new message instead.
    Superseded,
}

impl RequestOutcome {
    /// The outcome's name, as the wire spells it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Decided => "decided",
            Self::Expired => "expired",
            Self::Withdrawn => "withdrawn",
            Self::Superseded => "superseded",
        }
    }
}

/// A block, as it begins.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Block {
    /// Words for the person.
    Text {
        /// Empty.
        text: &'static str,
        /// The nested agent that speaks.
        subagent: Option<Subagent>,
    },
    /// What the model thinks.
    Thinking {
        /// Empty.
        thinking: &'static str,
        /// The nested agent that thinks.
        subagent: Option<Subagent>,
    },
    /// A call.
    ToolUse {
        /// The provider's id of the call.
        id: String,
        /// The tool.
        name: String,
        /// Empty: the arguments come as a delta.
        input: Nothing,
        /// A sentence for the call.
        tool_content_message: Option<String>,
        /// The nested agent that calls.
        subagent: Option<Subagent>,
    },
    /// What came of a call.
    ToolResult {
        /// The provider's id of the call.
        tool_use_id: String,
        /// The tool.
        name: String,
        /// How it went.
        status: ResultStatus,
        /// The nested agent that called.
        subagent: Option<Subagent>,
    },
    /// A person is asked.
    ApprovalRequest(Box<ApprovalRequest>),
    /// What the person decided.
    ApprovalResult {
        /// The request.
        approval_key: String,
        /// The nested agent that asked.
        subagent: Option<Subagent>,
    },
    /// Nobody decided in time.
    ApprovalTimeout {
        /// The request.
        approval_key: String,
        /// The nested agent that asked.
        subagent: Option<Subagent>,
    },
}

/// An object without members.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Nothing {}

/// A nested agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Subagent {
    /// Its place among the agents that the run can reach.
    pub id: String,
    /// What it is called.
    pub name: String,
    /// The calls that lead to it, from the outermost inwards, by their `tool_use` ids.
    pub path: Vec<String>,
}

/// How a call went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ResultStatus {
    /// It ran.
    Success,
    /// It ran and failed, or could not run.
    Error,
    /// It was not let run.
    Rejected,
    /// Nobody let it run in time.
    Timeout,
}

/// A request to a person. What is asked stands here for calls, and in the delta for questions.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ApprovalRequest {
    /// Names the request.
    pub approval_key: String,
    /// The calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actions: Option<Vec<Action>>,
    /// How each of them is asked about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub review_configs: Option<Vec<ReviewConfig>>,
    /// The pauses behind it.
    pub pause: PauseObject,
    /// The nested agent that asks.
    pub subagent: Option<Subagent>,
}

/// A call that somebody decides on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Action {
    /// The tool; `confirmation` where the model's own words ask.
    pub name: String,
    /// Exactly what would run.
    pub args: CanonicalJson,
    /// The id of its `tool_use` block; `null` where there is no call.
    pub tool_use_id: Option<String>,
}

/// How a call is asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ReviewConfig {
    /// `true`.
    pub require_approval: bool,
    /// Seconds until nobody can decide any more; 0 for never.
    pub timeout: u64,
}

/// The pauses behind a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PauseObject {
    /// `approval`, `question`, `confirmation` or `in_doubt`.
    pub kind: &'static str,
    /// Their ids, one for each action.
    pub ids: Vec<String>,
    /// The digests that decisions bind to; `null` where there is no call.
    pub args_sha256: Vec<Option<String>>,
    /// What can be decided, for each action.
    pub allowed_decisions: Vec<Vec<&'static str>>,
    /// Until when: of several, the first that ends.
    pub expires_at: Option<String>,
    /// What time it is.
    pub server_time: String,
    /// The policy's rule that holds the first of them.
    pub rule: Option<String>,
    /// Why, in the operator's words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How many different people must approve: of several, the most.
    pub approvals_needed: u32,
}

/// What is added to a block.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum BlockDelta {
    /// Words, thoughts or arguments.
    Token(Token),
    /// What came of a call.
    Result {
        /// What the tool gave.
        content: String,
    },
    /// The questions.
    Questions(Questions),
    /// What was decided, for each action.
    Decisions {
        /// One for each action, in order.
        decisions: Vec<DecisionShown>,
    },
}

/// More of a block that is made of text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type")]
pub enum Token {
    /// More words.
    #[serde(rename = "text_delta")]
    Text {
        /// The words.
        text: String,
    },
    /// More thoughts.
    #[serde(rename = "thinking_delta")]
    Thinking {
        /// The thoughts.
        thinking: String,
    },
    /// Arguments.
    #[serde(rename = "input_json_delta")]
    InputJson {
        /// Their JSON text.
        partial_json: String,
    },
}

/// Questions to a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Questions {
    /// The call.
    pub action_requests: Vec<ActionRequest>,
    /// How it is asked about.
    pub review_configs: Vec<QuestionReview>,
    /// Seconds until nobody can answer any more; 0 for never.
    pub timeout_seconds: u64,
}

/// A call that asks a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ActionRequest {
    /// The tool.
    pub name: String,
    /// The questions.
    pub args: CanonicalJson,
}

/// How a question is asked about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct QuestionReview {
    /// The tool.
    pub action_name: String,
    /// `approve`, `edit` and `reject`, as clients of old expect; `pause` says what really answers.
    pub allowed_decisions: [&'static str; 3],
}

/// What was decided about one action.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DecisionShown {
    /// `approve`, `edit`, `reject`, or the name of a decision that only other pauses take.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// What runs instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub edited_action: Option<EditedAction>,
    /// What the model is told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Set where it was filled in from another action's decision.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub implied: bool,
    /// Set where nobody decided this one: `expired`, `withdrawn` or `superseded`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<RequestOutcome>,
}

/// What runs in the place of what was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EditedAction {
    /// The tool.
    pub name: String,
    /// Its arguments.
    pub args: CanonicalJson,
}
