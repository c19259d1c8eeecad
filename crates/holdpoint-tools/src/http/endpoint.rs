//! An address that an operator wrote down as a tool, and what a call of it sends there.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use bytes::Bytes;
use holdpoint_core::json::{CanonicalJson, Limits};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, Url};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::http::headers;
use crate::http::template::{URL_BYTES_MAX, UrlTemplate, encode};
use crate::redact::Redactor;

/// How an endpoint is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HttpMethod {
    /// Arguments are the query.
    Get,
    /// Arguments are the body.
    Post,
    /// Arguments are the body.
    Put,
    /// Arguments are the body.
    Patch,
    /// Arguments are the query.
    Delete,
}

impl HttpMethod {
    fn has_body(self) -> bool {
        matches!(self, Self::Post | Self::Put | Self::Patch)
    }

    pub(super) fn to_reqwest(self) -> Method {
        match self {
            Self::Get => Method::GET,
            Self::Post => Method::POST,
            Self::Put => Method::PUT,
            Self::Patch => Method::PATCH,
            Self::Delete => Method::DELETE,
        }
    }
}

impl FromStr for HttpMethod {
    type Err = BadEndpoint;

    fn from_str(text: &str) -> Result<Self, BadEndpoint> {
        match text.to_ascii_uppercase().as_str() {
            "GET" => Ok(Self::Get),
            "POST" => Ok(Self::Post),
            "PUT" => Ok(Self::Put),
            "PATCH" => Ok(Self::Patch),
            "DELETE" => Ok(Self::Delete),
            _ => Err(BadEndpoint::Method),
        }
    }
}

/// Why an endpoint cannot be asked. Never shows the address or a header's value: both may hold a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadEndpoint {
    /// The method is not one of those that tools have.
    #[error("the method is none of GET, POST, PUT, PATCH and DELETE")]
    Method,
    /// The address is of another kind.
    #[error("the url does not begin with http:// or https://")]
    Scheme,
    /// The address cannot be used.
    #[error("the url {0}")]
    Address(String),
    /// What stands in braces is not a name.
    #[error("the url's placeholder {{{0}}} is not a name of letters, digits, - and _")]
    Placeholder(String),
    /// A header cannot be sent.
    #[error("the header {name:?} {why}")]
    Header {
        /// Its name.
        name: String,
        /// What is wrong with it.
        why: &'static str,
    },
}

impl BadEndpoint {
    pub(super) fn address(why: &str) -> Self {
        Self::Address(why.to_owned())
    }
}

/// An address that an operator wrote, with its method, headers and bounds. It may be local: no model chose it.
#[derive(Clone)]
pub struct Endpoint {
    method: HttpMethod,
    url: UrlTemplate,
    headers: HeaderMap,
    pub(super) redactor: Redactor,
    pub(super) timeout: Duration,
    pub(super) response_bytes_max: usize,
}

impl Endpoint {
    /// How long a call may take, unless said otherwise.
    pub const TIMEOUT: Duration = Duration::from_secs(30);
    /// How many bytes of an answer are the result, unless said otherwise.
    pub const RESPONSE_BYTES: usize = 256 << 10;
    /// How many bytes of an answer can be the result.
    pub const RESPONSE_BYTES_MAX: usize = 1 << 20;

    /// Asks this address. `{name}` in its path or query is filled from the argument of that name.
    ///
    /// # Errors
    /// The address is not of HTTP, has credentials, or has a placeholder where none may be.
    pub fn new(method: HttpMethod, url: &str) -> Result<Self, BadEndpoint> {
        Ok(Self {
            method,
            url: UrlTemplate::parse(url)?,
            headers: HeaderMap::new(),
            redactor: Redactor::default(),
            timeout: Self::TIMEOUT,
            response_bytes_max: Self::RESPONSE_BYTES,
        })
    }

    /// Sends this header. Where its name says that the value is a secret (`Authorization`, `X-Api-Key`), the value is
    /// taken out of everything that the model is told; see [`Endpoint::keep_secret`] for others.
    ///
    /// # Errors
    /// The name or the value cannot be sent, or the header is one that is made here.
    pub fn header(mut self, name: &str, value: SecretString) -> Result<Self, BadEndpoint> {
        let bad = |why| BadEndpoint::Header { name: name.chars().take(64).collect(), why };
        let header = HeaderName::from_str(name).map_err(|_| bad("is not a header's name"))?;
        if headers::is_framing(&header) || header == headers::IDEMPOTENCY_KEY {
            return Err(bad("is set by holdpoint itself"));
        }
        let mut line = HeaderValue::from_str(value.expose_secret())
            .map_err(|_| bad("has a value that cannot be sent: a line break, or another control character"))?;
        line.set_sensitive(true);
        self.redactor.add_named(name, &value);
        self.headers.insert(header, line);
        Ok(self)
    }

    /// Takes this value out of everything that the model is told: a secret that is a part of the address or a header.
    #[must_use]
    pub fn keep_secret(mut self, value: &SecretString) -> Self {
        self.redactor.add(value);
        self
    }

