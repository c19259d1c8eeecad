//! Which model a name means: `provider/model`, and OpenAI where no provider is named.
//!
//! | name | model |
//! | --- | --- |
//! | `gpt-4o`, `openai/gpt-4o` | chat completions at `OPENAI_BASE_URL`, or responses where [`Providers::openai_api`] says so |
//! | `openai-chat/gpt-4o` | chat completions, whatever the setting |
//! | `openai-responses/gpt-5` | responses, whatever the setting |
//! | `anthropic/claude-sonnet-4-5` | messages at `ANTHROPIC_BASE_URL` |
//! | `scripted/FILE` | not here: whoever reads files makes it with [`ScriptedModel::from_json`](crate::scripted::ScriptedModel::from_json) |
//!
//! Only the first slash counts: `openai/meta-llama/Llama-3.1-8B-Instruct` is the model
//! `meta-llama/Llama-3.1-8B-Instruct` of the server at `OPENAI_BASE_URL`.

use std::sync::Arc;

use holdpoint_core::text::{clamp, visible};
use holdpoint_runtime::ports::model::Model;

use crate::address::BadProvider;
use crate::anthropic::{self, Anthropic, AnthropicSettings};
use crate::openai::{self, OpenAi, OpenAiSettings};
use crate::settings::Protocol;
use crate::transport::HttpSettings;

/// The providers that names are looked up in. Clones share their connections.
#[derive(Debug, Clone)]
pub struct Providers {
    /// OpenAI, or a server that speaks as it does.
    pub openai: OpenAi,
    /// Anthropic.
    pub anthropic: Anthropic,
    /// How `openai/…` is spoken to.
    pub openai_api: OpenAiApi,
}

/// How OpenAI is spoken to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OpenAiApi {
    /// By chat completions.
    #[default]
    Chat,
    /// By responses.
    Responses,
}

/// Where the protocol for `openai/…` is looked for: `chat` or `responses`.
pub const OPENAI_API_VARIABLE: &str = "OPENAI_API";

/// A name that means no model here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UnknownModel {
    /// Nobody knows the provider.
    #[error(
        "there is no provider {provider:?}: write openai/…, openai-chat/…, openai-responses/… or anthropic/…, \
         and openai/{name} for a model of a compatible server"
    )]
    Provider {
        /// As it was written.
        provider: String,
        /// The whole name.
        name: String,
    },
    /// There is a provider and no model.
    #[error("{name:?} names no model: write provider/model, such as openai/gpt-4o")]
    Empty {
        /// The whole name.
        name: String,
    },
    /// A script, which is read elsewhere.
    #[error("{name:?} is a script, which is read from a file and not asked of a provider")]
    Scripted {
        /// The whole name.
        name: String,
    },
}

/// An environment that no providers can be made from.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadEnvironment {
    /// A provider cannot be made.
    #[error(transparent)]
    Provider(#[from] BadProvider),
    /// Another protocol than there is.
    #[error("{OPENAI_API_VARIABLE} is {found:?}, and must be chat or responses")]
    Api {
        /// As it was written.
        found: String,
    },
}

