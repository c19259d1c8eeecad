//! Tools that speak HTTP. An [`Endpoint`] has an address that an operator wrote, which may be local; [`HttpRequestTool`]
//! goes where a model wants, so an [`AddressGuard`] stands before every connection of it.
//!
//! Nothing here follows a redirect unseen, reads without a bound, or shows a model a header.

mod answer;
mod client;
mod endpoint;
mod guard;
mod headers;
mod http_request;
mod template;

#[cfg(test)]
mod tests;

use async_trait::async_trait;
use holdpoint_core::json::CanonicalJson;
use holdpoint_core::message::Content;
use holdpoint_runtime::ports::tool::{RunTool, Tool, ToolBuilder, ToolContext, ToolFailure};

pub use client::{ClientFault, HttpClient};
pub use endpoint::{BadEndpoint, Endpoint, HttpMethod};
pub use guard::{AddressGuard, BadAllowance, Forbidden, GuardedClient, Lookup, Special};
pub use http_request::{BadHeader, HttpRequestTool};

/// Makes tools of endpoints.
pub struct HttpTool;

impl HttpTool {
    /// A tool of this name that asks this endpoint. Description, schema, effect and approval are set as on every tool.
    ///
    /// The arguments are the body (POST, PUT, PATCH) or the query (GET, DELETE), except those that stand in the address.
    /// `Idempotency-Key` carries the call's key, which is the same for every attempt at it. The answer's body is the
    /// result; a status outside 2xx is a failure, and so is a redirect.
    ///
    /// ```
    /// use holdpoint_tools::http::{Endpoint, HttpClient, HttpMethod, HttpTool};
    /// use serde_json::json;
    ///
    /// let client = HttpClient::new()?;
    /// let endpoint = Endpoint::new(HttpMethod::Post, "https://broker.example/accounts/{account}/orders")?
    ///     .header("Authorization", "Bearer 123".to_owned().into())?;
    /// let tool = HttpTool::builder("execute_trade", &client, endpoint)
    ///     .description("Places an order.")
    ///     .schema(json!({"type": "object", "required": ["account", "symbol"]}))
    ///     .needs_approval(true)
    ///     .build()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn builder(name: impl Into<String>, client: &HttpClient, endpoint: Endpoint) -> ToolBuilder {
        Tool::builder(name).runner(HttpRunner { client: client.clone(), endpoint })
    }
}

struct HttpRunner {
    client: HttpClient,
    endpoint: Endpoint,
}

#[async_trait]
impl RunTool for HttpRunner {
    async fn run(&self, context: ToolContext, arguments: CanonicalJson) -> Result<Content, ToolFailure> {
        let prepared = self.endpoint.prepare(&arguments).map_err(ToolFailure)?;
        let asking = async {
            let mut request = self.client.request(prepared.method, prepared.url).headers(prepared.headers);
            request = request.header(headers::IDEMPOTENCY_KEY, context.idempotency_key());
            if let Some(body) = prepared.body {
                request = request.body(body);
            }
            let response = request.send().await.map_err(client::failure)?;
            answer::read(response, self.endpoint.response_bytes_max, &self.endpoint.redactor).await
        };
        client::within(&context, self.endpoint.timeout, asking).await
    }
}
