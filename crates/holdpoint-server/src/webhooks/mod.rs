//! Messages to other people's servers, signed as [Standard Webhooks](https://www.standardwebhooks.com) has it, so that a
//! receiver knows who sent them and that nobody sends them twice.
//!
//! One attempt is made here, and said when the next one is due. Whoever calls keeps what is still to be sent.

mod backoff;
mod deliver;
mod signature;

#[cfg(test)]
mod tests;

pub use backoff::{ATTEMPTS_MAX, backoff};
pub use deliver::{Delivery, WebhookClient, deliver};
pub use signature::{BadSecret, BadSignature, TOLERANCE, WebhookSecret, sign, verify};

/// The header with the message's id, by which a receiver knows a message that it had before.
pub const ID_HEADER: &str = "webhook-id";
/// The header with the time of the attempt, in seconds since 1970.
pub const TIMESTAMP_HEADER: &str = "webhook-timestamp";
/// The header with the signature over id, time and body.
pub const SIGNATURE_HEADER: &str = "webhook-signature";
