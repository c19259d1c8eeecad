//! Talks to a running server over its native API.

use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};
use holdpoint_core::text::{clamp, visible};
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use secrecy::{ExposeSecret as _, SecretString};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::args::ServerArgs;

/// How much of an answer is read.
const ANSWER_BYTES_MAX: usize = 16 << 20;

/// A way to a running server.
pub struct Client {
    base: String,
    key: Option<SecretString>,
    http: reqwest::Client,
}

/// An error as the server tells it.
#[derive(Debug, Deserialize)]
struct Problem {
    #[serde(default)]
    code: String,
    #[serde(default)]
    detail: String,
    #[serde(default)]
    title: String,
}

impl Client {
    /// A way to the server that the command line names.
    ///
    /// # Errors
    /// The address is none.
    pub fn new(args: &ServerArgs) -> Result<Self> {
        let base: reqwest::Url = args.url.parse().with_context(|| format!("--url {} is not an address", args.url))?;
        if !matches!(base.scheme(), "http" | "https") {
            bail!("--url {} begins with neither http:// nor https://", args.url);
        }
        let http = reqwest::Client::builder()
            .connect_timeout(Duration::from_secs(10))
            .timeout(Duration::from_secs(90))
            // A redirect would carry the key elsewhere.
            .redirect(reqwest::redirect::Policy::none())
            .build()?;
        Ok(Self {
            base: base.as_str().trim_end_matches('/').to_owned(),
            key: args.api_key.clone().map(SecretString::from),
            http,
        })
    }

    /// Reads something.
    ///
    /// # Errors
    /// The server is not there, or refuses.
    pub async fn get<T: DeserializeOwned>(&self, path: &str, query: &[(&str, String)]) -> Result<T> {
        let url = reqwest::Url::parse_with_params(&format!("{}{path}", self.base), query)?;
        read(self.send(self.request(Method::GET, url)).await?).await
    }

    /// Sends something. A second attempt with the same `key` gets the first answer again.
    ///
    /// # Errors
    /// The server is not there, or refuses.
    pub async fn post<T: DeserializeOwned>(&self, path: &str, key: &str, body: &impl Serialize) -> Result<T> {
        let url = format!("{}{path}", self.base).parse()?;
        let request = self.request(Method::POST, url).header("idempotency-key", key).json(body);
        read(self.send(request).await?).await
    }

    fn request(&self, method: Method, url: reqwest::Url) -> RequestBuilder {
        let request = self.http.request(method, url);
        match &self.key {
            Some(key) => request.bearer_auth(key.expose_secret()),
            None => request,
        }
    }

    async fn send(&self, request: RequestBuilder) -> Result<Response> {
        let sent = request.send().await;
        let no_server =
            || format!("no server answers at {}: start one with `holdpoint serve`, or name it with --url", self.base);
        let response = sent.map_err(reqwest::Error::without_url).with_context(no_server)?;
        match response.status() {
            status if status.is_success() => Ok(response),
            status => Err(refusal(status, response).await),
        }
    }
}

async fn read<T: DeserializeOwned>(response: Response) -> Result<T> {
    let bytes = bytes(response).await?;
    serde_json::from_slice(&bytes).context("the answer is not one of a holdpoint server")
}

async fn bytes(mut response: Response) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        bytes.extend_from_slice(&chunk);
        if bytes.len() > ANSWER_BYTES_MAX {
            bail!("the answer has more than {ANSWER_BYTES_MAX} bytes");
        }
    }
    Ok(bytes)
}

async fn refusal(status: StatusCode, response: Response) -> anyhow::Error {
    let told = bytes(response).await.ok().and_then(|bytes| serde_json::from_slice::<Problem>(&bytes).ok());
    match told {
        Some(problem) => {
            let detail = if problem.detail.is_empty() { problem.title } else { problem.detail };
            let hint = if status == StatusCode::UNAUTHORIZED {
                "; give a key with --api-key or HOLDPOINT_API_KEY"
            } else {
                ""
            };
            anyhow!("{} ({}){hint}", visible(clamp(&detail, 2_000)), visible(clamp(&problem.code, 100)))
        }
        None => anyhow!("the server answers {status}, and not in the way of a holdpoint server"),
    }
}
