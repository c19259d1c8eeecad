//! Signs a message and checks a signature: HMAC-SHA256 over `id.timestamp.body`.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use holdpoint_core::time::Timestamp;
use secrecy::{ExposeSecret, SecretSlice, SecretString};
use sha2::Sha256;

/// How far the clocks of sender and receiver may be apart. An older message may be a repeated one.
pub const TOLERANCE: Duration = Duration::from_secs(300);

/// The key that sender and receiver share. Not shown by `Debug`.
#[derive(Debug)]
pub struct WebhookSecret(SecretSlice<u8>);

/// The text is not a key. Does not show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a webhook secret is whsec_ and 24 to 64 bytes in base64")]
pub struct BadSecret;

/// Why a signature does not hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadSignature {
    /// The time is not a number of seconds.
    #[error("the webhook-timestamp is not a number of seconds")]
    Timestamp,
    /// The message is from another time.
    #[error("the webhook-timestamp is more than {} seconds from now", TOLERANCE.as_secs())]
    Untimely,
    /// None of the signatures is ours.
    #[error("no signature in webhook-signature fits the message")]
    NoMatch,
}

impl WebhookSecret {
    /// Reads `whsec_…`. What follows the prefix is base64.
    ///
    /// # Errors
    /// It is not of that form, or has not 24 to 64 bytes.
    pub fn parse(text: &SecretString) -> Result<Self, BadSecret> {
        let key = text.expose_secret().strip_prefix("whsec_").ok_or(BadSecret)?;
        let key = STANDARD.decode(key).map_err(|_| BadSecret)?;
        if (24..=64).contains(&key.len()) { Ok(Self(key.into())) } else { Err(BadSecret) }
    }

    fn mac(&self, id: &str, timestamp: &str, body: &[u8]) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new_from_slice(self.0.expose_secret()).expect("HMAC takes keys of any length");
        for part in [id.as_bytes(), b".", timestamp.as_bytes(), b".", body] {
            mac.update(part);
        }
        mac
    }
}

/// The signature of a message, as it stands in `webhook-signature`. The time counts in whole seconds, which is what
/// stands in `webhook-timestamp`. An id has no dot: dots are what keeps the signed parts apart.
pub fn sign(secret: &WebhookSecret, id: &str, timestamp: Timestamp, body: &[u8]) -> String {
    let mac = secret.mac(id, &seconds(timestamp), body);
    format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
}

/// Checks the three headers of a message against its body, to the byte as it arrived. `signatures` may hold several,
/// apart by spaces, while a sender changes its key.
///
/// # Errors
/// Why the message is not to be believed.
pub fn verify(
    secret: &WebhookSecret,
    id: &str,
    timestamp: &str,
    signatures: &str,
    body: &[u8],
    now: Timestamp,
) -> Result<(), BadSignature> {
    let is_number = !timestamp.is_empty() && timestamp.len() <= 12 && timestamp.bytes().all(|b| b.is_ascii_digit());
    let sent: i64 = timestamp.parse().ok().filter(|_| is_number).ok_or(BadSignature::Timestamp)?;
    if (now.as_millis() / 1_000).abs_diff(sent) > TOLERANCE.as_secs() {
        return Err(BadSignature::Untimely);
    }
    let is_ours = |signature: &str| {
        let given = signature.strip_prefix("v1,").and_then(|given| STANDARD.decode(given).ok());
        // Takes the same time wherever the two differ.
        given.is_some_and(|given| secret.mac(id, timestamp, body).verify_slice(&given).is_ok())
    };
    if signatures.split(' ').take(8).any(is_ours) { Ok(()) } else { Err(BadSignature::NoMatch) }
}

/// The time as it stands in `webhook-timestamp`.
pub(super) fn seconds(timestamp: Timestamp) -> String {
    (timestamp.as_millis() / 1_000).to_string()
}
