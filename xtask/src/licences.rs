//! What is in the dependency tree, held against `deny.toml`: licences, crates and features that are not wanted, sources.

mod expression;
mod rules;

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::cargo::Cargo;
use rules::Rules;

/// Everything in the tree that `deny.toml` does not allow, in words.
///
/// # Errors
/// The tree or the rules cannot be read.
pub(crate) fn check(deny_toml: &str) -> Result<Vec<String>> {
    let rules = Rules::read(deny_toml)?;
    let built = built_crates()?;
    let metadata = Cargo::new("metadata --format-version 1 --all-features --locked").output()?;
    let metadata: Value = serde_json::from_str(&metadata).context("reading the answer of cargo metadata")?;
    problems(&rules, &metadata, &built)
}

/// Crates that are built on some platform with all features, as `name@version`. The lock file knows more: crates that
/// only features bring which nothing switches on.
fn built_crates() -> Result<BTreeSet<String>> {
    let tree = "tree --workspace --all-features --target all --edges normal,build --prefix none --locked";
    let tree = Cargo::new(tree).output()?;
    let named = |line: &str| {
        let mut words = line.split_whitespace();
        Some(format!("{}@{}", words.next()?, words.next()?.strip_prefix('v')?))
    };
    Ok(tree.lines().filter_map(named).collect())
}

fn problems(rules: &Rules, metadata: &Value, built: &BTreeSet<String>) -> Result<Vec<String>> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let features: BTreeMap<String, Vec<String>> = list(&metadata["resolve"]["nodes"])
        .iter()
        .map(|node| (text(&node["id"]), list(&node["features"]).iter().map(text).collect()))
        .collect();
    let mut problems = Vec::new();
    for package in list(&metadata["packages"]) {
        let (name, id) = (text(&package["name"]), text(&package["id"]));
        let label = format!("{name}@{}", text(&package["version"]));
        if !built.contains(&label) {
            continue;
        }
        let licence = package["license"].as_str();
        match licence.map(|licence| expression::is_satisfied(licence, &rules.allowed)) {
            Some(Ok(true)) => {}
            Some(Ok(false)) => problems.push(format!("{label} is under {}", licence.unwrap_or_default())),
            Some(Err(problem)) => problems.push(format!("{label}: {problem}")),
            None => problems.push(format!("{label} names no licence")),
        }
        if rules.banned.contains(&name) {
            problems.push(format!("{label} is banned"));
        }
        let banned = rules.features.get(&name).into_iter().flatten();
        for feature in banned.filter(|feature| features.get(&id).is_some_and(|on| on.contains(feature))) {
            problems.push(format!("{label} has the feature {feature}, which is banned"));
        }
        let source = package["source"].as_str();
        if source.is_some_and(|source| !source.starts_with("registry+")) {
            problems.push(format!("{label} comes from {}", source.unwrap_or_default()));
        }
    }
    Ok(problems)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_allowed_is_named() {
        let rules = Rules::read(
            "[licenses]\nallow = [\n    \"MIT\", # ours\n]\n[bans]\ndeny = [\n    { crate = \"ring\", reason = \"no\" },\n]\n\
             [[bans.features]]\ncrate = \"serde_json\"\ndeny = [\"preserve_order\"]\n",
        )
        .unwrap();
        let metadata = serde_json::json!({
            "packages": [
                {"name": "fine", "version": "1.0.0", "id": "1", "license": "MIT OR GPL-3.0", "source": "registry+x"},
                {"name": "copyleft", "version": "2.0.0", "id": "2", "license": "GPL-3.0", "source": "registry+x"},
                {"name": "ring", "version": "3.0.0", "id": "3", "license": "MIT", "source": "git+x"},
                {"name": "serde_json", "version": "4.0.0", "id": "4", "license": null, "source": null},
                {"name": "ring", "version": "9.0.0", "id": "5", "license": "GPL-3.0", "source": "registry+x"},
            ],
            "resolve": {"nodes": [{"id": "4", "features": ["std", "preserve_order"]}]},
        });
        let built = ["fine@1.0.0", "copyleft@2.0.0", "ring@3.0.0", "serde_json@4.0.0"].map(str::to_owned).into();
        assert_eq!(
            problems(&rules, &metadata, &built).unwrap(),
            [
                "copyleft@2.0.0 is under GPL-3.0",
                "ring@3.0.0 is banned",
                "ring@3.0.0 comes from git+x",
                "serde_json@4.0.0 names no licence",
                "serde_json@4.0.0 has the feature preserve_order, which is banned",
            ]
        );
    }
}
