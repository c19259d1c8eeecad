//! Which agents there are.

use std::collections::BTreeMap;

use serde::Serialize;
use utoipa::ToSchema;

/// The agents that are served.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AgentList {
    /// By name.
    pub(crate) agents: Vec<AgentSummary>,
    /// What is wrong with agent and policy files, for administrators; absent where nothing is.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) diagnostics: Vec<FileProblem>,
}

/// One problem of an agent or policy file. An agent whose file is bad is served as it was when it last was right.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FileProblem {
    /// The file.
    pub(crate) file: String,
    /// The line, from one; zero where the problem is with the file as a whole.
    pub(crate) line: usize,
    /// The character within the line, from one; zero where the problem is with the file as a whole.
    pub(crate) column: usize,
    /// `error`: the file is not used; `warning`: it is.
    pub(crate) severity: String,
    /// What kind of problem it is.
    pub(crate) code: String,
    /// What is wrong.
    pub(crate) message: String,
    /// What to do.
    pub(crate) hint: Option<String>,
}

/// An agent in a list.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AgentSummary {
    /// What it is called; `agent_id` when a run is started.
    pub(crate) name: String,
    /// What it is for.
    pub(crate) description: String,
    /// Its type, as agent files spell it.
    #[serde(rename = "type")]
    pub(crate) kind: String,
    /// The operator's own version of it.
    pub(crate) version: Option<String>,
    /// The operator's labels.
    pub(crate) labels: BTreeMap<String, String>,
    /// Set for demo agents: a message to try, and what it shows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) demo: Option<Demo>,
}

/// What a demo agent is shown with.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Demo {
    /// A message to try.
    pub(crate) message: String,
    /// What it shows.
    pub(crate) shows: String,
}

/// An agent, its tools and what is held.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Agent {
    /// What every list says of it.
    #[serde(flatten)]
    pub(crate) summary: AgentSummary,
    /// The tools of it and of all agents that it can reach.
    pub(crate) tools: Vec<Tool>,
}

/// A tool of an agent.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Tool {
    /// What models call it.
    pub(crate) name: String,
    /// The place of the agent that has it.
    pub(crate) agent: String,
    /// What it is for.
    pub(crate) description: String,
    /// The JSON schema of its arguments.
    #[schema(value_type = Object)]
    pub(crate) parameters: serde_json::Value,
    /// When a person must look.
    pub(crate) held: Held,
    /// What it does to the world.
    pub(crate) effect: Effect,
}

/// When a person must look before a tool runs.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Held {
    /// Not by its own settings.
    Never,
    /// When a condition on the call holds.
    Sometimes,
    /// Always.
    Always,
}

/// What a tool does to the world.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Effect {
    /// Changes nothing.
    ReadOnly,
    /// Running it again changes nothing more.
    Idempotent,
    /// Must not run twice.
    AtMostOnce,
}
