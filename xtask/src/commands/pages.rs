//! `cargo xtask pages`: the server's pages in a real browser, with a real server that is killed in between.

use std::process::Command;

use anyhow::Result;

use super::unknown_argument;
use crate::cargo::Cargo;
use crate::root;
use crate::stage::{Stage, run_in_order};
use crate::system;

pub(super) fn run(arguments: &[String]) -> Result<()> {
    if let Some(argument) = arguments.first() {
        return Err(unknown_argument("pages", argument));
    }
    let build = Stage::cargo("server", Cargo::new("build -p holdpoint-cli"));
    run_in_order("pages", vec![build, Stage::new("pages", look)])
}

/// The stage: looks at the pages of the server that was built before.
pub(super) fn look() -> Result<()> {
    system::PAGES.iter().try_for_each(system::Need::meet)?;
    let folder = root::directory().join("tests/pages");
    system::run(Command::new("npm").args(["ci", "--no-audit", "--no-fund"]).current_dir(&folder))?;
    let pictures = system::target().join("pages");
    println!("    pictures go to {}", pictures.display());
    let mut tests = Command::new("node");
    tests.args(["--test", "--test-reporter", "spec"]).current_dir(&folder);
    tests.env("HOLDPOINT_PROGRAM", system::holdpoint()).env("HOLDPOINT_BROWSER", system::BROWSER);
    system::run(tests.env("HOLDPOINT_PICTURES", pictures))
}
