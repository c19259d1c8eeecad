//! `parameters`: the JSON schema of a tool's arguments, and the `{name}` of texts that arguments fill.

use serde_json::Value as Json;

use super::texts;
use crate::diagnostic::suggest::did_you_mean;
use crate::diagnostic::{Code, quoted};
use crate::yaml::{Fields, Item, Reader, Value, align, one_of};

/// How many problems of one schema are told.
const PROBLEMS_MAX: usize = 10;
const TYPES: [&str; 7] = ["string", "number", "integer", "boolean", "object", "array", "null"];

/// The schema of a tool's arguments. A tool without one takes none.
pub(super) fn parameters(reader: &Reader<'_>, fields: &Fields<'_>) -> Option<Json> {
    let Some(node) = fields.get("parameters") else {
        return Some(serde_json::json!({ "type": "object", "properties": {} }));
    };
    if !matches!(node.value, Value::Mapping(_)) {
        let message = format!("`parameters` must be a JSON schema, written as a mapping, and is {}", node.kind());
        reader.error(node.span, Code::WrongType, message);
        return None;
    }
    texts::refuse_names(reader, node);
    let schema = node.to_json();
    if schema.get("type").and_then(Json::as_str) != Some("object") {
        let place = node.get("type").unwrap_or(node);
        let message = "the schema of a tool's arguments must have `type: object`";
        reader.error_with_hint(place.span, Code::BadSchema, message, "name each argument under `properties`");
        return None;
    }
    let mut is_right = true;
    for problem in jsonschema::draft202012::meta::validator().iter_errors(&schema).take(PROBLEMS_MAX) {
        is_right = false;
        let path = problem.instance_path().as_str();
        let place = node.at_pointer(path);
        match &place.value {
            Value::Text(word) if path.ends_with("/type") => {
                let hint = did_you_mean(word, TYPES).unwrap_or_else(|| format!("write {}", one_of(&TYPES)));
                let message = format!("{} is not a type of JSON", quoted(word));
                reader.error_with_hint(place.span, Code::BadSchema, message, hint);
            }
            _ => {
                let message = format!("not a JSON schema: {}", clamped(&problem.to_string()));
                reader.error(place.span, Code::BadSchema, message);
            }
        }
    }
    if is_right && let Err(problem) = jsonschema::validator_for(&schema) {
        is_right = false;
        let place = node.at_pointer(problem.instance_path().as_str());
        let message = format!("this JSON schema cannot be used: {}", clamped(&problem.to_string()));
        reader.error(place.span, Code::BadSchema, message);
    }
    is_right.then_some(schema)
}

fn clamped(text: &str) -> String {
    holdpoint_core::text::visible(holdpoint_core::text::clamp(text, 200)).replace('\n', " ")
}

/// Reports every `{name}` of a text that is no argument. `text` may be the item's own with parts left out, where each
/// byte stands where it stood.
pub(super) fn check_placeholders(reader: &Reader<'_>, item: &Item<'_, &str>, text: &str, parameters: &Json) {
    let properties = parameters.get("properties").and_then(Json::as_object);
    let names: Vec<&str> = properties.map(|all| all.keys().map(String::as_str).collect()).unwrap_or_default();
    for (start, end) in placeholders(text) {
        let name = &text[start + 1..end - 1];
        if !names.contains(&name) {
            let message = format!("{} is no argument of the tool", quoted(name));
            let hint = did_you_mean(name, names.iter().copied()).unwrap_or_else(|| match names.as_slice() {
                [] => "name it under `parameters`".to_owned(),
                names => format!("the arguments are {}", names.join(", ")),
            });
            let span = align(reader.source(), item.node, item.value, start, end);
            reader.error_with_hint(span, Code::UnknownPlaceholder, message, hint);
        }
    }
}

/// Where each `{name}` of a text stands, brackets included. `${NAME}` is none.
pub(super) fn placeholders(text: &str) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(open) = text[at..].find('{').map(|open| at + open) {
        let Some(close) = text[open..].find('}').map(|close| open + close + 1) else { break };
        if text[..open].ends_with('$') {
            at = close;
        } else {
            let name = &text[open + 1..close - 1];
            if !name.is_empty() && !name.contains(['{', ' ', '"', '\n']) {
                found.push((open, close));
            }
            at = if name.contains('{') { open + 1 } else { close };
        }
    }
    found
}
