//! Runs a program without a shell. Bounds what it costs; it is no sandbox: the program can do whatever the process may.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use holdpoint_runtime::ports::tool::ToolContext;
use secrecy::{ExposeSecret, SecretString};

use crate::command::CommandTool;
use crate::process::{Captured, End, Group, PASSED, Patience};
use crate::redact::Redactor;

/// A program with fixed arguments, run in one folder.
///
/// It sees a few variables of the environment (`PATH`, `HOME`, language and time zone), those it is given here, and
/// [`CommandTool::IDEMPOTENCY_KEY`]. When it ends, runs out of time or is cancelled, everything that it started is
/// killed, except what made itself a session of its own.
#[derive(Clone)]
pub struct LocalCommand {
    folder: PathBuf,
    argv: Vec<String>,
    passed: Vec<String>,
    set: BTreeMap<String, SecretString>,
    redactor: Redactor,
    timeout: Duration,
    grace: Duration,
    output_bytes_max: usize,
}

/// Why a command cannot be run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BadCommand {
    /// There is no folder to work in.
    #[error("{} is not a folder to run a command in", folder.display())]
    Folder {
        /// What was given.
        folder: PathBuf,
        /// Why it is none.
        source: io::Error,
    },
    /// Nothing to run.
    #[error("argv is empty: give the program and its arguments, such as [\"./deploy.sh\", \"--now\"]")]
    Empty,
    /// A part of the command cannot be handed to a program.
    #[error("argv[{0}] has a NUL character, or is an empty program name")]
    Argument(usize),
    /// The program is not there.
    #[error("there is no program {0}: a path is taken from the folder that the command runs in")]
    NoProgram(String),
    /// The name of a variable is none.
    #[error("{0:?} is not the name of an environment variable")]
    Variable(String),
}

/// What a command printed.
pub(super) struct Printed {
    pub(super) stdout: String,
    pub(super) stderr: String,
}

/// How a command ended.
pub(super) enum Ended {
    Exited(ExitStatus, Printed),
    OutOfTime(Duration, Printed),
    Cancelled,
}

impl LocalCommand {
    /// How long a command may take, unless said otherwise.
    pub const TIMEOUT: Duration = Duration::from_secs(60);
    /// How long a command has between being asked to end and being killed, unless said otherwise.
    pub const GRACE: Duration = Duration::from_secs(2);
    /// How many bytes of a command's output are its result, unless said otherwise.
    pub const OUTPUT_BYTES: usize = 128 << 10;
    /// How many bytes of output a command can be told to give back.
    pub const OUTPUT_BYTES_MAX: usize = 512 << 10;
    /// How many bytes of a failed command's errors are told: the last ones.
    pub const COMPLAINT_BYTES: usize = 4 << 10;

    /// Runs `argv` in `folder`. The first part is the program: a path, taken from the folder where it is relative, or a
    /// name that is looked up in `PATH`. No shell reads any of it.
    ///
    /// # Errors
    /// There is no such folder or program, or a part that no program can be given.
    pub fn new<S: Into<String>>(
        folder: impl AsRef<Path>,
        argv: impl IntoIterator<Item = S>,
    ) -> Result<Self, BadCommand> {
        let bad_folder = |source| BadCommand::Folder { folder: folder.as_ref().to_owned(), source };
        let place = folder.as_ref().canonicalize().map_err(bad_folder)?;
        if !place.is_dir() {
            return Err(bad_folder(io::ErrorKind::NotADirectory.into()));
        }
        let argv: Vec<String> = argv.into_iter().map(Into::into).collect();
        let program = argv.first().ok_or(BadCommand::Empty)?;
        let is_bad = |(at, part): &(usize, &String)| part.contains('\0') || (*at == 0 && part.trim().is_empty());
        if let Some((at, _)) = argv.iter().enumerate().find(is_bad) {
            return Err(BadCommand::Argument(at));
        }
        if program.contains('/') && !place.join(program).is_file() {
            return Err(BadCommand::NoProgram(program.clone()));
        }
        Ok(Self {
            folder: place,
            argv,
            passed: PASSED.map(str::to_owned).to_vec(),
            set: BTreeMap::new(),
            redactor: Redactor::default(),
            timeout: Self::TIMEOUT,
            grace: Self::GRACE,
            output_bytes_max: Self::OUTPUT_BYTES,
        })
    }

