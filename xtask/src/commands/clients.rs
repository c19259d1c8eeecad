//! `cargo xtask clients`: clients of other projects, as they are published, against the real program.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::Result;

use super::unknown_argument;
use crate::cargo::Cargo;
use crate::root;
use crate::stage::{Stage, run_in_order};
use crate::system;

pub(super) fn run(arguments: &[String]) -> Result<()> {
    if let Some(argument) = arguments.first() {
        return Err(unknown_argument("clients", argument));
    }
    let build = Stage::cargo("server", Cargo::new("build -p holdpoint-cli"));
    run_in_order("clients", vec![build, Stage::new("clients", play)])
}

/// The stage: lets each client talk to the server that was built before.
pub(super) fn play() -> Result<()> {
    // Node and npm; the browser is for pages only.
    system::PAGES[..2].iter().try_for_each(system::Need::meet)?;
    let folder = root::directory().join("tests/clients/mastra");
    if !is_installed(&folder) {
        system::run(Command::new("npm").args(["ci", "--no-audit", "--no-fund"]).current_dir(&folder))?;
    }
    let mut tests = Command::new("node");
    tests.args(["--test", "--test-reporter", "spec"]).current_dir(&folder);
    system::run(tests.env("HOLDPOINT_PROGRAM", system::holdpoint()))
}

/// Whether what the lock file names was installed after it was last changed.
fn is_installed(folder: &Path) -> bool {
    let changed = |name: &str| fs::metadata(folder.join(name)).and_then(|about| about.modified()).ok();
    changed("node_modules/.package-lock.json") > changed("package-lock.json")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_never_installed_is() {
        assert!(!is_installed(Path::new("no-such-folder")));
    }
}
