//! What goes wrong between a model and us, whether it is worth another attempt, and how it is told: with what to check,
//! with the provider's own words made harmless, and without the key.

use std::sync::Arc;
use std::time::Duration;

use holdpoint_core::text::{clamp, visible};
use holdpoint_runtime::ports::model::ModelFault;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Value;

use crate::settings::BadSetting;

/// Why there is no reply.
#[derive(Debug)]
pub(crate) enum Problem {
    /// The provider needs a key, and there is none.
    NoKey,
    /// No connection can be made from this machine.
    NoClient {
        reason: Arc<str>,
    },
    /// A setting of the agent is not understood.
    Setting(BadSetting),
    /// The request did not get through, or the answer broke off before anything of it was read.
    Unreachable {
        source: reqwest::Error,
    },
    /// The answer broke off.
    Broken {
        source: reqwest::Error,
    },
    /// Nothing came for too long.
    TimedOut {
        what: &'static str,
        after: Duration,
    },
    /// A status that is no success.
    Status {
        status: u16,
        message: String,
        wait: Option<Duration>,
        will_last: bool,
    },
    /// An error in the place of a reply, or in the middle of one.
    Told {
        message: String,
        will_last: bool,
    },
    /// The stream ended before the reply was whole.
    CutShort,
    /// Not what the protocol says.
    Unreadable {
        what: String,
    },
    /// The provider kept the reply to itself.
    Withheld {
        reason: String,
    },
    /// The limit of tokens was reached in the middle of a tool call.
    OutOfTokens,
    BodyTooLarge {
        bytes_max: usize,
    },
    EventTooLarge {
        bytes_max: usize,
    },
    ReplyTooLarge {
        bytes_max: usize,
    },
    TooManyCalls {
        calls_max: usize,
    },
}

/// Who is asked, for the words of a fault.
#[derive(Debug, Clone)]
pub(crate) struct Whom {
    /// Such as `openai/gpt-4o`.
    pub(crate) name: String,
    /// The model's name at the provider.
    pub(crate) model: String,
    /// Host and port.
    pub(crate) host: String,
    pub(crate) key_variable: &'static str,
    pub(crate) address_variable: &'static str,
    /// What must not be told.
    pub(crate) key: Option<SecretString>,
}

/// How much of a provider's own words is told.
const WORDS_BYTES_MAX: usize = 600;

/// How much of them is kept until then: more, so that a key in them is found whole.
pub(crate) const WORDS_KEPT_BYTES_MAX: usize = 4_096;

