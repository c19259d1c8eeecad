//! What only all agent files together show: names that stand twice, names that nobody has, circles, and agents that
//! cannot be used because another one cannot.

use std::collections::{BTreeMap, BTreeSet};

use crate::agent::read::{Draft, Link, LinkKind};
use crate::diagnostic::suggest::did_you_mean;
use crate::diagnostic::{Code, quoted};

pub(super) fn check(drafts: &[Draft<'_>], mcp_servers: Option<&[String]>) {
    let named = names(drafts);
    for draft in drafts {
        for link in draft.links.all() {
            match link.kind {
                LinkKind::Call | LinkKind::Handoff => unknown_agent(draft, &link, &named),
                LinkKind::McpServer => unknown_server(draft, &link, mcp_servers),
            }
        }
    }
    circles(drafts, &named);
    broken(drafts, &named);
}

/// Which file has which name. Of two files with one name the first counts.
fn names(drafts: &[Draft<'_>]) -> BTreeMap<String, usize> {
    let mut named: BTreeMap<String, usize> = BTreeMap::new();
    for (index, draft) in drafts.iter().enumerate() {
        let Some((name, span)) = draft.links.name() else { continue };
        if let Some(first) = named.get(name.as_str()) {
            let file = drafts[*first].reader.source().name();
            let message = format!("agent `{name}` is defined in {file} too");
            draft.reader.error_with_hint(span, Code::DuplicateAgent, message, "give one of them another name");
        } else {
            named.insert(name.to_string(), index);
        }
    }
    named
}

fn unknown_agent(draft: &Draft<'_>, link: &Link, named: &BTreeMap<String, usize>) {
    if !named.contains_key(&link.target) {
        let own = draft.links.name().map(|(name, _)| name.to_string()).unwrap_or_default();
        let others: Vec<&str> = named.keys().map(String::as_str).filter(|name| *name != own).collect();
        let message = format!("there is no agent `{}`", link.target);
        let hint = did_you_mean(&link.target, others.iter().copied()).unwrap_or_else(|| match others.as_slice() {
            [] => "there is no other agent in this folder".to_owned(),
            others => format!("there are {}", some(others)),
        });
        draft.reader.error_with_hint(link.span, Code::UnknownAgent, message, hint);
    }
}

fn unknown_server(draft: &Draft<'_>, link: &Link, servers: Option<&[String]>) {
    let Some(servers) = servers.filter(|servers| !servers.contains(&link.target)) else { return };
    let message = format!("there is no MCP server {}", quoted(&link.target));
    let hint = did_you_mean(&link.target, servers.iter().map(String::as_str));
    let hint =
        hint.unwrap_or_else(|| "name it under `mcp_servers` in the server's own file, holdpoint.yaml".to_owned());
    draft.reader.error_with_hint(link.span, Code::UnknownMcpServer, message, hint);
}

/// Reports each circle of agents that run inside each other, once, at the reference that closes it.
fn circles(drafts: &[Draft<'_>], named: &BTreeMap<String, usize>) {
    let mut search = Circles { drafts, named, done: BTreeSet::new(), path: Vec::new() };
    for index in named.values() {
        search.visit(*index);
    }
}

struct Circles<'d, 'e> {
    drafts: &'d [Draft<'e>],
    named: &'d BTreeMap<String, usize>,
    done: BTreeSet<usize>,
    path: Vec<usize>,
}

impl Circles<'_, '_> {
    /// Follows references. The depth is bounded by the number of files.
    fn visit(&mut self, index: usize) {
        if self.done.contains(&index) {
            return;
        }
        self.path.push(index);
        let draft = &self.drafts[index];
        let calls: Vec<Link> = draft.links.all().into_iter().filter(|link| link.kind == LinkKind::Call).collect();
        for link in calls {
            let Some(target) = self.named.get(&link.target).copied() else { continue };
            match self.path.iter().position(|on_path| *on_path == target) {
                Some(start) => self.report(index, &link, start),
                None => self.visit(target),
            }
        }
        self.path.pop();
        self.done.insert(index);
    }

    fn report(&self, index: usize, link: &Link, start: usize) {
        let name =
            |index: &usize| self.drafts[*index].links.name().map(|(name, _)| name.to_string()).unwrap_or_default();
        let mut names: Vec<String> = self.path[start..].iter().map(name).collect();
        names.push(link.target.clone());
        let message = format!("agents run inside each other without end: {}", names.join(" → "));
        let hint = "leave one of the references out, or make it a hand-off";
        self.drafts[index].reader.error_with_hint(link.span, Code::AgentCycle, message, hint);
    }
}

/// An agent that needs one which cannot be used cannot be used either.
fn broken(drafts: &[Draft<'_>], named: &BTreeMap<String, usize>) {
    let mut has_changed = true;
    let mut told: BTreeSet<usize> = BTreeSet::new();
    while has_changed {
        has_changed = false;
        for (index, draft) in drafts.iter().enumerate() {
            if told.contains(&index) || draft.reader.has_errors() {
                continue;
            }
            let is_broken = |link: &Link| {
                let target = named.get(&link.target).filter(|_| link.kind != LinkKind::McpServer);
                target.is_some_and(|target| drafts[*target].reader.has_errors())
            };
            for link in draft.links.all().into_iter().filter(is_broken) {
                let file = named.get(&link.target).map_or("", |target| drafts[*target].reader.source().name());
                let message = format!("agent `{}` cannot be used, so this one cannot either", link.target);
                draft.reader.error_with_hint(link.span, Code::BrokenAgent, message, format!("mend {file} first"));
                told.insert(index);
                has_changed = true;
            }
        }
    }
}

/// The first few of many names.
fn some(names: &[&str]) -> String {
    const SHOWN_MAX: usize = 8;
    let more = if names.len() > SHOWN_MAX { ", …" } else { "" };
    format!("{}{more}", names[..names.len().min(SHOWN_MAX)].join(", "))
}
