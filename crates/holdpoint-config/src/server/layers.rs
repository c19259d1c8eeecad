//! Four layers of text: defaults, file, environment, flags.

use std::collections::BTreeMap;

use secrecy::{ExposeSecret, SecretString};

use super::settings::{SETTINGS, Setting};
use crate::diagnostic::{Code, Diagnostic, Severity};
use crate::environment::Environment;
use crate::source::Span;
use crate::yaml::Reader;

/// Flags as they were given: the flag's name without hyphens, and its value.
#[derive(Clone, Default)]
pub struct ServerFlags(BTreeMap<&'static str, SecretString>);

impl ServerFlags {
    /// No flags.
    pub fn none() -> Self {
        Self::default()
    }

    /// Adds a flag; the last one of a name counts. A boolean flag without a value is `true`.
    ///
    /// # Errors
    /// There is no such flag.
    pub fn set(&mut self, flag: &str, value: impl Into<String>) -> Result<(), UnknownFlag> {
        let setting = Setting::by_flag(flag).ok_or_else(|| UnknownFlag(flag.to_owned()))?;
        self.0.insert(setting.flag, SecretString::from(value.into()));
        Ok(())
    }

    pub(super) fn value(&self, flag: &str) -> Option<&SecretString> {
        self.0.get(flag)
    }
}

impl std::fmt::Debug for ServerFlags {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// A flag that does not exist.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no flag --{0}")]
pub struct UnknownFlag(String);

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Origin {
    Default,
    File(Span),
    Variable(&'static str),
    Flag(&'static str),
}

/// A setting's value before it is understood.
#[derive(Clone)]
pub(super) struct Raw {
    pub texts: Vec<SecretString>,
    pub origin: Origin,
}

impl Raw {
    /// The value as one text; a list has commas.
    pub(super) fn text(&self) -> String {
        self.texts.iter().map(ExposeSecret::expose_secret).collect::<Vec<_>>().join(",")
    }
}

/// The value of each setting, by key, from the last layer that has one.
pub(super) struct Layers(BTreeMap<&'static str, Raw>);

impl Layers {
    pub(super) fn new(
        mut file: BTreeMap<&'static str, Raw>,
        environment: &dyn Environment,
        flags: &ServerFlags,
    ) -> Self {
        let mut layers = BTreeMap::new();
        for setting in SETTINGS.iter().filter(|setting| !setting.key.is_empty()) {
            let one = |text: SecretString, origin| Raw { texts: vec![text], origin };
            let variables = [Some(setting.variable), setting.other_variable].into_iter().flatten();
            let from_environment = || {
                let set = |name| environment.value(name).filter(|value| !value.expose_secret().is_empty());
                variables.clone().find_map(|name| set(name).map(|value| one(value, Origin::Variable(name))))
            };
            let default =
                || Raw { texts: vec![SecretString::from(setting.default.to_owned())], origin: Origin::Default };
            let flag = flags.value(setting.flag).map(|value| one(value.clone(), Origin::Flag(setting.flag)));
            let found = flag.or_else(from_environment).or_else(|| file.remove(setting.key));
            match found {
                Some(raw) => {
                    layers.insert(setting.key, raw);
                }
                None if setting.default.is_empty() => {}
                None => {
                    layers.insert(setting.key, default());
                }
            }
        }
        Self(layers)
    }

    pub(super) fn get(&self, key: &str) -> Option<&Raw> {
        self.0.get(key)
    }
}

/// Reports a problem of a value at where it comes from. The value itself is not repeated: it may be a secret.
pub(super) fn report(reader: &Reader<'_>, origin: &Origin, code: Code, message: String, hint: String) {
    let outside =
        |name: String| Diagnostic::outside(name, Severity::Error, code, message.clone()).with_hint(hint.clone());
    match origin {
        Origin::File(span) => reader.error_with_hint(*span, code, message, hint),
        Origin::Variable(name) => reader.report(outside(format!("environment variable {name}"))),
        Origin::Flag(flag) => reader.report(outside(format!("flag --{flag}"))),
        Origin::Default => reader.report(outside("default".to_owned())),
    }
}
