//! Anthropic's messages.

mod request;
mod stream;
mod thoughts;

#[cfg(test)]
#[cfg(all(feature = "openai", feature = "anthropic"))]
pub(crate) mod testing;
#[cfg(test)]
#[cfg(all(feature = "openai", feature = "anthropic"))]
mod tests;

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use holdpoint_runtime::ports::clock::{Clock, SystemClock};
use holdpoint_runtime::ports::model::{DeltaSink, Model, ModelFault, ModelReply, ModelRequest};
use reqwest::header::{HeaderMap, HeaderValue};
use secrecy::SecretString;
use serde_json::Value;

use crate::address::{Address, BadProvider};
use crate::draft::Draft;
use crate::problem::{Problem, Whom};
use crate::transport::{Http, HttpSettings, Outgoing, secret_header, tidy_key};

use stream::MessagesStream;
use thoughts::Thoughts;

/// Where the key is looked for.
pub const KEY_VARIABLE: &str = "ANTHROPIC_API_KEY";
/// Where the address is looked for.
pub const ADDRESS_VARIABLE: &str = "ANTHROPIC_BASE_URL";

const HOST: &str = "api.anthropic.com";
const VERSION: &str = "2023-06-01";

/// How Anthropic, or a server that speaks as it does, is reached.
#[derive(Debug, Clone)]
pub struct AnthropicSettings {
    /// Its address, with or without `/v1` and a slash at the end.
    pub base_url: String,
    /// The key. Servers other than Anthropic's own are also asked without one.
    pub api_key: Option<SecretString>,
    /// Time-outs, sizes and further attempts.
    pub http: HttpSettings,
}

impl Default for AnthropicSettings {
    fn default() -> Self {
        Self { base_url: format!("https://{HOST}"), api_key: None, http: HttpSettings::default() }
    }
}

/// Anthropic, or a server that speaks as it does. Clones share their connections.
///
/// ```no_run
/// use holdpoint_models::anthropic::{Anthropic, AnthropicSettings};
///
/// let key = std::env::var("ANTHROPIC_API_KEY").ok().map(Into::into);
/// let anthropic = Anthropic::new(AnthropicSettings { api_key: key, ..Default::default() })?;
/// let model = anthropic.messages("claude-sonnet-4-5");
/// # Ok::<(), holdpoint_models::BadProvider>(())
/// ```
#[derive(Clone)]
pub struct Anthropic {
    address: Address,
    headers: HeaderMap,
    key: Option<SecretString>,
    http: Http,
    thoughts: Thoughts,
}

impl Anthropic {
    /// A way to the provider. Nothing is sent yet.
    ///
    /// # Errors
    /// The address is none, or the key cannot be sent.
    pub fn new(settings: AnthropicSettings) -> Result<Self, BadProvider> {
        Self::with_clock(settings, SystemClock::shared())
    }

    /// The same by a clock of one's own, for tests.
    ///
    /// # Errors
    /// As [`Anthropic::new`].
    pub fn with_clock(settings: AnthropicSettings, clock: Arc<dyn Clock>) -> Result<Self, BadProvider> {
        let address = Address::parse(&settings.base_url, ADDRESS_VARIABLE)?;
        let key = tidy_key(settings.api_key);
        let mut headers = HeaderMap::new();
        headers.insert("anthropic-version", HeaderValue::from_static(VERSION));
        if let Some(key) = &key {
            headers.insert("x-api-key", secret_header("", key, KEY_VARIABLE)?);
            if address.is_in_the_open() {
                tracing::warn!(address = ?address, "the key is sent without encryption: use https");
            }
        }
        let http = Http::new(&address, settings.http, clock);
        Ok(Self { address, headers, key, http, thoughts: Thoughts::default() })
    }

    /// A model by messages.
    pub fn messages(&self, model: impl Into<String>) -> MessagesModel {
        let model = model.into();
        let whom = Whom {
            name: format!("anthropic/{model}"),
            model,
            host: self.address.host(),
            key_variable: KEY_VARIABLE,
            address_variable: ADDRESS_VARIABLE,
            key: self.key.clone(),
        };
        MessagesModel { provider: self.clone(), whom }
    }

    /// Whether it is Anthropic itself and there is no key: every call would fail.
    pub fn lacks_key(&self) -> bool {
        self.address.is_at(HOST) && self.key.is_none()
    }

    fn outgoing(&self, body: &Value) -> Result<Outgoing, Problem> {
        if self.lacks_key() {
            return Err(Problem::NoKey);
        }
        let (url, headers) = (self.address.endpoint("messages"), self.headers.clone());
        Ok(Outgoing { url, headers, body: Bytes::from(body.to_string()) })
    }
}

impl std::fmt::Debug for Anthropic {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Anthropic").field("address", &self.address).finish_non_exhaustive()
    }
}

/// A model by messages.
#[derive(Clone)]
pub struct MessagesModel {
    provider: Anthropic,
    whom: Whom,
}

#[async_trait]
impl Model for MessagesModel {
    async fn reply(&self, request: ModelRequest, deltas: DeltaSink) -> Result<ModelReply, ModelFault> {
        let thoughts = &self.provider.thoughts;
        let body = request::body(&self.whom.model, &request, thoughts).map_err(Problem::Setting);
        let outgoing = body.and_then(|body| self.provider.outgoing(&body));
        let outgoing = outgoing.map_err(|problem| problem.into_fault(&self.whom, 1))?;
        let assembler = || MessagesStream::new(Draft::new(&request), thoughts.clone());
        self.provider.http.ask(&self.whom, outgoing, assembler, &deltas).await
    }

    fn name(&self) -> &str {
        &self.whom.name
    }
}

impl std::fmt::Debug for MessagesModel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MessagesModel").field("model", &self.whom.model).field("provider", &self.provider).finish()
    }
}
