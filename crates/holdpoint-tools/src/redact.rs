//! Takes secrets that a tool was given out of what it says: a server or a program may repeat what it was sent.

use secrecy::{ExposeSecret, SecretString};

/// What stands where a secret was.
const REDACTED: &str = "[redacted]";

/// Shorter values are words that happen to be configured, such as `on`; taking them out would spoil the text.
const BYTES_MIN: usize = 8;

/// What the name of a header or variable has in it when its value is a secret.
const NAMES: [&str; 8] = ["auth", "cookie", "credential", "key", "pass", "secret", "session", "token"];

/// Secrets to be taken out of text.
#[derive(Clone, Default)]
pub(crate) struct Redactor(Vec<SecretString>);

impl Redactor {
    /// Takes the value of a header or variable out where its name says that it is a secret. What is written out in the
    /// open, such as `Accept: application/json`, stays: without it an answer might make no sense.
    pub(crate) fn add_named(&mut self, name: &str, value: &SecretString) {
        let name = name.to_ascii_lowercase();
        if NAMES.iter().any(|part| name.contains(part)) {
            self.add(value);
        }
    }

    /// Takes this one out as well. Of `Bearer TOKEN` the token alone is a secret too.
    pub(crate) fn add(&mut self, secret: &SecretString) {
        let whole = secret.expose_secret().trim();
        let token = whole.split_once(' ').map(|(_, token)| token.trim());
        for part in [Some(whole), token].into_iter().flatten() {
            if part.len() >= BYTES_MIN {
                self.0.push(part.to_owned().into());
            }
        }
        // The longest first: a secret inside another one must not leave the rest of it behind.
        self.0.sort_by_key(|secret| std::cmp::Reverse(secret.expose_secret().len()));
    }

    /// The text without them.
    pub(crate) fn redact(&self, text: String) -> String {
        let known = |text: &String, secret: &SecretString| text.contains(secret.expose_secret());
        self.0.iter().fold(text, |text, secret| match known(&text, secret) {
            true => text.replace(secret.expose_secret(), REDACTED),
            false => text,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redactor(secrets: &[&str]) -> Redactor {
        let mut redactor = Redactor::default();
        for secret in secrets {
            redactor.add(&(*secret).to_owned().into());
        }
        redactor
    }

    #[test]
    fn a_secret_is_taken_out_wherever_it_stands_also_without_its_scheme() {
        let redactor = redactor(&["Bearer sk-0123456789"]);
        let text = redactor.redact("sent Bearer sk-0123456789, so sk-0123456789".to_owned());
        assert_eq!(text, "sent [redacted], so [redacted]");
    }

    #[test]
    fn a_secret_that_contains_another_goes_as_a_whole() {
        let redactor = redactor(&["abcdefgh", "abcdefgh-and-more"]);
        assert_eq!(redactor.redact("abcdefgh-and-more abcdefgh".to_owned()), "[redacted] [redacted]");
    }

    #[test]
    fn a_name_says_whether_its_value_is_a_secret() {
        for (name, is_taken_out) in [
            ("Authorization", true),
            ("X-Api-Key", true),
            ("DB_PASSWORD", true),
            ("Set-Cookie", true),
            ("Accept", false),
            ("MODE", false),
        ] {
            let mut redactor = Redactor::default();
            redactor.add_named(name, &"production".to_owned().into());
            assert_eq!(redactor.redact("production".to_owned()) == REDACTED, is_taken_out, "{name}");
        }
    }

    #[test]
    fn short_values_are_words_and_stay() {
        assert_eq!(redactor(&["on", ""]).redact("one moment".to_owned()), "one moment");
    }
}
