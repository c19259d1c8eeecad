//! Conditions on a call's arguments. What cannot be read does not match: an approve rule then leaves the call held.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

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

    /// The value at `pointer` equals one of `values`.
    pub fn one_of(pointer: impl Into<String>, values: impl IntoIterator<Item = CanonicalJson>) -> Self {
        Self { at: pointer.into(), test: Test::OneOf(values.into_iter().collect()) }
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
        CanonicalJson::from_serialize(arguments).is_ok_and(|arguments| self.holds_for(&arguments))
    }

    /// Like [`Constraint::matches`], on the exact text: a number is not rounded into equality with another.
    pub(crate) fn holds_for(&self, arguments: &CanonicalJson) -> bool {
        let Some(found) = find(arguments.as_str(), &self.at) else { return false };
        match &self.test {
            Test::Equals(wanted) => found == wanted.as_str(),
            Test::OneOf(wanted) => wanted.iter().any(|wanted| found == wanted.as_str()),
            Test::AtMost(limit) => is_at_most(found, *limit),
            Test::StartsWith(prefix) => {
                serde_json::from_str::<String>(found).is_ok_and(|text| text.starts_with(prefix.as_str()))
            }
        }
    }

    /// Roughly how many bytes the condition takes up.
    pub(crate) fn size(&self) -> usize {
        let values = match &self.test {
            Test::Equals(value) => value.as_str().len(),
            Test::OneOf(values) => values.iter().map(|value| value.as_str().len() + 1).sum(),
            Test::AtMost(_) => 0,
            Test::StartsWith(prefix) => prefix.len(),
        };
        self.at.len() + values
    }
}

/// The canonical text at a JSON pointer in canonical text.
fn find<'a>(text: &'a str, pointer: &str) -> Option<&'a str> {
    if pointer.is_empty() {
        return Some(text);
    }
    pointer.strip_prefix('/')?.split('/').try_fold(text, |text, token| {
        let token = token.replace("~1", "/").replace("~0", "~");
        if text.starts_with('[') {
            let is_index = token == "0" || !token.starts_with(['0', '+']);
            let elements: Vec<&RawValue> = serde_json::from_str(text).ok()?;
            elements.get(token.parse::<usize>().ok().filter(|_| is_index)?).map(|raw| raw.get())
        } else {
            let members: BTreeMap<String, &RawValue> = serde_json::from_str(text).ok()?;
            members.get(&token).map(|raw| raw.get())
        }
    })
}

/// Whole numbers are compared as such; others as floats, whose rounding must not let a larger one through.
fn is_at_most(number: &str, limit: i64) -> bool {
    let is_number = number.starts_with(|c: char| c == '-' || c.is_ascii_digit());
    match (number.parse::<i64>(), number.parse::<f64>()) {
        _ if !is_number => false,
        (Ok(whole), _) => whole <= limit,
        // It is not whole, or too large. Where it was rounded to a whole number, it may lie on either side of that.
        (Err(_), Ok(float)) if float.abs() < 9.0e15 => {
            let above = if float.fract() == 0.0 { float + 1.0 } else { float.ceil() };
            above <= limit as f64
        }
        _ => false,
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
    fn a_number_is_not_rounded_into_a_rule() {
        let at = |text: &str| CanonicalJson::parse(&format!(r#"{{"n":{text}}}"#)).unwrap();
        let tenth = Constraint::equals("/n", CanonicalJson::parse("0.1").unwrap());
        assert!(tenth.holds_for(&at("0.10")));
        assert!(!tenth.holds_for(&at("0.1000000000000000000000001")));
        let account = Constraint::equals("/n", CanonicalJson::parse("12345678901234567890123").unwrap());
        assert!(account.holds_for(&at("12345678901234567890123")));
        assert!(!account.holds_for(&at("12345678901234567890124")));
        let limit = Constraint::at_most("/n", 100);
        assert!(limit.holds_for(&at("100.0")));
        for larger in ["100.0000000000000000000001", "1e300", "1e99999", "9223372036854775808"] {
            assert!(!limit.holds_for(&at(larger)), "{larger}");
        }
    }

    #[test]
    fn a_place_is_found_in_objects_and_lists() {
        let arguments = CanonicalJson::parse(r#"{"a":[{"b/c":1},{"~":"two"}],"":0}"#).unwrap();
        for (pointer, value) in [("/a/0/b~1c", "1"), ("/a/1/~0", r#""two""#), ("/", "0"), ("/a/0", r#"{"b/c":1}"#)] {
            assert!(
                Constraint::equals(pointer, CanonicalJson::parse(value).unwrap()).holds_for(&arguments),
                "{pointer}"
            );
        }
        for pointer in ["a", "/a/2", "/a/00", "/a/+0", "/a/-", "/a/0/b", "/a/0/b~1c/0"] {
            assert_eq!(find(arguments.as_str(), pointer), None, "{pointer}");
        }
    }

    #[test]
    fn a_prefix_is_of_text_only() {
        let prefix = Constraint::starts_with("/path", "docs/");
        assert!(prefix.matches(&json!({"path": "docs/a.md"})));
        assert!(!prefix.matches(&json!({"path": "../docs/a.md"})));
        assert!(!prefix.matches(&json!({"path": ["docs/"]})));
    }
}