impl Providers {
    /// The providers as the environment sets them.
    ///
    /// `variable` looks a variable up: `|name| std::env::var(name).ok()`, or what a configuration says. Read are
    /// `OPENAI_API_KEY`, `OPENAI_BASE_URL`, `OPENAI_ORGANIZATION`, `OPENAI_PROJECT`, `OPENAI_API`, `ANTHROPIC_API_KEY`
    /// and `ANTHROPIC_BASE_URL`. One that is empty is not set.
    ///
    /// # Errors
    /// An address is none, or a key cannot be sent. A key that is missing is no error here: see
    /// [`Providers::missing_key`].
    pub fn from_env(variable: impl Fn(&str) -> Option<String>, http: &HttpSettings) -> Result<Self, BadEnvironment> {
        let variable = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
        let defaults = OpenAiSettings::default();
        let openai = OpenAi::new(OpenAiSettings {
            base_url: variable(openai::ADDRESS_VARIABLE).unwrap_or(defaults.base_url),
            api_key: variable(openai::KEY_VARIABLE).map(Into::into),
            organization: variable(openai::ORGANIZATION_VARIABLE),
            project: variable(openai::PROJECT_VARIABLE),
            http: http.clone(),
            ..OpenAiSettings::default()
        })?;
        let defaults = AnthropicSettings::default();
        let anthropic = Anthropic::new(AnthropicSettings {
            base_url: variable(anthropic::ADDRESS_VARIABLE).unwrap_or(defaults.base_url),
            api_key: variable(anthropic::KEY_VARIABLE).map(Into::into),
            http: http.clone(),
        })?;
        let openai_api = match variable(OPENAI_API_VARIABLE) {
            None => OpenAiApi::default(),
            Some(api) if api == "chat" => OpenAiApi::Chat,
            Some(api) if api == "responses" => OpenAiApi::Responses,
            Some(api) => return Err(BadEnvironment::Api { found: visible(clamp(&api, 100)) }),
        };
        Ok(Self { openai, anthropic, openai_api })
    }

    /// The protocol that a model of this name speaks.
    ///
    /// # Errors
    /// The name means no model here.
    pub fn protocol(&self, name: &str) -> Result<Protocol, UnknownModel> {
        self.read(name).map(|(protocol, _)| protocol)
    }

    /// The variable that must be set before the model of this name can be used; `None` where nothing is missing.
    ///
    /// # Errors
    /// The name means no model here.
    pub fn missing_key(&self, name: &str) -> Result<Option<&'static str>, UnknownModel> {
        let (lacks_key, variable) = match self.protocol(name)? {
            Protocol::Chat | Protocol::Responses => (self.openai.lacks_key(), openai::KEY_VARIABLE),
            Protocol::Messages => (self.anthropic.lacks_key(), anthropic::KEY_VARIABLE),
        };
        Ok(lacks_key.then_some(variable))
    }

    fn read<'a>(&self, name: &'a str) -> Result<(Protocol, &'a str), UnknownModel> {
        let name = name.trim();
        let shown = || visible(clamp(name, 200));
        let (provider, model) = name.split_once('/').unwrap_or(("openai", name));
        let protocol = match (provider, self.openai_api) {
            ("openai", OpenAiApi::Chat) | ("openai-chat", _) => Protocol::Chat,
            ("openai", OpenAiApi::Responses) | ("openai-responses", _) => Protocol::Responses,
            ("anthropic", _) => Protocol::Messages,
            ("scripted", _) => return Err(UnknownModel::Scripted { name: shown() }),
            (other, _) => {
                return Err(UnknownModel::Provider { provider: visible(clamp(other, 100)), name: shown() });
            }
        };
        if model.trim().is_empty() { Err(UnknownModel::Empty { name: shown() }) } else { Ok((protocol, model)) }
    }
}

