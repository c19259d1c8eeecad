//! A request to an address that the model chose. It goes to the open internet and nowhere else, unless an operator says
//! so; a person who is asked first sees exactly what is sent.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use holdpoint_core::json::CanonicalJson;
use holdpoint_core::message::Content;
use holdpoint_core::text::{clamp, visible};
use holdpoint_runtime::ports::tool::{RunTool, Tool, ToolBuilder, ToolContext, ToolFailure};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, Response, Url};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::http::client::{self, ClientFault};
use crate::http::guard::{AddressGuard, GuardedClient};
use crate::http::template::URL_BYTES_MAX;
use crate::http::{answer, headers};
use crate::redact::Redactor;

/// Makes a tool that sends requests where the model wants.
///
/// ```
/// use holdpoint_tools::http::{AddressGuard, HttpRequestTool};
///
/// let guard = AddressGuard::new().allow("wiki.internal")?;
/// let tool = HttpRequestTool::new(guard).builder()?.needs_approval(true).build()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct HttpRequestTool {
    pub(super) guard: AddressGuard,
    allowed_headers: Vec<HeaderName>,
    timeout: Duration,
    response_bytes_max: usize,
    redirects_max: u8,
}

/// A header that a model can never be allowed to set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not the name of a header that a model could be allowed to set")]
pub struct BadHeader(pub String);

impl HttpRequestTool {
    /// How long a request may take with its redirects, unless said otherwise.
    pub const TIMEOUT: Duration = Duration::from_secs(30);
    /// How many bytes of an answer are the result, unless said otherwise.
    pub const RESPONSE_BYTES: usize = 256 << 10;
    /// How many bytes of an answer can be the result.
    pub const RESPONSE_BYTES_MAX: usize = 1 << 20;
    /// How many redirects are followed.
    pub const REDIRECTS_MAX: u8 = 5;
    /// How many headers a request may have.
    pub const HEADERS_MAX: usize = 32;

    /// Sends requests that this guard lets pass.
    pub fn new(guard: AddressGuard) -> Self {
        Self {
            guard,
            allowed_headers: Vec::new(),
            timeout: Self::TIMEOUT,
            response_bytes_max: Self::RESPONSE_BYTES,
            redirects_max: Self::REDIRECTS_MAX,
        }
    }

    /// Lets the model set a header that says who is asking, such as `Authorization` or `Cookie`. It is sent to the host
    /// that the model named, not to one that this host redirects to.
    ///
    /// # Errors
    /// It is not a header's name, or says where a message ends.
    pub fn allow_header(mut self, name: &str) -> Result<Self, BadHeader> {
        let bad = || BadHeader(name.chars().take(64).collect());
        let header = HeaderName::from_str(name).map_err(|_| bad())?;
        if headers::is_framing(&header) || header == headers::IDEMPOTENCY_KEY {
            return Err(bad());
        }
        self.allowed_headers.push(header);
        Ok(self)
    }

    /// How long a request may take with its redirects.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// How many bytes of an answer are the result, at most [`HttpRequestTool::RESPONSE_BYTES_MAX`].
    #[must_use]
    pub fn response_bytes_max(mut self, bytes: usize) -> Self {
        self.response_bytes_max = bytes.min(Self::RESPONSE_BYTES_MAX);
        self
    }

    /// How many redirects of a GET or HEAD are followed, at most [`HttpRequestTool::REDIRECTS_MAX`]. Other requests
    /// follow none: they were approved for one address.
    #[must_use]
    pub fn redirects_max(mut self, redirects: u8) -> Self {
        self.redirects_max = redirects.min(Self::REDIRECTS_MAX);
        self
    }

    /// A tool named `http_request`. Approval is set as on every tool; held by nobody unless said so.
    ///
    /// Its arguments are `{"url", "method"?, "headers"?, "body"?}`. A body that is not a text is sent as JSON.
    ///
    /// # Errors
    /// The system's certificates cannot be read.
    pub fn builder(self) -> Result<ToolBuilder, ClientFault> {
        let client = GuardedClient::new(self.guard.clone())?;
        Ok(Tool::builder("http_request")
            .description("Sends an HTTP request to a public address and gives back the body of the answer.")
            .schema(schema())
            .runner(RequestRunner { client, settings: self }))
    }

    fn check_header(&self, name: &str, value: &str) -> Result<(HeaderName, HeaderValue), String> {
        let shown = visible(clamp(name, 64));
        let header = HeaderName::from_str(name).map_err(|_| format!("{shown:?} is not the name of a header"))?;
        let is_allowed = self.allowed_headers.contains(&header);
        if headers::is_framing(&header) || (headers::is_identity(&header) && !is_allowed) {
            return Err(format!("the header {shown} may not be set"));
        }
        let value =
            HeaderValue::from_str(value).map_err(|_| format!("the value of the header {shown} cannot be sent"))?;
        Ok((header, value))
    }
}

pub(super) struct RequestRunner {
    pub(super) client: GuardedClient,
    pub(super) settings: HttpRequestTool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    url: String,
    #[serde(default)]
    method: Option<String>,
    #[serde(default)]
    headers: Option<BTreeMap<String, String>>,
    #[serde(default)]
    body: Option<CanonicalJson>,
}

/// One request, as the model asked for it and as it may be sent.
struct Wanted {
    method: Method,
    url: Url,
    headers: HeaderMap,
    body: Option<Bytes>,
}

