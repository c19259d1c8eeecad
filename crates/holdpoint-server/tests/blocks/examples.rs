//! The protocol's own examples, and how what the server says is held against them.

use std::path::Path;

use serde_json::Value;

/// What the server may say beside an example's own fields: the member above, and the field.
const MORE: [(&str, &str); 9] = [
    // Every event of the stream says where it belongs.
    ("", "session_id"),
    ("", "message_id"),
    ("", "seq"),
    ("", "event_id"),
    ("", "request_id"),
    // Who speaks, and what a client needs to decide safely.
    ("content_block", "subagent"),
    ("content_block", "pause"),
    // The page on questions shows it on one message of the history and leaves it out on others.
    ("", "message_type"),
    ("content", "subagent"),
];

/// What stands in an example for any value of its kind.
const OF_A_KIND: [&str; 1] = ["message_id"];

/// An example by its file's name.
pub fn example(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/blocks").join(format!("{name}.json"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Holds what the server said against an example, field by field.
#[track_caller]
pub fn check_example(name: &str, said: &Value) {
    check(&example(name), said, &format!("{name}: {said}"));
}

/// As [`check_example`], with a value that is no file.
#[track_caller]
pub fn check(expected: &Value, said: &Value, about: &str) {
    if let Err(difference) = differ(expected, said, "") {
        panic!("{difference}\n{about}");
    }
}

/// `above` is the member in which the values stand.
fn differ(expected: &Value, said: &Value, above: &str) -> Result<(), String> {
    match (expected, said) {
        (Value::Object(fields), Value::Object(others)) => {
            for (name, value) in fields {
                let other = others.get(name).ok_or(format!("{name} is missing in {above:?}"))?;
                if OF_A_KIND.contains(&name.as_str()) {
                    other.as_str().filter(|text| !text.is_empty()).ok_or(format!("{name} is {other}"))?;
                } else {
                    differ(value, other, name)?;
                }
            }
            let more = others.keys().find(|name| !fields.contains_key(*name) && !MORE.contains(&(above, name)));
            more.map_or(Ok(()), |name| Err(format!("{name} is not in the example, in {above:?}")))
        }
        (Value::Array(items), Value::Array(others)) if items.len() == others.len() => {
            // The elements of the outermost list stand where a value alone would.
            items.iter().zip(others).try_for_each(|(item, other)| differ(item, other, above))
        }
        _ if expected == said => Ok(()),
        _ => Err(format!("{above}: {expected} expected, {said} said")),
    }
}

#[test]
fn what_differs_from_an_example_is_seen() {
    use serde_json::json;
    let expected = json!({"type": "x", "message_id": "msg-abc", "list": [{"a": 1}]});
    let like = |said: Value| differ(&expected, &said, "").is_ok();
    assert!(like(json!({"type": "x", "message_id": "msg_1", "list": [{"a": 1}], "seq": 4})));
    for said in [
        json!({"type": "x", "message_id": "", "list": [{"a": 1}]}),
        json!({"type": "y", "message_id": "m", "list": [{"a": 1}]}),
        json!({"type": "x", "message_id": "m", "list": [{"a": 2}]}),
        json!({"type": "x", "message_id": "m", "list": [{"a": 1, "b": 1}]}),
        json!({"type": "x", "message_id": "m", "list": [{"a": 1}, {"a": 1}]}),
        json!({"type": "x", "message_id": "m", "list": [{"a": 1}], "more": 1}),
        json!({"type": "x", "message_id": "m"}),
    ] {
        assert!(!like(said.clone()), "{said}");
    }
}
