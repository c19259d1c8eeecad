//! `spec`: what the agent does.

use super::links::{LinkKind, Links};
use super::{agent_name, interrupt, model, texts, tool};
use crate::agent::{AgentKind, AgentName, AgentSpec, MemorySpec, ModelSpec, SubAgent, WhileHeld};
use crate::diagnostic::suggest::did_you_mean;
use crate::diagnostic::{Code, quoted};
use crate::limits::{AGENTS_MAX, TURNS_MAX};
use crate::source::Span;
use crate::yaml::{Fields, Node, Reader, Value, one_of};

const KINDS: [&str; 5] = ["chat_model_agent", "deep_agent", "supervisor", "sequential", "parallel"];
const WHILE_HELD: [(&str, WhileHeld); 3] =
    [("refuse", WhileHeld::Refuse), ("queue", WhileHeld::Queue), ("supersede", WhileHeld::Supersede)];
/// Kinds of SuperAgent that are not run here.
const OTHER_KINDS: [&str; 5] = ["workflow", "plan_execute", "agentloop", "eino_graph", "adk_graph"];

pub(super) fn read(reader: &Reader<'_>, node: &Node, links: &Links) -> Option<AgentSpec> {
    let fields = reader.fields(node, "`spec`")?;
    let sub_agents = sub_agents(reader, &fields, links);
    let kind = kind(reader, &fields, sub_agents);
    let has_model = kind.as_ref().is_none_or(AgentKind::calls_a_model);
    let model = model(reader, &fields, kind.as_ref());
    let system_prompt = fields.text("system_prompt");
    let prompt_span = system_prompt.as_ref().map(|item| item.span());
    let system_prompt = system_prompt.map(|item| texts::plain(reader, &item)).unwrap_or_default();
    let locale = fields.text("locale").and_then(|item| {
        let is_tag = !item.value.is_empty() && item.value.len() <= 35 && is_language_tag(item.value);
        if !is_tag {
            let message = format!("{} is not a language", quoted(item.value));
            reader.error_with_hint(
                item.span(),
                Code::BadValue,
                message,
                "write a language tag such as `vi` or `pt-BR`",
            );
        }
        is_tag.then(|| item.value.to_owned())
    });
    let max_turns = fields.integer("max_turns", 1..=TURNS_MAX);
    let turns_span = max_turns.as_ref().map(|item| item.span());
    let max_turns = max_turns.and_then(|item| u32::try_from(item.value).ok());
    let tools = tool::read_all(reader, &fields, links);
    let handoffs = handoffs(reader, &fields, links);
    let interrupt = fields.get("interrupt").and_then(|node| interrupt::read(reader, node));
    let memory = memory(reader, &fields);
    let while_held = fields.choice("on_message_while_held", &WHILE_HELD);
    let rounds = orchestration(reader, &fields, kind.as_ref());
    without_effect(reader, &fields);
    if !has_model {
        for (span, what) in [
            (prompt_span.filter(|_| !system_prompt.is_empty()), "system_prompt"),
            (turns_span, "max_turns"),
            (fields.key_span("tools"), "tools"),
            (fields.key_span("handoffs"), "handoffs"),
            (fields.key_span("interrupt"), "interrupt"),
        ] {
            no_model(reader, span, what, matches!(what, "tools" | "handoffs" | "interrupt"));
        }
    }
    not_supported(&fields);
    fields.finish();
    let max_turns = max_turns.or(rounds);
    let on_message_while_held = while_held.map(|item| item.value).unwrap_or_default();
    Some(AgentSpec {
        kind: kind?,
        locale,
        model,
        system_prompt,
        max_turns,
        tools,
        handoffs,
        interrupt,
        memory,
        on_message_while_held,
    })
}

