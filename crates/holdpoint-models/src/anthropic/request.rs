//! A request for messages. Roles take turns here, every call is answered in the message after it, and a tool that the
//! conversation speaks of must be offered.

use std::collections::BTreeSet;

use holdpoint_core::ids::ToolName;
use holdpoint_core::message::{Content, Source};
use holdpoint_core::text::clamp;
use holdpoint_runtime::ports::model::{ModelRequest, OfferedTool};
use serde_json::{Map, Value, json};

use crate::anthropic::thoughts::Thoughts;
use crate::conversation::{
    IdRule, Outcome, PartRef, Settled, Turn, UNKNOWN_TEXT, arguments_value, is_words, object_schema, parts, stray_text,
    turns,
};
use crate::names::Names;
use crate::settings::{BadSetting, Known};

const IDS: IdRule = IdRule { chars_max: 64, is_strict: true };

/// How many tokens a reply may have where the agent does not say: the provider insists on a number.
const TOKENS_MAX: u64 = 8_192;

/// Stands where the provider insists on words and there are none.
const NO_WORDS: &str = "(no words)";

/// The body of a request.
pub(crate) fn body(model: &str, request: &ModelRequest, thoughts: &Thoughts) -> Result<Value, BadSetting> {
    let settings = Known::read(&request.settings)?;
    let names = Names::new(&request.tools, &request.items);
    let turns = turns(&request.items, IDS);
    let thinking = settings.get("thinking").filter(|_| thoughts_are_known(&turns, thoughts));
    let mut body = Map::new();
    body.insert("model".to_owned(), json!(model));
    body.insert("max_tokens".to_owned(), tokens_max(&settings, thinking));
    body.insert("stream".to_owned(), json!(true));
    if !request.instructions.trim().is_empty() {
        body.insert("system".to_owned(), json!(&*request.instructions));
    }
    settings.copy(&["service_tier", "temperature", "top_k", "top_p"], &mut body);
    if let Some(stop) = settings.get("stop") {
        let stop = if stop.is_string() { json!([stop]) } else { stop.clone() };
        body.insert("stop_sequences".to_owned(), stop);
    }
    if let Some(user) = settings.get("user") {
        body.insert("metadata".to_owned(), json!({"user_id": user}));
    }
    if let Some(thinking) = thinking {
        body.insert("thinking".to_owned(), thinking.clone());
    }
    tools(request, &settings, &names, &turns, &mut body);
    let thoughts = thinking.map(|_| thoughts);
    body.insert("messages".to_owned(), messages(turns, &names, thoughts));
    Ok(Value::Object(body))
}

fn tokens_max(settings: &Known<'_>, thinking: Option<&Value>) -> Value {
    let budget = thinking.and_then(|thinking| thinking["budget_tokens"].as_u64()).unwrap_or(0);
    // The reply comes after the thoughts, out of the same number.
    settings.get("max_tokens").cloned().unwrap_or_else(|| json!(TOKENS_MAX.saturating_add(budget)))
}

