//! Conditions on a call's arguments. What cannot be read does not match: an approve rule then leaves the call held.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::json::CanonicalJson;

/// One condition on one place in the arguments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Constraint {
    /// The place, as a JSON pointer such as `/path`; the empty pointer is the whole value.
    pub at: String,
    /// What must hold there.
    pub test: Test,
}

/// What must hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Test {
    /// Equal to this value.
    Equals(CanonicalJson),
    /// Equal to one of these values.
    OneOf(Vec<CanonicalJson>),
    /// A number no greater than this whole number.
    AtMost(i64),
    /// A text that begins so.
    StartsWith(String),
}

impl Constraint {
    /// The value at `pointer` equals `value`.
    pub fn equals(pointer: impl Into<String>, value: CanonicalJson) -> Self {
        Self { at: pointer.into(), test: Test::Equals(value) }
    }

    /// The number at `pointer` is at most `limit`.
    pub fn at_most(pointer: impl Into<String>, limit: i64) -> Self {
        Self { at: pointer.into(), test: Test::AtMost(limit) }
    }

    /// The text at `pointer` begins with `prefix`.
    pub fn starts_with(pointer: impl Into<String>, prefix: impl Into<String>) -> Self {
        Self { at: pointer.into(), test: Test::StartsWith(prefix.into()) }
    }

    /// Whether the arguments meet the condition.
    pub fn matches(&self, arguments: &Value) -> bool {
        let Some(value) = arguments.pointer(&self.at) else { return false };
        let equals = |wanted: &CanonicalJson| CanonicalJson::from_serialize(value).is_ok_and(|found| found == *wanted);
        match &self.test {
            Test::Equals(wanted) => equals(wanted),
            Test::OneOf(wanted) => wanted.iter().any(equals),
            Test::AtMost(limit) => is_at_most(value, *limit),
            Test::StartsWith(prefix) => value.as_str().is_some_and(|text| text.starts_with(prefix.as_str())),
        }
    }
}

/// Whole numbers are compared as such; others as floats, whose rounding must not let a larger one through.
fn is_at_most(value: &Value, limit: i64) -> bool {
    match (value.as_i64(), value.as_u64(), value.as_f64()) {
        (Some(whole), _, _) => whole <= limit,
        (None, Some(_), _) => false,
        (None, None, Some(float)) => float.ceil() <= limit as f64 && float.abs() < 9.0e15,
        (None, None, None) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_missing_or_odd_value_never_matches() {
        let limit = Constraint::at_most("/amount", 100);
        assert!(limit.matches(&json!({"amount": 100})));
        assert!(limit.matches(&json!({"amount": 99.5})));
        for odd in [json!({}), json!({"amount": "12"}), json!({"amount": null}), json!({"amount": 100.5}), json!([1])] {
            assert!(!limit.matches(&odd), "{odd}");
        }
        assert!(!limit.matches(&json!({"amount": u64::MAX})));
    }

    #[test]
    fn equal_numbers_match_in_any_notation() {
        let one = Constraint::equals("/n", CanonicalJson::parse("1.0").unwrap());
        assert!(one.matches(&json!({"n": 1})));
        assert!(!one.matches(&json!({"n": 2})));
    }

    #[test]
    fn a_prefix_is_of_text_only() {
        let prefix = Constraint::starts_with("/path", "docs/");
        assert!(prefix.matches(&json!({"path": "docs/a.md"})));
        assert!(!prefix.matches(&json!({"path": "../docs/a.md"})));
        assert!(!prefix.matches(&json!({"path": ["docs/"]})));
    }
}
