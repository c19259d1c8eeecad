//! Builds agents that run from files that describe them.

mod bundle;
mod confirm;
mod model;
mod policy;
mod tools;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use arc_swap::ArcSwap;
use holdpoint_config::{AgentFile, AgentKind, AgentName, Environment, PolicySet, SubAgent, ToolSource, ToolSpec};
use holdpoint_core::ids::ToolName;
use holdpoint_models::HttpSettings;
use holdpoint_models::providers::Providers;
use holdpoint_runtime::agent::{Agent, AgentBuilder, AgentGraph};
use holdpoint_runtime::ports::tool::{Approval, Tool, ToolBuilder, ToolShape};
use holdpoint_tools::http::HttpClient;
use secrecy::{ExposeSecret as _, SecretString};

use crate::agents::card::ServedAgent;
use crate::agents::cards;
use crate::agents::pipeline::{self, Order};

pub(crate) use bundle::Bundle;
pub(crate) use model::missing_keys;
pub(crate) use policy::of_requests;

/// What agents are built with.
pub(crate) struct Workshop {
    environment: Arc<dyn Environment + Send + Sync>,
    folder: PathBuf,
    policies: Arc<ArcSwap<PolicySet>>,
    /// Where models are found, or why none can be.
    providers: Result<Providers, String>,
    /// The connections of all tools over HTTP, or why there are none.
    http: Result<HttpClient, String>,
}

/// Why an agent cannot be built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BuildProblem {
    /// The agent that it is about.
    pub(crate) agent: AgentName,
    /// Where in its file, such as `spec.tools[2]`.
    pub(crate) path: String,
    /// What is wrong.
    pub(crate) message: String,
}

/// What is wrong with an agent, and where in its file.
struct Flaw {
    path: String,
    message: String,
}

impl Flaw {
    fn at(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self { path: path.into(), message: message.into() }
    }
}

/// An agent that was made, with its tools and where each was described; those that lead to agents below it come
/// without a description.
pub(crate) struct Made {
    pub(crate) agent: Agent,
    pub(crate) tools: Vec<(Tool, Option<ToolSpec>)>,
}

impl Workshop {
    /// A workshop whose tools work in this folder unless they say otherwise. Policies are looked up at every call.
    pub(crate) fn new(
        environment: Arc<dyn Environment + Send + Sync>,
        folder: impl Into<PathBuf>,
        policies: Arc<ArcSwap<PolicySet>>,
    ) -> Self {
        let variable = |name: &str| environment.value(name).map(|value| value.expose_secret().to_owned());
        let providers = Providers::from_env(variable, &HttpSettings::default()).map_err(|bad| bad.to_string());
        let http = HttpClient::new().map_err(|fault| fault.to_string());
        Self { environment, folder: folder.into(), policies, providers, http }
    }

    /// As this one, and a variable that is not set does not keep an agent from being built. Such an agent can be shown; it
    /// is never to be run.
    pub(crate) fn hollow(&self) -> Self {
        Self {
            environment: Arc::new(Lenient(self.environment.clone())),
            folder: self.folder.clone(),
            policies: self.policies.clone(),
            providers: self.providers.clone(),
            http: self.http.clone(),
        }
    }

    /// Where `${NAME}` is looked up.
    pub(crate) fn environment(&self) -> &dyn Environment {
        &*self.environment
    }

    /// The connections of tools over HTTP, which all share.
    fn http(&self) -> Result<&HttpClient, String> {
        self.http.as_ref().map_err(String::clone)
    }

    /// Where a tool works.
    fn folder(&self, named: Option<&str>) -> PathBuf {
        named.map_or_else(|| self.folder.clone(), |named| self.folder.join(named))
    }