impl Problem {
    /// Whether asking again later may help.
    pub(crate) fn may_retry(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::Broken { .. } | Self::TimedOut { .. } | Self::CutShort => true,
            Self::Status { status, will_last, .. } => !will_last && is_passing(*status),
            Self::Told { will_last, .. } => !will_last,
            Self::NoKey
            | Self::NoClient { .. }
            | Self::Setting(_)
            | Self::Unreadable { .. }
            | Self::Withheld { .. }
            | Self::OutOfTokens
            | Self::BodyTooLarge { .. }
            | Self::EventTooLarge { .. }
            | Self::ReplyTooLarge { .. }
            | Self::TooManyCalls { .. } => false,
        }
    }

    /// Whether to ask again right away. Not after a time-out: whoever waited that long has waited enough.
    pub(crate) fn is_worth_another_attempt(&self) -> bool {
        self.may_retry() && !matches!(self, Self::TimedOut { .. })
    }

    /// How long the provider asks us to wait.
    pub(crate) fn wait(&self) -> Option<Duration> {
        match self {
            Self::Status { wait, .. } => *wait,
            _ => None,
        }
    }

    /// The problem as the runtime is told it.
    pub(crate) fn into_fault(self, whom: &Whom, attempts: u32) -> ModelFault {
        let may_retry = self.may_retry();
        let mut message = self.text(whom);
        if attempts > 1 {
            message.push_str(&format!(" (after {attempts} attempts)"));
        }
        let source: Option<Box<dyn std::error::Error + Send + Sync>> = match self {
            Self::Unreachable { source } | Self::Broken { source } => Some(Box::new(source.without_url())),
            Self::Setting(problem) => Some(Box::new(problem)),
            _ => None,
        };
        ModelFault { model: whom.name.clone(), message, may_retry, source }
    }

    fn text(&self, whom: &Whom) -> String {
        let Whom { host, model, key_variable, address_variable, .. } = whom;
        match self {
            Self::NoKey => format!(
                "there is no key for {host}: set {key_variable}, or {address_variable} for a server that needs none"
            ),
            Self::NoClient { reason } => {
                format!("no encrypted connection can be made ({reason}): install the system's CA certificates")
            }
            Self::Setting(problem) => problem.to_string(),
            Self::Unreachable { source } if source.is_connect() => {
                format!("{host} cannot be reached: check {address_variable} and the network")
            }
            Self::Unreachable { .. } => format!("{host} closed the connection without an answer"),
            Self::Broken { .. } => format!("the connection to {host} broke in the middle of the reply"),
            Self::TimedOut { what, after } => format!("{host} {what} within {} seconds", after.as_secs_f64()),
            Self::Status { status, message, wait, .. } => {
                let mut text = format!("{host} answered {status}");
                if !message.is_empty() {
                    text.push_str(&format!(": {}", whom.harmless(message)));
                }
                if let Some(advice) = advice(*status, model, key_variable, address_variable) {
                    text.push_str(&format!("; {advice}"));
                }
                if let Some(wait) = wait {
                    text.push_str(&format!("; it asks to wait {} seconds", wait.as_secs_f64().ceil()));
                }
                text
            }
            Self::Told { message, .. } => format!("{host} gave an error in its reply: {}", whom.harmless(message)),
            Self::CutShort => format!("the stream from {host} ended before the reply was whole"),
            Self::Unreadable { what } => {
                format!("{host} did not answer as a model does: {}; check {address_variable}", whom.harmless(what))
            }
            Self::Withheld { reason } => format!("{host} withheld the reply: {}", whom.harmless(reason)),
            Self::OutOfTokens => {
                "the limit of tokens was reached in the middle of a tool call: raise max_tokens".to_owned()
            }
            Self::BodyTooLarge { bytes_max } => format!("the answer of {host} is larger than {bytes_max} bytes"),
            Self::EventTooLarge { bytes_max } => {
                format!("an event in the stream from {host} is larger than {bytes_max} bytes")
            }
            Self::ReplyTooLarge { bytes_max } => {
                format!("the reply is larger than {bytes_max} bytes, the most that a run takes: lower max_tokens")
            }
            Self::TooManyCalls { calls_max } => format!("the reply has more than {calls_max} tool calls"),
        }
    }
}

impl Whom {
    /// A stranger's words, without the key, short, and with nothing hidden in them.
    fn harmless(&self, words: &str) -> String {
        let mut words = words.to_owned();
        if let Some(key) = self.key.as_ref().map(|key| key.expose_secret()).filter(|key| !key.is_empty()) {
            words = words.replace(key, "[key]");
        }
        let shown = visible(clamp(words.trim(), WORDS_BYTES_MAX)).replace(['\n', '\t'], " ");
        if words.trim().len() > WORDS_BYTES_MAX { format!("{shown}…") } else { shown }
    }
}

/// Statuses that pass by themselves.
pub(crate) fn is_passing(status: u16) -> bool {
    matches!(status, 408 | 425 | 429) || (500..600).contains(&status) && status != 501 && status != 505
}

fn advice(status: u16, model: &str, key_variable: &str, address_variable: &str) -> Option<String> {
    match status {
        401 => Some(format!("check the key in {key_variable}")),
        403 => Some(format!("check that the key in {key_variable} may use the model {model:?}")),
        404 => Some(format!("check the model's name {model:?} and {address_variable}")),
        300..=399 => Some(format!("redirects are not followed: set {address_variable} to the final address")),
        _ => None,
    }
}

/// The message of an error, in any of the forms that servers give it.
pub(crate) fn message_of(body: &Value) -> Option<String> {
    let error = body.get("error").filter(|error| !error.is_null());
    let found = [error.and_then(|error| error.get("message")), error, body.get("message"), body.get("detail")];
    found.into_iter().flatten().find_map(|found| match found {
        Value::String(text) if !text.trim().is_empty() => Some(text.clone()),
        Value::Array(_) => Some(found.to_string()),
        _ => None,
    })
}

