//! Agents: instructions, tools, hand-offs. An agent is described once and shared; a run remembers which one it was.

mod definition;
mod graph;

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use holdpoint_core::agent::FinishRule;
use holdpoint_core::ids::{AgentId, ToolName};
use holdpoint_core::refusal::Refusal;
use serde_json::Value;

use crate::guardrail::{InputGuardrail, OutputGuardrail};
use crate::ports::model::Model;
use crate::ports::tool::{Deadline, Tool, ToolBuilder, ToolProblems, ToolShape};

pub use definition::check_stored;
pub(crate) use definition::{StoredApproval, StoredDefinition};
pub use graph::AgentGraph;
pub(crate) use graph::Node;

/// An agent. Cheap to clone; clones are the same agent.
#[derive(Clone)]
pub struct Agent(Arc<AgentParts>, Arc<KnownGraph>);

/// The graph that was built last, and the count of links then. It stands beside the parts: a graph holds the parts of
/// its agents, and must not hold itself.
type KnownGraph = Mutex<Option<(u64, Arc<AgentGraph>)>>;

pub(crate) struct AgentParts {
    pub(crate) name: String,
    pub(crate) instructions: Arc<str>,
    pub(crate) handoff_description: String,
    pub(crate) model: Option<Arc<dyn Model>>,
    pub(crate) settings: Arc<Value>,
    pub(crate) source: Arc<Value>,
    pub(crate) tools: Vec<Tool>,
    pub(crate) handoffs: RwLock<Vec<Handoff>>,
    pub(crate) finish: FinishRule,
    pub(crate) confirm_when: Option<ConfirmWhen>,
    pub(crate) input_guardrails: Vec<InputGuardrail>,
    pub(crate) output_guardrails: Vec<OutputGuardrail>,
}

/// Reads a model's words and says why they ask a person to confirm, if they do.
pub(crate) type ConfirmWhen = Arc<dyn Fn(&str) -> Option<ConfirmTerms> + Send + Sync>;

/// Why a model's words ask a person to confirm, and how long the pause waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfirmTerms {
    /// Why, in the operator's words.
    pub reason: String,
    /// How long the pause waits.
    pub deadline: Deadline,
}

impl ConfirmTerms {
    /// For this reason, waiting so long.
    pub fn new(reason: impl Into<String>, deadline: Deadline) -> Self {
        Self { reason: reason.into(), deadline }
    }
}

impl From<String> for ConfirmTerms {
    fn from(reason: String) -> Self {
        Self { reason, deadline: Deadline::Default }
    }
}

/// Another agent that may take over the conversation.
#[derive(Clone)]
pub(crate) struct Handoff {
    pub(crate) tool: ToolName,
    pub(crate) description: String,
    pub(crate) to: Agent,
}

/// Counts changes to any agent's hand-offs, so that a graph built before is not used after.
static LINKS: AtomicU64 = AtomicU64::new(0);

