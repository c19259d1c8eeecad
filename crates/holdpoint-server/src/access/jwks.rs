//! The keys that an identity provider publishes: fetched, kept, and fetched again when a token names one we lack.
//!
//! A key that is not known is looked for once more, but never sooner than a floor after the last fetch: tokens with
//! made-up key ids cannot make this server hammer the provider.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use jsonwebtoken::jwk::{Jwk, JwkSet};
use jsonwebtoken::{Algorithm, DecodingKey};
use serde::Deserialize;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::problem::{Code, Problem};

/// Keys by their ids.
pub struct Jwks {
    source: Source,
    http: reqwest::Client,
    known: ArcSwap<Known>,
    fetching: Mutex<()>,
    floor: Duration,
    ceiling: Duration,
}

enum Source {
    /// Where the keys are.
    Url(String),
    /// Whose discovery document says where the keys are.
    Issuer(String),
}

#[derive(Default)]
struct Known {
    keys: Vec<Jwk>,
    /// When they were fetched, or when that was last tried.
    tried_at: Option<Instant>,
    is_fetched: bool,
}

/// What came of looking for a key.
pub(super) enum Lookup {
    Found(Arc<DecodingKey>),
    Unknown,
    Unavailable(Problem),
}

/// The most bytes of a key set or discovery document.
const DOCUMENT_BYTES_MAX: usize = 1 << 20;

impl Jwks {
    /// The keys at an address.
    ///
    /// # Errors
    /// The address is not https, unless it is of this machine; or no TLS can be had.
    pub fn at(url: &str) -> Result<Self, String> {
        check_address(url)?;
        Self::new(Source::Url(url.to_owned()))
    }

    /// The keys that an issuer's discovery document points to.
    ///
    /// # Errors
    /// As with [`Jwks::at`].
    pub fn of_issuer(issuer: &str) -> Result<Self, String> {
        check_address(issuer)?;
        Self::new(Source::Issuer(issuer.trim_end_matches('/').to_owned()))
    }

    fn new(source: Source) -> Result<Self, String> {
        let http = reqwest::Client::builder()
            .timeout(Duration::from_secs(10))
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .map_err(|error| format!("the identity provider cannot be reached over TLS: {error}"))?;
        Ok(Self {
            source,
            http,
            known: ArcSwap::default(),
            fetching: Mutex::default(),
            floor: Duration::from_secs(30),
            ceiling: Duration::from_secs(3600),
        })
    }

    /// How soon after a fetch the next one may follow, and how old keys may grow.
    #[must_use]
    pub fn ages(mut self, floor: Duration, ceiling: Duration) -> Self {
        (self.floor, self.ceiling) = (floor, ceiling);
        self
    }

    pub(super) async fn find(&self, kid: Option<&str>, algorithm: Algorithm) -> Lookup {
        let known = self.known.load();
        let age = known.tried_at.map(|at| at.elapsed());
        let is_found = pick(&known.keys, kid, algorithm).is_some();
        let is_due = match age {
            None => true,
            Some(age) => age >= if is_found && known.is_fetched { self.ceiling } else { self.floor },
        };
        if is_due {
            self.fetch(known.tried_at).await;
        }
        let known = self.known.load();
        match pick(&known.keys, kid, algorithm) {
            // Where the provider is away, a key that it published a while ago still holds.
            Some(key) => Lookup::Found(Arc::new(key)),
            None if known.is_fetched => Lookup::Unknown,
            None => {
                let detail =
                    "the identity provider's keys cannot be fetched, so the token cannot be checked: try again";
                Lookup::Unavailable(Problem::new(Code::KEYS_UNAVAILABLE, detail).retry_after(5))
            }
        }
    }

    /// Fetches the keys, unless somebody else did while we waited.
    async fn fetch(&self, seen: Option<Instant>) {
        let _one_at_a_time = self.fetching.lock().await;
        let before = self.known.load();
        if before.tried_at != seen {
            return;
        }
        let (keys, is_fetched) = match self.get().await {
            Ok(set) => (set.keys, true),
            Err(problem) => {
                tracing::warn!(problem, "the identity provider's keys could not be fetched");
                (before.keys.clone(), false)
            }
        };
        self.known.store(Arc::new(Known { keys, tried_at: Some(Instant::now()), is_fetched }));
    }

    async fn get(&self) -> Result<JwkSet, String> {
        let url = match &self.source {
            Source::Url(url) => url.clone(),
            Source::Issuer(issuer) => {
                let found: Discovery = self.document(&format!("{issuer}/.well-known/openid-configuration")).await?;
                if found.issuer.trim_end_matches('/') != issuer {
                    return Err("the discovery document is of another issuer".to_owned());
                }
                check_address(&found.jwks_uri)?;
                found.jwks_uri
            }
        };
        self.document(&url).await
    }

    async fn document<T: serde::de::DeserializeOwned>(&self, url: &str) -> Result<T, String> {
        let said = |error: reqwest::Error| error.without_url().to_string();
        let mut response = self.http.get(url).send().await.map_err(said)?.error_for_status().map_err(said)?;
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(said)? {
            if bytes.len() + chunk.len() > DOCUMENT_BYTES_MAX {
                return Err(format!("more than {DOCUMENT_BYTES_MAX} bytes"));
            }
            bytes.extend_from_slice(&chunk);
        }
        serde_json::from_slice(&bytes).map_err(|error| error.to_string())
    }
}

#[derive(Deserialize)]
struct Discovery {
    issuer: String,
    jwks_uri: String,
}

/// The key of this id that makes signatures of this algorithm; without an id, the only one that does.
fn pick(keys: &[Jwk], kid: Option<&str>, algorithm: Algorithm) -> Option<DecodingKey> {
    let fits = |jwk: &&Jwk| {
        let is_named = kid.is_none_or(|kid| jwk.common.key_id.as_deref() == Some(kid));
        let declared = jwk.common.key_algorithm.and_then(|declared| declared.to_string().parse::<Algorithm>().ok());
        is_named && declared.is_none_or(|declared| declared == algorithm)
    };
    let mut fitting = keys
        .iter()
        .filter(fits)
        .filter_map(|jwk| DecodingKey::from_jwk(jwk).ok())
        .filter(|key| key.family() == algorithm.family());
    let first = fitting.next()?;
    // Without an id several keys may fit: which one is meant cannot be told.
    (kid.is_some() || fitting.next().is_none()).then_some(first)
}

fn check_address(url: &str) -> Result<(), String> {
    let parsed = reqwest::Url::parse(url).map_err(|_| format!("{url:?} is not an address"))?;
    let is_local = matches!(parsed.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"));
    match parsed.scheme() {
        "https" => Ok(()),
        "http" if is_local => Ok(()),
        _ => Err(format!("{url:?} must begin with https://, or keys could be exchanged on the way")),
    }
}
