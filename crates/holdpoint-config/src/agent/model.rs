//! Which model an agent uses, and how.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use secrecy::ExposeSecret;
use serde::{Deserialize, Serialize};

use crate::environment::Environment;
use crate::seconds;
use crate::template::{MissingVariable, Template};

/// The model of an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelSpec {
    /// The model that is asked first.
    pub primary: ModelRef,
    /// The model that is asked when the first one cannot answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback: Option<ModelRef>,
    /// How freely it chooses words, from 0 to 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// The share of likely words that it chooses from, above 0 and up to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    /// How long one reply may get.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
    /// How long one call may take.
    #[serde(default, rename = "timeout_seconds", with = "seconds::option", skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Duration>,
    /// Which of OpenAI's two protocols is spoken; only for that provider.
    #[serde(default, skip_serializing_if = "OpenAiApi::is_default")]
    pub api: OpenAiApi,
    /// Where the primary model's server is, if not where the server's environment says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_url: Option<Template>,
    /// The key for the primary model's server, if not the one of the server's environment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_key: Option<Template>,
}

/// A model as a file names it: `provider/model`, where the provider may be left out for OpenAI, with `${NAME}` in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ModelRef(pub(crate) Template);

impl ModelRef {
    /// The model's name as written.
    pub fn as_written(&self) -> &str {
        self.0.as_written()
    }

    /// The model that is meant today.
    ///
    /// # Errors
    /// An environment variable that is not set, or a name that means no model.
    pub fn resolve(&self, environment: &dyn Environment) -> Result<ModelName, ModelRefProblem> {
        Ok(self.0.resolve(environment)?.expose_secret().parse()?)
    }
}

/// Why a file's model cannot be found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModelRefProblem {
    /// An environment variable is not set.
    #[error(transparent)]
    Missing(#[from] MissingVariable),
    /// The name means no model.
    #[error(transparent)]
    Bad(#[from] BadModelName),
}

/// A model: who serves it, and what it is called there.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ModelName {
    /// Who serves it.
    pub provider: Provider,
    /// What it is called there. For [`Provider::Scripted`] a file, next to the agent's own.
    pub model: String,
}

/// Who serves a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Provider {
    /// OpenAI, or any server that speaks its protocol.
    #[serde(rename = "openai")]
    OpenAi,
    /// Anthropic, or any server that speaks its protocol.
    Anthropic,
    /// Replies from a file: no network, no key.
    Scripted,
}

impl Provider {
    pub(crate) const NAMES: [(&str, Self); 3] =
        [("openai", Self::OpenAi), ("anthropic", Self::Anthropic), ("scripted", Self::Scripted)];

    /// The provider's name in a file.
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Anthropic => "anthropic",
            Self::Scripted => "scripted",
        }
    }
}

impl FromStr for ModelName {
    type Err = BadModelName;

    fn from_str(text: &str) -> Result<Self, BadModelName> {
        let text = text.trim();
        if text.is_empty() || text.len() > 256 || text.chars().any(|c| c.is_control() || c.is_whitespace()) {
            return Err(BadModelName::NotAName);
        }
        let Some((prefix, model)) = text.split_once('/') else {
            return Ok(Self { provider: Provider::OpenAi, model: text.to_owned() });
        };
        let provider = Provider::NAMES.into_iter().find(|(name, _)| *name == prefix).map(|(_, provider)| provider);
        match provider {
            _ if model.is_empty() => Err(BadModelName::NotAName),
            Some(provider) => Ok(Self { provider, model: model.to_owned() }),
            None => Err(BadModelName::UnknownProvider { provider: prefix.to_owned() }),
        }
    }
}

impl fmt::Display for ModelName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.provider.name(), self.model)
    }
}

/// Text that names no model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadModelName {
    /// It is empty, too long or has white space in it.
    #[error("a model's name expected, such as openai/gpt-4o")]
    NotAName,
    /// What stands before the first `/` is no provider.
    #[error("there is no model provider `{provider}`")]
    UnknownProvider {
        /// The text before the first `/`.
        provider: String,
    },
}

/// OpenAI's protocols.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OpenAiApi {
    /// Chat completions, which most other servers speak too.
    #[default]
    ChatCompletions,
    /// Responses.
    Responses,
}

impl OpenAiApi {
    fn is_default(&self) -> bool {
        *self == Self::ChatCompletions
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_named_by_provider_and_name_and_openai_may_be_left_out() {
        for (text, expected) in [
            ("gpt-4o", "openai/gpt-4o"),
            ("openai/gpt-4o", "openai/gpt-4o"),
            ("openai/meta-llama/Llama-3-70b", "openai/meta-llama/Llama-3-70b"),
            ("anthropic/claude-sonnet-4-5", "anthropic/claude-sonnet-4-5"),
            ("scripted/demo.yaml", "scripted/demo.yaml"),
            ("gemini/pro", "there is no model provider `gemini`"),
            ("openai/", "a model's name expected, such as openai/gpt-4o"),
            ("", "a model's name expected, such as openai/gpt-4o"),
            ("gpt 4o", "a model's name expected, such as openai/gpt-4o"),
        ] {
            let found = text.parse::<ModelName>().map_or_else(|problem| problem.to_string(), |name| name.to_string());
            assert_eq!(found, expected, "{text}");
        }
    }
}
