//! Tells whoever asked what was decided. One attempt is one call of a tool that may be repeated, so that a crash in the
//! middle is made good by the runtime, and what is still to be sent is read from the run.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use holdpoint_core::json::CanonicalJson;
use holdpoint_core::message::Content;
use holdpoint_core::time::Timestamp;
use holdpoint_runtime::Runtime;
use holdpoint_runtime::ports::tool::{RunTool, ToolContext, ToolFailure};
use holdpoint_tools::http::AddressGuard;
use serde::{Deserialize, Serialize};

use super::notice::Notice;
use super::{RequestFile, RequestId};
use crate::protocols::native::callback_body;
use crate::webhooks::{self, Delivery, WebhookClient, WebhookSecret};

/// How requests for approval are called back.
pub struct CallbackSettings {
    /// The key that callbacks are signed with.
    pub secret: WebhookSecret,
    /// Where callbacks may go; [`WebhookClient::guard`] lets them into the open internet, encrypted.
    pub guard: AddressGuard,
    /// How long to wait after so many attempts that did not work; `None` gives up.
    pub backoff: fn(attempts: u32, seed: u64) -> Option<Duration>,
}

impl CallbackSettings {
    /// Signed with this key, to the open internet, tried for about three days.
    pub fn new(secret: WebhookSecret) -> Self {
        Self { secret, guard: WebhookClient::guard(), backoff: webhooks::backoff }
    }
}

/// Callbacks could not be sent from this machine.
#[derive(Debug, thiserror::Error)]
#[error("callbacks cannot be sent from here")]
pub struct BadCallbacks(#[from] holdpoint_tools::http::ClientFault);

/// Sends callbacks. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Callbacks(Arc<Parts>);

struct Parts {
    secret: WebhookSecret,
    guard: AddressGuard,
    client: WebhookClient,
    backoff: fn(u32, u64) -> Option<Duration>,
}

/// The longest address that is called back.
const URL_BYTES_MAX: usize = 2048;

impl Callbacks {
    pub(crate) fn new(settings: CallbackSettings) -> Result<Self, BadCallbacks> {
        let client = WebhookClient::new(settings.guard.clone())?;
        let CallbackSettings { secret, guard, backoff } = settings;
        Ok(Self(Arc::new(Parts { secret, guard, client, backoff })))
    }

    /// Whether an address may be called back, as far as can be seen before it is resolved.
    ///
    /// # Errors
    /// Why not.
    pub(crate) fn check(&self, url: &str) -> Result<(), String> {
        let bad = || format!("an https address of at most {URL_BYTES_MAX} bytes expected");
        let url = Some(url).filter(|url| url.len() <= URL_BYTES_MAX).and_then(|url| reqwest::Url::parse(url).ok());
        self.0.guard.check(&url.ok_or_else(bad)?).map_err(|forbidden| forbidden.to_string())
    }

    async fn tell(&self, url: &str, id: RequestId, attempt: u32, now: Timestamp, body: Vec<u8>) -> Attempt {
        let message = format!("msg_{}", id.0.uuid().simple());
        let delivery = webhooks::deliver(&self.0.client, url, &self.0.secret, &message, now, body.into()).await;
        match delivery {
            Delivery::Delivered => Attempt { is_delivered: true, next_at_millis: None, is_over: true },
            Delivery::Retry { after, why } => {
                let (_, seed) = id.0.uuid().as_u64_pair();
                let wait = (self.0.backoff)(attempt, seed).map(|wait| after.map_or(wait, |after| wait.max(after)));
                tracing::info!(request.id = %id, attempt, why, "a callback did not arrive");
                let next_at_millis = wait.map(|wait| now.after(wait).as_millis());
                Attempt { is_delivered: false, next_at_millis, is_over: wait.is_none() }
            }
            Delivery::GaveUp { why } => {
                tracing::warn!(request.id = %id, attempt, why, "a callback is given up");
                Attempt { is_delivered: false, next_at_millis: None, is_over: true }
            }
        }
    }
}

/// What came of an attempt, as the run keeps it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Attempt {
    /// Whether it arrived.
    pub(super) is_delivered: bool,
    /// When it is tried again.
    pub(super) next_at_millis: Option<i64>,
    /// Whether it is tried no more.
    pub(super) is_over: bool,
}

