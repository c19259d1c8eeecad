//! `tools`: each from one source, with its rule and its display.

use holdpoint_core::tool::Effect;

use super::links::{Link, LinkKind, Links};
use super::{agent_name, approval, builtin, command, http, schema, texts};
use crate::agent::{AgentTool, ApprovalSpec, DisplaySpec, Fill, McpTool, ToolSource, ToolSpec};
use crate::diagnostic::suggest::did_you_mean;
use crate::diagnostic::{Code, quoted};
use crate::limits::{NAME_BYTES_MAX, TOOLS_MAX, TURNS_MAX};
use crate::yaml::{Fields, Item, Node, Reader, Value};

const EFFECTS: [(&str, Effect); 3] =
    [("read_only", Effect::ReadOnly), ("idempotent", Effect::Idempotent), ("at_most_once", Effect::AtMostOnce)];

pub(super) fn read_all(reader: &Reader<'_>, fields: &Fields<'_>, links: &Links) -> Vec<ToolSpec> {
    let items = fields.list("tools", TOOLS_MAX).map_or(&[][..], |list| list.value);
    let mut tools: Vec<ToolSpec> = Vec::new();
    for node in items {
        let Some(tool) = read(reader, node, links) else { continue };
        if let Some(name) = tool.name()
            && tools.iter().any(|other| other.name() == Some(name))
        {
            let place = node.get("name").or(node.get("ref")).unwrap_or(node);
            let message = format!("two tools of this agent are called {}", quoted(name));
            reader.error_with_hint(place.span, Code::DuplicateTool, message, "give one of them another `name`");
            continue;
        }
        tools.push(tool);
    }
    tools
}

fn read(reader: &Reader<'_>, node: &Node, links: &Links) -> Option<ToolSpec> {
    if let Value::Text(text) = &node.value {
        let hint = format!("write `- ref: {text}`");
        reader.error_with_hint(node.span, Code::WrongType, "a tool must be a mapping and is text", hint);
        return None;
    }
    let fields = reader.fields(node, "a tool")?;
    fields.unsupported("uri", "`uri` is not a field of a tool", "write `ref`");
    let source = source(reader, &fields, links);
    let approval = fields.get("approval").map(|node| approval::read(reader, node, links));
    let effects = fields.choice("effects", &EFFECTS);
    let display = fields.get("display").and_then(|node| display(reader, node, source.as_ref()));
    let explicit_decision = explicit_decision(reader, &fields, approval.as_ref());
    if let (Some(ToolSource::Agent(_)), Some(effects)) = (&source, &effects) {
        let message = "an agent has no `effects` of its own";
        reader.error_with_hint(effects.span(), Code::Conflict, message, "declare them on that agent's tools");
    }
    fields.finish();
    // A rule that could not be read must not become no rule.
    let approval = match approval {
        Some(None) => return None,
        Some(approval) => approval,
        None => None,
    };
    let effects = effects.map(|item| item.value).unwrap_or_default();
    let display = display.unwrap_or_default();
    Some(ToolSpec { source: source?, approval, effects, display, explicit_decision })
}

/// `explicit_decision`: no call of the tool is decided by what was said of another one.
fn explicit_decision(reader: &Reader<'_>, fields: &Fields<'_>, approval: Option<&Option<ApprovalSpec>>) -> bool {
    let Some(item) = fields.boolean("explicit_decision").filter(|item| item.value) else { return false };
    if let Some(Some(ApprovalSpec::Held(held))) = approval
        && held.fill == Some(Fill::First)
    {
        let message = "`explicit_decision: true` and `fill: first` contradict each other";
        reader.error_with_hint(item.span(), Code::Conflict, message, "leave one of them out");
    }
    true
}

fn source(reader: &Reader<'_>, fields: &Fields<'_>, links: &Links) -> Option<ToolSource> {
    let kinds = ["ref", "http", "command"];
    let present: Vec<&str> = kinds.into_iter().filter(|key| fields.key_span(key).is_some()).collect();
    if let [first, others @ ..] = present.as_slice() {
        for other in others {
            let span = fields.key_span(other).unwrap_or(fields.span);
            let message = format!("a tool has one source, and this one has `{first}` and `{other}`");
            reader.error_with_hint(span, Code::Conflict, message, "make two tools of it, or leave one out");
        }
    }
    // Every part is looked at, also where there is one too many: each may have problems of its own.
    let reference = fields.text("ref").and_then(|item| reference(reader, fields, &item, links));
    let http = fields.get("http").and_then(|node| http::read(reader, fields, node));
    let command = fields.get("command").and_then(|node| command::read(reader, fields, node));
    if present.is_empty() {
        let span = fields.key_span("name").unwrap_or(fields.span);
        let hint = "add `ref: builtin/…`, `ref: mcp://…`, `ref: agent://…`, `http: {…}` or `command: {…}`";
        reader.error_with_hint(span, Code::MissingField, "a tool needs `ref`, `http` or `command`", hint);
        for key in ["name", "description", "parameters"] {
            fields.get(key);
        }
    }
    let only_own = ["description", "parameters"];
    if present == ["ref"] {
        for key in only_own {
            let is_agent = fields.text("ref").is_some_and(|item| item.value.starts_with("agent://"));
            if !(is_agent && key == "description") {
                let message = format!("`{key}` is only for tools with `http` or `command`");
                fields.unsupported(key, &message, "leave it out");
            }
        }
    } else {
        fields.unsupported("config", "`config` is only for tools with `ref`", "leave it out");
    }
    reference.or(http.map(ToolSource::Http)).or(command.map(ToolSource::Command))
}

