//! An agent's tools: where each comes from, whether a person looks first, and how it is shown.

use std::collections::BTreeMap;
use std::time::Duration;

use holdpoint_core::tool::Effect;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{AgentName, ApprovalSpec, HeldApproval};
use crate::seconds;
use crate::template::Template;

/// One tool of an agent, or all tools of an MCP server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolSpec {
    /// Where it comes from.
    pub source: ToolSource,
    /// Its own rule; `None` where the file has none ([`ToolSpec::own_rule`] says what that means).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<ApprovalSpec>,
    /// What it does to the world.
    #[serde(default)]
    pub effects: Effect,
    /// How clients see its calls.
    #[serde(default, skip_serializing_if = "DisplaySpec::is_default")]
    pub display: DisplaySpec,
    /// Whether each of its calls needs a decision of its own: none is filled in from that of another call.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub explicit_decision: bool,
}

impl ToolSpec {
    /// What the model calls it. `None` for all tools of an MCP server, which have the server's names.
    pub fn name(&self) -> Option<&str> {
        match &self.source {
            ToolSource::Builtin(builtin) => Some(builtin.name()),
            ToolSource::Mcp(tool) => tool.name.as_deref().or(tool.tool.as_deref()),
            ToolSource::Agent(tool) => Some(tool.name.as_deref().unwrap_or(tool.agent.as_str())),
            ToolSource::Http(tool) => Some(&tool.name),
            ToolSource::Command(tool) => Some(&tool.name),
        }
    }

    /// The tool's own rule, the default one included: a question to a person and another agent need nobody's leave,
    /// since the one asks anyway and the other's tools have rules of their own. Every other tool is held.
    pub fn own_rule(&self) -> ApprovalSpec {
        match (&self.approval, &self.source) {
            (Some(approval), _) => approval.clone(),
            (None, ToolSource::Builtin(BuiltinTool::AskUserQuestion) | ToolSource::Agent(_)) => ApprovalSpec::Never,
            (None, _) => ApprovalSpec::Held(HeldApproval::default()),
        }
    }

    /// The JSON schema of its arguments, where the file has one.
    pub fn parameters(&self) -> Option<&Value> {
        match &self.source {
            ToolSource::Http(tool) => Some(&tool.parameters),
            ToolSource::Command(tool) => Some(&tool.parameters),
            ToolSource::Builtin(_) | ToolSource::Mcp(_) | ToolSource::Agent(_) => None,
        }
    }
}

/// Where a tool comes from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolSource {
    /// `builtin/…`: it comes with holdpoint.
    Builtin(BuiltinTool),
    /// `mcp://…`: an MCP server has it.
    Mcp(McpTool),
    /// `agent://…`: another agent.
    Agent(AgentTool),
    /// A request to an address of the operator.
    Http(HttpTool),
    /// A program of the operator.
    Command(CommandTool),
}

/// A tool that comes with holdpoint, and its `config`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BuiltinTool {
    /// Asks the person.
    AskUserQuestion,
    /// Runs commands in a shell.
    Shell(ShellConfig),
    /// Changes files.
    ApplyPatch(ApplyPatchConfig),
    /// Sends requests to addresses that the model chooses.
    HttpRequest(HttpRequestConfig),
}

impl BuiltinTool {
    /// What the model calls it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::AskUserQuestion => "ask_user_question",
            Self::Shell(_) => "shell",
            Self::ApplyPatch(_) => "apply_patch",
            Self::HttpRequest(_) => "http_request",
        }
    }
}

/// Settings of `builtin/shell`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShellConfig {
    /// How long one command may take.
    #[serde(default, rename = "timeout_seconds", with = "seconds::option", skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Duration>,
    /// How much output is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_bytes_max: Option<u64>,
    /// The folder in which commands run; the server's own otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_directory: Option<String>,
    /// Further environment variables of the commands.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, Template>,
}

/// Settings of `builtin/apply_patch`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApplyPatchConfig {
    /// The folder outside of which nothing is changed; the server's own otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_directory: Option<String>,
    /// The largest file that is read or written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_bytes_max: Option<u64>,
}

/// Settings of `builtin/http_request`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HttpRequestConfig {
    /// How long one request may take.
    #[serde(default, rename = "timeout_seconds", with = "seconds::option", skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Duration>,
    /// How much of an answer is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_bytes_max: Option<u64>,
    /// The only hosts that may be asked, as globs; empty for all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allowed_hosts: Vec<String>,
    /// Whether private, loopback and link-local addresses may be asked.
    #[serde(default)]
    pub allow_private: bool,
}

/// A tool of an MCP server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct McpTool {
    /// The server's name in the server configuration.
    pub server: String,
    /// The tool's name there; `None` for all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Another name for the model to call it by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// Another agent as a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentTool {
    /// The agent.
    pub agent: AgentName,
    /// Another name for the model to call it by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What the model is told about it; the agent's own description otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// How often that agent's model may be called for one call of the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<u32>,
}

/// A request to an address that the operator wrote, which may be a local one. The arguments are the JSON body (POST,
/// PUT, PATCH) or the query (GET, DELETE), but for those that fill a `{name}` of the address.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HttpTool {
    /// What the model calls it.
    pub name: String,
    /// What the model is told about it.
    pub description: String,
    /// The JSON schema of its arguments.
    pub parameters: Value,
    /// The method.
    pub method: HttpMethod,
    /// The address, with `${NAME}` for the environment and `{name}` for an argument.
    pub url: Template,
    /// Headers. Their names are valid and in lower case.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, Template>,
    /// How long one request may take.
    #[serde(default, rename = "timeout_seconds", with = "seconds::option", skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Duration>,
    /// How much of an answer is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_bytes_max: Option<u64>,
}

/// A request's method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum HttpMethod {
    /// Arguments are the query.
    Get,
    /// Arguments are the body.
    Post,
    /// Arguments are the body.
    Put,
    /// Arguments are the body.
    Patch,
    /// Arguments are the query.
    Delete,
}

impl HttpMethod {
    pub(crate) const NAMES: [(&str, Self); 5] = [
        ("GET", Self::Get),
        ("POST", Self::Post),
        ("PUT", Self::Put),
        ("PATCH", Self::Patch),
        ("DELETE", Self::Delete),
    ];

    /// The method's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }

    /// Whether the arguments are the body, and not the query.
    pub fn has_body(self) -> bool {
        matches!(self, Self::Post | Self::Put | Self::Patch)
    }
}

/// A program of the operator: arguments as JSON on its standard input, the result from its standard output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommandTool {
    /// What the model calls it.
    pub name: String,
    /// What the model is told about it.
    pub description: String,
    /// The JSON schema of its arguments.
    pub parameters: Value,
    /// The program and its arguments; never empty. No shell reads them.
    pub argv: Vec<Template>,
    /// The folder in which it runs; the server's own otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_directory: Option<String>,
    /// Further environment variables.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, Template>,
    /// How long one call may take.
    #[serde(default, rename = "timeout_seconds", with = "seconds::option", skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Duration>,
    /// How much output is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_bytes_max: Option<u64>,
}

/// How clients see a tool's calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DisplaySpec {
    /// Whether the call itself is shown.
    pub stream_tool_use: bool,
    /// Whether its result is shown.
    pub stream_tool_result: bool,
    /// Whether its result is shown as if the agent had said it.
    pub as_content: bool,
    /// What a person reads instead of the tool's name, with `{name}` for an argument.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

impl DisplaySpec {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl Default for DisplaySpec {
    fn default() -> Self {
        Self { stream_tool_use: true, stream_tool_result: true, as_content: false, message: None }
    }
}
