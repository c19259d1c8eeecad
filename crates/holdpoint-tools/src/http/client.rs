//! Sends requests, within their time, and says in plain words why one did not work.

use std::error::Error as _;
use std::time::Duration;

use holdpoint_core::text::{clamp, visible};
use holdpoint_runtime::ports::tool::{ToolContext, ToolFailure};
use reqwest::redirect::Policy;
use reqwest::{Client, ClientBuilder, Method, RequestBuilder, Url};

use crate::http::Forbidden;

/// The connections of all HTTP tools whose addresses an operator wrote. Cheap to clone.
#[derive(Clone, Debug)]
pub struct HttpClient(pub(super) Client);

/// The connections could not be set up: this system has no usable certificates, most likely.
#[derive(Debug, thiserror::Error)]
#[error("http connections cannot be set up: are certificates installed on this system?")]
pub struct ClientFault(#[from] reqwest::Error);

impl HttpClient {
    /// Connections as the system has them, also through the proxy that the environment names.
    ///
    /// # Errors
    /// The system's certificates cannot be read.
    pub fn new() -> Result<Self, ClientFault> {
        Ok(Self(client_builder().build()?))
    }

    pub(super) fn request(&self, method: Method, url: Url) -> RequestBuilder {
        self.0.request(method, url)
    }
}

/// What all our clients have in common: no redirect and no repetition that nobody asked for.
pub(super) fn client_builder() -> ClientBuilder {
    Client::builder()
        .user_agent(concat!("holdpoint/", env!("CARGO_PKG_VERSION")))
        .redirect(Policy::none())
        .retry(reqwest::retry::never())
        .referer(false)
}

/// Does `work` until its time is up or the run is cancelled. Either leaves open whether the server acted.
pub(super) async fn within<T>(
    context: &ToolContext,
    timeout: Duration,
    work: impl Future<Output = Result<T, ToolFailure>>,
) -> Result<T, ToolFailure> {
    tokio::select! {
        done = tokio::time::timeout(timeout, work) => done.unwrap_or_else(|_| {
            Err(ToolFailure(format!("no complete answer within {timeout:?}; the server may have acted all the same")))
        }),
        () = context.cancelled.cancelled() => {
            Err(ToolFailure::new("the run was cancelled during the request; the server may have acted all the same"))
        }
    }
}

/// Why a request did not work. Without the address, in which a secret may stand.
pub(super) fn failure(error: reqwest::Error) -> ToolFailure {
    if let Some(forbidden) = Forbidden::behind(&error) {
        return ToolFailure::new(forbidden);
    }
    let what = if error.is_connect() {
        "the server was not reached"
    } else if error.is_body() || error.is_decode() {
        "the server's answer broke off; it may have acted all the same"
    } else {
        "the request did not work; the server may have acted all the same"
    };
    let mut cause = error.source();
    while let Some(deeper) = cause.and_then(|cause| cause.source()) {
        cause = Some(deeper);
    }
    match cause {
        Some(cause) => ToolFailure(format!("{what}: {}", clamp(&visible(&cause.to_string()), 300))),
        None => ToolFailure::new(what),
    }
}
