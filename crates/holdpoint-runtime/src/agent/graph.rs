//! The agents that a run can reach, each by its place: the root's name, then the tools that lead to it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use holdpoint_core::agent::AgentBrief;
use holdpoint_core::ids::{AgentId, ToolName};
use holdpoint_core::json::{CanonicalJson, Digest};
use holdpoint_core::refusal::Refusal;
use holdpoint_core::run::{Run, Turn};
use holdpoint_core::tool::ToolKind;

use crate::agent::{Agent, StoredDefinition};
use crate::ports::model::OfferedTool;
use crate::ports::tool::{Tool, ToolShape};

/// The agents that can be reached from a root. Built once, shared by all its runs.
pub struct AgentGraph {
    root: AgentId,
    nodes: BTreeMap<AgentId, Node>,
}

/// One agent in its place.
pub(crate) struct Node {
    pub(crate) agent: Agent,
    pub(crate) brief: AgentBrief,
    pub(crate) definition: StoredDefinition,
    pub(crate) definition_bytes: Arc<[u8]>,
    pub(crate) tools: BTreeMap<ToolName, BoundTool>,
    pub(crate) offered: Arc<[OfferedTool]>,
}

/// A tool of an agent in its place; a hand-off is one without code.
pub(crate) struct BoundTool {
    pub(crate) kind: ToolKind,
    pub(crate) tool: Option<Tool>,
}

impl AgentGraph {
    /// How many agents a graph may have.
    pub const AGENTS_MAX: usize = 1_024;

    /// How many model calls an agent used as a tool may make, unless said otherwise.
    pub const INNER_TURNS_MAX: u32 = 10;

    pub(crate) fn new(root: &Agent) -> Result<Self, Refusal> {
        let root_id = AgentId::root(root.name()).map_err(|bad| Refusal::InvalidDefinition(bad.to_string()))?;
        let places = walk(root, &root_id)?;
        let briefs: Vec<(Agent, Brief)> = places
            .iter()
            .map(|(agent, id)| Ok((agent.clone(), Brief::of(agent, id)?)))
            .collect::<Result<_, Refusal>>()?;
        let brief_of = |agent: &Agent| {
            let found = briefs.iter().find(|(known, _)| known.is(agent));
            found.map(|(_, brief)| brief.brief.clone()).ok_or_else(|| {
                Refusal::InvalidDefinition(format!("agent {:?} was linked while the graph was built", agent.name()))
            })
        };
        let mut nodes = BTreeMap::new();
        for (agent, brief) in &briefs {
            let tools = bind(agent, brief_of)?;
            let node = Node {
                agent: agent.within_graph(),
                brief: brief.brief.clone(),
                definition: brief.definition.clone(),
                definition_bytes: brief.bytes.clone(),
                offered: offered(agent),
                tools,
            };
            nodes.insert(brief.brief.id.clone(), node);
        }
        Ok(Self { root: root_id, nodes })
    }

    /// The root agent's id.
    pub fn root(&self) -> &AgentId {
        &self.root
    }

    /// The ids of all its agents.
    pub fn agents(&self) -> impl Iterator<Item = &AgentId> {
        self.nodes.keys()
    }

    /// The digest of an agent's definition.
    pub fn digest(&self, id: &AgentId) -> Option<Digest> {
        self.nodes.get(id).map(|node| node.brief.digest)
    }

    /// What a run remembers of an agent.
    pub fn brief(&self, id: &AgentId) -> Option<&AgentBrief> {
        self.nodes.get(id).map(|node| &node.brief)
    }

    /// The place of an agent of this graph.
    pub fn id_of(&self, agent: &Agent) -> Option<&AgentId> {
        self.nodes.iter().find(|(_, node)| node.agent.is(agent)).map(|(id, _)| id)
    }

    /// Checks arguments against the schema of an agent's tool.
    ///
    /// # Errors
    /// The agent or the tool is not in the graph; inside, what is wrong with the arguments.
    pub fn validate(
        &self,
        agent: &AgentId,
        tool: &ToolName,
        arguments: &CanonicalJson,
    ) -> Result<Result<(), String>, Refusal> {
        let bound = self.node(agent)?.tools.get(tool);
        let missing = || Refusal::ToolMissing { agent: agent.clone(), tool: tool.to_string() };
        let tool = bound.and_then(|bound| bound.tool.as_ref()).ok_or_else(missing)?;
        Ok(tool.validate(arguments))
    }

    /// Checks that every agent and tool that a run still needs is here.
    ///
    /// # Errors
    /// The first that is missing.
    pub fn check_run(&self, run: &Run) -> Result<(), Refusal> {
        if let Some(agent) = run.agent() {
            self.node(&agent.id)?;
        }
        run.frames().try_for_each(|(_, frame)| {
            self.node(&frame.agent.id)?;
            frame.turn().map_or(Ok(()), |turn| self.node(&turn.agent)?.check_turn(turn))
        })
    }

    /// What the agent at this place is called. Several may share a name; a place is only one's.
    pub fn name_of(&self, id: &AgentId) -> Option<&str> {
        self.nodes.get(id).map(|node| node.agent.name())
    }

    pub(crate) fn definitions(&self) -> impl Iterator<Item = (Digest, Arc<[u8]>)> {
        self.nodes.values().map(|node| (node.brief.digest, node.definition_bytes.clone()))
    }

    pub(crate) fn node(&self, id: &AgentId) -> Result<&Node, Refusal> {
        self.nodes.get(id).ok_or_else(|| Refusal::AgentMissing(id.clone()))
    }
}

