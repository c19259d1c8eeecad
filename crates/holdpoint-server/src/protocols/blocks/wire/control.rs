//! What the server says about the connection and about commands, beside the events of a session.

use serde::Serialize;
use serde_json::Value;

/// What a connection is told of itself, and what a command is answered with where no event does.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Control {
    /// The connection is open.
    Connected {
        /// `blocks/1`.
        protocol: &'static str,
        /// Seconds since 1970.
        server_time: f64,
        /// How often the server asks whether the client is there.
        heartbeat_seconds: u64,
    },
    /// The credential holds.
    AuthOk {
        /// Who it is.
        actor: String,
        /// The command's own name.
        #[serde(skip_serializing_if = "Option::is_none")]
        request_id: Option<String>,
    },
    /// The answer to `ping`.
    Pong {
        /// The command's own name.
        #[serde(skip_serializing_if = "Option::is_none")]
        request_id: Option<String>,
    },
    /// What happens in a session is shown from now on.
    Subscribed {
        /// The conversation.
        session_id: String,
        /// How it stands.
        status: &'static str,
        /// The number of its last event.
        head_seq: u64,
        /// What waits for somebody.
        open: Vec<String>,
        /// The command's own name.
        #[serde(skip_serializing_if = "Option::is_none")]
        request_id: Option<String>,
    },
    /// A message was taken into a run that is under way; the model sees it with its next call.
    MessageQueued {
        /// The conversation.
        session_id: String,
        /// The run's message.
        message_id: String,
        /// The command's own name.
        #[serde(skip_serializing_if = "Option::is_none")]
        request_id: Option<String>,
    },
    /// An approval counts, and others must approve too. Actions that nobody else must approve go on at once.
    ApprovalVoted {
        /// The conversation.
        session_id: String,
        /// The run's message.
        message_id: String,
        /// The request, which is still open.
        approval_key: String,
        /// How many approvals are still missing for the action that misses most.
        approvals_missing: u32,
        /// The command's own name.
        #[serde(skip_serializing_if = "Option::is_none")]
        request_id: Option<String>,
    },
    /// A command was refused, or something went wrong. The connection stays open.
    Error {
        /// What is wrong.
        error: Trouble,
        /// The command's own name.
        #[serde(skip_serializing_if = "Option::is_none")]
        request_id: Option<String>,
    },
}

/// What is wrong with a command.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Trouble {
    /// The stable code.
    pub code: &'static str,
    /// What is wrong and what to do, for people.
    pub message: String,
    /// More about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
}