impl Attempt {
    /// Reads what was kept. What cannot be read did not arrive, and is tried again at once.
    pub(super) fn read(output: &Content) -> Self {
        let read = match output {
            Content::Json(json) => json.decode().ok(),
            Content::Text(_) | Content::Parts(_) => None,
        };
        read.unwrap_or(Self { is_delivered: false, next_at_millis: None, is_over: false })
    }

    /// What is kept.
    pub(super) fn write(&self) -> Content {
        CanonicalJson::from_serialize(self).map_or_else(|problem| Content::Text(problem.to_string()), Content::Json)
    }
}

/// The tool that makes an attempt.
pub(super) struct Teller {
    runtime: Runtime,
    callbacks: Option<Callbacks>,
}

impl Teller {
    pub(super) fn new(runtime: &Runtime, callbacks: Option<&Callbacks>) -> Self {
        Self { runtime: runtime.clone(), callbacks: callbacks.cloned() }
    }
}

#[derive(Deserialize)]
struct Arguments {
    attempt: u32,
}

#[async_trait]
impl RunTool for Teller {
    async fn run(&self, context: ToolContext, arguments: CanonicalJson) -> Result<Content, ToolFailure> {
        let Arguments { attempt } = arguments.decode().map_err(ToolFailure::new)?;
        let notice = context.context.decode::<Notice>().ok();
        let id = notice.map_or(RequestId(context.run), Notice::request);
        let file = RequestFile::read(&self.runtime, id).await.map_err(ToolFailure::new)?;
        let file = file.ok_or_else(|| ToolFailure::new("there is no such request"))?;
        let now = self.runtime.store().now();
        let told = match (&self.callbacks, &file.terms.callback_url) {
            (Some(callbacks), Some(url)) => {
                let body = serde_json::to_vec(&callback_body(&file, now)).map_err(ToolFailure::new)?;
                callbacks.tell(url, id, attempt, now, body).await
            }
            // The key to sign with was taken away since: there is nothing to be sent until it is back.
            (None, _) => {
                let next_at_millis = webhooks::backoff(attempt, 0).map(|wait| now.after(wait).as_millis());
                Attempt { is_delivered: false, next_at_millis, is_over: next_at_millis.is_none() }
            }
            (Some(_), None) => Attempt { is_delivered: false, next_at_millis: None, is_over: true },
        };
        Ok(told.write())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn callbacks(guard: AddressGuard) -> Callbacks {
        let secret = WebhookSecret::parse(&"whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz".to_owned().into()).unwrap();
        Callbacks::new(CallbackSettings { guard, ..CallbackSettings::new(secret) }).unwrap()
    }

    #[test]
    fn only_addresses_that_the_operator_lets_are_called_back() {
        let open = callbacks(WebhookClient::guard());
        assert_eq!(open.check("https://hooks.example/holdpoint?x=1"), Ok(()));
        for bad in [
            "",
            "hooks.example",
            "http://hooks.example/",
            "https://127.0.0.1/",
            "https://[::ffff:127.0.0.1]/",
            "https://169.254.169.254/latest",
            "https://2130706433/",
            "https://user:pass@hooks.example/",
            "file:///etc/passwd",
            &format!("https://hooks.example/{}", "x".repeat(2048)),
        ] {
            assert!(open.check(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn an_attempt_is_read_as_it_was_kept() {
        let attempt = Attempt { is_delivered: false, next_at_millis: Some(17), is_over: false };
        assert_eq!(Attempt::read(&attempt.write()), attempt);
        assert!(!Attempt::read(&Content::Text("odd".to_owned())).is_delivered);
    }
}