impl Wanted {
    fn read(arguments: &CanonicalJson, settings: &HttpRequestTool) -> Result<Self, String> {
        let arguments: Arguments =
            arguments.decode().map_err(|error| format!("url, method, headers and body expected: {error}"))?;
        if arguments.url.len() > URL_BYTES_MAX {
            return Err(format!("the url is longer than {URL_BYTES_MAX} bytes"));
        }
        let url = Url::parse(&arguments.url).map_err(|error| format!("the url is none: {error}"))?;
        let method = read_method(arguments.method.as_deref())?;
        let wanted = arguments.headers.unwrap_or_default();
        if wanted.len() > HttpRequestTool::HEADERS_MAX {
            return Err(format!("at most {} headers expected", HttpRequestTool::HEADERS_MAX));
        }
        let mut headers = HeaderMap::new();
        for (name, value) in &wanted {
            let (name, value) = settings.check_header(name, value)?;
            headers.append(name, value);
        }
        let body = arguments.body.map(|body| read_body(&body, &mut headers)).transpose()?;
        if body.is_some() && (method == Method::GET || method == Method::HEAD) {
            return Err(format!("a {method} has no body"));
        }
        Ok(Self { method, url, headers, body })
    }

    fn is_safe(&self) -> bool {
        self.method == Method::GET || self.method == Method::HEAD
    }

    /// The same request at the address that a redirect leads to, or why it is not followed.
    fn redirected(mut self, to: &str) -> Result<Self, &'static str> {
        let next = self.url.join(to).map_err(|_| "that is not an address")?;
        if self.url.scheme() == "https" && next.scheme() != "https" {
            return Err("it leads away from an encrypted address, which is not followed");
        }
        if next.origin() != self.url.origin() {
            let names: Vec<HeaderName> =
                self.headers.keys().filter(|name| headers::is_identity(name)).cloned().collect();
            for name in names {
                self.headers.remove(name);
            }
        }
        self.url = next;
        Ok(self)
    }
}

#[async_trait]
impl RunTool for RequestRunner {
    async fn run(&self, context: ToolContext, arguments: CanonicalJson) -> Result<Content, ToolFailure> {
        let wanted = Wanted::read(&arguments, &self.settings).map_err(ToolFailure)?;
        client::within(&context, self.settings.timeout, self.ask(&context, wanted)).await
    }
}

impl RequestRunner {
    async fn ask(&self, context: &ToolContext, mut wanted: Wanted) -> Result<Content, ToolFailure> {
        let mut redirects_left = self.settings.redirects_max;
        loop {
            let response = self.send(context, &wanted).await?;
            let Some(to) = answer::redirect(&response).filter(|_| wanted.is_safe()) else {
                return answer::read(response, self.settings.response_bytes_max, &Redactor::default()).await;
            };
            let stop = |why: &str| ToolFailure(answer::told_redirect(response.status(), &to, why));
            redirects_left = redirects_left.checked_sub(1).ok_or_else(|| stop("no more redirects are followed"))?;
            wanted = wanted.redirected(&to).map_err(stop)?;
        }
    }

    async fn send(&self, context: &ToolContext, wanted: &Wanted) -> Result<Response, ToolFailure> {
        let request = self.client.request(wanted.method.clone(), wanted.url.clone()).map_err(ToolFailure::new)?;
        let mut request = request.headers(wanted.headers.clone());
        if !wanted.is_safe() {
            request = request.header(headers::IDEMPOTENCY_KEY, context.idempotency_key());
        }
        if let Some(body) = &wanted.body {
            request = request.body(body.clone());
        }
        request.send().await.map_err(client::failure)
    }
}

fn read_method(text: Option<&str>) -> Result<Method, String> {
    match text.unwrap_or("GET") {
        "GET" => Ok(Method::GET),
        "HEAD" => Ok(Method::HEAD),
        "POST" => Ok(Method::POST),
        "PUT" => Ok(Method::PUT),
        "PATCH" => Ok(Method::PATCH),
        "DELETE" => Ok(Method::DELETE),
        _ => Err("GET, HEAD, POST, PUT, PATCH or DELETE expected as method".to_owned()),
    }
}

/// A text is sent as it is, everything else as the JSON that was approved.
fn read_body(body: &CanonicalJson, headers: &mut HeaderMap) -> Result<Bytes, String> {
    let (kind, bytes) = match body.as_str().starts_with('"') {
        true => {
            let text: String = body.decode().map_err(|error| error.to_string())?;
            ("text/plain; charset=utf-8", Bytes::from(text))
        }
        false => ("application/json", Bytes::copy_from_slice(body.as_bytes())),
    };
    headers.entry(CONTENT_TYPE).or_insert(HeaderValue::from_static(kind));
    Ok(bytes)
}

fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "url": {"type": "string", "minLength": 1, "maxLength": URL_BYTES_MAX, "description": "http or https."},
            "method": {
                "enum": ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"],
                "description": "GET unless said otherwise.",
            },
            "headers": {
                "type": "object",
                "additionalProperties": {"type": "string"},
                "maxProperties": HttpRequestTool::HEADERS_MAX,
            },
            "body": {
                "type": ["string", "object", "array"],
                "description": "A text is sent as it is, anything else as JSON.",
            },
        },
        "required": ["url"],
        "additionalProperties": false,
    })
}
