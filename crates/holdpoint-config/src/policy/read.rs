//! Policy files.

use std::sync::Arc;

use super::{Glob, PolicyRule, RuleVerdict};
use crate::agent::read::{deadline, names_of_people, quorum, texts};
use crate::diagnostic::{Code, quoted};
use crate::environment::Environment;
use crate::limits::RULES_MAX;
use crate::source::{Source, Span};
use crate::yaml::{Fields, Item, Node, Reader, Value, text};

/// What came of reading a policy file, for what is checked across files.
pub(crate) struct Draft<'e> {
    pub reader: Reader<'e>,
    pub rules: Vec<(PolicyRule, Span)>,
    /// The names of all rules, also of those that could not be read.
    pub names: Vec<(String, Span)>,
}

pub(crate) fn read<'e>(source: Source, environment: &'e dyn Environment) -> Draft<'e> {
    let reader = Reader::new(Arc::new(source), environment);
    let root = reader.parse();
    let mut names = Vec::new();
    let rules = root.map(|root| document(&reader, &root, &mut names)).unwrap_or_default();
    Draft { reader, rules, names }
}

fn document(reader: &Reader<'_>, root: &Node, names: &mut Vec<(String, Span)>) -> Vec<(PolicyRule, Span)> {
    let Some(fields) = reader.fields(root, "a policy file") else { return Vec::new() };
    if let Some(kind) = fields.text("kind")
        && kind.value != "Policy"
    {
        if kind.value == "Agent" {
            let hint = "move the file to the folder of the agents";
            reader.error_with_hint(
                kind.span(),
                Code::BadValue,
                "this is an agent file, and it stands among the policies",
                hint,
            );
            return Vec::new();
        }
        fields.bad_choice("kind", &kind, ["Policy"].into_iter());
    }
    if let Some(version) = fields.text("apiVersion")
        && version.value != "holdpoint/v1"
    {
        fields.bad_choice("apiVersion", &version, ["holdpoint/v1"].into_iter());
    }
    fields.required("rules");
    let items = fields.list("rules", RULES_MAX).map_or(&[][..], |list| list.value);
    let rules = items.iter().filter_map(|node| rule(reader, node, names)).collect();
    fields.finish();
    rules
}

fn rule(reader: &Reader<'_>, node: &Node, names: &mut Vec<(String, Span)>) -> Option<(PolicyRule, Span)> {
    let fields = reader.fields(node, "a rule")?;
    let name = fields.required_text("name");
    let (agents, tools) = match fields.mapping("match") {
        None => (Vec::new(), Vec::new()),
        Some(matched) => {
            let globs = (globs(reader, &matched, "agent"), globs(reader, &matched, "tool"));
            matched.finish();
            globs
        }
    };
    let when = fields.text("when").map(|item| texts::expression(reader, &item));
    fields.required("verdict");
    let verdict = fields.choice("verdict", &RuleVerdict::NAMES).map(|item| item.value);
    let message = fields.text("message").map(|item| texts::plain(reader, &item));
    let deadline = deadline(&fields);
    let approvers = names_of_people(&fields);
    let quorum = quorum(&fields);
    if verdict.is_some_and(|verdict| verdict != RuleVerdict::Hold) {
        only_for_holds(reader, &fields, verdict);
    }
    fields.finish();
    let name = name.and_then(|item| rule_name(reader, &item))?;
    names.push((name.value.to_owned(), name.span()));
    // A condition that could not be read must not become none.
    let when = match when {
        Some(None) => return None,
        Some(when) => when,
        None => None,
    };
    let rule = PolicyRule {
        name: name.value.to_owned(),
        agents,
        tools,
        when,
        verdict: verdict?,
        message,
        deadline,
        approvers,
        quorum,
    };
    Some((rule, name.span()))
}

/// A rule that does not hold asks nobody. With a condition that may fail it still might, so its terms count there.
fn only_for_holds(reader: &Reader<'_>, fields: &Fields<'_>, verdict: Option<RuleVerdict>) {
    if fields.key_span("when").is_some() {
        return;
    }
    let word = if verdict == Some(RuleVerdict::Deny) { "deny" } else { "allow" };
    for key in ["timeout_seconds", "approvers", "quorum"] {
        if let Some(span) = fields.key_span(key) {
            let message = format!("`{key}` has no effect in a rule with `verdict: {word}`");
            reader.warning(span, Code::NoEffect, message, "leave it out, or write `verdict: hold`");
        }
    }
}

fn rule_name<'n>(reader: &Reader<'_>, item: &Item<'n, &'n str>) -> Option<Item<'n, &'n str>> {
    let is_inner = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ' ');
    let is_name = item.value.len() <= 64 && item.value.trim() == item.value && item.value.chars().all(is_inner);
    let is_taken = item.value == super::DEFAULT_RULE;
    if !is_name || is_taken {
        let message = format!("a rule cannot be called {}", quoted(item.value));
        let hint = if is_taken {
            "this name is taken"
        } else {
            "use letters, digits, spaces, `_`, `-` and `.`, 64 bytes at most"
        };
        reader.error_with_hint(item.span(), Code::BadName, message, hint);
        return None;
    }
    Some(*item)
}

/// One pattern or a list of them.
fn globs(reader: &Reader<'_>, fields: &Fields<'_>, key: &'static str) -> Vec<Glob> {
    let Some(node) = fields.get(key) else { return Vec::new() };
    let nodes: Vec<&Node> = match &node.value {
        Value::List(items) if items.is_empty() => {
            let message = format!("an empty list under `{key}` matches nothing");
            reader.error_with_hint(node.span, Code::BadValue, message, format!("leave `{key}` out to match all"));
            Vec::new()
        }
        Value::List(items) => items.iter().collect(),
        _ => vec![node],
    };
    let mut globs = Vec::new();
    for node in nodes {
        let Some(item) = text(reader, node, key) else { continue };
        match item.value.parse::<Glob>() {
            Ok(glob) => globs.push(glob),
            Err(problem) => {
                let message = format!("{} is not a pattern", quoted(item.value));
                reader.error_with_hint(item.span(), Code::BadValue, message, problem.to_string());
            }
        }
    }
    globs
}
