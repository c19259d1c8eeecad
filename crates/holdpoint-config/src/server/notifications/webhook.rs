//! A system of somebody's own, told by signed requests.

use secrecy::SecretString;

use super::secret;
use crate::diagnostic::Code;
use crate::server::read::is_web_address;
use crate::yaml::{Fields, Reader};

/// A system that is told by signed requests.
#[derive(Debug, Clone)]
pub struct WebhookTarget {
    /// Where it listens.
    pub url: String,
    /// The key that signs (Standard Webhooks, `whsec_…`).
    pub secret: SecretString,
}

pub(super) fn read(reader: &Reader<'_>, fields: &Fields<'_>) -> Option<WebhookTarget> {
    let url = fields.required_text("url").and_then(|item| {
        let is_bare = !item.value.contains('@');
        if !is_web_address(item.value) || !is_bare {
            let hint = "write an address that begins with https://, without a password in it";
            reader.error_with_hint(item.span(), Code::BadUrl, "`url` is not an address to call", hint);
            return None;
        }
        Some(item.value.to_owned())
    });
    let is_key = |text: &str| text.starts_with("whsec_") && (38..=96).contains(&text.len());
    let hint = "it is `whsec_` and 24 to 64 bytes in base64: echo \"whsec_$(openssl rand -base64 32)\"";
    let secret = secret(reader, fields, "secret", is_key, hint);
    Some(WebhookTarget { url: url?, secret: secret? })
}