/// The model that a name means.
///
/// ```
/// use holdpoint_models::HttpSettings;
/// use holdpoint_models::providers::{Providers, from_name};
/// use holdpoint_runtime::ports::model::Model as _;
///
/// let providers = Providers::from_env(|name| std::env::var(name).ok(), &HttpSettings::default())?;
/// let model = from_name("anthropic/claude-sonnet-4-5", &providers)?;
/// assert_eq!(model.name(), "anthropic/claude-sonnet-4-5");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// The name means no model here. Whether there is such a model is only known when it is asked.
pub fn from_name(name: &str, providers: &Providers) -> Result<Arc<dyn Model>, UnknownModel> {
    let (protocol, model) = providers.read(name)?;
    Ok(match protocol {
        Protocol::Chat => Arc::new(providers.openai.chat(model)),
        Protocol::Responses => Arc::new(providers.openai.responses(model)),
        Protocol::Messages => Arc::new(providers.anthropic.messages(model)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn providers(set: &'static [(&'static str, &'static str)]) -> Providers {
        let variable = |name: &str| set.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
        Providers::from_env(variable, &HttpSettings::default()).unwrap()
    }

    #[test]
    fn a_name_says_provider_and_model() {
        let providers = providers(&[]);
        for (name, protocol, model) in [
            ("gpt-4o", Protocol::Chat, "openai/gpt-4o"),
            ("openai/gpt-4o", Protocol::Chat, "openai/gpt-4o"),
            ("openai-chat/gpt-4o", Protocol::Chat, "openai/gpt-4o"),
            ("openai-responses/gpt-5", Protocol::Responses, "openai/gpt-5"),
            ("anthropic/claude-sonnet-4-5", Protocol::Messages, "anthropic/claude-sonnet-4-5"),
            ("openai/meta-llama/Llama-3.1-8B", Protocol::Chat, "openai/meta-llama/Llama-3.1-8B"),
            (" openai/gpt-4o ", Protocol::Chat, "openai/gpt-4o"),
        ] {
            assert_eq!(providers.protocol(name), Ok(protocol), "{name}");
            assert_eq!(from_name(name, &providers).unwrap().name(), model);
        }
    }

    #[test]
    fn a_name_that_means_no_model_says_what_to_write() {
        let providers = providers(&[]);
        for (name, expected) in [
            (
                "meta-llama/Llama-3",
                "there is no provider \"meta-llama\": write openai/…, openai-chat/…, openai-responses/… or anthropic/…, \
                 and openai/meta-llama/Llama-3 for a model of a compatible server",
            ),
            ("openai/", "\"openai/\" names no model: write provider/model, such as openai/gpt-4o"),
            ("", "\"\" names no model: write provider/model, such as openai/gpt-4o"),
            (
                "scripted/demo.json",
                "\"scripted/demo.json\" is a script, which is read from a file and not asked of a provider",
            ),
        ] {
            assert_eq!(from_name(name, &providers).err().unwrap().to_string(), expected);
        }
    }

    #[test]
    fn the_environment_sets_addresses_keys_and_protocol() {
        let set = providers(&[
            ("OPENAI_BASE_URL", "http://localhost:11434/"),
            ("OPENAI_API", "responses"),
            ("ANTHROPIC_API_KEY", "sk-ant-secret\n"),
        ]);
        assert_eq!(set.protocol("openai/gpt-5"), Ok(Protocol::Responses));
        assert_eq!(set.missing_key("openai/llama3.2"), Ok(None));
        assert_eq!(set.missing_key("anthropic/claude"), Ok(None));
        assert!(format!("{set:?}").contains("http://localhost:11434/v1"), "{set:?}");
        assert!(!format!("{set:?}").contains("secret"), "{set:?}");
        let unset = providers(&[("OPENAI_API_KEY", " "), ("ANTHROPIC_API_KEY", "")]);
        assert_eq!(unset.missing_key("gpt-4o"), Ok(Some("OPENAI_API_KEY")));
        assert_eq!(unset.missing_key("anthropic/claude"), Ok(Some("ANTHROPIC_API_KEY")));
    }

    #[test]
    fn a_bad_environment_names_the_variable() {
        let told = |name: &'static str, value: &'static str| {
            let variable = |asked: &str| (asked == name).then(|| value.to_owned());
            Providers::from_env(variable, &HttpSettings::default()).unwrap_err().to_string()
        };
        assert!(told("OPENAI_BASE_URL", "nowhere").starts_with("OPENAI_BASE_URL is not an address"));
        assert!(told("ANTHROPIC_BASE_URL", "ftp://x").starts_with("ANTHROPIC_BASE_URL is not an address"));
        assert!(told("OPENAI_API_KEY", "sk-\u{7f}secret").starts_with("OPENAI_API_KEY has characters"));
        assert_eq!(told("OPENAI_API", "soap"), "OPENAI_API is \"soap\", and must be chat or responses");
    }
}
