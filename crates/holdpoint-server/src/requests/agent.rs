//! The agent of a request: one tool named as asked, which does nothing, and the callback.

use std::sync::Arc;

use async_trait::async_trait;
use holdpoint_core::ids::ToolName;
use holdpoint_core::json::CanonicalJson;
use holdpoint_core::message::Content;
use holdpoint_core::refusal::Refusal;
use holdpoint_core::tool::Effect;
use holdpoint_runtime::agent::{Agent, AgentGraph};
use holdpoint_runtime::ports::model::Model;
use holdpoint_runtime::ports::tool::{Approval, Policy, RunTool, Tool, ToolContext, ToolFailure};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The tool that tells whoever asked. No request may name a tool like this.
pub(super) const CALLBACK: &str = "holdpoint.callback";

/// What begins the names of the server's own tools.
pub(super) const RESERVED: &str = "holdpoint.";

/// What the agent of a request is made from, kept with its definition so that a later process makes the same one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Source {
    holdpoint_request: Format,
    pub(super) agent: String,
    pub(super) tool: String,
}

/// The way in which the agent is made. A change of it gets a number of its own, and older ones are still made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Format {
    #[serde(rename = "1")]
    One,
}

impl Source {
    pub(super) fn new(agent: &str, tool: &ToolName) -> Self {
        Self { holdpoint_request: Format::One, agent: agent.to_owned(), tool: tool.to_string() }
    }

    /// What a stored definition says, where it is of a request.
    pub(super) fn read(source: &Value) -> Option<Self> {
        Self::deserialize(source).ok()
    }
}

/// What the agent of a request is made with, of this process.
pub(super) struct Parts {
    pub(super) model: Arc<dyn Model>,
    pub(super) policy: Arc<dyn Policy>,
    pub(super) callback: Arc<dyn RunTool>,
}

/// Makes the agent of a request.
///
/// # Errors
/// The names are none.
pub(super) fn graph(source: &Source, parts: Parts) -> Result<Arc<AgentGraph>, Refusal> {
    let asked = Tool::builder(source.tool.as_str())
        .description("Runs elsewhere. Approving it tells whoever asked that it may.")
        .schema(json!({"type": "object"}))
        .effect(Effect::ReadOnly)
        .approval(Approval::By(parts.policy))
        .runner(Approved)
        .build();
    let callback = Tool::builder(CALLBACK)
        .description("Tells whoever asked what was decided.")
        .schema(json!({"type": "object"}))
        .effect(Effect::Idempotent)
        .runner(Shared(parts.callback))
        .build();
    let source_value = serde_json::to_value(source).map_err(|error| Refusal::InvalidDefinition(error.to_string()))?;
    let agent = Agent::builder(source.agent.as_str())
        .model(parts.model)
        .source(source_value)
        .try_tool(asked)
        .try_tool(callback)
        .build()?;
    agent.graph()
}

/// What happens here when a request is approved: nothing. It happens where the request came from.
struct Approved;

#[async_trait]
impl RunTool for Approved {
    async fn run(&self, _: ToolContext, _: CanonicalJson) -> Result<Content, ToolFailure> {
        Ok(Content::Text("approved".to_owned()))
    }
}

struct Shared(Arc<dyn RunTool>);

#[async_trait]
impl RunTool for Shared {
    async fn run(&self, context: ToolContext, arguments: CanonicalJson) -> Result<Content, ToolFailure> {
        self.0.run(context, arguments).await
    }
}
