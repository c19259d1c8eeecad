//! A model: given a conversation and tools, it replies. Everything it says is data, never an instruction to us.

use std::sync::Arc;

use async_trait::async_trait;
use holdpoint_core::ids::{AgentId, FramePath, RunId, ToolName};
use holdpoint_core::message::{Item, Usage};
use serde_json::Value;

/// What replies.
#[async_trait]
pub trait Model: Send + Sync + 'static {
    /// Replies to a conversation. Parts of the reply may be told early through `deltas`; only the whole reply counts.
    ///
    /// # Errors
    /// The model could not be reached or gave no reply that can be read.
    async fn reply(&self, request: ModelRequest, deltas: DeltaSink) -> Result<ModelReply, ModelFault>;

    /// What the model is called, for definitions and logs.
    fn name(&self) -> &str;
}

/// What a model is asked.
#[derive(Debug, Clone)]
pub struct ModelRequest {
    /// The run.
    pub run: RunId,
    /// The frame within the run.
    pub frame: FramePath,
    /// Counts the frame's model calls from one.
    pub turn: u32,
    /// The agent at work.
    pub agent: AgentId,
    /// What the agent is told to be.
    pub instructions: Arc<str>,
    /// The conversation, oldest first.
    pub items: Arc<[Arc<Item>]>,
    /// What it may call.
    pub tools: Arc<[OfferedTool]>,
    /// The agent's settings for the model.
    pub settings: Arc<Value>,
}

/// A tool as a model is shown it.
#[derive(Debug, Clone, PartialEq)]
pub struct OfferedTool {
    /// What to call it.
    pub name: ToolName,
    /// What it is for.
    pub description: String,
    /// The JSON schema of its arguments.
    pub schema: Value,
}

/// What a model replied.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModelReply {
    /// Its words.
    pub text: Option<String>,
    /// The calls it asks for.
    pub calls: Vec<ProposedCall>,
    /// What it cost.
    pub usage: Usage,
}

/// A call as the model wrote it; nothing of it has been checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProposedCall {
    /// The provider's id.
    pub id: String,
    /// The tool's name.
    pub tool: String,
    /// The arguments, as text.
    pub arguments: String,
}

/// A part of a reply, told while the model is still speaking. Not stored, and not numbered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delta {
    /// More words.
    Text(String),
    /// More thoughts.
    Thinking(String),
    /// More of a call's arguments.
    Arguments {
        /// The provider's id of the call.
        id: String,
        /// The tool's name.
        tool: String,
        /// More text.
        text: String,
    },
}

/// Where a model tells parts of its reply. Telling never waits: a slow listener loses deltas, not the reply.
#[derive(Clone)]
pub struct DeltaSink(Arc<dyn Fn(Delta) + Send + Sync>);

impl DeltaSink {
    /// A sink that hands each delta to `tell`.
    pub fn new(tell: impl Fn(Delta) + Send + Sync + 'static) -> Self {
        Self(Arc::new(tell))
    }

    /// A sink that forgets.
    pub fn none() -> Self {
        Self::new(|_| {})
    }

    /// Tells a part of the reply.
    pub fn tell(&self, delta: Delta) {
        (self.0)(delta);
    }
}

impl std::fmt::Debug for DeltaSink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("DeltaSink")
    }
}

/// A model that gave no reply. The run stays where it was and can be resumed.
#[derive(Debug, thiserror::Error)]
#[error("model {model} gave no reply: {message}")]
pub struct ModelFault {
    /// The model's name.
    pub model: String,
    /// What happened, without secrets.
    pub message: String,
    /// Whether asking again later may help.
    pub may_retry: bool,
    /// The cause.
    #[source]
    pub source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// The cause of a fault that is none: the model replies when its time has come, and until then the run waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it is not time yet")]
pub struct NotYet;

impl ModelFault {
    /// Whether the model only waits for its time, so that nothing is wrong.
    pub fn is_waiting(&self) -> bool {
        self.source.as_ref().is_some_and(|source| source.is::<NotYet>())
    }
}
