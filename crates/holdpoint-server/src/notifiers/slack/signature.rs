//! Whether a request comes from Slack: its signature over time and body, to the byte as it arrived; a time that is now; and
//! no request twice.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use hmac::{Hmac, KeyInit as _, Mac as _};
use holdpoint_core::time::Timestamp;
use http::HeaderMap;
use secrecy::{ExposeSecret as _, SecretString};
use sha2::Sha256;

/// How far Slack's clock and ours may be apart.
pub(super) const TOLERANCE: Duration = Duration::from_secs(300);

/// How long a request is remembered: longer than it could still be timely.
const REMEMBERED: Duration = Duration::from_secs(600);

/// How many requests are remembered.
const REMEMBERED_MAX: usize = 100_000;

const SIGNATURE: &str = "x-slack-signature";
const TIMESTAMP: &str = "x-slack-request-timestamp";

/// Why a request is not believed. For the log; whoever sent it is not told which.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unbelieved {
    #[error("it has not exactly one signature and one timestamp")]
    Unsigned,
    #[error("its timestamp is more than {} seconds from now", TOLERANCE.as_secs())]
    Untimely,
    #[error("its signature does not fit")]
    Forged,
    #[error("it came before")]
    Replayed,
    #[error("too many requests came in a short time")]
    TooMany,
}

/// Checks requests with the app's key.
pub(super) struct Signatures {
    key: SecretString,
    /// Signatures that were believed, and until when they are remembered.
    seen: Mutex<HashMap<[u8; 32], Timestamp>>,
}

impl Signatures {
    pub(super) fn new(key: SecretString) -> Self {
        Self { key, seen: Mutex::default() }
    }

    /// Believes a request, once.
    ///
    /// # Errors
    /// Why it is not believed.
    pub(super) fn check(&self, headers: &HeaderMap, body: &[u8], now: Timestamp) -> Result<(), Unbelieved> {
        let timestamp = only(headers, TIMESTAMP).ok_or(Unbelieved::Unsigned)?;
        let signature = only(headers, SIGNATURE).and_then(bytes).ok_or(Unbelieved::Unsigned)?;
        let is_number = (1..=12).contains(&timestamp.len()) && timestamp.bytes().all(|byte| byte.is_ascii_digit());
        let sent: i64 = timestamp.parse().ok().filter(|_| is_number).ok_or(Unbelieved::Unsigned)?;
        if (now.as_millis() / 1_000).abs_diff(sent) > TOLERANCE.as_secs() {
            return Err(Unbelieved::Untimely);
        }
        let mut mac =
            Hmac::<Sha256>::new_from_slice(self.key.expose_secret().as_bytes()).expect("HMAC takes keys of any length");
        for part in [b"v0:", timestamp.as_bytes(), b":", body] {
            mac.update(part);
        }
        // Takes the same time wherever the two differ.
        mac.verify_slice(&signature).map_err(|_| Unbelieved::Forged)?;
        self.remember(signature, now)
    }

    fn remember(&self, signature: [u8; 32], now: Timestamp) -> Result<(), Unbelieved> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.len() >= REMEMBERED_MAX {
            seen.retain(|_, until| *until > now);
        }
        if seen.get(&signature).is_some_and(|until| *until > now) {
            return Err(Unbelieved::Replayed);
        }
        if seen.len() >= REMEMBERED_MAX {
            return Err(Unbelieved::TooMany);
        }
        seen.insert(signature, now.after(REMEMBERED));
        Ok(())
    }
}

/// The value of a header that is there exactly once.
fn only<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}

/// `v0=` and 64 lower-case hexadecimal digits.
fn bytes(signature: &str) -> Option<[u8; 32]> {
    let hex = signature.strip_prefix("v0=")?.as_bytes();
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    if hex.len() != 64 {
        return None;
    }
    let mut found = [0; 32];
    for (byte, pair) in found.iter_mut().zip(hex.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(found)
}

#[cfg(test)]
mod tests;
