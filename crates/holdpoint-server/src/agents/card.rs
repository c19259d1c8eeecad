//! What protocols know of an agent besides how it runs: its name, what it is for, what its pauses look like.

use std::collections::BTreeMap;
use std::sync::Arc;

use holdpoint_core::ids::{AgentId, ToolName};
use holdpoint_core::tool::Effect;
use holdpoint_runtime::agent::AgentGraph;

/// An agent in one version: what runs, and what protocols say about it. A paused run keeps the version it began with.
pub struct ServedAgent {
    /// What clients call it.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// The operator's own version of it.
    pub version: Option<String>,
    /// Its `type`, as agent files spell it: `chat_model_agent`, `supervisor` and so on.
    pub kind: String,
    /// The operator's labels.
    pub labels: BTreeMap<String, String>,
    /// The language of labels that the server adds, such as `vi`.
    pub locale: Option<String>,
    /// What runs: the agent and all that it can reach.
    pub graph: Arc<AgentGraph>,
    /// How many model calls a run of it may make; `None` for as many as the runtime's settings say.
    pub turns_max: Option<u32>,
    /// How its confirmations look; `None` where the model's words never pause it (`interrupt.enabled` is not true).
    pub interrupt: Option<InterruptCard>,
    /// What a message does that comes while a run waits for a decision; `on_message_while_held`.
    pub on_message_while_held: WhileHeld,
    /// The tools of the agent and of all that it can reach, each with the place of the agent that has it.
    pub tools: Vec<ToolCard>,
    /// Set where the agent is one of the demo agents.
    pub demo: Option<DemoCard>,
}

impl ServedAgent {
    /// An agent with nothing but a name and what runs; the rest is added field by field.
    pub fn new(name: impl Into<String>, graph: Arc<AgentGraph>) -> Self {
        Self {
            name: name.into(),
            description: String::new(),
            version: None,
            kind: "chat_model_agent".to_owned(),
            labels: BTreeMap::new(),
            locale: None,
            graph,
            turns_max: None,
            interrupt: None,
            on_message_while_held: WhileHeld::Refuse,
            tools: Vec::new(),
            demo: None,
        }
    }

    /// The card of a tool, by the place of the agent that has it.
    pub fn tool(&self, agent: &AgentId, tool: &ToolName) -> Option<&ToolCard> {
        self.tools.iter().find(|card| card.agent == *agent && card.name == *tool)
    }
}

/// What a person is asked when the model's own words ask for a confirmation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InterruptCard {
    /// The fields to fill in. Empty: one `confirm` field, labelled by the protocol.
    pub fields: Vec<FieldCard>,
}

/// One field of a confirmation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldCard {
    /// What the answer is sent under.
    pub name: String,
    /// What can be filled in.
    pub kind: FieldKind,
    /// What a person reads.
    pub label: String,
    /// Whether it must be filled in.
    pub is_required: bool,
    /// What can be chosen, in a `select`.
    pub options: Vec<String>,
}

/// What can be filled into a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldKind {
    /// Words.
    Text,
    /// Yes or no.
    Confirm,
    /// One of the options.
    Select,
}

/// One tool of an agent.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCard {
    /// The place of the agent that has it.
    pub agent: AgentId,
    /// What models call it.
    pub name: ToolName,
    /// What it is for.
    pub description: String,
    /// The JSON schema of its arguments.
    pub parameters: serde_json::Value,
    /// When a person must look.
    pub held: Held,
    /// What it does to the world.
    pub effect: Effect,
    /// How clients are shown its calls.
    pub display: DisplayCard,
    /// What happens where a client decides fewer calls than it was asked about; `approval.fill`. `None` where the file
    /// does not say: each wire has a default of its own.
    pub fill: Option<Fill>,
    /// Whether each call needs a decision of its own, whatever `fill` says; `explicit_decision`.
    pub explicit_decision: bool,
    /// What a person's words beside an approval do; `approval.on_note`.
    pub on_note: OnNote,
}

/// When a person must look before a tool runs, as far as it can be said before the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Held {
    /// Never, unless a policy says so.
    Never,
    /// When a condition on the call holds.
    Sometimes,
    /// Always.
    Always,
}

impl Held {
    /// Its name, as wires spell it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Never => "never",
            Self::Sometimes => "sometimes",
            Self::Always => "always",
        }
    }
}

/// What happens where a client decides fewer calls than it was asked about, on wires that decide by position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fill {
    /// The first decision is meant for the others too.
    First,
    /// The answer is refused: each call needs a decision of its own.
    None,
}

/// What a person's words beside an approval do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OnNote {
    /// The call runs, and the model is told them beside its outcome.
    #[default]
    Append,
    /// The call does not run, and the model is asked for a revised one.
    Revise,
}

/// What a message does that comes while a run waits for a decision.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum WhileHeld {
    /// It is refused.
    #[default]
    Refuse,
    /// It is kept, and the model sees it after the decision.
    Queue,
    /// It takes the place of the decision: nothing runs, and the model is told why.
    Supersede,
}

/// How clients are shown a tool's calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DisplayCard {
    /// Whether the call is shown as it is made.
    pub stream_tool_use: bool,
    /// Whether its outcome is shown.
    pub stream_tool_result: bool,
    /// Whether its outcome is shown as the agent's own words.
    pub as_content: bool,
    /// A sentence for the call, with `{name}` for each argument.
    pub message: Option<String>,
}

impl Default for DisplayCard {
    fn default() -> Self {
        Self { stream_tool_use: true, stream_tool_result: true, as_content: false, message: None }
    }
}

/// What a demo agent is shown with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DemoCard {
    /// A message to try.
    pub message: String,
    /// What it shows.
    pub shows: String,
}
