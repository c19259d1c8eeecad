//! Mail: the server that takes it, who writes, and who is written to.

use secrecy::SecretString;

use super::secret;
use crate::diagnostic::{Code, quoted};
use crate::yaml::{Fields, Item, Reader};

/// People who are told by mail.
#[derive(Debug, Clone)]
pub struct EmailTarget {
    /// The mail server, such as `smtps://USER@HOST:465`.
    pub smtp: String,
    /// The user's password, where the address names a user.
    pub password: Option<SecretString>,
    /// Who writes.
    pub from: String,
    /// Who is written to.
    pub to: Vec<String>,
}

/// The most people that a letter goes to.
const RECIPIENTS_MAX: usize = 32;

pub(super) fn read(reader: &Reader<'_>, fields: &Fields<'_>) -> Option<EmailTarget> {
    let smtp = fields.required_text("smtp").and_then(|item| server(reader, &item));
    let is_password = |text: &str| (1..=1_024).contains(&text.len());
    let has_user = smtp.as_deref().is_some_and(|smtp| smtp.contains('@'));
    let password = match fields.key_span("password") {
        Some(_) => Some(secret(reader, fields, "password", is_password, "it is empty or far too long")),
        None => {
            // Asked for, so that it is known as a field.
            fields.get("password");
            if has_user {
                let hint = "add `password: ${NAME}`, or take the user out of `smtp`";
                let message = "`password` of the user in `smtp` is missing";
                reader.error_with_hint(fields.span, Code::MissingField, message, hint);
                return None;
            }
            None
        }
    };
    let from = fields.required_text("from").and_then(|item| mailbox(reader, "from", &item));
    let to: Vec<Option<String>> =
        fields.texts("to", RECIPIENTS_MAX).iter().map(|item| mailbox(reader, "to", item)).collect();
    if to.is_empty() {
        let hint = "add `to` with a list of addresses";
        reader.error_with_hint(fields.span, Code::MissingField, "nobody would be told: `to` is missing", hint);
        return None;
    }
    Some(EmailTarget {
        smtp: smtp?,
        password: match password {
            Some(given) => Some(given?),
            None => None,
        },
        from: from?,
        to: to.into_iter().collect::<Option<_>>()?,
    })
}

fn server(reader: &Reader<'_>, item: &Item<'_, &str>) -> Option<String> {
    let rest = item.value.split_once("://").map(|(scheme, rest)| (scheme, rest.split('/').next().unwrap_or_default()));
    let user = rest.and_then(|(_, rest)| rest.rsplit_once('@')).map(|(user, _)| user);
    let hint = "write `smtps://USER@HOST:465` or `smtp+starttls://USER@HOST:587`, and the password as `password`";
    match rest {
        // A password in the address would be shown wherever the address is.
        _ if user.is_some_and(|user| user.contains(':')) => {
            reader.error_with_hint(item.span(), Code::SecretInFile, "`smtp` has a password in it", hint);
            None
        }
        Some(("smtps" | "smtp+starttls" | "smtp", host)) if !host.is_empty() => Some(item.value.to_owned()),
        _ => {
            reader.error_with_hint(item.span(), Code::BadUrl, "`smtp` is not the address of a mail server", hint);
            None
        }
    }
}

/// An address, with or without a name before it.
fn mailbox(reader: &Reader<'_>, key: &str, item: &Item<'_, &str>) -> Option<String> {
    let address = item.value.rsplit_once('<').map_or(item.value, |(_, rest)| rest.trim_end().trim_end_matches('>'));
    let is_address = address.split_once('@').is_some_and(|(name, domain)| !name.is_empty() && !domain.is_empty());
    if !is_address || item.value.len() > 320 || item.value.chars().any(char::is_control) {
        let message = format!("`{key}` cannot be {}", quoted(item.value));
        reader.error_with_hint(
            item.span(),
            Code::BadValue,
            message,
            "write `Ana <ana@example.com>` or `ana@example.com`",
        );
        return None;
    }
    Some(item.value.to_owned())
}