/// Whether the thoughts behind each call since the model's last plain words are still known. Without them thinking is
/// refused.
fn thoughts_are_known(turns: &[Turn<'_>], thoughts: &Thoughts) -> bool {
    let replies = turns.iter().rev().filter_map(|turn| match turn {
        Turn::Assistant { calls, .. } => Some(calls),
        Turn::User(_) | Turn::Stray { .. } => None,
    });
    let mut calls = replies.map_while(|calls| calls.first());
    calls.all(|call| thoughts.of(call.call_id).is_some())
}

fn tools(
    request: &ModelRequest,
    settings: &Known<'_>,
    names: &Names,
    turns: &[Turn<'_>],
    body: &mut Map<String, Value>,
) {
    if request.tools.is_empty() {
        // Tools of an agent that handed the conversation over: spoken of, and not to be called.
        let spoken_of: BTreeSet<&ToolName> = turns.iter().flat_map(called).collect();
        if !spoken_of.is_empty() {
            let offer =
                |tool: &&ToolName| json!({"name": names.theirs(tool), "input_schema": object_schema(&json!({}))});
            body.insert("tools".to_owned(), spoken_of.iter().map(offer).collect());
            body.insert("tool_choice".to_owned(), json!({"type": "none"}));
        }
        return;
    }
    body.insert("tools".to_owned(), request.tools.iter().map(|tool| offer(tool, names)).collect());
    let mut choice = settings.text("tool_choice").and_then(|choice| tool_choice(choice, request, names));
    if settings.get("parallel_tool_calls") == Some(&json!(false)) {
        let choice = choice.get_or_insert_with(|| json!({"type": "auto"}));
        if choice["type"] != "none" {
            choice["disable_parallel_tool_use"] = json!(true);
        }
    }
    if let Some(choice) = choice {
        body.insert("tool_choice".to_owned(), choice);
    }
}

fn called<'a>(turn: &'a Turn<'_>) -> Vec<&'a ToolName> {
    match turn {
        Turn::Assistant { calls, .. } => calls.iter().map(|call| call.tool).collect(),
        Turn::User(_) | Turn::Stray { .. } => Vec::new(),
    }
}

fn offer(tool: &OfferedTool, names: &Names) -> Value {
    json!({
        "name": names.theirs(&tool.name),
        "description": tool.description,
        "input_schema": object_schema(&tool.schema),
    })
}

/// What the model is told about choosing; `None` for its own choice.
fn tool_choice(choice: &str, request: &ModelRequest, names: &Names) -> Option<Value> {
    match choice {
        "auto" => None,
        "none" => Some(json!({"type": "none"})),
        // A model that is always made to call a tool never ends.
        _ if request.turn > 1 => None,
        "required" => Some(json!({"type": "any"})),
        name => {
            let name = ToolName::new(name).ok().filter(|name| request.tools.iter().any(|tool| tool.name == *name))?;
            Some(json!({"type": "tool", "name": names.theirs(&name)}))
        }
    }
}

fn messages(turns: Vec<Turn<'_>>, names: &Names, thoughts: Option<&Thoughts>) -> Value {
    let mut messages = Messages::default();
    for turn in turns {
        match turn {
            Turn::User(content) => messages.push("user", user_blocks(content)),
            Turn::Stray { tool, output } => messages.push("user", vec![text_block(&stray_text(tool, output))]),
            Turn::Assistant { text, calls } => {
                let kept = calls.first().zip(thoughts).and_then(|(call, thoughts)| thoughts.of(call.call_id));
                let mut blocks: Vec<Value> = kept.as_deref().unwrap_or_default().to_vec();
                blocks.extend(text.filter(|text| !text.trim().is_empty()).map(text_block));
                blocks.extend(calls.iter().map(|call| asked(call, names)));
                if !blocks.is_empty() {
                    messages.push("assistant", blocks);
                }
                if !calls.is_empty() {
                    messages.push("user", calls.iter().map(answered).collect());
                }
            }
        }
    }
    messages.finish()
}

/// Messages whose roles take turns.
#[derive(Default)]
struct Messages(Vec<(&'static str, Vec<Value>)>);

impl Messages {
    fn push(&mut self, role: &'static str, blocks: Vec<Value>) {
        if self.0.is_empty() && role != "user" {
            self.0.push(("user", vec![text_block(NO_WORDS)]));
        }
        match self.0.last_mut() {
            Some((last, said)) if *last == role => said.extend(blocks),
            _ => self.0.push((role, blocks)),
        }
    }

    /// The last word is the user's: a conversation that ends with the model's would be taken for a reply to go on with.
    fn finish(mut self) -> Value {
        if self.0.last().is_none_or(|(role, _)| *role != "user") {
            self.push("user", vec![text_block(NO_WORDS)]);
        }
        self.0.into_iter().map(|(role, blocks)| json!({"role": role, "content": blocks})).collect()
    }
}

fn text_block(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn asked(call: &Settled<'_>, names: &Names) -> Value {
    let input = arguments_value(call.arguments);
    json!({"type": "tool_use", "id": call.id, "name": names.theirs(call.tool), "input": input})
}

fn answered(call: &Settled<'_>) -> Value {
    let (content, is_error) = match &call.output {
        Outcome::Given { output, is_error } => (result_content(output), *is_error),
        Outcome::Unknown => (Some(json!(UNKNOWN_TEXT)), true),
    };
    let mut block = json!({"type": "tool_result", "tool_use_id": call.id});
    if let Some(content) = content {
        block["content"] = content;
    }
    if is_error {
        block["is_error"] = json!(true);
    }
    block
}

fn result_content(output: &Content) -> Option<Value> {
    if !is_words(output) {
        return Some(Value::Array(blocks(output)));
    }
    Some(output.to_text()).filter(|text| !text.trim().is_empty()).map(Value::String)
}

fn user_blocks(content: &Content) -> Vec<Value> {
    let blocks = blocks(content);
    if blocks.is_empty() { vec![text_block(NO_WORDS)] } else { blocks }
}

fn blocks(content: &Content) -> Vec<Value> {
    let block = |part: PartRef<'_>| match part {
        PartRef::Text(text) => (!text.trim().is_empty()).then(|| text_block(text)),
        PartRef::Image { media_type, source } => Some(image(media_type, source)),
        PartRef::File { media_type, name, source } => Some(file(media_type, name, source)),
    };
    parts(content).into_iter().filter_map(block).collect()
}

fn image(media_type: &str, source: &Source) -> Value {
    match source {
        Source::Url(url) => json!({"type": "image", "source": {"type": "url", "url": url}}),
        Source::Base64(data) if ["image/png", "image/jpeg", "image/gif", "image/webp"].contains(&media_type) => {
            json!({"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data}})
        }
        Source::Base64(_) => text_block(&format!("[image {media_type}, which cannot be shown]")),
    }
}

fn file(media_type: &str, name: &str, source: &Source) -> Value {
    match (media_type, source) {
        ("application/pdf", Source::Base64(data)) => json!({"type": "document", "title": name,
            "source": {"type": "base64", "media_type": media_type, "data": data}}),
        ("application/pdf", Source::Url(url)) => {
            json!({"type": "document", "title": name, "source": {"type": "url", "url": url}})
        }
        (_, Source::Url(url)) => text_block(&format!("[file {name} {media_type}: {}]", clamp(url, 4_096))),
        (_, Source::Base64(_)) => text_block(&format!("[file {name} {media_type}, which cannot be shown]")),
    }
}