    /// Lets the command see one more variable of the process's environment, where it is set.
    ///
    /// # Errors
    /// The name is none.
    pub fn pass_env(mut self, name: impl Into<String>) -> Result<Self, BadCommand> {
        self.passed.push(variable(name.into())?);
        Ok(self)
    }

    /// Sets a variable for the command. Where its name says that the value is a secret (`API_KEY`), the value is taken
    /// out of what the command prints; see [`LocalCommand::keep_secret`] for others.
    ///
    /// # Errors
    /// The name is none, or the value has a NUL character.
    pub fn env(mut self, name: impl Into<String>, value: SecretString) -> Result<Self, BadCommand> {
        let name = variable(name.into())?;
        if value.expose_secret().contains('\0') {
            return Err(BadCommand::Variable(name));
        }
        self.redactor.add_named(&name, &value);
        self.set.insert(name, value);
        Ok(self)
    }

    /// Takes this value out of what the command prints: a secret that is a part of a variable or an argument.
    #[must_use]
    pub fn keep_secret(mut self, value: &SecretString) -> Self {
        self.redactor.add(value);
        self
    }

    /// How long the command may take.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// How long it has between being asked to end and being killed.
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// How many bytes of its output are its result, at most [`LocalCommand::OUTPUT_BYTES_MAX`].
    #[must_use]
    pub fn output_bytes_max(mut self, bytes: usize) -> Self {
        self.output_bytes_max = bytes.min(Self::OUTPUT_BYTES_MAX);
        self
    }

    /// The program as it was written.
    pub(super) fn program(&self) -> &str {
        &self.argv[0]
    }

    fn spawn(&self, context: &ToolContext) -> io::Result<Group> {
        // Where a relative program is looked for is not the same on all systems once the folder is changed.
        let is_path = self.program().contains('/');
        let program = if is_path { self.folder.join(self.program()) } else { self.program().into() };
        let passed = self.passed.iter().filter_map(|name| Some((name, std::env::var_os(name)?)));
        let set = self.set.iter().map(|(name, value)| (name, value.expose_secret()));
        Group::spawn(&program, |command| {
            command.args(&self.argv[1..]).current_dir(&self.folder).stdin(Stdio::piped());
            command.envs(passed).envs(set).env(CommandTool::IDEMPOTENCY_KEY, context.idempotency_key());
        })
    }

    /// Runs the command with these bytes as its input.
    pub(super) async fn run(&self, context: &ToolContext, input: &[u8]) -> io::Result<Ended> {
        let mut group = self.spawn(context)?;
        let (mut out, mut err) = (Captured::first(self.output_bytes_max), Captured::last(Self::COMPLAINT_BYTES));
        let end = {
            let (stdout, stderr) = group.pipes();
            let feeding = group.feed(input);
            // All three at once: whoever waits for one of them while the program waits for another waits for ever.
            let talking = async { tokio::join!(feeding, out.read(stdout), err.read(stderr)) };
            group.attend(context, Patience { timeout: self.timeout, grace: self.grace }, talking).await?
        };
        let redact = |captured: Captured| self.redactor.redact(captured.into_text());
        let printed = Printed { stdout: redact(out), stderr: redact(err) };
        Ok(match end {
            End::Exited(status) => Ended::Exited(status, printed),
            End::OutOfTime => Ended::OutOfTime(self.timeout, printed),
            End::Cancelled => Ended::Cancelled,
        })
    }
}

fn variable(name: String) -> Result<String, BadCommand> {
    let is_name = !name.is_empty() && !name.contains(['=', '\0']);
    if is_name { Ok(name) } else { Err(BadCommand::Variable(name)) }
}
