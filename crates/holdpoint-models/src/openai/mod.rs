//! OpenAI, and the many servers that speak as it does: Ollama, vLLM, llama.cpp, OpenRouter and others.

pub mod chat;
pub mod responses;

use std::sync::Arc;

use bytes::Bytes;
use holdpoint_core::text::clamp;
use holdpoint_runtime::ports::clock::{Clock, SystemClock};
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use secrecy::SecretString;
use serde_json::Value;

use crate::address::{Address, BadProvider};
use crate::problem::{Problem, Whom};
use crate::transport::{Http, HttpSettings, Outgoing, secret_header, tidy_key};

pub use chat::ChatModel;
pub use responses::ResponsesModel;

/// Where the key is looked for.
pub const KEY_VARIABLE: &str = "OPENAI_API_KEY";
/// Where the address is looked for.
pub const ADDRESS_VARIABLE: &str = "OPENAI_BASE_URL";
/// Where the organisation is looked for.
pub const ORGANIZATION_VARIABLE: &str = "OPENAI_ORGANIZATION";
/// Where the project is looked for.
pub const PROJECT_VARIABLE: &str = "OPENAI_PROJECT";

const HOST: &str = "api.openai.com";

/// How OpenAI, or a server that speaks as it does, is reached.
#[derive(Debug, Clone)]
pub struct OpenAiSettings {
    /// Its address, with or without `/v1` and a slash at the end.
    pub base_url: String,
    /// The key. Servers other than OpenAI's own are also asked without one.
    pub api_key: Option<SecretString>,
    /// The organisation that pays, where the key belongs to several.
    pub organization: Option<String>,
    /// The project that pays.
    pub project: Option<String>,
    /// Whether a chat is asked to count its tokens (`stream_options`). Very old servers refuse that.
    pub asks_usage: bool,
    /// Time-outs, sizes and further attempts.
    pub http: HttpSettings,
}

impl Default for OpenAiSettings {
    fn default() -> Self {
        Self {
            base_url: format!("https://{HOST}/v1"),
            api_key: None,
            organization: None,
            project: None,
            asks_usage: true,
            http: HttpSettings::default(),
        }
    }
}

/// OpenAI, or a server that speaks as it does. Clones share their connections.
///
/// ```no_run
/// use holdpoint_models::openai::{OpenAi, OpenAiSettings};
///
/// let ollama = OpenAi::new(OpenAiSettings { base_url: "http://localhost:11434".to_owned(), ..Default::default() })?;
/// let model = ollama.chat("llama3.2");
/// # Ok::<(), holdpoint_models::BadProvider>(())
/// ```
#[derive(Clone)]
pub struct OpenAi {
    address: Address,
    headers: HeaderMap,
    key: Option<SecretString>,
    dialect: Dialect,
    http: Http,
}

impl OpenAi {
    /// A way to the provider. Nothing is sent yet.
    ///
    /// # Errors
    /// The address is none, or a key cannot be sent.
    pub fn new(settings: OpenAiSettings) -> Result<Self, BadProvider> {
        Self::with_clock(settings, SystemClock::shared())
    }

    /// The same by a clock of one's own, for tests.
    ///
    /// # Errors
    /// As [`OpenAi::new`].
    pub fn with_clock(settings: OpenAiSettings, clock: Arc<dyn Clock>) -> Result<Self, BadProvider> {
        let address = Address::parse(&settings.base_url, ADDRESS_VARIABLE)?;
        let key = tidy_key(settings.api_key);
        let mut headers = HeaderMap::new();
        if let Some(key) = &key {
            headers.insert(AUTHORIZATION, secret_header("Bearer ", key, KEY_VARIABLE)?);
            if address.is_in_the_open() {
                tracing::warn!(address = ?address, "the key is sent without encryption: use https");
            }
        }
        let named = [
            ("openai-organization", settings.organization, ORGANIZATION_VARIABLE),
            ("openai-project", settings.project, PROJECT_VARIABLE),
        ];
        for (name, value, variable) in named {
            if let Some(value) = value.as_deref().map(str::trim).filter(|value| !value.is_empty()) {
                let value = HeaderValue::from_str(value).map_err(|_| BadProvider::Header { variable })?;
                headers.insert(HeaderName::from_static(name), value);
            }
        }
        let dialect = Dialect { is_openai: address.is_at(HOST), asks_usage: settings.asks_usage };
        let http = Http::new(&address, settings.http, clock);
        Ok(Self { address, headers, key, dialect, http })
    }

    /// A model by chat completions, which every compatible server knows.
    pub fn chat(&self, model: impl Into<String>) -> ChatModel {
        ChatModel::new(self.clone(), model.into())
    }

    /// A model by responses, which shows the thoughts of OpenAI's own models.
    pub fn responses(&self, model: impl Into<String>) -> ResponsesModel {
        ResponsesModel::new(self.clone(), model.into())
    }

    /// Whether it is OpenAI itself and there is no key: every call would fail.
    pub fn lacks_key(&self) -> bool {
        self.dialect.is_openai && self.key.is_none()
    }

    fn whom(&self, model: String) -> Whom {
        Whom {
            name: format!("openai/{model}"),
            model,
            host: self.address.host(),
            key_variable: KEY_VARIABLE,
            address_variable: ADDRESS_VARIABLE,
            key: self.key.clone(),
        }
    }

    fn outgoing(&self, endpoint: &str, body: &Value) -> Result<Outgoing, Problem> {
        if self.lacks_key() {
            return Err(Problem::NoKey);
        }
        let (url, headers) = (self.address.endpoint(endpoint), self.headers.clone());
        Ok(Outgoing { url, headers, body: Bytes::from(body.to_string()) })
    }
}

impl std::fmt::Debug for OpenAi {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenAi").field("address", &self.address).finish_non_exhaustive()
    }
}

/// Where OpenAI itself and its likes differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Dialect {
    pub(crate) is_openai: bool,
    pub(crate) asks_usage: bool,
}

impl Dialect {
    /// A tool's description, which OpenAI wants short.
    pub(crate) fn description(self, text: &str) -> &str {
        if self.is_openai { clamp(text, 1_024) } else { text }
    }
}

pub(crate) fn data_url(media_type: &str, base64: &str) -> String {
    format!("data:{media_type};base64,{base64}")
}