impl Node {
    /// A pending call whose tool is gone, or leads elsewhere now, must not be dropped silently.
    pub(crate) fn check_turn(&self, turn: &Turn) -> Result<(), Refusal> {
        for call in turn.calls.iter().filter(|call| call.outcome().is_none()) {
            let missing = || Refusal::ToolMissing { agent: self.brief.id.clone(), tool: call.record.tool.to_string() };
            let bound = self.tools.get(&call.record.tool).ok_or_else(missing)?;
            let is_same = match (&bound.kind, &call.record.kind) {
                (ToolKind::Handoff { to: now }, ToolKind::Handoff { to: then }) => now.id == then.id,
                (ToolKind::Agent { agent: now, .. }, ToolKind::Agent { agent: then, .. }) => now.id == then.id,
                (now, then) => now == then,
            };
            if !is_same {
                return Err(missing());
            }
        }
        Ok(())
    }
}

struct Brief {
    brief: AgentBrief,
    definition: StoredDefinition,
    bytes: Arc<[u8]>,
}

impl Brief {
    fn of(agent: &Agent, id: &AgentId) -> Result<Self, Refusal> {
        let definition = StoredDefinition::of(agent);
        let json = CanonicalJson::from_serialize(&definition)
            .map_err(|problem| Refusal::InvalidDefinition(format!("agent {:?}: {problem}", agent.name())))?;
        let parts = agent.parts();
        let brief = AgentBrief {
            id: id.clone(),
            digest: json.digest(),
            finish: parts.finish.clone(),
            checks_input: !parts.input_guardrails.is_empty(),
            checks_output: !parts.output_guardrails.is_empty(),
        };
        Ok(Self { brief, definition, bytes: json.as_bytes().into() })
    }
}

/// Every agent with the shortest way to it, nearest first. A ring ends where it began.
fn walk(root: &Agent, root_id: &AgentId) -> Result<Vec<(Agent, AgentId)>, Refusal> {
    let mut found: Vec<(Agent, AgentId)> = vec![(root.clone(), root_id.clone())];
    let mut next = VecDeque::from([0]);
    while let Some(index) = next.pop_front() {
        let (agent, id) = found[index].clone();
        for (tool, to) in ways(&agent) {
            if found.iter().any(|(known, _)| known.is(&to)) {
                continue;
            }
            let place = id.through(&tool);
            if found.len() >= AgentGraph::AGENTS_MAX || place.as_str().len() > AgentId::LENGTH_MAX {
                let problem = format!("the agent graph has more than {} agents or is too deep", AgentGraph::AGENTS_MAX);
                return Err(Refusal::InvalidDefinition(problem));
            }
            next.push_back(found.len());
            found.push((to, place));
        }
    }
    Ok(found)
}

fn ways(agent: &Agent) -> Vec<(ToolName, Agent)> {
    let inner = agent.parts().tools.iter().filter_map(|tool| match tool.shape() {
        ToolShape::Agent { agent, .. } => Some((tool.name().clone(), agent.clone())),
        _ => None,
    });
    let handoffs = agent.handoffs().into_iter().map(|handoff| (handoff.tool, handoff.to));
    handoffs.chain(inner).collect()
}

fn bind(
    agent: &Agent,
    brief_of: impl Fn(&Agent) -> Result<AgentBrief, Refusal>,
) -> Result<BTreeMap<ToolName, BoundTool>, Refusal> {
    let mut bound = BTreeMap::new();
    for tool in &agent.parts().tools {
        let kind = match tool.shape() {
            ToolShape::Function => ToolKind::Function,
            ToolShape::Agent { agent, turns_max } => ToolKind::Agent { agent: brief_of(agent)?, turns_max: *turns_max },
            ToolShape::Shell => ToolKind::Shell,
            ToolShape::ApplyPatch => ToolKind::ApplyPatch,
            ToolShape::Computer => ToolKind::Computer,
            ToolShape::Mcp { server } => ToolKind::Mcp { server: server.clone() },
            ToolShape::Question => ToolKind::Question,
        };
        bound.insert(tool.name().clone(), BoundTool { kind, tool: Some(tool.clone()) });
    }
    for handoff in agent.handoffs() {
        let kind = ToolKind::Handoff { to: brief_of(&handoff.to)? };
        bound.insert(handoff.tool, BoundTool { kind, tool: None });
    }
    // A screen answers to both of its names: a call that waits under the other one is still decided and done. Only the
    // tool's own name is offered, and a tool that bears the other one itself comes first.
    let screens = agent.parts().tools.iter().filter(|tool| matches!(tool.shape(), ToolShape::Computer));
    for (tool, other) in screens.filter_map(|tool| Some((tool, other_screen_name(tool.name())?))) {
        bound.entry(other).or_insert_with(|| BoundTool { kind: ToolKind::Computer, tool: Some(tool.clone()) });
    }
    Ok(bound)
}

fn other_screen_name(name: &ToolName) -> Option<ToolName> {
    let other = match name.as_str() {
        "computer" => "computer_use_preview",
        "computer_use_preview" => "computer",
        _ => return None,
    };
    ToolName::new(other).ok()
}

fn offered(agent: &Agent) -> Arc<[OfferedTool]> {
    let tools = agent.parts().tools.iter().map(|tool| OfferedTool {
        name: tool.name().clone(),
        description: tool.description().to_owned(),
        schema: tool.schema().clone(),
    });
    let handoffs = agent.handoffs().into_iter().map(|handoff| OfferedTool {
        name: handoff.tool,
        description: handoff.description,
        schema: serde_json::json!({"type": "object", "properties": {}}),
    });
    tools.chain(handoffs).collect()
}
