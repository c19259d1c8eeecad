//! The settings that an agent may give its model. Each is known by name and form, and each protocol has its own word for
//! it; what nobody knows is refused, so that a misspelt setting is seen.
//!
//! | setting | form | chat | responses | messages |
//! | --- | --- | --- | --- | --- |
//! | `temperature` | number | yes | yes | yes |
//! | `top_p` | number | yes | yes | yes |
//! | `max_tokens` | whole number | yes | `max_output_tokens` | yes; 8192 where it is not given |
//! | `stop` | text, or a list of texts | yes | | `stop_sequences` |
//! | `tool_choice` | `auto`, `none`, `required`, or a tool's name | yes | yes | yes |
//! | `parallel_tool_calls` | true or false | yes | yes | yes |
//! | `reasoning_effort` | text | yes | `reasoning.effort` | |
//! | `reasoning_summary` | text | | `reasoning.summary` | |
//! | `thinking` | object | | | yes |
//! | `verbosity` | text | yes | `text.verbosity` | |
//! | `response_format` | object, as chat completions have it | yes | `text.format` | |
//! | `user` | text | yes | yes | `metadata.user_id` |
//! | `service_tier` | text | yes | yes | yes |
//! | `metadata` | object | yes | yes | |
//! | `prompt_cache_key`, `safety_identifier` | text | yes | yes | |
//! | `seed` | whole number | yes | | |
//! | `frequency_penalty`, `presence_penalty` | number | yes | | |
//! | `logit_bias` | object | yes | | |
//! | `top_k` | whole number | yes | | yes |
//! | `min_p`, `repetition_penalty` | number | yes | | |
//! | `chat_template_kwargs` | object | yes | | |
//!
//! A setting that a protocol has no word for is left out there: a model and the one that stands in for it share their
//! settings. [`unused`] names those, for a warning. The server behind an address may refuse what its protocol allows.

use serde_json::{Map, Value};

/// A setting that is not understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadSetting {
    /// The settings are not an object.
    #[error("the settings of a model are a mapping, such as temperature: 0.2")]
    NotAnObject,
    /// Nobody knows it.
    #[error("a model has no setting {name:?}; it has {}", known_names())]
    Unknown {
        /// As it was written.
        name: String,
    },
    /// Its value is of another form.
    #[error("the model's setting {name} must be {expected}")]
    WrongForm {
        /// The setting.
        name: &'static str,
        /// What it must be.
        expected: &'static str,
    },
}

/// A protocol that models speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// OpenAI's chat completions, and what is compatible with them.
    Chat,
    /// OpenAI's responses.
    Responses,
    /// Anthropic's messages.
    Messages,
}

/// Checks an agent's settings without asking anybody: every name is known and every value is of the right form.
///
/// # Errors
/// The first setting that is not.
pub fn check(settings: &Value) -> Result<(), BadSetting> {
    Known::read(settings).map(|_| ())
}

/// The settings that a protocol has no word for and leaves out.
pub fn unused(protocol: Protocol, settings: &Value) -> Vec<&'static str> {
    let Some(given) = settings.as_object() else { return Vec::new() };
    let is_left_out = |setting: &&Setting| given.contains_key(setting.name) && !setting.protocols.contains(&protocol);
    TABLE.iter().filter(is_left_out).map(|setting| setting.name).collect()
}

struct Setting {
    name: &'static str,
    form: Form,
    protocols: &'static [Protocol],
}

#[derive(Clone, Copy)]
enum Form {
    Number,
    Whole,
    Flag,
    Text,
    Texts,
    Object,
}

const ALL: &[Protocol] = &[Protocol::Chat, Protocol::Responses, Protocol::Messages];
const OPENAI: &[Protocol] = &[Protocol::Chat, Protocol::Responses];
const CHAT: &[Protocol] = &[Protocol::Chat];
const RESPONSES: &[Protocol] = &[Protocol::Responses];
const MESSAGES: &[Protocol] = &[Protocol::Messages];
const CHAT_AND_MESSAGES: &[Protocol] = &[Protocol::Chat, Protocol::Messages];

const TABLE: &[Setting] = &[
    Setting { name: "chat_template_kwargs", form: Form::Object, protocols: CHAT },
    Setting { name: "frequency_penalty", form: Form::Number, protocols: CHAT },
    Setting { name: "logit_bias", form: Form::Object, protocols: CHAT },
    Setting { name: "max_tokens", form: Form::Whole, protocols: ALL },
    Setting { name: "metadata", form: Form::Object, protocols: OPENAI },
    Setting { name: "min_p", form: Form::Number, protocols: CHAT },
    Setting { name: "parallel_tool_calls", form: Form::Flag, protocols: ALL },
    Setting { name: "presence_penalty", form: Form::Number, protocols: CHAT },
    Setting { name: "prompt_cache_key", form: Form::Text, protocols: OPENAI },
    Setting { name: "reasoning_effort", form: Form::Text, protocols: OPENAI },
    Setting { name: "reasoning_summary", form: Form::Text, protocols: RESPONSES },
    Setting { name: "repetition_penalty", form: Form::Number, protocols: CHAT },
    Setting { name: "response_format", form: Form::Object, protocols: OPENAI },
    Setting { name: "safety_identifier", form: Form::Text, protocols: OPENAI },
    Setting { name: "seed", form: Form::Whole, protocols: CHAT },
    Setting { name: "service_tier", form: Form::Text, protocols: ALL },
    Setting { name: "stop", form: Form::Texts, protocols: CHAT_AND_MESSAGES },
    Setting { name: "temperature", form: Form::Number, protocols: ALL },
    Setting { name: "thinking", form: Form::Object, protocols: MESSAGES },
    Setting { name: "tool_choice", form: Form::Text, protocols: ALL },
    Setting { name: "top_k", form: Form::Whole, protocols: CHAT_AND_MESSAGES },
    Setting { name: "top_p", form: Form::Number, protocols: ALL },
    Setting { name: "user", form: Form::Text, protocols: ALL },
    Setting { name: "verbosity", form: Form::Text, protocols: OPENAI },
];

