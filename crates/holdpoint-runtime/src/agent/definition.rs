//! An agent's definition as data: what a digest is taken of, and what a paused run goes on with.

use holdpoint_core::agent::FinishRule;
use holdpoint_core::ids::ToolName;
use holdpoint_core::json::CanonicalJson;
use holdpoint_core::tool::Effect;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::agent::Agent;
use crate::ports::tool::{Approval, Tool, ToolShape, check_schema, compile_schema};

/// The stored definition of one agent. Code is not part of it: functions are found again by name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct StoredDefinition {
    pub(crate) name: String,
    pub(crate) instructions: String,
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub(crate) settings: Value,
    pub(crate) model: Option<String>,
    pub(crate) tools: Vec<StoredTool>,
    pub(crate) handoffs: Vec<StoredHandoff>,
    pub(crate) finish: FinishRule,
    pub(crate) guardrails: Vec<String>,
    /// What the application builds the agent from, where it keeps that with the agent.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub(crate) source: Value,
}

/// One tool of a stored definition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct StoredTool {
    pub(crate) name: ToolName,
    pub(crate) description: String,
    pub(crate) schema: Value,
    pub(crate) shape: String,
    pub(crate) effect: Effect,
    pub(crate) approval: StoredApproval,
    pub(crate) guardrails: Vec<String>,
}

/// When a stored tool's calls are held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum StoredApproval {
    Never,
    Always,
    Predicate,
    Policy,
}

/// One hand-off of a stored definition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredHandoff {
    pub(crate) tool: ToolName,
    pub(crate) to: String,
    pub(crate) description: String,
}

impl StoredDefinition {
    pub(crate) fn of(agent: &Agent) -> Self {
        let parts = agent.parts();
        let guardrails = parts.input_guardrails.iter().map(|guardrail| format!("input {}", guardrail.name));
        let guardrails =
            guardrails.chain(parts.output_guardrails.iter().map(|guardrail| format!("output {}", guardrail.name)));
        Self {
            name: parts.name.clone(),
            instructions: parts.instructions.to_string(),
            settings: (*parts.settings).clone(),
            model: parts.model.as_ref().map(|model| model.name().to_owned()),
            tools: parts.tools.iter().map(StoredTool::of).collect(),
            handoffs: agent
                .handoffs()
                .iter()
                .map(|handoff| StoredHandoff {
                    tool: handoff.tool.clone(),
                    to: handoff.to.name().to_owned(),
                    description: handoff.description.clone(),
                })
                .collect(),
            finish: parts.finish.clone(),
            guardrails: guardrails.collect(),
            source: (*parts.source).clone(),
        }
    }

    pub(crate) fn tool(&self, name: &ToolName) -> Option<&StoredTool> {
        self.tools.iter().find(|tool| tool.name == *name)
    }
}

/// Checks arguments against the schema that a stored definition gives a tool; `None` where it knows no such tool.
pub fn check_stored(definition: &[u8], tool: &ToolName, arguments: &CanonicalJson) -> Option<Result<(), String>> {
    let definition: StoredDefinition = serde_json::from_slice(definition).ok()?;
    let schema = &definition.tool(tool)?.schema;
    Some(compile_schema(schema).and_then(|validator| check_schema(&validator, arguments)))
}

impl StoredTool {
    fn of(tool: &Tool) -> Self {
        let parts = &tool.0;
        Self {
            name: parts.name.clone(),
            description: parts.description.clone(),
            schema: parts.schema.clone(),
            shape: match &parts.shape {
                ToolShape::Function => "function".to_owned(),
                ToolShape::Agent { agent, .. } => format!("agent {}", agent.name()),
                ToolShape::Shell => "shell".to_owned(),
                ToolShape::ApplyPatch => "apply_patch".to_owned(),
                ToolShape::Computer => "computer".to_owned(),
                ToolShape::Mcp { server } => format!("mcp {server}"),
                ToolShape::Question => "question".to_owned(),
            },
            effect: parts.effect,
            approval: match parts.approval {
                Approval::Never => StoredApproval::Never,
                Approval::Always => StoredApproval::Always,
                Approval::When(_) => StoredApproval::Predicate,
                Approval::By(_) => StoredApproval::Policy,
            },
            guardrails: parts.guardrails.iter().map(|guardrail| guardrail.name.clone()).collect(),
        }
    }

    /// Whether an approval of one is an approval of the other: what it is, what it takes, what it does.
    pub(crate) fn is_same_tool(&self, other: &Self) -> bool {
        let print = |tool: &Self| CanonicalJson::from_serialize(&(&tool.description, &tool.schema, &tool.shape)).ok();
        self.effect == other.effect && print(self) == print(other)
    }
}
