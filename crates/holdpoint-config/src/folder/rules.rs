//! The rules of all policy files as one set.

use std::collections::BTreeMap;

use crate::agent::AgentName;
use crate::agent::read::Draft as AgentDraft;
use crate::diagnostic::{Code, quoted};
use crate::limits::RULES_MAX;
use crate::policy::read::Draft;
use crate::policy::{Glob, PolicySet};

/// The rules, or `None` where a file has an error.
pub(super) fn join(drafts: &[Draft<'_>], agents: &[AgentDraft<'_>]) -> Option<PolicySet> {
    let mut named: BTreeMap<&str, &str> = BTreeMap::new();
    let mut rules = Vec::new();
    for draft in drafts {
        for (name, span) in &draft.names {
            if let Some(file) = named.insert(name.as_str(), draft.reader.source().name()) {
                let message = format!("rule {} is defined in {file} too", quoted(name));
                draft.reader.error_with_hint(*span, Code::DuplicateRule, message, "give one of them another name");
            }
        }
        rules.extend(draft.rules.iter().map(|(rule, _)| rule.clone()));
        if rules.len() > RULES_MAX {
            let message = format!("the policy files have more than {RULES_MAX} rules");
            draft.reader.report(super::too_many(draft.reader.source().name(), message));
        }
    }
    rules_without_calls(drafts, agents);
    drafts.iter().all(|draft| !draft.reader.has_errors()).then(|| PolicySet::new(rules))
}

/// Warns of rules that can match no call: a misspelt name would leave a gate open.
fn rules_without_calls(drafts: &[Draft<'_>], agents: &[AgentDraft<'_>]) {
    // Where a file could not be read, its tools are not known.
    if agents.is_empty() || agents.iter().any(|draft| draft.agent.is_none()) {
        return;
    }
    let files = || agents.iter().filter_map(|draft| draft.agent.as_ref()).map(|agent| &agent.file);
    let names: Vec<&str> = files().map(|file| file.metadata.name.as_str()).collect();
    let tools: Vec<Option<&str>> =
        files().flat_map(|file| &file.spec.tools).map(crate::agent::ToolSpec::name).collect();
    let below: Vec<&str> = files().flat_map(|file| file.needs()).map(AgentName::as_str).collect();
    // All tools of an MCP server are known only once the server runs.
    let are_tools_known = tools.iter().all(Option::is_some);
    let fits = |globs: &[Glob], mut names: &mut dyn Iterator<Item = &str>| {
        globs.is_empty() || (&mut names).any(|name| globs.iter().any(|glob| glob.matches(name)))
    };
    for draft in drafts {
        for (rule, span) in &draft.rules {
            if !fits(&rule.agents, &mut names.iter().copied()) {
                let message = format!("rule {} matches no agent of this folder", quoted(&rule.name));
                draft.reader.warning(*span, Code::NoEffect, message, "look at `match.agent`");
            }
            let mut known = tools.iter().flatten().copied().chain(below.iter().copied());
            if are_tools_known && !fits(&rule.tools, &mut known) {
                let message = format!("rule {} matches no tool of any agent", quoted(&rule.name));
                draft.reader.warning(
                    *span,
                    Code::NoEffect,
                    message,
                    "look at `match.tool`: models call tools by these names",
                );
            }
        }
    }
}
