//! An agent file's tree to an agent, with every problem on the way.

mod approval;
mod builtin;
mod command;
mod http;
mod interrupt;
mod links;
mod metadata;
mod model;
mod schema;
mod spec;
pub(crate) mod texts;
mod tool;

use std::sync::Arc;

use super::{AgentFile, AgentName};
use crate::diagnostic::{Code, Diagnostic};
use crate::environment::Environment;
use crate::source::Source;
use crate::yaml::{Fields, Item, Node, Places, Reader};

pub(crate) use approval::{deadline, names_of_people, quorum};
pub(crate) use links::{Link, LinkKind, Links};

/// An agent whose file is right, and where its values stand.
#[derive(Debug, Clone)]
pub struct LoadedAgent {
    /// The agent.
    pub file: AgentFile,
    /// Where the values of its file stand.
    pub places: Places,
}

impl LoadedAgent {
    /// The agent's name.
    pub fn name(&self) -> &AgentName {
        &self.file.metadata.name
    }
}

/// What came of reading an agent file.
#[derive(Debug)]
pub struct ReadAgent {
    /// The agent; `None` where the file has an error.
    pub agent: Option<LoadedAgent>,
    /// Everything that is wrong, in the order of lines.
    pub diagnostics: Vec<Diagnostic>,
}

/// Reads one agent file. Agents, MCP servers and tools that it names are not looked for: only a folder knows them.
pub fn read_agent(source: Source, environment: &dyn Environment) -> ReadAgent {
    let read = read(source, environment);
    ReadAgent { agent: read.agent, diagnostics: read.reader.finish() }
}

/// What came of reading an agent file, for what is checked across files.
pub(crate) struct Draft<'e> {
    pub reader: Reader<'e>,
    pub agent: Option<LoadedAgent>,
    pub links: Links,
}

pub(crate) fn read<'e>(source: Source, environment: &'e dyn Environment) -> Draft<'e> {
    let reader = Reader::new(Arc::new(source), environment);
    let links = Links::default();
    let root = reader.parse();
    let file = root.as_ref().and_then(|root| document(&reader, root, &links));
    let agent = match (file, root) {
        (Some(file), Some(root)) if !reader.has_errors() => {
            Some(LoadedAgent { file, places: Places::new(Arc::clone(reader.source()), root) })
        }
        _ => None,
    };
    Draft { reader, agent, links }
}

fn document(reader: &Reader<'_>, root: &Node, links: &Links) -> Option<AgentFile> {
    let fields = reader.fields(root, "an agent file")?;
    version(&fields);
    let is_policy =
        fields.text("kind").is_some_and(|kind| kind.value == "Policy") || fields.key_span("rules").is_some();
    if is_policy {
        let span = fields.key_span("rules").or(fields.key_span("kind")).unwrap_or(root.span);
        let hint = "move the file to the folder `policies`";
        reader.error_with_hint(span, Code::BadValue, "this is a policy file, and it stands among the agents", hint);
        return None;
    }
    if let Some(kind) = fields.required_text("kind")
        && kind.value != "Agent"
    {
        fields.bad_choice("kind", &kind, ["Agent"].into_iter());
    }
    let metadata = fields.required("metadata").and_then(|node| metadata::read(reader, node, links));
    let spec = fields.required("spec").and_then(|node| spec::read(reader, node, links));
    let hint = "name MCP servers in the server's own file, holdpoint.yaml";
    fields.unsupported("mcp_servers", "MCP servers are not configured in agent files", hint);
    fields.finish();
    Some(AgentFile { metadata: metadata?, spec: spec? })
}

/// `apiVersion`: two names for the same schema.
pub(crate) fn version(fields: &Fields<'_>) {
    const VERSIONS: [&str; 2] = ["holdpoint/v1", "superagent/v1"];
    if let Some(version) = fields.required_text("apiVersion")
        && !VERSIONS.contains(&version.value)
    {
        fields.bad_choice("apiVersion", &version, VERSIONS.into_iter());
    }
}

/// An agent's name where it is referred to, with a link to be checked.
fn agent_name(
    reader: &Reader<'_>,
    item: &Item<'_, &str>,
    text: &str,
    kind: LinkKind,
    links: &Links,
) -> Option<AgentName> {
    match text.parse::<AgentName>() {
        Ok(name) => {
            links.add(Link { kind, target: name.to_string(), span: item.span() });
            Some(name)
        }
        Err(problem) => {
            let message = format!("{} is not the name of an agent", crate::diagnostic::quoted(text));
            reader.error_with_hint(item.span(), Code::BadName, message, problem.to_string());
            None
        }
    }
}
