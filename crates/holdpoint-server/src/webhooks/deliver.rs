//! One attempt at delivering a message. The answer's body is neither read nor told: whoever gave us the address would
//! learn from it what stands behind addresses that only we can reach.

use std::time::Duration;

use bytes::Bytes;
use holdpoint_core::time::Timestamp;
use holdpoint_tools::http::{AddressGuard, ClientFault, Forbidden, GuardedClient};
use reqwest::header::{CONTENT_TYPE, HeaderMap, RETRY_AFTER};
use reqwest::{Method, Response, StatusCode, Url};

use crate::webhooks::signature::seconds;
use crate::webhooks::{ID_HEADER, SIGNATURE_HEADER, TIMESTAMP_HEADER, WebhookSecret, sign};

/// The connections over which messages go out. Cheap to clone.
#[derive(Clone)]
pub struct WebhookClient {
    client: GuardedClient,
    timeout: Duration,
}

/// What came of an attempt. `why` is for the operator's log; it shows neither address nor answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delivery {
    /// The receiver has it.
    Delivered,
    /// It did not work this time.
    Retry {
        /// What the receiver asks for, where it does: not before so long.
        after: Option<Duration>,
        /// What went wrong.
        why: String,
    },
    /// It is of no use to try again.
    GaveUp {
        /// What went wrong.
        why: String,
    },
}

impl WebhookClient {
    /// How long an attempt may take, unless said otherwise.
    pub const TIMEOUT: Duration = Duration::from_secs(5);
    /// The longest wait that a receiver can ask for.
    pub const RETRY_AFTER_MAX: Duration = Duration::from_secs(24 * 60 * 60);

    /// What messages may reach unless an operator says otherwise: the open internet, encrypted.
    pub fn guard() -> AddressGuard {
        AddressGuard::new().any_port().https_only()
    }

    /// Sends messages where this guard lets them.
    ///
    /// # Errors
    /// The system's certificates cannot be read.
    pub fn new(guard: AddressGuard) -> Result<Self, ClientFault> {
        Ok(Self { client: GuardedClient::new(guard)?, timeout: Self::TIMEOUT })
    }

    /// How long an attempt may take.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }
}

/// Posts a JSON body to `url`, signed for the time `now`. Follows no redirect. The id is the same at every attempt at a
/// message; a receiver that had it before can tell.
pub async fn deliver(
    client: &WebhookClient,
    url: &str,
    secret: &WebhookSecret,
    id: &str,
    now: Timestamp,
    body: Bytes,
) -> Delivery {
    let is_id = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if id.is_empty() || !id.chars().all(is_id) {
        return give_up("the message's id is not of letters, digits, - and _");
    }
    let Ok(url) = Url::parse(url) else { return give_up("the address is none") };
    let request = match client.client.request(Method::POST, url) {
        Ok(request) => request,
        Err(forbidden) => return give_up(forbidden),
    };
    let request = request
        .header(CONTENT_TYPE, "application/json")
        .header(ID_HEADER, id)
        .header(TIMESTAMP_HEADER, seconds(now))
        .header(SIGNATURE_HEADER, sign(secret, id, now, &body))
        .body(body);
    match tokio::time::timeout(client.timeout, request.send()).await {
        Ok(Ok(response)) => read(&response, now),
        Ok(Err(error)) => refused_or_later(&error),
        Err(_) => retry(None, format!("no answer within {:?}", client.timeout)),
    }
}

fn read(response: &Response, now: Timestamp) -> Delivery {
    let status = response.status();
    match status {
        _ if status.is_success() => Delivery::Delivered,
        StatusCode::GONE => give_up("the receiver answered 410: it wants no more of these"),
        _ => retry(retry_after(response.headers(), now), format!("the receiver answered {}", status.as_u16())),
    }
}

fn refused_or_later(error: &reqwest::Error) -> Delivery {
    match Forbidden::behind(error) {
        Some(forbidden) => give_up(forbidden),
        None if error.is_connect() => retry(None, "the receiver was not reached".to_owned()),
        None => retry(None, "the receiver's answer broke off".to_owned()),
    }
}

/// Seconds, or a date.
fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let wait = match text.parse() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => {
            let date = jiff::fmt::rfc2822::parse(text).ok()?;
            Timestamp::from_millis(date.timestamp().as_millisecond()).since(now)
        }
    };
    Some(wait.min(WebhookClient::RETRY_AFTER_MAX))
}

fn retry(after: Option<Duration>, why: String) -> Delivery {
    Delivery::Retry { after, why }
}

fn give_up(why: impl ToString) -> Delivery {
    Delivery::GaveUp { why: why.to_string() }
}
