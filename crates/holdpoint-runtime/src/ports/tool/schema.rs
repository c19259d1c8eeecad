//! Schemas of arguments: where they come from, and what breaks them.

use holdpoint_core::json::CanonicalJson;
use schemars::JsonSchema;
use serde_json::Value;

/// The schema of a type, with everything in place that it refers to.
pub fn schema_of<A: JsonSchema>() -> Value {
    let mut settings = schemars::generate::SchemaSettings::draft2020_12();
    settings.inline_subschemas = true;
    let mut schema = settings.into_generator().into_root_schema_for::<A>().to_value();
    if let Some(object) = schema.as_object_mut() {
        object.remove("$schema");
        object.remove("title");
        object.entry("type").or_insert_with(|| Value::String("object".to_owned()));
    }
    schema
}

pub(crate) fn compile_schema(schema: &Value) -> Result<jsonschema::Validator, String> {
    jsonschema::validator_for(schema).map_err(|error| format!("the schema is not valid: {error}"))
}

pub(crate) fn check_schema(validator: &jsonschema::Validator, arguments: &CanonicalJson) -> Result<(), String> {
    let value = arguments.to_value();
    let problems: Vec<String> = validator
        .iter_errors(&value)
        .take(5)
        .map(|error| {
            let place = error.instance_path().to_string();
            let place = if place.is_empty() { "the arguments".to_owned() } else { place };
            format!("{place}: {}", holdpoint_core::text::clamp(&error.to_string(), 300))
        })
        .collect();
    if problems.is_empty() { Ok(()) } else { Err(problems.join("; ")) }
}
