//! Programs of the machine that are not Rust's: found, or installed with apt, which is said aloud.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::{env, fs};

use anyhow::{Context, Result, ensure};

use crate::root;

/// The browser that looks at pages.
pub(crate) const BROWSER: &str = "/usr/bin/chromium";

/// What tests speak to servers with.
pub(crate) const CURL: Need = Need { proof: &["curl", "--version"], packages: &["curl"] };

/// What schemathesis is installed with.
pub(crate) const PYTHON: Need =
    Need { proof: &["python3", "-c", "import venv, ensurepip"], packages: &["python3", "python3-venv"] };

/// What looks at pages.
pub(crate) const PAGES: [Need; 3] = [
    Need {
        proof: &["node", "-e", "process.exit(Number(!(parseInt(process.versions.node) >= 20)))"],
        packages: &["nodejs"],
    },
    Need { proof: &["npm", "--version"], packages: &["npm"] },
    Need { proof: &[BROWSER, "--version"], packages: &["chromium"] },
];

/// The servers that tests of the stores start. Debian keeps PostgreSQL's programs out of the search path.
pub(crate) const DATABASES: [Need; 2] = [
    Need {
        proof: &["sh", "-c", "command -v initdb || ls /usr/lib/postgresql/*/bin/initdb"],
        packages: &["postgresql"],
    },
    Need { proof: &["sh", "-c", "command -v redis-server || command -v valkey-server"], packages: &["redis-server"] },
];

/// Something that a stage needs of the machine.
pub(crate) struct Need {
    /// A command line that succeeds where it is there.
    proof: &'static [&'static str],
    /// Debian's packages that bring it.
    packages: &'static [&'static str],
}

impl Need {
    /// Sees to it that it is there.
    ///
    /// # Errors
    /// It is not, and cannot be installed.
    pub(crate) fn meet(&self) -> Result<()> {
        if self.is_met() {
            return Ok(());
        }
        let packages = self.packages.join(" ");
        println!("    `{}` does not work: installing {packages}", self.proof.join(" "));
        apt(&["update", "-qq"], &[])?;
        apt(&["install", "-y", "-qq", "--no-install-recommends"], self.packages)?;
        ensure!(self.is_met(), "`{}` does not work although {packages} is installed", self.proof.join(" "));
        Ok(())
    }

    fn is_met(&self) -> bool {
        let Some((program, arguments)) = self.proof.split_first() else { return true };
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    }
}

fn apt(arguments: &[&str], packages: &[&str]) -> Result<()> {
    let as_root = if is_root() { &["env"][..] } else { &["sudo", "env"] };
    let words = as_root.iter().chain(&["DEBIAN_FRONTEND=noninteractive", "apt-get"]).chain(arguments).chain(packages);
    let words: Vec<&str> = words.copied().collect();
    run(Command::new(words[0]).args(&words[1..]))
}

fn is_root() -> bool {
    // The owner of our own process, as the kernel tells it.
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    status.lines().any(|line| line.starts_with("Uid:") && line.split_whitespace().nth(2) == Some("0"))
}

/// Runs a command to its end, with our own input and output. Any status but success is an error that names it.
///
/// # Errors
/// It cannot be started, or does not succeed.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    println!("    $ {command:?}");
    let status = command.status().with_context(|| format!("starting {command:?}"))?;
    ensure!(status.success(), "{command:?} ended with {status}");
    Ok(())
}

/// Where everything that is built goes.
pub(crate) fn target() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root::directory().join("target"), PathBuf::from)
}

/// The program, as the last build left it.
pub(crate) fn holdpoint() -> PathBuf {
    target().join("debug/holdpoint")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_not_installed() {
        Need { proof: &["true"], packages: &["no-such-package"] }.meet().unwrap();
    }

    #[test]
    fn what_is_not_there_is_noticed() {
        assert!(!Need { proof: &["false"], packages: &[] }.is_met());
        assert!(!Need { proof: &["no-such-program-anywhere"], packages: &[] }.is_met());
    }

    #[test]
    fn a_command_that_fails_is_named() {
        let error = run(&mut Command::new("false")).unwrap_err();
        assert!(error.to_string().starts_with("\"false\" ended with exit status"), "{error}");
    }
}