fn kind(reader: &Reader<'_>, fields: &Fields<'_>, sub_agents: Vec<SubAgent>) -> Option<AgentKind> {
    let item = fields.required_text("type")?;
    let needs_agents = matches!(item.value, "supervisor" | "sequential" | "parallel");
    let span = fields.key_span("sub_agents");
    if needs_agents && span.is_none() {
        let message = format!("an agent of type {} needs `sub_agents`", item.value);
        reader.error_with_hint(item.span(), Code::MissingField, message, "add `sub_agents: [{ ref: NAME }]`");
    } else if needs_agents && has_empty_list(fields) {
        let message = format!("an agent of type {} needs at least one agent below it", item.value);
        reader.error(span.unwrap_or(item.span()), Code::MissingField, message);
    }
    match item.value {
        "chat_model_agent" => {
            if let Some(span) = span {
                let message = "an agent of type chat_model_agent has no agents below it";
                let hint = "write `type: supervisor`, or name them under `tools` as `agent://NAME`";
                reader.error_with_hint(span, Code::Conflict, message, hint);
            }
            Some(AgentKind::Chat)
        }
        "deep_agent" => Some(AgentKind::Deep { sub_agents }),
        "supervisor" => Some(AgentKind::Supervisor { sub_agents }),
        "sequential" => Some(AgentKind::Sequential { sub_agents }),
        "parallel" => Some(AgentKind::Parallel { sub_agents }),
        other if OTHER_KINDS.contains(&other) => {
            let message = format!("agents of type {} are not supported", quoted(other));
            let hint = format!("the types that can be run are {}", one_of(&KINDS).replace(" or ", " and "));
            reader.error_with_hint(item.span(), Code::Unsupported, message, hint);
            None
        }
        other => {
            let hint = did_you_mean(other, KINDS).unwrap_or_else(|| format!("write {}", one_of(&KINDS)));
            let message = format!("there is no type of agent {}", quoted(other));
            reader.error_with_hint(item.span(), Code::BadValue, message, hint);
            None
        }
    }
}

fn has_empty_list(fields: &Fields<'_>) -> bool {
    fields.get("sub_agents").is_none_or(|node| matches!(&node.value, Value::List(items) if items.is_empty()))
}

fn model(reader: &Reader<'_>, fields: &Fields<'_>, kind: Option<&AgentKind>) -> Option<ModelSpec> {
    if kind.is_some_and(|kind| !kind.calls_a_model()) {
        let node = fields.get("model")?;
        no_model(reader, fields.key_span("model"), "model", false);
        return model::read(reader, node);
    }
    fields.required("model").and_then(|node| model::read(reader, node))
}

/// A pipeline calls no model, so a setting for one does nothing; what would be a gate or a tool is an error.
fn no_model(reader: &Reader<'_>, span: Option<Span>, what: &str, is_error: bool) {
    let message = format!("`{what}` has no effect: an agent of this type calls no model of its own");
    match span {
        Some(span) if is_error => {
            reader.error_with_hint(span, Code::Conflict, message, "write it in the files of the agents below it");
        }
        Some(span) => reader.warning(span, Code::NoEffect, message, "leave it out"),
        None => {}
    }
}

fn sub_agents(reader: &Reader<'_>, fields: &Fields<'_>, links: &Links) -> Vec<SubAgent> {
    let items = fields.list("sub_agents", AGENTS_MAX).map_or(&[][..], |list| list.value);
    let read_one = |node: &Node| {
        let fields = reader.fields(node, "an agent below this one")?;
        let item = fields.required_text("ref");
        let agent = item.and_then(|item| {
            let name = item.value.strip_prefix("agent://").unwrap_or(item.value);
            agent_name(reader, &item, name, LinkKind::Call, links)
        });
        let role = fields.text("role").map(|item| texts::plain(reader, &item));
        let hint = "change the agent's own file, or write another one";
        fields.unsupported("config", "settings of an agent below another one are not supported", hint);
        fields.finish();
        Some(SubAgent { agent: agent?, role })
    };
    items.iter().filter_map(read_one).collect()
}

