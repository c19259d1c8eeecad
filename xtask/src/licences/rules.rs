//! The part of `deny.toml` that is checked here. Only the forms that the file uses are read; any other is an error.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, ensure};

/// What may not be in the tree.
#[derive(Debug, Default)]
pub(super) struct Rules {
    pub(super) allowed: BTreeSet<String>,
    pub(super) banned: BTreeSet<String>,
    pub(super) features: BTreeMap<String, Vec<String>>,
}

impl Rules {
    /// # Errors
    /// A list that is looked for is not there.
    pub(super) fn read(deny_toml: &str) -> Result<Self> {
        let mut rules = Self::default();
        let (mut section, mut list, mut of_crate) = ("", "", String::new());
        for line in deny_toml.lines().map(without_comment) {
            if line.starts_with('[') && line.ends_with(']') && !line.contains('"') {
                (section, list) = (line, "");
                continue;
            }
            if let Some((key, value)) = line.split_once('=').filter(|_| !line.starts_with('{')) {
                list = key.trim();
                if list == "crate" {
                    of_crate = quoted(value).next().unwrap_or_default().to_owned();
                }
            }
            let mut values = quoted(line).map(str::to_owned);
            match (section, list) {
                ("[licenses]", "allow") => rules.allowed.extend(values),
                // Of `{ crate = "name", reason = "…" }` the first.
                ("[bans]", "deny") => rules.banned.extend(values.next()),
                ("[[bans.features]]", "deny") => rules.features.entry(of_crate.clone()).or_default().extend(values),
                _ => {}
            }
        }
        ensure!(!rules.allowed.is_empty(), "deny.toml has no list `allow` in [licenses]");
        ensure!(!rules.banned.is_empty(), "deny.toml has no list `deny` in [bans]");
        ensure!(!rules.features.is_empty(), "deny.toml has no [[bans.features]]");
        Ok(rules)
    }
}

fn without_comment(line: &str) -> &str {
    let quotes_before = |at: usize| line[..at].matches('"').count();
    let comment = line.match_indices('#').map(|(at, _)| at).find(|at| quotes_before(*at) % 2 == 0);
    comment.map_or(line, |at| &line[..at]).trim()
}

fn quoted(line: &str) -> impl Iterator<Item = &str> {
    line.split('"').skip(1).step_by(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_projects_own_rules_are_read() {
        let rules = Rules::read(include_str!("../../../deny.toml")).unwrap();
        assert!(rules.allowed.contains("MIT") && rules.allowed.contains("Apache-2.0"), "{rules:?}");
        assert!(rules.banned.contains("ring") && rules.banned.contains("rsa"), "{rules:?}");
        assert_eq!(rules.features["serde_json"], ["arbitrary_precision", "preserve_order"]);
        assert!(!rules.allowed.iter().any(|name| name.contains("GPL")), "{rules:?}");
    }

    #[test]
    fn rules_without_their_lists_are_refused() {
        assert!(Rules::read("").is_err());
        assert!(Rules::read("[licenses]\nallow = [\"MIT\"]").is_err());
    }
}