    /// The agent that a bundle describes.
    ///
    /// # Errors
    /// Every problem that was found, each with the agent it is about.
    pub(crate) fn build(&self, bundle: &Bundle) -> Result<ServedAgent, Vec<BuildProblem>> {
        let mut building = Building { workshop: self, bundle, made: BTreeMap::new(), problems: Vec::new() };
        bundle.agents.agents().for_each(|file| building.make(&file.metadata.name));
        building.link();
        let Building { made, mut problems, .. } = building;
        let root = bundle.root().and_then(|file| made.get(&file.metadata.name)?.as_ref());
        let root = root.filter(|_| problems.is_empty());
        let graph = root.map(|root| root.agent.graph());
        match graph {
            Some(Ok(graph)) => Ok(cards::served(bundle, graph, &made)),
            Some(Err(refusal)) => {
                let problem = |file: &AgentFile| BuildProblem {
                    agent: file.metadata.name.clone(),
                    path: "spec".to_owned(),
                    message: refusal.to_string(),
                };
                Err(bundle.root().map(problem).into_iter().collect())
            }
            None => {
                problems.sort_by(|one, other| one.agent.cmp(&other.agent));
                Err(problems)
            }
        }
    }
}

/// An environment in which every variable is set, to an address that leads nowhere where it is not.
struct Lenient(Arc<dyn Environment + Send + Sync>);

impl Environment for Lenient {
    fn value(&self, name: &str) -> Option<SecretString> {
        self.0.value(name).or_else(|| Some(SecretString::from("http://not-set.invalid")))
    }
}

/// One build under way.
struct Building<'a> {
    workshop: &'a Workshop,
    bundle: &'a Bundle,
    /// `None` while an agent is being made, and where it could not be.
    made: BTreeMap<AgentName, Option<Made>>,
    problems: Vec<BuildProblem>,
}

