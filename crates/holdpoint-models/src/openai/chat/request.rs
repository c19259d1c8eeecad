//! A request for chat completions.

use holdpoint_core::ids::ToolName;
use holdpoint_core::message::{Content, Source};
use holdpoint_core::text::clamp;
use holdpoint_runtime::ports::model::{ModelRequest, OfferedTool};
use serde_json::{Map, Value, json};

use crate::conversation::{
    IdRule, Outcome, PartRef, Settled, Turn, UNKNOWN_TEXT, arguments_object, is_words, object_schema, parts,
    stray_text, turns,
};
use crate::names::Names;
use crate::openai::{Dialect, data_url};
use crate::settings::{BadSetting, Known};

const IDS: IdRule = IdRule { chars_max: 40, is_strict: false };

/// The settings that have the same name here.
const SAME_NAME: &[&str] = &[
    "chat_template_kwargs",
    "frequency_penalty",
    "logit_bias",
    "metadata",
    "min_p",
    "presence_penalty",
    "prompt_cache_key",
    "reasoning_effort",
    "repetition_penalty",
    "response_format",
    "safety_identifier",
    "seed",
    "service_tier",
    "stop",
    "temperature",
    "top_k",
    "top_p",
    "user",
    "verbosity",
];

/// The body of a request.
pub(crate) fn body(model: &str, request: &ModelRequest, dialect: Dialect) -> Result<Value, BadSetting> {
    let settings = Known::read(&request.settings)?;
    let names = Names::new(&request.tools, &request.items);
    let mut body = Map::new();
    body.insert("model".to_owned(), json!(model));
    body.insert("messages".to_owned(), Value::Array(messages(request, &names)));
    body.insert("stream".to_owned(), json!(true));
    if dialect.asks_usage {
        body.insert("stream_options".to_owned(), json!({"include_usage": true}));
    }
    settings.copy(SAME_NAME, &mut body);
    if let Some(tokens) = settings.get("max_tokens") {
        // OpenAI's newer models refuse the old word, other servers do not know the new one.
        let word = if dialect.is_openai { "max_completion_tokens" } else { "max_tokens" };
        body.insert(word.to_owned(), tokens.clone());
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

fn offer(tool: &OfferedTool, names: &Names, dialect: Dialect) -> Value {
    json!({"type": "function", "function": {
        "name": names.theirs(&tool.name),
        "description": dialect.description(&tool.description),
        "parameters": object_schema(&tool.schema),
    }})
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
            Some(json!({"type": "function", "function": {"name": names.theirs(&name)}}))
        }
    }
}

fn messages(request: &ModelRequest, names: &Names) -> Vec<Value> {
    let mut messages = Vec::new();
    if !request.instructions.is_empty() {
        messages.push(json!({"role": "system", "content": &*request.instructions}));
    }
    for turn in turns(&request.items, IDS) {
        match turn {
            Turn::User(content) => messages.push(json!({"role": "user", "content": user_content(content)})),
            Turn::Stray { tool, output } => messages.push(json!({"role": "user", "content": stray_text(tool, output)})),
            Turn::Assistant { text, calls } => assistant(&mut messages, text, &calls, names),
        }
    }
    messages
}

fn assistant(messages: &mut Vec<Value>, text: Option<&str>, calls: &[Settled<'_>], names: &Names) {
    let mut message = json!({"role": "assistant", "content": text});
    if !calls.is_empty() {
        let asked = calls.iter().map(|call| {
            let function = json!({"name": names.theirs(call.tool), "arguments": arguments_object(call.arguments)});
            json!({"id": call.id, "type": "function", "function": function})
        });
        message["tool_calls"] = asked.collect();
    }
    messages.push(message);
    let mut pictures = Vec::new();
    for call in calls {
        let content = match &call.output {
            Outcome::Given { output, .. } => {
                pictures.extend(pictures_of(call, output));
                output.to_text()
            }
            Outcome::Unknown => UNKNOWN_TEXT.to_owned(),
        };
        messages.push(json!({"role": "tool", "tool_call_id": call.id, "content": content}));
    }
    // A tool's result is words here; what it shows stands right after the results.
    if !pictures.is_empty() {
        messages.push(json!({"role": "user", "content": pictures}));
    }
}

fn pictures_of(call: &Settled<'_>, output: &Content) -> Vec<Value> {
    let is_picture = |part: &PartRef<'_>| matches!(part, PartRef::Image { .. });
    let shown: Vec<Value> = parts(output).into_iter().filter(is_picture).map(content_part).collect();
    if shown.is_empty() {
        return shown;
    }
    let words = json!({"type": "text", "text": format!("What {} shows:", call.tool)});
    std::iter::once(words).chain(shown).collect()
}

fn user_content(content: &Content) -> Value {
    if is_words(content) { json!(content.to_text()) } else { parts(content).into_iter().map(content_part).collect() }
}

fn content_part(part: PartRef<'_>) -> Value {
    match part {
        PartRef::Text(text) => json!({"type": "text", "text": text}),
        PartRef::Image { media_type, source: Source::Base64(data) } => {
            json!({"type": "image_url", "image_url": {"url": data_url(media_type, data)}})
        }
        PartRef::Image { source: Source::Url(url), .. } => json!({"type": "image_url", "image_url": {"url": url}}),
        PartRef::File { media_type, name, source: Source::Base64(data) } => {
            json!({"type": "file", "file": {"filename": name, "file_data": data_url(media_type, data)}})
        }
        PartRef::File { media_type, name, source: Source::Url(url) } => {
            json!({"type": "text", "text": format!("[file {name} {media_type}: {}]", clamp(url, 4_096))})
        }
    }
}