/// Whether asking again will not help, as far as the error says so.
pub(crate) fn will_last(error: &Value) -> bool {
    let of = |name: &str| error[name].as_str().unwrap_or_default();
    let lasting = [
        "invalid_request_error",
        "authentication_error",
        "permission_error",
        "not_found_error",
        "request_too_large",
        "billing_error",
        "insufficient_quota",
        "invalid_prompt",
        "context_length_exceeded",
        "model_not_found",
        "BadRequestError",
        "NotFoundError",
    ];
    let status = error["code"].as_u64().and_then(|code| u16::try_from(code).ok()).filter(|code| *code >= 400);
    lasting.contains(&of("type")) || lasting.contains(&of("code")) || status.is_some_and(|status| !is_passing(status))
}

/// An error object in the place of a reply, or in the middle of one.
pub(crate) fn told(body: &Value) -> Problem {
    let error = body.get("error").filter(|error| error.is_object()).unwrap_or(body);
    let message = message_of(body).unwrap_or_else(|| clamp(&error.to_string(), WORDS_KEPT_BYTES_MAX).to_owned());
    Problem::Told { message, will_last: will_last(error) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn whom() -> Whom {
        Whom {
            name: "openai/gpt-4o".to_owned(),
            model: "gpt-4o".to_owned(),
            host: "api.example".to_owned(),
            key_variable: "OPENAI_API_KEY",
            address_variable: "OPENAI_BASE_URL",
            key: Some("sk-secret".into()),
        }
    }

    fn status(status: u16, message: &str) -> Problem {
        Problem::Status { status, message: message.to_owned(), wait: None, will_last: false }
    }

    #[test]
    fn a_status_says_what_to_check() {
        for (code, expected) in [
            (401, "api.example answered 401: no; check the key in OPENAI_API_KEY"),
            (403, "api.example answered 403: no; check that the key in OPENAI_API_KEY may use the model \"gpt-4o\""),
            (404, "api.example answered 404: no; check the model's name \"gpt-4o\" and OPENAI_BASE_URL"),
            (308, "api.example answered 308: no; redirects are not followed: set OPENAI_BASE_URL to the final address"),
            (500, "api.example answered 500: no"),
        ] {
            assert_eq!(status(code, "no").into_fault(&whom(), 1).message, expected);
        }
    }

    #[test]
    fn a_strangers_words_are_clamped_made_visible_and_rid_of_the_key() {
        let fault = status(400, &format!("bad\u{202e}\nkey sk-secret {}", "x".repeat(5_000))).into_fault(&whom(), 1);
        assert!(fault.message.starts_with("api.example answered 400: bad⟦U+202E⟧ key [key] xxx"), "{}", fault.message);
        assert!(fault.message.len() < 700 && fault.message.ends_with('…'), "{}", fault.message);
    }

    #[test]
    fn what_may_be_asked_again_and_what_not() {
        for (problem, may_retry, at_once) in [
            (status(408, ""), true, true),
            (status(429, ""), true, true),
            (status(500, ""), true, true),
            (status(529, ""), true, true),
            (status(501, ""), false, false),
            (status(400, ""), false, false),
            (status(401, ""), false, false),
            (status(404, ""), false, false),
            (Problem::Status { status: 429, message: String::new(), wait: None, will_last: true }, false, false),
            (Problem::TimedOut { what: "said nothing", after: Duration::from_secs(1) }, true, false),
            (Problem::CutShort, true, true),
            (Problem::NoKey, false, false),
            (Problem::OutOfTokens, false, false),
            (told(&json!({"error": {"type": "overloaded_error", "message": "x"}})), true, true),
            (told(&json!({"error": {"type": "invalid_request_error", "message": "x"}})), false, false),
            (told(&json!({"error": {"code": 400, "message": "x"}})), false, false),
            (told(&json!({"error": {"code": 503, "message": "x"}})), true, true),
        ] {
            assert_eq!((problem.may_retry(), problem.is_worth_another_attempt()), (may_retry, at_once), "{problem:?}");
        }
    }

    #[test]
    fn the_message_is_found_in_every_form_of_error() {
        for (body, expected) in [
            (json!({"error": {"message": "a", "type": "t"}}), Some("a")),
            (json!({"error": "b"}), Some("b")),
            (json!({"object": "error", "message": "c"}), Some("c")),
            (json!({"detail": "d"}), Some("d")),
            (json!({"detail": [{"loc": ["body"]}]}), Some(r#"[{"loc":["body"]}]"#)),
            (json!({"error": null, "message": "e"}), Some("e")),
            (json!({"error": {}}), None),
            (json!([]), None),
        ] {
            assert_eq!(message_of(&body).as_deref(), expected);
        }
    }
}
