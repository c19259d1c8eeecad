//! Agent files: what one agent is, as its operator wrote it.
//!
//! The types here are plain data. They serialise to JSON without any secret in it (`${NAME}` stays a [`Template`]), so
//! that a definition can be kept with a run and built again later, with the secrets of that day. [`read`] makes them
//! from YAML and reports every problem at once.

mod approval;
mod interrupt;
mod model;
mod name;
pub(crate) mod read;
mod tool;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use approval::{ApprovalSpec, Deadline, Fill, HeldApproval, OnNote};
pub use interrupt::{CheckpointBackend, FieldKind, InputField, InterruptSpec};
pub use model::{BadModelName, ModelName, ModelRef, ModelRefProblem, ModelSpec, OpenAiApi, Provider};
pub use name::{AgentName, BadAgentName};
pub use tool::{
    AgentTool, ApplyPatchConfig, BuiltinTool, CommandTool, DisplaySpec, HttpMethod, HttpRequestConfig, HttpTool,
    McpTool, ShellConfig, ToolSource, ToolSpec,
};

#[cfg(doc)]
use crate::Template;

/// One agent, as one file defines it.
///
/// ```
/// use holdpoint_config::{FixedEnvironment, Source, read_agent};
///
/// let text = "
/// apiVersion: holdpoint/v1
/// kind: Agent
/// metadata: { name: helper }
/// spec: { type: chat_model_agent, model: { primary: openai/gpt-4o } }
/// ";
/// let read = read_agent(Source::new("helper.yaml", text), &FixedEnvironment::empty());
/// let agent = read.agent.expect("the file is right");
/// let stored = serde_json::to_value(&agent.file)?;
/// assert_eq!(serde_json::from_value::<holdpoint_config::AgentFile>(stored)?, agent.file);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentFile {
    /// Who it is.
    pub metadata: Metadata,
    /// What it does.
    pub spec: AgentSpec,
}

/// Who an agent is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Metadata {
    /// Its name, which no other agent of the server has.
    pub name: AgentName,
    /// The definition's version; only shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// What it is for, in a sentence. Other agents' models read it where this one is a tool or a hand-off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Words to group by; only shown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Names and values to group by; only shown.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

/// What an agent does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentSpec {
    /// How it works, and which agents work below it.
    #[serde(rename = "type")]
    pub kind: AgentKind,
    /// The language of labels that the server adds, as a BCP 47 tag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub locale: Option<String>,
    /// The model. Present for every kind that calls one ([`AgentKind::calls_a_model`]).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelSpec>,
    /// What the model is told first; may be empty.
    #[serde(default)]
    pub system_prompt: String,
    /// How many times the model may be called in one run; `None` for the server's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<u32>,
    /// Its tools, in order. Those that come from [`AgentKind::sub_agents`] are not among them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<ToolSpec>,
    /// Agents that may take the conversation over.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub handoffs: Vec<AgentName>,
    /// Whether and how the model's own words ask for a confirmation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interrupt: Option<InterruptSpec>,
    /// Where earlier messages of the session are kept.
    #[serde(default)]
    pub memory: MemorySpec,
    /// What a message does that comes while somebody is asked.
    #[serde(default, skip_serializing_if = "WhileHeld::is_default")]
    pub on_message_while_held: WhileHeld,
}

/// What a message does that comes while a run of the agent waits for somebody's decision.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WhileHeld {
    /// It is refused.
    #[default]
    Refuse,
    /// It is kept, and the model sees it after the decision.
    Queue,
    /// It takes the place of the decision: nothing runs, and the model is told why.
    Supersede,
}

impl WhileHeld {
    fn is_default(&self) -> bool {
        *self == Self::Refuse
    }
}

/// How an agent works.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentKind {
    /// One model with tools: `chat_model_agent`.
    #[serde(rename = "chat_model_agent")]
    Chat,
    /// One model with tools that works for longer: `deep_agent`. Build it like [`AgentKind::Chat`], with the agents
    /// below it as further tools and [`AgentKind::DEEP_TURNS`] turns unless the file says otherwise.
    #[serde(rename = "deep_agent")]
    Deep {
        /// The agents below it, each a tool; may be none.
        sub_agents: Vec<SubAgent>,
    },
    /// One model that gives work to the agents below it: `supervisor`. Build it like [`AgentKind::Chat`], with each of
    /// them as a tool whose description is its role.
    Supervisor {
        /// The agents below it; one at least.
        sub_agents: Vec<SubAgent>,
    },
    /// A pipeline: `sequential`. The first agent gets the message, each following one what the one before it answered,
    /// and the last one's answer is the answer. It calls no model of its own.
    Sequential {
        /// The steps, in order; one at least.
        sub_agents: Vec<SubAgent>,
    },
    /// All agents below it get the message at the same time: `parallel`. The answer is theirs, in the order of the
    /// file, each under its name. It calls no model of its own.
    Parallel {
        /// The agents; one at least.
        sub_agents: Vec<SubAgent>,
    },
}

impl AgentKind {
    /// How often a deep agent may call its model where its file does not say.
    pub const DEEP_TURNS: u32 = 50;

    /// The kind's name in a file.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Chat => "chat_model_agent",
            Self::Deep { .. } => "deep_agent",
            Self::Supervisor { .. } => "supervisor",
            Self::Sequential { .. } => "sequential",
            Self::Parallel { .. } => "parallel",
        }
    }

    /// The agents below it, in order.
    pub fn sub_agents(&self) -> &[SubAgent] {
        match self {
            Self::Chat => &[],
            Self::Deep { sub_agents }
            | Self::Supervisor { sub_agents }
            | Self::Sequential { sub_agents }
            | Self::Parallel { sub_agents } => sub_agents,
        }
    }

    /// Whether it has a model of its own. A pipeline has not: it only passes messages on.
    pub fn calls_a_model(&self) -> bool {
        !matches!(self, Self::Sequential { .. } | Self::Parallel { .. })
    }
}

/// An agent below another one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SubAgent {
    /// The agent.
    pub agent: AgentName,
    /// What it is for here, in the words of the agent above; its own description otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
}

/// Where earlier messages of a session are kept. There is one way: with the session's runs, in the server's store.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "backend", rename_all = "snake_case")]
pub enum MemorySpec {
    /// With the session's runs.
    #[default]
    Builtin,
}

impl AgentFile {
    /// How often the model may be called in one run, if the file or the agent's kind says.
    pub fn turns_max(&self) -> Option<u32> {
        let deep = matches!(self.spec.kind, AgentKind::Deep { .. }).then_some(AgentKind::DEEP_TURNS);
        self.spec.max_turns.or(deep)
    }

    /// The confirmation settings, where they are switched on.
    pub fn confirmation(&self) -> Option<&InterruptSpec> {
        self.spec.interrupt.as_ref().filter(|interrupt| interrupt.enabled)
    }

    /// The agents that it cannot be built without: its tools, those below it and those it hands over to, each once.
    pub fn needs(&self) -> Vec<&AgentName> {
        let mut names: Vec<&AgentName> = self.calls().chain(&self.spec.handoffs).collect();
        let mut seen = std::collections::BTreeSet::new();
        names.retain(|name| seen.insert(*name));
        names
    }

    /// The agents that run inside of it: its tools and those below it. These must not lead back to it.
    pub fn calls(&self) -> impl Iterator<Item = &AgentName> {
        let tools = self.spec.tools.iter().filter_map(|tool| match &tool.source {
            ToolSource::Agent(tool) => Some(&tool.agent),
            _ => None,
        });
        tools.chain(self.spec.kind.sub_agents().iter().map(|below| &below.agent))
    }
}
