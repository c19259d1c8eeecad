//! Tools as an agent's file describes them, made into tools that run.

mod http;
#[cfg(unix)]
mod local;

use std::collections::BTreeMap;

use holdpoint_config::{BuiltinTool, Environment, Template, ToolSource, ToolSpec};
use holdpoint_runtime::ports::tool::ToolBuilder;
use holdpoint_tools::ask_user_question::AskUserQuestion;
use secrecy::SecretString;

use crate::agents::build::Workshop;

/// A tool of this description, without approval and effect. Agents as tools are made elsewhere: they need the agent.
pub(super) fn tool(spec: &ToolSpec, workshop: &Workshop) -> Result<ToolBuilder, String> {
    match &spec.source {
        ToolSource::Builtin(BuiltinTool::AskUserQuestion) => Ok(AskUserQuestion::builder()),
        #[cfg(unix)]
        ToolSource::Builtin(BuiltinTool::Shell(config)) => local::shell(config, workshop),
        #[cfg(unix)]
        ToolSource::Builtin(BuiltinTool::ApplyPatch(config)) => local::apply_patch(config, workshop),
        ToolSource::Builtin(BuiltinTool::HttpRequest(config)) => http::request(config),
        ToolSource::Http(spec) => http::endpoint(spec, workshop),
        #[cfg(unix)]
        ToolSource::Command(spec) => local::command(spec, workshop),
        #[cfg(not(unix))]
        ToolSource::Builtin(BuiltinTool::Shell(_) | BuiltinTool::ApplyPatch(_)) | ToolSource::Command(_) => {
            Err("tools that work on the server's machine need a Unix system".to_owned())
        }
        ToolSource::Mcp(tool) => Err(format!(
            "tools of MCP servers are not connected by this version: take the reference to mcp_servers.{} out, or use \
             an http or command tool in its place",
            tool.server
        )),
        ToolSource::Agent(tool) => Err(format!("agent {} is not at hand here", tool.agent)),
    }
}

fn secret(template: &Template, environment: &dyn Environment) -> Result<SecretString, String> {
    template.resolve(environment).map_err(|missing| missing.to_string())
}

fn secrets(
    templates: &BTreeMap<String, Template>,
    environment: &dyn Environment,
) -> Result<Vec<(String, SecretString)>, String> {
    templates.iter().map(|(name, template)| Ok((name.clone(), secret(template, environment)?))).collect()
}

/// What these templates take from the environment: none of it may reach a model, wherever it is repeated.
fn taken<'a>(templates: impl IntoIterator<Item = &'a Template>, environment: &dyn Environment) -> Vec<SecretString> {
    templates.into_iter().flat_map(Template::names).filter_map(|name| environment.value(name)).collect()
}

fn size(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}