impl Building<'_> {
    /// Makes an agent, after those that it calls. Hand-offs are linked later: they may form rings.
    fn make(&mut self, name: &AgentName) {
        if self.made.contains_key(name) {
            return;
        }
        self.made.insert(name.clone(), None);
        let Some(file) = self.bundle.agents.agent(name) else { return };
        file.calls().for_each(|inner| self.make(inner));
        match self.agent(file) {
            Ok(made) => {
                self.made.insert(name.clone(), Some(made));
            }
            Err(flaws) => {
                let problem = |Flaw { path, message }| BuildProblem { agent: name.clone(), path, message };
                self.problems.extend(flaws.into_iter().map(problem));
            }
        }
    }

    /// Lets agents hand over to each other, once all of them are there.
    fn link(&mut self) {
        for (name, made) in &self.made {
            let (Some(made), Some(file)) = (made, self.bundle.agents.agent(name)) else { continue };
            for to in &file.spec.handoffs {
                let Some(Some(partner)) = self.made.get(to) else { continue };
                if let Err(refusal) = made.agent.link_handoff(&partner.agent) {
                    let (agent, path) = (name.clone(), "spec.handoffs".to_owned());
                    self.problems.push(BuildProblem { agent, path, message: refusal.to_string() });
                }
            }
        }
    }

    fn agent(&self, file: &AgentFile) -> Result<Made, Vec<Flaw>> {
        let mut flaws = Vec::new();
        let mut builder = Agent::builder(file.metadata.name.as_str())
            .instructions(&file.spec.system_prompt)
            .handoff_description(file.metadata.description.as_deref().unwrap_or_default());
        builder = self.think(builder, file).map_err(|flaw| vec![flaw])?;
        if let Some(interrupt) = file.confirmation() {
            builder = confirm::when(builder, interrupt);
        }
        let tools = self.tools(file, &mut flaws);
        builder = tools.iter().fold(builder, |builder, (tool, _)| builder.tool(tool.clone()));
        if self.bundle.root() == Some(file) {
            builder = builder.source(self.bundle.to_json());
        }
        let built = builder.build().map_err(|refusal| flaws.push(Flaw::at("spec", refusal.to_string())));
        match built {
            Ok(agent) if flaws.is_empty() => Ok(Made { agent, tools }),
            _ => Err(flaws),
        }
    }

    /// What decides in the agent: a model, or for a pipeline the order of its steps.
    fn think(&self, builder: AgentBuilder, file: &AgentFile) -> Result<AgentBuilder, Flaw> {
        let order = match &file.spec.kind {
            AgentKind::Sequential { .. } => Order::Sequential,
            AgentKind::Parallel { .. } => Order::Parallel,
            AgentKind::Chat | AgentKind::Deep { .. } | AgentKind::Supervisor { .. } => {
                let spec = file.spec.model.as_ref();
                let spec = spec.ok_or_else(|| Flaw::at("spec", "a model is missing: spec.model.primary"))?;
                let model = model::make(spec, self.bundle, self.workshop)?;
                return Ok(builder.model(model).model_settings(model::settings(spec)));
            }
        };
        let steps = file.spec.kind.sub_agents().iter().map(|below| ToolName::new(&below.agent));
        let steps = steps.collect::<Result<Vec<_>, _>>().map_err(|bad| Flaw::at("spec.sub_agents", bad.to_string()))?;
        Ok(builder.model(pipeline::model(order, steps)))
    }

    /// Every tool that can be made; what is wrong with the others is added to `flaws`.
    fn tools(&self, file: &AgentFile, flaws: &mut Vec<Flaw>) -> Vec<(Tool, Option<ToolSpec>)> {
        let mut tools = Vec::new();
        let mut add = |path: String, builder: Result<ToolBuilder, String>, spec: Option<&ToolSpec>| match builder
            .and_then(|builder| builder.build().map_err(|problem| problem.to_string()))
        {
            Ok(tool) => tools.push((tool, spec.cloned())),
            Err(message) => flaws.push(Flaw { path, message }),
        };
        for (index, below) in file.spec.kind.sub_agents().iter().enumerate() {
            add(format!("spec.sub_agents[{index}]"), self.below(file, below), None);
        }
        for (index, spec) in file.spec.tools.iter().enumerate() {
            add(format!("spec.tools[{index}]"), self.tool(file, spec), Some(spec));
        }
        tools
    }

    /// An agent below another one, as a tool. Its own tools are held or not by rules of their own.
    fn below(&self, file: &AgentFile, below: &SubAgent) -> Result<ToolBuilder, String> {
        let inner = self.inner(&below.agent)?;
        let about = below.role.as_deref().or_else(|| self.description(&below.agent)).unwrap_or_default();
        let tool = with_turns(inner.as_tool(below.agent.as_str(), about), inner, self.turns(&below.agent, None));
        Ok(tool.approval(Approval::By(policy::of_agent(self.workshop, file))))
    }

    fn tool(&self, file: &AgentFile, spec: &ToolSpec) -> Result<ToolBuilder, String> {
        let tool = match &spec.source {
            ToolSource::Agent(tool) => {
                let inner = self.inner(&tool.agent)?;
                let name = tool.name.as_deref().unwrap_or(tool.agent.as_str());
                let about = tool.description.as_deref().or_else(|| self.description(&tool.agent)).unwrap_or_default();
                with_turns(inner.as_tool(name, about), inner, self.turns(&tool.agent, tool.max_turns))
            }
            _ => tools::tool(spec, self.workshop)?,
        };
        Ok(tool.effect(spec.effects).approval(Approval::By(policy::of_tool(self.workshop, file, spec))))
    }

    fn inner(&self, name: &AgentName) -> Result<&Agent, String> {
        let made = self.made.get(name).and_then(Option::as_ref);
        made.map(|made| &made.agent).ok_or_else(|| format!("agent {name}, which it calls, cannot be built"))
    }

    fn description(&self, name: &AgentName) -> Option<&str> {
        self.bundle.agents.agent(name)?.metadata.description.as_deref()
    }

    /// How many model calls an agent used as a tool may make.
    fn turns(&self, name: &AgentName, said: Option<u32>) -> u32 {
        let own = self.bundle.agents.agent(name).and_then(turns_max);
        said.or(own).unwrap_or(AgentGraph::INNER_TURNS_MAX)
    }
}

fn with_turns(tool: ToolBuilder, agent: &Agent, turns: u32) -> ToolBuilder {
    tool.shape(ToolShape::Agent { agent: agent.clone(), turns_max: Some(turns) })
}

/// How many model calls a run of this agent may make, if its file says. A pipeline needs one for each of its steps.
pub(crate) fn turns_max(file: &AgentFile) -> Option<u32> {
    let steps = u32::try_from(file.spec.kind.sub_agents().len()).unwrap_or(u32::MAX);
    match file.spec.kind {
        AgentKind::Sequential { .. } => Some(steps.saturating_add(1)),
        AgentKind::Parallel { .. } => Some(2),
        AgentKind::Chat | AgentKind::Deep { .. } | AgentKind::Supervisor { .. } => file.turns_max(),
    }
}
