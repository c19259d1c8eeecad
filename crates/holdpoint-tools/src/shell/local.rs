//! Runs commands on this machine with `/bin/sh`. Bounds what they cost; it is no sandbox: a command can do whatever the
//! process may.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use async_trait::async_trait;
use holdpoint_runtime::ports::tool::{ToolContext, ToolFailure};
use secrecy::SecretString;

use crate::process::{Captured, End, Group, PASSED, Patience, exit_code};
use crate::redact::Redactor;
use crate::shell::{CommandOutcome, CommandOutput, ShellAction, ShellExecutor};

/// Runs each command as `/bin/sh -c` in one folder.
///
/// A command sees a few variables of the environment (`PATH`, `HOME`, language and time zone) and no others, so that
/// keys and tokens of the process stay its own. It reads nothing. When it ends, runs out of time or is cancelled, it is
/// killed with everything that it started, except what made itself a session of its own.
#[derive(Clone)]
pub struct LocalShell {
    folder: PathBuf,
    passed: Vec<String>,
    set: BTreeMap<String, OsString>,
    redactor: Redactor,
    timeout: Duration,
    output_bytes_max: usize,
}

impl LocalShell {
    /// How long a command may take, unless said otherwise.
    pub const TIMEOUT: Duration = Duration::from_secs(60);
    /// How many bytes of output a call gives back, unless said otherwise.
    pub const OUTPUT_BYTES: usize = 128 << 10;
    /// How many bytes of output a call can be told to give back.
    pub const OUTPUT_BYTES_MAX: usize = 512 << 10;

    /// A shell that works in this folder.
    ///
    /// # Errors
    /// There is no such folder.
    pub fn new(folder: impl AsRef<Path>) -> io::Result<Self> {
        let folder = folder.as_ref().canonicalize()?;
        if !folder.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        Ok(Self {
            folder,
            passed: PASSED.map(str::to_owned).to_vec(),
            set: BTreeMap::new(),
            redactor: Redactor::default(),
            timeout: Self::TIMEOUT,
            output_bytes_max: Self::OUTPUT_BYTES,
        })
    }

    /// Lets commands see one more variable of the process's environment.
    #[must_use]
    pub fn pass_env(mut self, name: impl Into<String>) -> Self {
        self.passed.push(name.into());
        self
    }

    /// Sets a variable for commands. Where its name says that the value is a secret (`API_KEY`), the value is taken out
    /// of what they print; see [`LocalShell::keep_secret`] for others.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<OsString>) -> Self {
        let (name, value) = (name.into(), value.into());
        if let Some(text) = value.to_str() {
            self.redactor.add_named(&name, &text.to_owned().into());
        }
        self.set.insert(name, value);
        self
    }

    /// Takes this value out of what commands print.
    #[must_use]
    pub fn keep_secret(mut self, value: &SecretString) -> Self {
        self.redactor.add(value);
        self
    }

    /// How long each command may take. A call can ask for less.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// How many bytes of output a call gives back, at most [`LocalShell::OUTPUT_BYTES_MAX`]. A call can ask for less.
    #[must_use]
    pub fn output_bytes_max(mut self, bytes: usize) -> Self {
        self.output_bytes_max = bytes.min(Self::OUTPUT_BYTES_MAX);
        self
    }

    fn spawn(&self, command: &str) -> io::Result<Group> {
        let passed = self.passed.iter().filter_map(|name| Some((name, std::env::var_os(name)?)));
        Group::spawn("/bin/sh", |shell| {
            // After `--` a command that begins with a dash is still a command.
            shell.args(["-c", "--", command]).current_dir(&self.folder).envs(passed).envs(&self.set);
        })
    }

    async fn run(
        &self,
        context: &ToolContext,
        command: &str,
        timeout: Duration,
        bytes_max: usize,
    ) -> Result<(CommandOutput, usize), ToolFailure> {
        let no_start = |error| ToolFailure::new(format_args!("the shell did not start: {error}"));
        let mut group = self.spawn(command).map_err(no_start)?;
        let (mut out, mut err) = (Captured::first(bytes_max / 2), Captured::first(bytes_max / 2));
        let end = {
            let (stdout, stderr) = group.pipes();
            let reading = async { tokio::join!(out.read(stdout), err.read(stderr)) };
            group.attend(context, Patience { timeout, grace: Duration::ZERO }, reading).await
        };
        let end = end.map_err(|error| ToolFailure::new(format_args!("the shell's end is not known: {error}")))?;
        let outcome = match end {
            End::Exited(status) => CommandOutcome::Exit { exit_code: exit_code(status) },
            End::OutOfTime => CommandOutcome::Timeout,
            End::Cancelled => return Err(ToolFailure::new("the run was cancelled; the command was killed")),
        };
        let used = out.len() + err.len();
        let text = |captured: Captured| self.redactor.redact(captured.into_text());
        Ok((CommandOutput { stdout: text(out), stderr: text(err), outcome }, used))
    }
}

impl fmt::Debug for LocalShell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The values of variables may be secrets.
        let variables: Vec<&String> = self.set.keys().collect();
        f.debug_struct("LocalShell").field("folder", &self.folder).field("set", &variables).finish_non_exhaustive()
    }
}

#[async_trait]
impl ShellExecutor for LocalShell {
    async fn execute(&self, context: &ToolContext, action: ShellAction) -> Result<Vec<CommandOutput>, ToolFailure> {
        let timeout = action.timeout.map_or(self.timeout, |wanted| wanted.min(self.timeout));
        let mut bytes_left = action.output_bytes_max.map_or(self.output_bytes_max, |b| b.min(self.output_bytes_max));
        let mut outputs = Vec::with_capacity(action.commands.len());
        for command in &action.commands {
            let (output, used) = self.run(context, command, timeout, bytes_left).await?;
            bytes_left = bytes_left.saturating_sub(used);
            let is_over = output.outcome == CommandOutcome::Timeout;
            outputs.push(output);
            if is_over {
                // What follows was written for a world in which this one had ended.
                break;
            }
        }
        Ok(outputs)
    }
}
