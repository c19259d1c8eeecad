//! Another system, told of pauses by signed requests ([Standard Webhooks](https://www.standardwebhooks.com)).

use async_trait::async_trait;
use bytes::Bytes;
use holdpoint_runtime::ports::notifier::{self, Notice, NoticeKey, Notifier};
use holdpoint_tools::http::{AddressGuard, ClientFault, Forbidden};
use secrecy::SecretString;
use serde::Serialize;

use crate::protocols::native::{PauseDocument, pause_document};
use crate::webhooks::{BadSecret, Delivery, WebhookClient, WebhookSecret, deliver};

/// A system that is told of pauses.
pub struct Webhook {
    url: String,
    secret: WebhookSecret,
    client: WebhookClient,
}

/// Why a webhook cannot be used as it was given.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BadWebhook {
    /// It is not an address.
    #[error("the address is none")]
    Address,
    /// It is an address that is not called.
    #[error(transparent)]
    Forbidden(#[from] Forbidden),
    /// The key cannot sign.
    #[error(transparent)]
    Secret(#[from] BadSecret),
    /// No encrypted connection can be made.
    #[error("no TLS can be had")]
    Tls(#[from] ClientFault),
}

impl Webhook {
    /// A system at an address that the guard lets through.
    ///
    /// # Errors
    /// What an operator must change.
    pub fn new(url: &str, secret: &SecretString, guard: AddressGuard) -> Result<Self, BadWebhook> {
        guard.check(&url.parse().map_err(|_| BadWebhook::Address)?)?;
        let (secret, client) = (WebhookSecret::parse(secret)?, WebhookClient::new(guard)?);
        Ok(Self { url: url.to_owned(), secret, client })
    }
}

/// What is sent.
#[derive(Serialize)]
struct Event {
    r#type: &'static str,
    /// When it happened, not when it was sent: the same at every attempt.
    timestamp: String,
    data: PauseDocument,
}

#[async_trait]
impl Notifier for Webhook {
    async fn deliver(&self, notice: &Notice) -> notifier::Delivery {
        let body = match serde_json::to_vec(&event(notice)) {
            Ok(body) => Bytes::from(body),
            Err(_) => return notifier::Delivery::GaveUp { why: "the pause cannot be written as JSON".to_owned() },
        };
        match deliver(&self.client, &self.url, &self.secret, &id(&notice.key), notice.at, body).await {
            Delivery::Delivered => notifier::Delivery::Delivered { receipt: None },
            Delivery::Retry { after, why } => notifier::Delivery::Retry { after, why },
            Delivery::GaveUp { why } => notifier::Delivery::GaveUp { why },
        }
    }
}

fn event(notice: &Notice) -> Event {
    let outcome = super::outcome::Outcome::of(&notice.pause.pause);
    let (r#type, at) = match notice.key.kind {
        notifier::NoticeKind::Opened => ("pause.opened", notice.pause.pause.opened_at),
        notifier::NoticeKind::Settled => ("pause.settled", outcome.at),
    };
    Event { r#type, timestamp: at.to_string(), data: pause_document(&notice.run, &notice.pause, &notice.pause_key) }
}

/// The message's id, by which a receiver knows one that it had before.
fn id(key: &NoticeKey) -> String {
    format!("{}-{}-{}", key.pause, key.kind.name(), key.destination)
}