    /// How long a call may take, from the first byte sent to the last one received.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// How many bytes of an answer are the result, at most [`Endpoint::RESPONSE_BYTES_MAX`].
    #[must_use]
    pub fn response_bytes_max(mut self, bytes: usize) -> Self {
        self.response_bytes_max = bytes.min(Self::RESPONSE_BYTES_MAX);
        self
    }

    /// The arguments that the address takes, in order of their names.
    pub fn placeholders(&self) -> impl Iterator<Item = &str> {
        self.url.names().iter().map(String::as_str)
    }

    /// The arguments that the address takes and this schema does not require: a call without one of them would fail.
    pub fn unrequired_placeholders(&self, schema: &Value) -> Vec<&str> {
        let required = schema.get("required").and_then(Value::as_array);
        let is_required = |name: &&str| required.is_some_and(|names| names.iter().any(|required| required == *name));
        self.placeholders().filter(|name| !is_required(name)).collect()
    }

    /// What a call with these arguments sends. Says what is wrong with them otherwise.
    pub(super) fn prepare(&self, arguments: &CanonicalJson) -> Result<Prepared, String> {
        let mut rest: BTreeMap<String, Box<RawValue>> =
            arguments.decode().map_err(|error| format!("the arguments are not an object: {error}"))?;
        let mut values = BTreeMap::new();
        for name in self.url.names() {
            if let Some(raw) = rest.remove(name) {
                values.insert(name.clone(), plain_text(name, raw.get())?);
            }
        }
        let mut url = self.url.fill(&values)?;
        let mut headers = self.headers.clone();
        let body = if self.method.has_body() {
            headers.entry(CONTENT_TYPE).or_insert(HeaderValue::from_static("application/json"));
            Some(self.body(arguments, &rest)?)
        } else {
            self.add_query(&mut url, &rest)?;
            None
        };
        Ok(Prepared { method: self.method.to_reqwest(), url, headers, body })
    }

    /// What was approved is what is sent, to the byte, unless a part of it stands in the address already.
    fn body(&self, arguments: &CanonicalJson, rest: &BTreeMap<String, Box<RawValue>>) -> Result<Bytes, String> {
        if self.url.names().is_empty() {
            return Ok(Bytes::copy_from_slice(arguments.as_bytes()));
        }
        let text = serde_json::to_string(rest).map_err(|error| error.to_string())?;
        let json = CanonicalJson::parse_within(&text, &Limits::WIDEST).map_err(|problem| problem.to_string())?;
        Ok(Bytes::copy_from_slice(json.as_bytes()))
    }

    fn add_query(&self, url: &mut Url, rest: &BTreeMap<String, Box<RawValue>>) -> Result<(), String> {
        let mut query = url.query().unwrap_or_default().to_owned();
        for (name, raw) in rest {
            if self.url.has_query_key(name) {
                return Err(format!("the argument {name:?} is set in the tool's address and cannot be given"));
            }
            for value in query_values(raw.get())? {
                if !query.is_empty() {
                    query.push('&');
                }
                encode(name, &mut query);
                query.push('=');
                encode(&value, &mut query);
                if query.len() > URL_BYTES_MAX {
                    return Err(format!(
                        "the arguments are longer than {URL_BYTES_MAX} bytes, which is as much as an address can hold"
                    ));
                }
            }
        }
        url.set_query((!query.is_empty()).then_some(&query));
        Ok(())
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The address may hold a secret.
        f.debug_struct("Endpoint").field("method", &self.method).field("timeout", &self.timeout).finish_non_exhaustive()
    }
}

/// One request, ready to be sent.
pub(super) struct Prepared {
    pub(super) method: Method,
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
    pub(super) body: Option<Bytes>,
}

/// A text, number or truth value as it is written in an address; numbers keep every digit.
fn plain_text(name: &str, raw: &str) -> Result<String, String> {
    match raw.as_bytes().first() {
        Some(b'"') => serde_json::from_str(raw).map_err(|error| error.to_string()),
        Some(b'{' | b'[' | b'n') | None => {
            Err(format!("the argument {name} is a part of the address: a text, a number, true or false expected"))
        }
        Some(_) => Ok(raw.to_owned()),
    }
}

/// What an argument is in a query: nothing for `null`, one value for each element of a list, JSON for an object.
fn query_values(raw: &str) -> Result<Vec<String>, String> {
    let one = |raw: &str| match raw.starts_with('"') {
        true => serde_json::from_str(raw).map_err(|error| error.to_string()),
        false => Ok(raw.to_owned()),
    };
    match raw.as_bytes().first() {
        Some(b'n') => Ok(Vec::new()),
        Some(b'[') => {
            let list: Vec<&RawValue> = serde_json::from_str(raw).map_err(|error| error.to_string())?;
            list.into_iter().map(|element| one(element.get())).collect()
        }
        _ => Ok(vec![one(raw)?]),
    }
}
