//! Everything that one agent is made of, as data: its own file, the files of the agents that it can reach, the scripts
//! of their models. It has no secret in it, and is stored with the agent's definition: a run that waited over an edit
//! or a restart is rebuilt from it, exactly as it was.

use std::collections::{BTreeMap, BTreeSet};

use holdpoint_config::{AgentBundle, AgentFile, ModelName, Provider};
use serde_json::{Value, json};

/// What one agent is made of.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Bundle {
    /// The agent and all agents that it can reach.
    pub(crate) agents: AgentBundle,
    /// The scripts of scripted models, by the name that the agents give them.
    pub(crate) scripts: BTreeMap<String, String>,
}

/// Why a stored bundle cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BadBundle {
    /// The agents in it cannot be.
    #[error(transparent)]
    Agents(#[from] holdpoint_config::BundleProblem),
    /// The scripts in it cannot be.
    #[error("the stored scripts cannot be read")]
    Scripts(#[from] serde_json::Error),
}

impl Bundle {
    /// The agent itself.
    pub(crate) fn root(&self) -> Option<&AgentFile> {
        self.agents.root()
    }

    /// The scripts that the models of these agents name.
    pub(crate) fn script_names(agents: &AgentBundle) -> BTreeSet<String> {
        let models = agents.agents().filter_map(|file| file.spec.model.as_ref());
        let named = models.flat_map(|model| std::iter::once(&model.primary).chain(&model.fallback));
        let scripts = named.filter_map(|model| match model.as_written().parse() {
            Ok(ModelName { provider: Provider::Scripted, model }) => Some(model),
            _ => None,
        });
        scripts.collect()
    }

    /// The bundle as it is stored.
    pub(crate) fn to_json(&self) -> Value {
        let mut stored = json!({ "agents": self.agents.to_json() });
        if !self.scripts.is_empty() {
            stored["scripts"] = json!(self.scripts);
        }
        stored
    }

    /// A stored bundle.
    pub(crate) fn from_json(stored: &Value) -> Result<Self, BadBundle> {
        let agents = AgentBundle::from_json(stored.get("agents").unwrap_or(&Value::Null))?;
        let scripts = match stored.get("scripts") {
            Some(scripts) => serde_json::from_value(scripts.clone())?,
            None => BTreeMap::new(),
        };
        Ok(Self { agents, scripts })
    }
}
