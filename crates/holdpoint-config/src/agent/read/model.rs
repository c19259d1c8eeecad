//! `model`: which model, and how.

use std::time::Duration;

use super::texts;
use crate::agent::{BadModelName, ModelRef, ModelRefProblem, ModelSpec, OpenAiApi, Provider};
use crate::diagnostic::suggest::did_you_mean;
use crate::diagnostic::{Code, quoted};
use crate::limits::TOOL_SECONDS_MAX;
use crate::template::{Template, is_variable_name};
use crate::yaml::{Fields, Item, Node, Reader, Value};

const APIS: [(&str, OpenAiApi); 2] =
    [("chat_completions", OpenAiApi::ChatCompletions), ("responses", OpenAiApi::Responses)];

pub(super) fn read(reader: &Reader<'_>, node: &Node) -> Option<ModelSpec> {
    if let Value::Text(name) = &node.value {
        let message = "`model` must be a mapping and is text";
        reader.error_with_hint(node.span, Code::WrongType, message, format!("write `model: {{ primary: {name} }}`"));
        return None;
    }
    let fields = reader.fields(node, "`model`")?;
    let protocol = protocol(reader, &fields);
    let primary = fields.required_text("primary").and_then(|item| model(reader, &item, protocol));
    let fallback = fields.text("fallback").and_then(|item| model(reader, &item, protocol));
    let temperature = fields.number("temperature", 0.0..=2.0).map(|item| item.value);
    let top_p = fields.number("top_p", 0.0..=1.0).map(|item| item.value);
    let max_tokens = fields.integer("max_tokens", 1..=10_000_000).and_then(|item| u32::try_from(item.value).ok());
    let timeout = seconds(&fields, "timeout_seconds");
    let api = fields.choice("api", &APIS).map(|item| item.value).unwrap_or_default();
    let base_url = fields.text("base_url").and_then(|item| base_url(reader, &item));
    let api_key = api_key(reader, &fields);
    let hint = "name one model as `primary` and one as `fallback`";
    fields.unsupported("router", "`router` is not supported: no model is chosen by a strategy", hint);
    fields.finish();
    let primary = primary?;
    Some(ModelSpec { primary, fallback, temperature, top_p, max_tokens, timeout, api, base_url, api_key })
}

pub(super) fn seconds(fields: &Fields<'_>, key: &'static str) -> Option<Duration> {
    let item = fields.integer(key, 1..=TOOL_SECONDS_MAX)?;
    u64::try_from(item.value).ok().map(Duration::from_secs)
}

/// SuperAgent's name of the protocol, for models that are named without a provider.
fn protocol(reader: &Reader<'_>, fields: &Fields<'_>) -> Option<Provider> {
    const PROTOCOLS: [(&str, Option<Provider>); 8] = [
        ("openai", Some(Provider::OpenAi)),
        ("claude", Some(Provider::Anthropic)),
        ("anthropic", Some(Provider::Anthropic)),
        ("deepseek", Some(Provider::OpenAi)),
        ("ollama", Some(Provider::OpenAi)),
        ("qwen", Some(Provider::OpenAi)),
        ("gemini", None),
        ("ark", None),
    ];
    let item = fields.choice("protocol", &PROTOCOLS)?;
    if item.value.is_none() {
        let message = "this protocol is not supported";
        let hint = "use an address of the service that speaks OpenAI's protocol, with `base_url`";
        reader.error_with_hint(item.span(), Code::Unsupported, message, hint);
    }
    item.value
}

fn model(reader: &Reader<'_>, item: &Item<'_, &str>, protocol: Option<Provider>) -> Option<ModelRef> {
    let prefixed = match protocol.filter(|_| !item.value.contains('/')) {
        Some(provider) => format!("{}/{}", provider.name(), item.value),
        None => item.value.to_owned(),
    };
    let is_written = texts::template(reader, item)?;
    let name = if prefixed == item.value { is_written } else { prefixed.parse().ok()? };
    let model = ModelRef(name);
    match model.resolve(reader.environment) {
        Ok(_) | Err(ModelRefProblem::Missing(_)) => {}
        Err(ModelRefProblem::Bad(problem)) => {
            let hint = match &problem {
                BadModelName::NotAName => "write `provider/model`, such as `openai/gpt-4o`".to_owned(),
                BadModelName::UnknownProvider { provider } => {
                    let near = did_you_mean(provider, Provider::NAMES.map(|(name, _)| name));
                    let other = format!("for a server that speaks OpenAI's protocol, write `openai/{}`", item.value);
                    near.unwrap_or(other)
                }
            };
            let message = match problem {
                BadModelName::NotAName => problem.to_string(),
                BadModelName::UnknownProvider { provider } => {
                    format!("there is no model provider {}", quoted(&provider))
                }
            };
            reader.error_with_hint(item.span(), Code::BadValue, message, hint);
        }
    }
    Some(model)
}

fn base_url(reader: &Reader<'_>, item: &Item<'_, &str>) -> Option<Template> {
    let template = texts::template(reader, item)?;
    let is_address = |text: &str| {
        let uri: Option<http::Uri> = text.parse().ok();
        uri.is_some_and(|uri| matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some())
    };
    if !texts::passes(reader, &template, is_address) {
        let hint = "write an address such as `http://localhost:11434/v1`";
        reader.error_with_hint(item.span(), Code::BadUrl, "`base_url` is not an address", hint);
    }
    Some(template)
}

/// `api_key: ${NAME}`, or SuperAgent's `api_key_env: NAME`.
fn api_key(reader: &Reader<'_>, fields: &Fields<'_>) -> Option<Template> {
    let given = fields.text("api_key");
    let named = fields.text("api_key_env");
    if let (Some(_), Some(named)) = (&given, &named) {
        reader.error(named.span(), Code::Conflict, "`api_key` and `api_key_env` exclude each other");
    }
    if let Some(item) = given {
        let template = texts::template(reader, &item)?;
        texts::refuse_written_secret(reader, "api_key", &template, item.span());
        return Some(template);
    }
    let item = named?;
    if !is_variable_name(item.value) {
        let message = format!("{} is not the name of an environment variable", quoted(item.value));
        reader.error(item.span(), Code::BadName, message);
        return None;
    }
    if reader.environment.value(item.value).is_none() {
        let message = format!("environment variable {} is not set", item.value);
        let hint = format!("set {} before the start", item.value);
        reader.error_with_hint(item.span(), Code::MissingVariable, message, hint);
    }
    format!("${{{}}}", item.value).parse().ok()
}
