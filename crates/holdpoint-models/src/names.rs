//! Tool names as providers accept them: letters, digits, `_` and `-`, at most 64 of them. Ours may also have dots and
//! colons and be longer, so each request has a table from ours to theirs and back.

use std::collections::HashMap;
use std::sync::Arc;

use holdpoint_core::ids::ToolName;
use holdpoint_core::json::Digest;
use holdpoint_core::message::Item;
use holdpoint_runtime::ports::model::OfferedTool;

/// The longest name that every provider accepts.
const CHARS_MAX: usize = 64;

/// What each tool of a request is called at the provider.
#[derive(Debug, Clone, Default)]
pub(crate) struct Names {
    theirs: HashMap<ToolName, String>,
    ours: HashMap<String, ToolName>,
}

impl Names {
    /// The table for a request: the tools that are offered, and those that the conversation speaks of.
    pub(crate) fn new(tools: &[OfferedTool], items: &[Arc<Item>]) -> Self {
        let spoken_of = items.iter().flat_map(|item| match &**item {
            Item::Assistant { calls, .. } => calls.iter().map(|call| &call.tool).collect(),
            Item::ToolResult { tool, .. } => vec![tool],
            Item::User(_) => Vec::new(),
        });
        let mut all: Vec<&ToolName> = tools.iter().map(|tool| &tool.name).chain(spoken_of).collect();
        all.sort();
        all.dedup();
        // Names that are fine keep themselves; the others find a place beside them.
        let (fine, other): (Vec<_>, Vec<_>) = all.into_iter().partition(|name| is_accepted(name.as_str()));
        let mut names = Self::default();
        for name in fine {
            names.insert(name, name.to_string());
        }
        for name in other {
            let plain = plain(name.as_str());
            let theirs = names.free_name(name.as_str(), plain);
            names.insert(name, theirs);
        }
        names
    }

    fn free_name(&self, name: &str, plain: String) -> String {
        let is_free = |theirs: &String| theirs.len() <= CHARS_MAX && !self.ours.contains_key(theirs);
        let mut candidate = plain.clone();
        let mut attempt = 0_u32;
        while !is_free(&candidate) {
            candidate = marked(&format!("{attempt}:{name}"), &plain);
            attempt += 1;
        }
        candidate
    }

    fn insert(&mut self, ours: &ToolName, theirs: String) {
        self.ours.insert(theirs.clone(), ours.clone());
        self.theirs.insert(ours.clone(), theirs);
    }

    /// What the provider calls our tool.
    pub(crate) fn theirs<'a>(&'a self, ours: &'a ToolName) -> &'a str {
        self.theirs.get(ours).map_or(ours.as_str(), String::as_str)
    }

    /// What we call the provider's tool. A name that is not in the table stays as it is: the runtime says that there is
    /// no such tool.
    pub(crate) fn ours<'a>(&'a self, theirs: &'a str) -> &'a str {
        self.ours.get(theirs).map_or(theirs, ToolName::as_str)
    }
}

fn is_accepted(name: &str) -> bool {
    name.len() <= CHARS_MAX && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

fn plain(name: &str) -> String {
    name.replace(['.', ':'], "_")
}

/// A name that tells itself apart by a digest of what it stands for.
fn marked(meaning: &str, plain: &str) -> String {
    let digest = Digest::of(meaning.as_bytes()).to_string();
    let (mark, room) = (&digest[..12], CHARS_MAX - 13);
    // Names are ASCII, so that every byte is a place to cut at.
    format!("{}_{mark}", &plain[..plain.len().min(room)])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn table(names: &[&str]) -> Names {
        let tool = |name: &&str| OfferedTool {
            name: ToolName::new(name).unwrap(),
            description: String::new(),
            schema: json!({}),
        };
        Names::new(&names.iter().map(tool).collect::<Vec<_>>(), &[])
    }

    #[test]
    fn names_that_are_accepted_stay() {
        let names = table(&["send_email", "get-weather", &"x".repeat(64)]);
        for name in ["send_email", "get-weather", &"x".repeat(64)] {
            assert_eq!(names.theirs(&ToolName::new(name).unwrap()), name);
            assert_eq!(names.ours(name), name);
        }
    }

    #[test]
    fn every_name_goes_there_and_back_whatever_else_is_offered() {
        let long = "files:".repeat(21);
        let all =
            ["a.b", "a:b", "a_b", "a..b", &long, &format!("{long}x"), &"y".repeat(65), &"y".repeat(66), "fs.read"];
        let names = table(&all);
        let mut seen = std::collections::HashSet::new();
        for name in all {
            let name = ToolName::new(name).unwrap();
            let theirs = names.theirs(&name);
            assert!(is_accepted(theirs), "{theirs}");
            assert!(seen.insert(theirs.to_owned()), "{theirs} stands for two tools");
            assert_eq!(names.ours(theirs), name.as_str());
        }
        assert_eq!(names.theirs(&ToolName::new("fs.read").unwrap()), "fs_read");
        assert_eq!(names.theirs(&ToolName::new("a_b").unwrap()), "a_b");
    }

    #[test]
    fn tools_that_only_the_conversation_speaks_of_are_in_the_table() {
        let tool = ToolName::new("old.tool").unwrap();
        let item = Item::ToolResult { call_id: "c".to_owned(), tool, output: "x".into(), is_error: false };
        let names = Names::new(&[], &[Arc::new(item)]);
        assert_eq!(names.ours("old_tool"), "old.tool");
    }

    #[test]
    fn a_name_that_nobody_offered_stays_as_it_came() {
        assert_eq!(table(&["a.b"]).ours("a.c"), "a.c");
        assert_eq!(table(&[]).theirs(&ToolName::new("a.b").unwrap()), "a.b");
    }
}
