//! Arguments that a person changed on a screen: what would not come back as it was shown is refused.

use holdpoint_core::ids::PauseId;
use holdpoint_core::json::CanonicalJson;
use holdpoint_core::refusal::Refusal;
use serde_json::Value;

/// The largest integer that is kept by a page, which has all numbers in 64 bits with a point.
const INTEGER_MAX: u64 = (1 << 53) - 1;

/// Refuses what a screen may have changed by itself, or cannot show.
pub(super) fn check(pause: PauseId, edited: &CanonicalJson, held: Option<&CanonicalJson>) -> Result<(), Refusal> {
    let (edited, held) = (edited.to_value(), held.map(CanonicalJson::to_value));
    let mut known = Vec::new();
    if let Some(held) = &held {
        integers(held, &mut known);
    }
    let mut found = Vec::new();
    integers(&edited, &mut found);
    // One that stands there already was not changed.
    if let Some(number) = found.iter().find(|number| !known.contains(number)) {
        return Err(Refusal::NumberOutOfRange { pause, number: number.to_string() });
    }
    match holds_nul(&edited) {
        true => {
            let problem = "the character U+0000 is not taken: a text cannot hold it everywhere".to_owned();
            Err(Refusal::InvalidArguments { pause, problem })
        }
        false => Ok(()),
    }
}

/// The integers of a value that a page would not keep exactly.
fn integers(value: &Value, found: &mut Vec<i128>) {
    match value {
        Value::Number(number) => {
            let integer = number.as_u64().map(i128::from).or_else(|| number.as_i64().map(i128::from));
            found.extend(integer.filter(|integer| integer.unsigned_abs() > u128::from(INTEGER_MAX)));
        }
        Value::Array(values) => values.iter().for_each(|value| integers(value, found)),
        Value::Object(members) => members.values().for_each(|value| integers(value, found)),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

fn holds_nul(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains('\0'),
        Value::Array(values) => values.iter().any(holds_nul),
        Value::Object(members) => members.iter().any(|(key, value)| key.contains('\0') || holds_nul(value)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use holdpoint_core::ids::RunId;
    use uuid::Uuid;

    use super::*;

    fn checked(edited: &str, held: &str) -> Result<(), Refusal> {
        let json = |text: &str| CanonicalJson::parse(text).unwrap();
        let pause = PauseId { run: RunId::new(Uuid::nil()), number: 1 };
        check(pause, &json(edited), Some(&json(held)))
    }

    #[test]
    fn an_integer_that_a_page_would_change_is_refused_unless_it_stood_there() {
        let refused = |edited: &str, held: &str| match checked(edited, held) {
            Err(Refusal::NumberOutOfRange { number, .. }) => number,
            other => panic!("{edited}: {other:?}"),
        };
        assert_eq!(refused(r#"{"id": 9007199254740993}"#, "{}"), "9007199254740993");
        assert_eq!(refused(r#"{"a": [{"id": -9007199254740992}]}"#, "{}"), "-9007199254740992");
        // What a page made of the number that stood there.
        assert_eq!(refused(r#"{"id": 9007199254740992}"#, r#"{"id": 9007199254740993}"#), "9007199254740992");
        for (edited, held) in [
            (r#"{"id": 9007199254740991}"#, "{}"),
            (r#"{"id": -9007199254740991, "price": 0.1}"#, "{}"),
            (r#"{"id": 9007199254740993, "n": 2}"#, r#"{"id": 9007199254740993, "n": 1}"#),
            (r#"{"id": "18446744073709551616"}"#, "{}"),
        ] {
            assert_eq!(checked(edited, held), Ok(()), "{edited}");
        }
    }

    #[test]
    fn a_nul_is_refused_wherever_it_hides() {
        for edited in [r#"{"a": "b\u0000"}"#, r#"{"a": [{"b": "\u0000"}]}"#, r#"{"\u0000": 1}"#] {
            let refused = checked(edited, "{}").unwrap_err();
            assert!(matches!(&refused, Refusal::InvalidArguments { problem, .. } if problem.contains("U+0000")));
        }
        assert_eq!(checked(r#"{"a": "\\u0000 \u001b[0m\n"}"#, "{}"), Ok(()));
    }
}
