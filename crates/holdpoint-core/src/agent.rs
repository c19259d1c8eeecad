//! What the machine must know of an agent: which one it is, and how its turns end. Everything else is the runtime's.

use serde::{Deserialize, Serialize};

use crate::ids::{AgentId, ToolName};
use crate::json::Digest;

/// An agent as a run remembers it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentBrief {
    /// Its place in the agent graph.
    pub id: AgentId,
    /// The digest of its definition: a changed definition is seen on resume.
    pub digest: Digest,
    /// When a turn's tool results end the run.
    #[serde(default, skip_serializing_if = "FinishRule::is_model_text")]
    pub finish: FinishRule,
    /// Whether guardrails look at the input before the first model call.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub checks_input: bool,
    /// Whether guardrails look at the output before it is given out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub checks_output: bool,
}

/// What makes an agent's run finish.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinishRule {
    /// A reply without tool calls.
    #[default]
    ModelText,
    /// The first turn that called tools: its first outcome is the output.
    FirstToolResult,
    /// A turn in which one of these tools was called: that tool's outcome is the output.
    AfterTools(Vec<ToolName>),
}

impl FinishRule {
    fn is_model_text(&self) -> bool {
        *self == Self::ModelText
    }
}
