//! `metadata`: who the agent is.

use std::collections::BTreeMap;

use super::links::Links;
use super::texts;
use crate::agent::{AgentName, Metadata};
use crate::diagnostic::{Code, quoted};
use crate::yaml::{Item, Node, Reader, text};

const TAGS_MAX: usize = 100;

pub(super) fn read(reader: &Reader<'_>, node: &Node, links: &Links) -> Option<Metadata> {
    let fields = reader.fields(node, "`metadata`")?;
    let name = fields.required_text("name").and_then(|item| name(reader, &item, links));
    let version = fields.text("version").map(|item| texts::plain(reader, &item));
    let description = fields.text("description").map(|item| texts::plain(reader, &item));
    let tags = fields.texts("tags", TAGS_MAX).iter().map(|item| texts::plain(reader, item)).collect();
    let mut labels = BTreeMap::new();
    for entry in fields.entries("labels", TAGS_MAX) {
        if let Some(item) = text(reader, &entry.value, "a label") {
            labels.insert(entry.key.clone(), texts::plain(reader, &item));
        }
    }
    fields.finish();
    Some(Metadata { name: name?, version, description, tags, labels })
}

fn name(reader: &Reader<'_>, item: &Item<'_, &str>, links: &Links) -> Option<AgentName> {
    match item.value.parse::<AgentName>() {
        Ok(name) => {
            links.set_name(name.clone(), item.span());
            Some(name)
        }
        Err(problem) => {
            let message = format!("an agent cannot be called {}: {problem}", quoted(item.value));
            let hint = near_name(item.value).map(|name| format!("`{name}` would do"));
            let hint = hint.unwrap_or_else(|| "a name such as `trader`".to_owned());
            reader.error_with_hint(item.span(), Code::BadName, message, hint);
            None
        }
    }
}

/// The name that a text comes nearest to.
fn near_name(text: &str) -> Option<AgentName> {
    let fold = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let name: String = text.trim().chars().take(64).map(fold).collect();
    name.trim_matches('-').parse().ok()
}
