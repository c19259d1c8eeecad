//! MCP servers that agents' tools come from.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::agent::read::texts;
use crate::diagnostic::{Code, quoted};
use crate::limits::{MCP_SERVERS_MAX, TOOL_SECONDS_MAX};
use crate::template::{Template, is_variable_name};
use crate::yaml::{Fields, Node, Reader, Value, text};

/// An MCP server.
#[derive(Debug, Clone, PartialEq)]
pub struct McpServer {
    /// How it is reached.
    pub transport: McpTransport,
    /// How long one call may take.
    pub timeout: Option<Duration>,
}

/// How an MCP server is reached.
#[derive(Debug, Clone, PartialEq)]
pub enum McpTransport {
    /// A program that is started, on its standard input and output.
    Program {
        /// The program and its arguments; never empty.
        argv: Vec<Template>,
        /// Further environment variables.
        env: BTreeMap<String, Template>,
        /// The folder in which it runs; the server's own otherwise.
        working_directory: Option<String>,
    },
    /// An address (streamable HTTP).
    Http {
        /// The address.
        url: Template,
        /// Headers, with names in lower case.
        headers: BTreeMap<String, Template>,
    },
}

pub(super) fn read_all(reader: &Reader<'_>, node: &Node) -> BTreeMap<String, McpServer> {
    let Value::Mapping(entries) = &node.value else {
        let message = format!("`mcp_servers` must be a mapping and is {}", node.kind());
        reader.error_with_hint(node.span, Code::WrongType, message, "write the servers by name");
        return BTreeMap::new();
    };
    if entries.len() > MCP_SERVERS_MAX {
        let message = format!("there are {} MCP servers, at most {MCP_SERVERS_MAX} are accepted", entries.len());
        reader.error(node.span, Code::OutOfRange, message);
    }
    let mut servers = BTreeMap::new();
    for entry in entries.iter().take(MCP_SERVERS_MAX) {
        let is_inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        if entry.key.is_empty() || entry.key.len() > 64 || !entry.key.chars().all(is_inner) {
            let message = format!("an MCP server cannot be called {}", quoted(&entry.key));
            reader.error_with_hint(entry.key_span, Code::BadName, message, "use letters, digits, `_`, `-` and `.`");
        }
        if let Some(server) = read(reader, &entry.value) {
            servers.insert(entry.key.clone(), server);
        }
    }
    servers
}

fn read(reader: &Reader<'_>, node: &Node) -> Option<McpServer> {
    let fields = reader.fields(node, "an MCP server")?;
    let seconds = fields.integer("timeout_seconds", 1..=TOOL_SECONDS_MAX);
    let timeout = seconds.and_then(|item| u64::try_from(item.value).ok()).map(Duration::from_secs);
    let transport = match (fields.key_span("command"), fields.key_span("url")) {
        (Some(_), Some(span)) => {
            reader.error(span, Code::Conflict, "an MCP server has `command` or `url`, not both");
            let _ = (program(reader, &fields), address(reader, &fields));
            None
        }
        (Some(_), None) => program(reader, &fields),
        (None, Some(_)) => address(reader, &fields),
        (None, None) => {
            let hint = "write `command: PROGRAM` with `args: […]`, or `url: https://…`";
            reader.error_with_hint(node.span, Code::MissingField, "an MCP server needs `command` or `url`", hint);
            None
        }
    };
    fields.finish();
    Some(McpServer { transport: transport?, timeout })
}

fn program(reader: &Reader<'_>, fields: &Fields<'_>) -> Option<McpTransport> {
    let program = fields.required_text("command").and_then(|item| texts::template(reader, &item));
    let args = fields.texts("args", 256);
    let args: Vec<Template> = args.iter().filter_map(|item| texts::template(reader, item)).collect();
    let env = templates(reader, fields, "env", is_variable_name);
    let working_directory = fields.text("working_directory").map(|item| item.value.to_owned());
    let argv = std::iter::once(program?).chain(args).collect();
    Some(McpTransport::Program { argv, env, working_directory })
}

fn address(reader: &Reader<'_>, fields: &Fields<'_>) -> Option<McpTransport> {
    let item = fields.required_text("url")?;
    let url = texts::template(reader, &item)?;
    if !texts::passes(reader, &url, super::read::is_web_address) {
        reader.error_with_hint(item.span(), Code::BadUrl, "`url` is not an address", "write `https://host/path`");
    }
    let headers = templates(reader, fields, "headers", |name| name.parse::<http::HeaderName>().is_ok());
    let headers = headers.into_iter().map(|(name, value)| (name.to_ascii_lowercase(), value)).collect();
    Some(McpTransport::Http { url, headers })
}

fn templates(
    reader: &Reader<'_>,
    fields: &Fields<'_>,
    key: &'static str,
    is_name: impl Fn(&str) -> bool,
) -> BTreeMap<String, Template> {
    let mut found = BTreeMap::new();
    for entry in fields.entries(key, 100) {
        if !is_name(&entry.key) {
            let message = format!("{} is not a name that can stand under `{key}`", quoted(&entry.key));
            reader.error(entry.key_span, Code::BadName, message);
            continue;
        }
        let item = text(reader, &entry.value, "a value");
        if let Some(template) = item.and_then(|item| texts::template(reader, &item)) {
            found.insert(entry.key.clone(), template);
        }
    }
    found
}