fn handoffs(reader: &Reader<'_>, fields: &Fields<'_>, links: &Links) -> Vec<AgentName> {
    let mut names: Vec<AgentName> = Vec::new();
    for item in fields.texts("handoffs", AGENTS_MAX) {
        let name = item.value.strip_prefix("agent://").unwrap_or(item.value);
        if let Some(name) = agent_name(reader, &item, name, LinkKind::Handoff, links) {
            if names.contains(&name) {
                reader.error(item.span(), Code::Conflict, format!("`{name}` stands twice among the hand-offs"));
            } else {
                names.push(name);
            }
        }
    }
    names
}

fn memory(reader: &Reader<'_>, fields: &Fields<'_>) -> MemorySpec {
    if let Some(fields) = fields.mapping("memory") {
        if let Some(backend) = fields.text("backend")
            && backend.value != "builtin"
        {
            let message = format!("memory {} is not supported", quoted(backend.value));
            let hint = "write `builtin`: earlier messages are kept with the session, in the server's store";
            reader.error_with_hint(backend.span(), Code::Unsupported, message, hint);
        }
        for key in ["config", "session_window"] {
            fields.unsupported(key, "settings of the memory are not supported", "leave them out");
        }
        fields.finish();
    }
    MemorySpec::Builtin
}

/// SuperAgent's second place for the type, and its limit of rounds.
fn orchestration(reader: &Reader<'_>, fields: &Fields<'_>, kind: Option<&AgentKind>) -> Option<u32> {
    let fields = fields.mapping("orchestration")?;
    if let (Some(mode), Some(kind)) = (fields.text("mode"), kind)
        && mode.value != kind.name()
    {
        let message = format!("`mode` is {} and the agent's type is {}", quoted(mode.value), kind.name());
        reader.error_with_hint(mode.span(), Code::Conflict, message, "leave `mode` out");
    }
    let rounds = fields.integer("max_rounds", 1..=TURNS_MAX);
    if let (Some(rounds), Some(kind)) = (&rounds, kind)
        && !kind.calls_a_model()
    {
        no_model(reader, Some(rounds.span()), "max_rounds", false);
    }
    fields.finish();
    rounds.and_then(|rounds| u32::try_from(rounds.value).ok())
}

/// What the server does for all agents alike.
fn without_effect(reader: &Reader<'_>, fields: &Fields<'_>) {
    if let Some(inner) = fields.mapping("observability") {
        let span = fields.key_span("observability").unwrap_or(inner.span);
        let _ = (inner.boolean("tracing"), inner.boolean("metrics"), inner.text("log_level"));
        inner.finish();
        let message = "`observability` has no effect: logs, metrics and traces are the server's";
        reader.warning(span, Code::NoEffect, message, "configure them in the server's own file, holdpoint.yaml");
    }
}

fn not_supported(fields: &Fields<'_>) {
    const OTHERS: [(&str, &str, &str); 6] = [
        ("middleware", "`middleware` is not supported", "write rules in a policy file for what may run"),
        ("workflow", "`workflow` is not supported", "use an agent of type sequential or parallel"),
        ("evolution", "`evolution` is not supported", "leave it out"),
        ("graph", "`graph` is not supported", "leave it out"),
        ("sandbox", "`sandbox` is not supported", "hold the tools in question, or run the server in a container"),
        ("approval", "`approval` belongs to a tool", "write it below the tool, or write a rule in a policy file"),
    ];
    for (key, message, hint) in OTHERS {
        fields.unsupported(key, message, hint);
    }
}

/// `vi`, `pt-BR`, `zh-Hant`.
fn is_language_tag(text: &str) -> bool {
    let is_part = |part: &str| (1..=8).contains(&part.len()) && part.chars().all(|c| c.is_ascii_alphanumeric());
    let first = text.split('-').next().unwrap_or_default();
    text.split('-').all(is_part) && first.len() >= 2 && first.chars().all(|c| c.is_ascii_alphabetic())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn language_tags_are_told_from_other_text() {
        for tag in ["vi", "en", "pt-BR", "zh-Hant-TW"] {
            assert!(is_language_tag(tag), "{tag}");
        }
        for other in ["", "v", "vi_VN", "vi-", "Tiếng Việt", "-vi", "12"] {
            assert!(!is_language_tag(other), "{other}");
        }
    }
}