fn reference(reader: &Reader<'_>, fields: &Fields<'_>, item: &Item<'_, &str>, links: &Links) -> Option<ToolSource> {
    if let Some(name) = item.value.strip_prefix("builtin/") {
        let hint = "models know a built-in tool by its own name";
        fields.unsupported("name", "a built-in tool cannot have another name", hint);
        return builtin::read(reader, fields, item, name).map(ToolSource::Builtin);
    }
    if let Some(rest) = item.value.strip_prefix("mcp://") {
        fields.unsupported("config", "a tool of an MCP server has no `config`", "leave it out");
        return mcp(reader, fields, item, rest, links).map(ToolSource::Mcp);
    }
    if let Some(name) = item.value.strip_prefix("agent://") {
        let agent = agent_name(reader, item, name, LinkKind::Call, links);
        let name = fields.text("name").and_then(|item| tool_name(reader, &item));
        let description = fields.text("description").map(|item| texts::plain(reader, &item));
        let max_turns = fields.mapping("config").and_then(|config| {
            let turns = config.integer("max_turns", 1..=TURNS_MAX).and_then(|item| u32::try_from(item.value).ok());
            config.finish();
            turns
        });
        return Some(ToolSource::Agent(AgentTool { agent: agent?, name, description, max_turns }));
    }
    for key in ["name", "config"] {
        fields.get(key);
    }
    let message = format!("there is no tool {}", quoted(item.value));
    let hint = if item.value.starts_with("skill://") {
        "skills are not supported; make the tool with `http` or `command`".to_owned()
    } else {
        let prefixed = did_you_mean(item.value, builtin::NAMES.map(|name| name));
        prefixed.map_or_else(
            || "write `builtin/NAME`, `mcp://SERVER/TOOL` or `agent://NAME`".to_owned(),
            |_| format!("write `builtin/{}`", item.value),
        )
    };
    reader.error_with_hint(item.span(), Code::UnknownTool, message, hint);
    None
}

fn mcp(reader: &Reader<'_>, fields: &Fields<'_>, item: &Item<'_, &str>, rest: &str, links: &Links) -> Option<McpTool> {
    let (server, tool) = rest.split_once('/').unwrap_or((rest, "*"));
    let is_name =
        |name: &str| (1..=128).contains(&name.len()) && name.chars().all(|c| c.is_ascii_graphic() && c != '/');
    if !is_name(server) || !is_name(tool) {
        let message = format!("{} is not a tool of an MCP server", quoted(item.value));
        reader.error_with_hint(item.span(), Code::BadValue, message, "write `mcp://SERVER/TOOL` or `mcp://SERVER/*`");
        return None;
    }
    links.add(Link { kind: LinkKind::McpServer, target: server.to_owned(), span: item.span() });
    let name = fields.text("name");
    if let (Some(name), "*") = (&name, tool) {
        reader.error(name.span(), Code::Conflict, "all tools of a server cannot have one name");
    }
    let name = name.and_then(|item| tool_name(reader, &item));
    Some(McpTool { server: server.to_owned(), tool: (tool != "*").then(|| tool.to_owned()), name })
}

/// The name by which models call a tool.
pub(super) fn tool_name(reader: &Reader<'_>, item: &Item<'_, &str>) -> Option<String> {
    let is_inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let is_name = (1..=NAME_BYTES_MAX).contains(&item.value.len()) && item.value.chars().all(is_inner);
    if !is_name {
        let message = format!("a tool cannot be called {}", quoted(item.value));
        let hint = format!("use letters, digits, `_` and `-`, {NAME_BYTES_MAX} at most");
        reader.error_with_hint(item.span(), Code::BadName, message, hint);
    }
    is_name.then(|| item.value.to_owned())
}

fn display(reader: &Reader<'_>, node: &Node, source: Option<&ToolSource>) -> Option<DisplaySpec> {
    let fields = reader.fields(node, "`display`")?;
    let default = DisplaySpec::default();
    let flag = |key, otherwise| fields.boolean(key).map_or(otherwise, |item| item.value);
    let stream_tool_use = flag("stream_tool_use", default.stream_tool_use);
    let stream_tool_result = flag("stream_tool_result", default.stream_tool_result);
    let as_content = flag("as_content", default.as_content);
    let message = fields.text("message");
    if let Some(item) = &message {
        let parameters = match source {
            Some(ToolSource::Http(tool)) => Some(&tool.parameters),
            Some(ToolSource::Command(tool)) => Some(&tool.parameters),
            _ => None,
        };
        if let Some(parameters) = parameters {
            schema::check_placeholders(reader, item, item.value, parameters);
        }
    }
    let message = message.map(|item| texts::plain(reader, &item));
    fields.finish();
    Some(DisplaySpec { stream_tool_use, stream_tool_result, as_content, message })
}
