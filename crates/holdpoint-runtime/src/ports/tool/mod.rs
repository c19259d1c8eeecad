//! A tool: what a model may ask for, who must look first, and what runs.

mod approval;
mod builder;
mod context;
mod run;
mod schema;

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use holdpoint_core::ids::{ActorId, ToolName};
use holdpoint_core::json::CanonicalJson;
use holdpoint_core::tool::Effect;
use serde_json::Value;

use crate::agent::Agent;
use crate::context::Context;
use crate::guardrail::ToolGuardrail;

pub use approval::{
    Approval, AutoDecider, AutoDecision, Deadline, HoldTerms, IntoHold, OnTimeout, Policy, PolicyVerdict, Predicate,
};
pub use builder::{ToolBuilder, ToolProblems};
pub use context::ToolContext;
pub use run::{IntoContent, IntoResult, Json, RunTool, ToolFailure};
pub use schema::schema_of;
pub(crate) use schema::{check_schema, compile_schema};

/// A tool that agents can be given. Cheap to clone.
#[derive(Clone)]
pub struct Tool(pub(crate) Arc<ToolParts>);

pub(crate) struct ToolParts {
    pub(crate) name: ToolName,
    pub(crate) description: String,
    pub(crate) schema: Value,
    pub(crate) shape: ToolShape,
    pub(crate) effect: Effect,
    pub(crate) approval: Approval,
    pub(crate) decider: Option<(ActorId, Arc<dyn AutoDecider>)>,
    pub(crate) guardrails: Vec<ToolGuardrail>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) runner: Arc<dyn RunTool>,
    pub(crate) is_enabled: Option<EnabledWhen>,
    pub(crate) validator: OnceLock<Result<jsonschema::Validator, String>>,
}

pub(crate) type EnabledWhen = Arc<dyn Fn(&Context) -> bool + Send + Sync>;

/// How a tool is reached.
#[derive(Clone, Default)]
pub enum ToolShape {
    /// A function with a JSON schema.
    #[default]
    Function,
    /// Another agent, run to its end.
    Agent {
        /// The agent.
        agent: Agent,
        /// How many model calls it may make.
        turns_max: Option<u32>,
    },
    /// Commands in a shell. Runs in the model's order with other calls of this kind.
    Shell,
    /// Changes to files. Runs in the model's order with other calls of this kind.
    ApplyPatch,
    /// A batch of actions at a screen. Its predicate is asked once for each action.
    Computer,
    /// A tool of an MCP server.
    Mcp {
        /// The server's label.
        server: ToolName,
    },
    /// A question to a person.
    Question,
}

impl Tool {
    /// Begins a tool of this name.
    pub fn builder(name: impl Into<String>) -> ToolBuilder {
        ToolBuilder::new(name.into())
    }

    /// What models call it.
    pub fn name(&self) -> &ToolName {
        &self.0.name
    }

    /// What it is for.
    pub fn description(&self) -> &str {
        &self.0.description
    }

    /// The JSON schema of its arguments.
    pub fn schema(&self) -> &Value {
        &self.0.schema
    }

    /// What it does to the world.
    pub fn effect(&self) -> Effect {
        self.0.effect
    }

    /// When a person must look.
    pub fn approval(&self) -> &Approval {
        &self.0.approval
    }

    /// Whether a decider in code may answer in a person's place.
    pub fn has_decider(&self) -> bool {
        self.0.decider.is_some()
    }

    /// How it is reached.
    pub fn shape(&self) -> &ToolShape {
        &self.0.shape
    }

    /// The same tool with guardrails, settings or an approval of one's own.
    pub fn rebuild(&self) -> ToolBuilder {
        ToolBuilder::from_parts(&self.0)
    }

    /// Checks arguments against the schema; says where and why they break it.
    ///
    /// # Errors
    /// The first few places that break it.
    pub fn validate(&self, arguments: &CanonicalJson) -> Result<(), String> {
        let validator = self.0.validator.get_or_init(|| compile_schema(&self.0.schema));
        check_schema(validator.as_ref().map_err(Clone::clone)?, arguments)
    }
}

impl fmt::Debug for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tool").field("name", &self.0.name).finish_non_exhaustive()
    }
}
