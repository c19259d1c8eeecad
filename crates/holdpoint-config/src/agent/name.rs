//! The name of an agent.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::limits::NAME_BYTES_MAX;

/// The name of an agent: small letters, digits and hyphens, 64 at most.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct AgentName(String);

impl AgentName {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for AgentName {
    type Err = BadAgentName;

    fn from_str(text: &str) -> Result<Self, BadAgentName> {
        let is_right = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        match !text.is_empty() && text.len() <= NAME_BYTES_MAX && text.chars().all(is_right) {
            true => Ok(Self(text.to_owned())),
            false => Err(BadAgentName),
        }
    }
}

impl TryFrom<String> for AgentName {
    type Error = BadAgentName;

    fn try_from(text: String) -> Result<Self, BadAgentName> {
        text.parse()
    }
}

impl From<AgentName> for String {
    fn from(name: AgentName) -> Self {
        name.0
    }
}

impl AsRef<str> for AgentName {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl std::borrow::Borrow<str> for AgentName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for AgentName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Text that cannot be the name of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("small letters, digits and hyphens expected, 1 to {NAME_BYTES_MAX} of them")]
pub struct BadAgentName;
