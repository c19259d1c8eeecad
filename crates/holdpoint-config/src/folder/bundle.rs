//! An agent with all agents that it needs, as it is kept with a run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Folder;
use crate::agent::{AgentFile, AgentName};

/// The version of the stored form. One that is newer is refused.
const VERSION: u32 = 1;

/// An agent and every agent that it needs, directly or not. It holds no secret: `${NAME}` is kept as written.
///
/// Store it with a run, and the run can be taken up later with exactly the definition that it was paused with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentBundle {
    version: u32,
    root: AgentName,
    agents: BTreeMap<AgentName, AgentFile>,
}

impl AgentBundle {
    /// The agent itself.
    pub fn root(&self) -> Option<&AgentFile> {
        self.agent(&self.root)
    }

    /// One of the agents.
    pub fn agent(&self, name: &AgentName) -> Option<&AgentFile> {
        self.agents.get(name)
    }

    /// All of them, by name.
    pub fn agents(&self) -> impl Iterator<Item = &AgentFile> {
        self.agents.values()
    }

    /// The form that is stored.
    pub fn to_json(&self) -> Value {
        serde_json::to_value(self).expect("agents have no map with keys other than text")
    }

    /// Reads the form that is stored.
    ///
    /// # Errors
    /// It was written by a newer version, or is not a bundle.
    pub fn from_json(json: &Value) -> Result<Self, BundleProblem> {
        let version = json.get("version").and_then(Value::as_u64);
        if let Some(version) = version.filter(|version| *version > u64::from(VERSION)) {
            return Err(BundleProblem::Newer { version });
        }
        let bundle = Self::deserialize(json).map_err(BundleProblem::Unreadable)?;
        match bundle.missing() {
            Some(name) => Err(BundleProblem::Missing(name)),
            None => Ok(bundle),
        }
    }

    fn missing(&self) -> Option<AgentName> {
        let mut needed = self.agents.values().flat_map(AgentFile::needs).chain([&self.root]);
        needed.find(|name| !self.agents.contains_key(*name)).cloned()
    }
}

/// Why a stored agent cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum BundleProblem {
    /// A newer version wrote it.
    #[error("stored agent has version {version}, at most {VERSION} is read")]
    Newer {
        /// The version found.
        version: u64,
    },
    /// It has another shape.
    #[error("stored agent cannot be read")]
    Unreadable(#[source] serde_json::Error),
    /// It lacks an agent that it needs.
    #[error("stored agent lacks agent {0}")]
    Missing(AgentName),
}

impl Folder {
    /// An agent with all that it needs.
    pub fn bundle(&self, name: &AgentName) -> Option<AgentBundle> {
        let mut agents = BTreeMap::new();
        let mut wanted = vec![name];
        while let Some(name) = wanted.pop() {
            if !agents.contains_key(name) {
                let file = &self.agent(name.as_str())?.file;
                wanted.extend(file.needs());
                agents.insert(name.clone(), file.clone());
            }
        }
        Some(AgentBundle { version: VERSION, root: name.clone(), agents })
    }
}
