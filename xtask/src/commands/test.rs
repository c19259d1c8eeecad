//! `cargo xtask test`: everything that must pass before a merge. CI runs this and nothing else.

use std::fs;

use anyhow::{Context, Result, bail};

use super::{api, clients, pages, unknown_argument};
use crate::cargo::{Cargo, has_subcommand};
use crate::stage::{Stage, run_in_order};
use crate::system::{CURL, DATABASES, Need, PAGES, PYTHON};
use crate::{features, licences, links, root};

pub(super) fn run(arguments: &[String]) -> Result<()> {
    match Scope::from_arguments(arguments)? {
        Scope::Quick => run_in_order("test --quick", quick_stages([CURL].into_iter().chain(DATABASES).collect())),
        Scope::Full => {
            // Asked for at once: what cannot be installed is known before the long stages begin.
            let needs = [CURL, PYTHON].into_iter().chain(DATABASES).chain(PAGES).collect();
            run_in_order("test", quick_stages(needs).into_iter().chain(further_stages()).collect())
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Scope {
    Quick,
    Full,
}

impl Scope {
    fn from_arguments(arguments: &[String]) -> Result<Self> {
        let mut scope = Self::Full;
        for argument in arguments {
            match argument.as_str() {
                "--quick" => scope = Self::Quick,
                other => return Err(unknown_argument("test", other)),
            }
        }
        Ok(scope)
    }
}

fn quick_stages(needs: Vec<Need>) -> Vec<Stage> {
    vec![
        Stage::new("machine", move || needs.iter().try_for_each(Need::meet)),
        Stage::cargo("format", Cargo::new("fmt --all --check")),
        Stage::cargo("clippy", Cargo::new("clippy --workspace --all-targets --all-features -- -D warnings")),
        Stage::new("tests", tests),
    ]
}

fn further_stages() -> Vec<Stage> {
    let docs = Cargo::new("doc --workspace --no-deps --all-features").environment("RUSTDOCFLAGS", "-D warnings");
    vec![
        Stage::cargo("doctests", Cargo::new("test --workspace --doc --all-features")),
        Stage::cargo("examples", build_examples_and_programs()),
        Stage::cargo("docs", docs),
        Stage::new("features", each_feature_alone),
        Stage::new("dependencies", dependencies),
        Stage::new("links", relative_links),
        Stage::new("api", api::in_short),
        Stage::new("pages", pages::look),
        Stage::new("clients", clients::play),
    ]
}

fn tests() -> Result<()> {
    if has_subcommand("nextest") {
        Cargo::new("nextest run --workspace --all-features").run()?;
    } else {
        println!("    cargo-nextest is not installed: cargo test does its work");
        // Tests run the examples. nextest builds them by itself; cargo test does not once targets are named, and they
        // are named to keep the doctests for their own stage.
        build_examples_and_programs().run()?;
        Cargo::new("test --workspace --all-features --lib --bins --tests").run()?;
    }
    Ok(())
}

/// Examples read their answers from a person; running them is the work of the tests. The programs are what the last
/// stages run. They are built together, with the same features as the tests, so that nothing is built twice.
fn build_examples_and_programs() -> Cargo {
    Cargo::new("build --workspace --examples --bins --all-features")
}

/// Features only add: the library builds with none, and with each one alone.
fn each_feature_alone() -> Result<()> {
    let manifest_path = root::directory().join("crates/holdpoint/Cargo.toml");
    let manifest =
        fs::read_to_string(&manifest_path).with_context(|| format!("reading {}", manifest_path.display()))?;
    Cargo::new("check -p holdpoint --no-default-features").run()?;
    for feature in features::declared(&manifest) {
        Cargo::new("check -p holdpoint --no-default-features --features").arguments(&[feature.to_owned()]).run()?;
    }
    Ok(())
}

fn dependencies() -> Result<()> {
    if has_subcommand("deny") {
        Cargo::new("deny check licenses bans sources").run()?;
    }
    let rules = fs::read_to_string(root::directory().join("deny.toml")).context("reading deny.toml")?;
    let problems = licences::check(&rules)?;
    for problem in &problems {
        println!("    {problem}");
    }
    match problems.len() {
        0 => Ok(()),
        count => bail!("dependencies that deny.toml does not allow, listed above: {count}"),
    }
}

fn relative_links() -> Result<()> {
    let broken = links::check(&root::directory())?;
    for link in &broken {
        println!("    {link}");
    }
    match broken.len() {
        0 => Ok(()),
        count => bail!("links in markdown files that lead nowhere, listed above: {count}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_argument_is_refused() {
        let error = Scope::from_arguments(&["--quik".into()]).unwrap_err();
        assert_eq!(error.to_string(), "`--quik` is not an argument of `cargo xtask test`; see `cargo xtask help`");
    }

    #[test]
    fn everything_runs_unless_quick_is_asked_for() {
        assert_eq!(Scope::from_arguments(&[]).unwrap(), Scope::Full);
        assert_eq!(Scope::from_arguments(&["--quick".into()]).unwrap(), Scope::Quick);
    }
}