impl Agent {
    /// Begins an agent of this name.
    pub fn builder(name: impl Into<String>) -> AgentBuilder {
        AgentBuilder {
            name: name.into(),
            instructions: String::new(),
            handoff_description: String::new(),
            model: None,
            settings: Value::Null,
            source: Value::Null,
            tools: Vec::new(),
            handoffs: Vec::new(),
            finish: FinishRule::ModelText,
            confirm_when: None,
            input_guardrails: Vec::new(),
            output_guardrails: Vec::new(),
            problems: Vec::new(),
        }
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// This agent as a tool: it runs to its end in the caller's journal, and its pauses are the caller's.
    pub fn as_tool(&self, name: impl Into<String>, description: impl Into<String>) -> ToolBuilder {
        let schema = serde_json::json!({
            "type": "object",
            "properties": {"input": {"type": "string", "description": "What the agent is asked."}},
            "required": ["input"],
            "additionalProperties": false,
        });
        Tool::builder(name)
            .description(description)
            .schema(schema)
            .shape(ToolShape::Agent { agent: self.clone(), turns_max: Some(AgentGraph::INNER_TURNS_MAX) })
    }

    /// Lets this agent hand over to `to`, also where the two name each other. Agents that form a ring stay in memory.
    ///
    /// # Errors
    /// The name of the hand-off is taken or is none.
    pub fn link_handoff(&self, to: &Agent) -> Result<(), Refusal> {
        let handoff = Handoff::to(to).map_err(Refusal::InvalidDefinition)?;
        let mut handoffs = self.0.handoffs.write().unwrap_or_else(PoisonError::into_inner);
        let is_taken = handoffs.iter().any(|known| known.tool == handoff.tool)
            || self.0.tools.iter().any(|tool| *tool.name() == handoff.tool);
        if is_taken {
            let problem = format!("agent {:?} has two tools named {}", self.0.name, handoff.tool);
            return Err(Refusal::InvalidDefinition(problem));
        }
        handoffs.push(handoff);
        LINKS.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    /// The agents that can be reached from this one, each in its place.
    ///
    /// # Errors
    /// The graph cannot be told apart or is too large.
    pub fn graph(&self) -> Result<Arc<AgentGraph>, Refusal> {
        let links = LINKS.load(Ordering::SeqCst);
        let mut cached = self.1.lock().unwrap_or_else(PoisonError::into_inner);
        match &*cached {
            Some((of, graph)) if *of == links => Ok(graph.clone()),
            _ => {
                let graph = Arc::new(AgentGraph::new(self)?);
                *cached = Some((links, graph.clone()));
                Ok(graph)
            }
        }
    }

    pub(crate) fn parts(&self) -> &AgentParts {
        &self.0
    }

    /// The same agent as a graph holds it.
    pub(crate) fn within_graph(&self) -> Self {
        Self(self.0.clone(), Arc::default())
    }

    pub(crate) fn handoffs(&self) -> Vec<Handoff> {
        self.0.handoffs.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn is(&self, other: &Agent) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl fmt::Debug for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Agent").field("name", &self.0.name).finish_non_exhaustive()
    }
}

impl Handoff {
    fn to(agent: &Agent) -> Result<Self, String> {
        Self::named(&format!("transfer_to_{}", snake(agent.name())), agent)
    }

    fn named(tool: &str, agent: &Agent) -> Result<Self, String> {
        let tool = ToolName::new(tool).map_err(|problem| problem.to_string())?;
        let about = &agent.0.handoff_description;
        let gap = if about.is_empty() { "" } else { " " };
        let description = format!("Hands the conversation over to the agent {}.{gap}{about}", agent.name());
        Ok(Self { tool, description, to: agent.clone() })
    }
}

fn snake(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' };
    name.chars().map(plain).collect()
}

/// Builds an [`Agent`].
pub struct AgentBuilder {
    name: String,
    instructions: String,
    handoff_description: String,
    model: Option<Arc<dyn Model>>,
    settings: Value,
    source: Value,
    tools: Vec<Tool>,
    handoffs: Vec<Handoff>,
    finish: FinishRule,
    confirm_when: Option<ConfirmWhen>,
    input_guardrails: Vec<InputGuardrail>,
    output_guardrails: Vec<OutputGuardrail>,
    problems: Vec<String>,
}

impl AgentBuilder {
    /// What it is told to be.
    #[must_use]
    pub fn instructions(mut self, text: impl Into<String>) -> Self {
        self.instructions = text.into();
        self
    }

    /// What other agents are told about it.
    #[must_use]
    pub fn handoff_description(mut self, text: impl Into<String>) -> Self {
        self.handoff_description = text.into();
        self
    }

    /// A model of its own; otherwise the runner's.
    #[must_use]
    pub fn model(mut self, model: Arc<dyn Model>) -> Self {
        self.model = Some(model);
        self
    }

    /// Settings for the model, handed on as they are.
    #[must_use]
    pub fn model_settings(mut self, settings: Value) -> Self {
        self.settings = settings;
        self
    }

    /// What the application builds the agent from: data that is stored with the definition and is part of its digest, so
    /// that a paused run can be gone on with by exactly the agent it was paused with. Keep secrets out of it.
    #[must_use]
    pub fn source(mut self, source: Value) -> Self {
        self.source = source;
        self
    }

    /// Gives it a tool.
    #[must_use]
    pub fn tool(mut self, tool: Tool) -> Self {
        self.tools.push(tool);
        self
    }

    /// Gives it a tool that is still to be checked; a problem is reported by [`AgentBuilder::build`].
    #[must_use]
    pub fn try_tool(mut self, tool: Result<Tool, ToolProblems>) -> Self {
        match tool {
            Ok(tool) => self.tools.push(tool),
            Err(problems) => self.problems.push(problems.to_string()),
        }
        self
    }

    /// Lets it hand over to another agent.
    #[must_use]
    pub fn handoff(self, to: &Agent) -> Self {
        let handoff = Handoff::to(to);
        self.add_handoff(handoff)
    }

    /// Lets it hand over to another agent by a tool of this name.
    #[must_use]
    pub fn handoff_named(self, tool: &str, to: &Agent) -> Self {
        let handoff = Handoff::named(tool, to);
        self.add_handoff(handoff)
    }

    fn add_handoff(mut self, handoff: Result<Handoff, String>) -> Self {
        match handoff {
            Ok(handoff) => self.handoffs.push(handoff),
            Err(problem) => self.problems.push(problem),
        }
        self
    }

    /// When its tools' outcomes end the run.
    #[must_use]
    pub fn finish(mut self, rule: FinishRule) -> Self {
        self.finish = rule;
        self
    }

    /// Pauses when the model's own words ask a person to confirm: `ask` reads them and gives the reason, or
    /// [`ConfirmTerms`] where the pause has a deadline of its own. A courtesy to people, never a gate for tools, which
    /// have approvals of their own.
    #[must_use]
    pub fn confirm_when<A: Into<ConfirmTerms>>(
        mut self,
        ask: impl Fn(&str) -> Option<A> + Send + Sync + 'static,
    ) -> Self {
        self.confirm_when = Some(Arc::new(move |words| ask(words).map(Into::into)));
        self
    }

    /// Looks at its input.
    #[must_use]
    pub fn input_guardrail(mut self, guardrail: InputGuardrail) -> Self {
        self.input_guardrails.push(guardrail);
        self
    }

    /// Looks at its output.
    #[must_use]
    pub fn output_guardrail(mut self, guardrail: OutputGuardrail) -> Self {
        self.output_guardrails.push(guardrail);
        self
    }

    /// The agent.
    ///
    /// # Errors
    /// Every problem at once: a name that is none, two tools of one name, a tool that could not be built.
    pub fn build(self) -> Result<Agent, Refusal> {
        let mut problems = self.problems;
        if let Err(problem) = AgentId::root(&self.name) {
            problems.push(problem.to_string());
        }
        let mut names: Vec<&ToolName> =
            self.tools.iter().map(Tool::name).chain(self.handoffs.iter().map(|handoff| &handoff.tool)).collect();
        names.sort_unstable();
        for pair in names.windows(2).filter(|pair| pair[0] == pair[1]) {
            problems.push(format!("two tools are named {}", pair[0]));
        }
        if !problems.is_empty() {
            return Err(Refusal::InvalidDefinition(format!("agent {:?}: {}", self.name, problems.join("; "))));
        }
        let parts = AgentParts {
            name: self.name,
            instructions: self.instructions.into(),
            handoff_description: self.handoff_description,
            model: self.model,
            settings: Arc::new(self.settings),
            source: Arc::new(self.source),
            tools: self.tools,
            handoffs: RwLock::new(self.handoffs),
            finish: self.finish,
            confirm_when: self.confirm_when,
            input_guardrails: self.input_guardrails,
            output_guardrails: self.output_guardrails,
        };
        Ok(Agent(Arc::new(parts), Arc::default()))
    }
}
