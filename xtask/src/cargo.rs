//! One call of cargo: printed before it runs, and named in the error when it does not succeed.

use std::env;
use std::ffi::OsString;
use std::fmt;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::root;

/// A cargo command line, in the form a person would type it.
pub(crate) struct Cargo {
    arguments: Vec<String>,
    environment: Vec<(&'static str, String)>,
    directory: Directory,
}

/// Where the command runs.
#[derive(Clone, Copy)]
pub(crate) enum Directory {
    Repository,
    /// For commands that take file names from the caller.
    Callers,
}

impl Cargo {
    /// Takes the arguments as one line, split at spaces: `Cargo::new("fmt --all --check")`.
    pub(crate) fn new(line: &str) -> Self {
        let arguments = line.split_whitespace().map(str::to_owned).collect();
        Self { arguments, environment: Vec::new(), directory: Directory::Repository }
    }

    /// Adds arguments as they are, spaces and all.
    pub(crate) fn arguments(mut self, more: &[String]) -> Self {
        self.arguments.extend_from_slice(more);
        self
    }

    pub(crate) fn environment(mut self, name: &'static str, value: impl ToString) -> Self {
        self.environment.push((name, value.to_string()));
        self
    }

    pub(crate) fn directory(mut self, directory: Directory) -> Self {
        self.directory = directory;
        self
    }

    /// Runs it to its end with our own input and output. Any status but success is an error that names the command.
    pub(crate) fn run(&self) -> Result<()> {
        println!("    $ {self}");
        let status = self.command().status().with_context(|| format!("starting `{self}`"))?;
        ensure!(status.success(), "`{self}` ended with {status}");
        Ok(())
    }

    /// Runs it to its end and gives what it printed. Any status but success is an error that names the command.
    pub(crate) fn output(&self) -> Result<String> {
        println!("    $ {self}");
        let output = self.command().stderr(Stdio::inherit()).output().with_context(|| format!("starting `{self}`"))?;
        ensure!(output.status.success(), "`{self}` ended with {}", output.status);
        String::from_utf8(output.stdout).with_context(|| format!("reading what `{self}` printed"))
    }

    fn command(&self) -> Command {
        let mut command = Command::new(program());
        command.args(&self.arguments).envs(self.environment.iter().map(|(name, value)| (name, value)));
        if let Directory::Repository = self.directory {
            command.current_dir(root::directory());
        }
        command
    }
}

impl fmt::Display for Cargo {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, value) in &self.environment {
            write!(out, "{name}={} ", quoted(value))?;
        }
        out.write_str("cargo")?;
        self.arguments.iter().try_for_each(|argument| write!(out, " {}", quoted(argument)))
    }
}

/// Whether `cargo <subcommand>` is there, asked by its version.
pub(crate) fn has_subcommand(subcommand: &str) -> bool {
    Command::new(program())
        .args([subcommand, "--version"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// The cargo that started us, so that every stage uses one toolchain.
fn program() -> OsString {
    env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_prints_as_it_would_be_typed() {
        let command = Cargo::new("doc --no-deps").environment("RUSTDOCFLAGS", "-D warnings");
        assert_eq!(command.to_string(), "RUSTDOCFLAGS='-D warnings' cargo doc --no-deps");
    }

    #[test]
    fn added_arguments_are_kept_whole() {
        let command = Cargo::new("run --").arguments(&["--json".into(), "my file.json".into()]);
        assert_eq!(command.to_string(), "cargo run -- --json 'my file.json'");
    }

    #[test]
    fn a_failure_names_the_command() {
        let error = Cargo::new("no-such-subcommand").run().unwrap_err();
        assert!(error.to_string().starts_with("`cargo no-such-subcommand` ended with exit status"), "{error}");
    }

    #[test]
    fn a_missing_subcommand_is_noticed() {
        assert!(has_subcommand("clippy"));
        assert!(!has_subcommand("no-such-subcommand"));
    }
}