fn known_names() -> String {
    TABLE.iter().map(|setting| setting.name).collect::<Vec<_>>().join(", ")
}

impl Form {
    fn fits(self, value: &Value) -> bool {
        match self {
            Self::Number => value.is_number(),
            Self::Whole => value.is_u64() || value.is_i64(),
            Self::Flag => value.is_boolean(),
            Self::Text => value.is_string(),
            Self::Texts => {
                value.is_string() || value.as_array().is_some_and(|texts| texts.iter().all(Value::is_string))
            }
            Self::Object => value.is_object(),
        }
    }

    fn expected(self) -> &'static str {
        match self {
            Self::Number => "a number",
            Self::Whole => "a whole number",
            Self::Flag => "true or false",
            Self::Text => "a text",
            Self::Texts => "a text or a list of texts",
            Self::Object => "a mapping",
        }
    }
}

/// Settings that were checked.
#[derive(Debug)]
pub(crate) struct Known<'a>(Option<&'a Map<String, Value>>);

impl<'a> Known<'a> {
    pub(crate) fn read(settings: &'a Value) -> Result<Self, BadSetting> {
        let given = match settings {
            Value::Null => return Ok(Self(None)),
            Value::Object(given) => given,
            _ => return Err(BadSetting::NotAnObject),
        };
        for (name, value) in given {
            let setting = TABLE.iter().find(|setting| setting.name == name);
            let setting = setting.ok_or_else(|| BadSetting::Unknown { name: name.clone() })?;
            if !value.is_null() && !setting.form.fits(value) {
                return Err(BadSetting::WrongForm { name: setting.name, expected: setting.form.expected() });
            }
        }
        Ok(Self(Some(given)))
    }

    /// A setting that was given and is not null.
    pub(crate) fn get(&self, name: &str) -> Option<&'a Value> {
        self.0?.get(name).filter(|value| !value.is_null())
    }

    pub(crate) fn text(&self, name: &str) -> Option<&'a str> {
        self.get(name)?.as_str()
    }

    /// Puts settings into a request under their own names.
    pub(crate) fn copy(&self, names: &[&str], body: &mut Map<String, Value>) {
        for name in names {
            if let Some(value) = self.get(name) {
                body.insert((*name).to_owned(), value.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn known_settings_of_the_right_form_are_fine() {
        for settings in [
            json!(null),
            json!({}),
            json!({"temperature": 0.2, "max_tokens": 100, "stop": ["a", "b"], "tool_choice": "auto"}),
            json!({"temperature": 1, "stop": "a", "parallel_tool_calls": false, "thinking": {"type": "enabled"}}),
            json!({"temperature": null}),
        ] {
            assert_eq!(check(&settings), Ok(()), "{settings}");
        }
    }

    #[test]
    fn a_setting_that_nobody_knows_or_of_another_form_is_named() {
        for (settings, expected) in [
            (json!([]), "the settings of a model are a mapping, such as temperature: 0.2"),
            (json!({"temperature": "warm"}), "the model's setting temperature must be a number"),
            (json!({"max_tokens": 1.5}), "the model's setting max_tokens must be a whole number"),
            (json!({"stop": [1]}), "the model's setting stop must be a text or a list of texts"),
        ] {
            assert_eq!(check(&settings).unwrap_err().to_string(), expected);
        }
        let told = check(&json!({"temprature": 1})).unwrap_err().to_string();
        assert!(told.starts_with("a model has no setting \"temprature\"; it has chat_template_kwargs, "), "{told}");
    }

    #[test]
    fn settings_that_a_protocol_leaves_out_can_be_named() {
        let settings = json!({"seed": 1, "thinking": {}, "temperature": 1});
        assert_eq!(unused(Protocol::Chat, &settings), ["thinking"]);
        assert_eq!(unused(Protocol::Responses, &settings), ["seed", "thinking"]);
        assert_eq!(unused(Protocol::Messages, &settings), ["seed"]);
        assert!(unused(Protocol::Chat, &json!(null)).is_empty());
    }

    #[test]
    fn the_documented_table_is_the_one_in_the_code() {
        let documented =
            include_str!("settings.rs").lines().take_while(|line| line.starts_with("//!")).collect::<String>();
        for setting in TABLE {
            assert!(documented.contains(&format!("`{}`", setting.name)), "{}", setting.name);
        }
        assert!(TABLE.is_sorted_by_key(|setting| setting.name));
    }
}
