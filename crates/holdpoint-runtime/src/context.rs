//! The application's own data for a run. Plain fields are stored with the run; secret ones never leave the process.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use holdpoint_core::json::{CanonicalJson, JsonProblem};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// What tools, predicates and guardrails are told by the application. Cheap to clone.
#[derive(Clone, Default)]
pub struct Context {
    data: Arc<Value>,
    secrets: Arc<BTreeMap<String, Value>>,
}

impl Context {
    /// Data that is stored with the run.
    ///
    /// # Errors
    /// The value has no JSON form.
    pub fn new(data: &impl Serialize) -> Result<Self, JsonProblem> {
        // Through the canonical form, so that what tools see is what a later process will see.
        Ok(Self { data: Arc::new(CanonicalJson::from_serialize(data)?.to_value()), secrets: Arc::default() })
    }

    /// The context that a stored run carries.
    pub fn stored(data: Option<&CanonicalJson>) -> Self {
        Self { data: Arc::new(data.map_or(Value::Null, CanonicalJson::to_value)), secrets: Arc::default() }
    }

    /// Adds a field that is never stored, logged or exported.
    #[must_use]
    pub fn with_secret(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        Arc::make_mut(&mut self.secrets).insert(name.into(), value.into());
        self
    }

    /// The stored data.
    pub fn data(&self) -> &Value {
        &self.data
    }

    /// The stored data as a type of one's own.
    ///
    /// # Errors
    /// The data is not of that type.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        T::deserialize(&*self.data)
    }

    /// One field of the stored data.
    pub fn get(&self, field: &str) -> Option<&Value> {
        self.data.get(field)
    }

    /// One secret field.
    pub fn secret(&self, name: &str) -> Option<&Value> {
        self.secrets.get(name)
    }

    /// Whether nothing was given.
    pub fn is_empty(&self) -> bool {
        self.data.is_null() && self.secrets.is_empty()
    }

    /// What is stored of it.
    ///
    /// # Errors
    /// The data is larger than may be stored.
    pub fn to_stored(&self) -> Result<Option<CanonicalJson>, JsonProblem> {
        if self.data.is_null() { Ok(None) } else { CanonicalJson::from_serialize(&*self.data).map(Some) }
    }

    /// This context's fields, and those of `stored` that it does not have itself.
    #[must_use]
    pub fn merged_over(&self, stored: &Context) -> Self {
        let data = match (&*self.data, &*stored.data) {
            (Value::Object(own), Value::Object(older)) => {
                let mut all = older.clone();
                all.extend(own.clone());
                Arc::new(Value::Object(all))
            }
            (Value::Null, _) => stored.data.clone(),
            _ => self.data.clone(),
        };
        Self { data, secrets: self.secrets.clone() }
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Neither data nor secrets: a context may hold what must not reach a log.
        f.debug_struct("Context").field("secrets", &self.secrets.len()).finish_non_exhaustive()
    }
}
