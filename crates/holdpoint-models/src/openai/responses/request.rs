//! A request for responses. Nothing is stored at the provider: every request carries the whole conversation.

use holdpoint_core::ids::ToolName;
use holdpoint_core::message::{Content, Source};
use holdpoint_runtime::ports::model::{ModelRequest, OfferedTool};
use serde_json::{Map, Value, json};

use crate::conversation::{
    IdRule, Outcome, PartRef, Settled, Turn, UNKNOWN_TEXT, arguments_object, is_words, object_schema, parts,
    stray_text, turns,
};
use crate::names::Names;
use crate::openai::{Dialect, data_url};
use crate::settings::{BadSetting, Known};

const IDS: IdRule = IdRule { chars_max: 64, is_strict: false };

/// The settings that have the same name here.
const SAME_NAME: &[&str] =
    &["metadata", "prompt_cache_key", "safety_identifier", "service_tier", "temperature", "top_p", "user"];

/// The body of a request.
pub(crate) fn body(model: &str, request: &ModelRequest, dialect: Dialect) -> Result<Value, BadSetting> {
    let settings = Known::read(&request.settings)?;
    let names = Names::new(&request.tools, &request.items);
    let mut body = Map::new();
    body.insert("model".to_owned(), json!(model));
    body.insert("input".to_owned(), Value::Array(input(request, &names)));
    body.insert("stream".to_owned(), json!(true));
    body.insert("store".to_owned(), json!(false));
    if !request.instructions.is_empty() {
        body.insert("instructions".to_owned(), json!(&*request.instructions));
    }
    settings.copy(SAME_NAME, &mut body);
    if let Some(tokens) = settings.get("max_tokens") {
        body.insert("max_output_tokens".to_owned(), tokens.clone());
    }
    let nested = [
        ("reasoning", "effort", settings.get("reasoning_effort").cloned()),
        ("reasoning", "summary", settings.get("reasoning_summary").cloned()),
        ("text", "verbosity", settings.get("verbosity").cloned()),
        ("text", "format", settings.get("response_format").map(text_format)),
    ];
    for (outer, inner, value) in nested {
        if let Some(value) = value {
            body.entry(outer).or_insert_with(|| json!({}))[inner] = value;
        }
    }
    if !request.tools.is_empty() {
        body.insert("tools".to_owned(), request.tools.iter().map(|tool| offer(tool, &names, dialect)).collect());
        settings.copy(&["parallel_tool_calls"], &mut body);
        if let Some(choice) = settings.text("tool_choice").and_then(|choice| tool_choice(choice, request, &names)) {
            body.insert("tool_choice".to_owned(), choice);
        }
    }
    Ok(Value::Object(body))
}

/// The form of a text, which chat completions wrap once more.
fn text_format(format: &Value) -> Value {
    let Some(schema) = format["json_schema"].as_object().filter(|_| format["type"] == "json_schema") else {
        return format.clone();
    };
    let mut flat = schema.clone();
    flat.insert("type".to_owned(), json!("json_schema"));
    Value::Object(flat)
}

fn offer(tool: &OfferedTool, names: &Names, dialect: Dialect) -> Value {
    json!({
        "type": "function",
        "name": names.theirs(&tool.name),
        "description": dialect.description(&tool.description),
        "parameters": object_schema(&tool.schema),
        // Strict is the default here, and refuses most schemas.
        "strict": false,
    })
}

/// What the model is told about choosing; `None` for its own choice.
fn tool_choice(choice: &str, request: &ModelRequest, names: &Names) -> Option<Value> {
    match choice {
        "auto" => None,
        "none" => Some(json!("none")),
        // A model that is always made to call a tool never ends.
        _ if request.turn > 1 => None,
        "required" => Some(json!("required")),
        name => {
            let name = ToolName::new(name).ok().filter(|name| request.tools.iter().any(|tool| tool.name == *name))?;
            Some(json!({"type": "function", "name": names.theirs(&name)}))
        }
    }
}

fn input(request: &ModelRequest, names: &Names) -> Vec<Value> {
    let mut input = Vec::new();
    for turn in turns(&request.items, IDS) {
        match turn {
            Turn::User(content) => input.push(json!({"role": "user", "content": words_or_parts(content)})),
            Turn::Stray { tool, output } => input.push(json!({"role": "user", "content": stray_text(tool, output)})),
            Turn::Assistant { text, calls } => {
                input.extend(text.map(|text| json!({"role": "assistant", "content": text})));
                input.extend(calls.iter().map(|call| asked(call, names)));
                input.extend(calls.iter().map(answered));
            }
        }
    }
    input
}

/// Without the item's own id: the provider would then look for the thoughts that led to the call, which nobody kept.
fn asked(call: &Settled<'_>, names: &Names) -> Value {
    json!({"type": "function_call", "call_id": call.id, "name": names.theirs(call.tool),
        "arguments": arguments_object(call.arguments)})
}

fn answered(call: &Settled<'_>) -> Value {
    let output = match &call.output {
        Outcome::Given { output, .. } => words_or_parts(output),
        Outcome::Unknown => json!(UNKNOWN_TEXT),
    };
    json!({"type": "function_call_output", "call_id": call.id, "output": output})
}

fn words_or_parts(content: &Content) -> Value {
    if is_words(content) {
        return json!(content.to_text());
    }
    let part = |part: PartRef<'_>| match part {
        PartRef::Text(text) => json!({"type": "input_text", "text": text}),
        PartRef::Image { media_type, source: Source::Base64(data) } => {
            json!({"type": "input_image", "image_url": data_url(media_type, data)})
        }
        PartRef::Image { source: Source::Url(url), .. } => json!({"type": "input_image", "image_url": url}),
        PartRef::File { media_type, name, source: Source::Base64(data) } => {
            json!({"type": "input_file", "filename": name, "file_data": data_url(media_type, data)})
        }
        PartRef::File { source: Source::Url(url), .. } => json!({"type": "input_file", "file_url": url}),
    };
    parts(content).into_iter().map(part).collect()
}
