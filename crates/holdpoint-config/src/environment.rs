//! Where `${NAME}` is looked up: the process's environment, or names and values that a test gives.

use std::collections::BTreeMap;

use secrecy::SecretString;

/// Named values. Each is treated as a secret, since many are.
pub trait Environment {
    /// The value of `name`, or `None` where it is not set or is not text.
    fn value(&self, name: &str) -> Option<SecretString>;
}

/// The environment of this process.
#[derive(Debug, Clone, Copy, Default)]
pub struct ProcessEnvironment;

impl Environment for ProcessEnvironment {
    fn value(&self, name: &str) -> Option<SecretString> {
        std::env::var(name).ok().map(SecretString::from)
    }
}

/// Names and values that are given. Its `Debug` shows names only.
#[derive(Clone, Default)]
pub struct FixedEnvironment(BTreeMap<String, SecretString>);

impl FixedEnvironment {
    /// An environment in which nothing is set.
    pub fn empty() -> Self {
        Self::default()
    }

    /// The same environment with one value more.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.0.insert(name.into(), SecretString::from(value.into()));
        self
    }
}

impl Environment for FixedEnvironment {
    fn value(&self, name: &str) -> Option<SecretString> {
        self.0.get(name).cloned()
    }
}

impl std::fmt::Debug for FixedEnvironment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}
