//! Runs commands on this machine with `/bin/sh`. Bounds what they cost; it is no sandbox: a command can do whatever the
//! process may.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use async_trait::async_trait;
use holdpoint_core::text::clamp;
use holdpoint_runtime::ports::tool::{ToolContext, ToolFailure};
use process_wrap::tokio::{ChildWrapper, CommandWrap, KillOnDrop, ProcessGroup};
use tokio::io::{AsyncRead, AsyncReadExt};

use crate::shell::{CommandOutcome, CommandOutput, ShellAction, ShellExecutor};

/// Runs each command as `/bin/sh -c` in one folder.
///
/// A command sees a few variables of the environment (`PATH`, `HOME`, language and time zone) and no others, so that
/// keys and tokens of the process stay its own. It reads nothing. When it ends, runs out of time or is cancelled, it is
/// killed with everything that it started, except what made itself a session of its own.
#[derive(Debug, Clone)]
pub struct LocalShell {
    folder: PathBuf,
    passed: Vec<String>,
    set: BTreeMap<String, OsString>,
    timeout: Duration,
    output_bytes_max: usize,
}

/// What of the process's environment a command sees.
pub(super) const PASSED: [&str; 8] = ["PATH", "HOME", "USER", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR"];

/// How long we wait for output after everything was killed: what escaped may hold the pipe for ever.
const DRAIN: Duration = Duration::from_secs(1);

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

    /// Sets a variable for commands.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<OsString>) -> Self {
        self.set.insert(name.into(), value.into());
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
        let mut wrapped = CommandWrap::with_new("/bin/sh", |shell| {
            // After `--` a command that begins with a dash is still a command.
            shell.args(["-c", "--", command]).current_dir(&self.folder).env_clear().envs(passed).envs(&self.set);
            shell.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        });
        wrapped.wrap(ProcessGroup::leader()).wrap(KillOnDrop).spawn().map(|child| Group(Some(child)))
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
        let (mut out, mut err) = (Captured::new(bytes_max / 2), Captured::new(bytes_max / 2));
        let end = {
            let (stdout, stderr) = group.pipes();
            let reading = async { tokio::join!(out.read(stdout), err.read(stderr)) };
            group.attend(context, timeout, reading).await?
        };
        let outcome = match end {
            End::Exited(status) => CommandOutcome::Exit { exit_code: exit_code(status) },
            End::OutOfTime => CommandOutcome::Timeout,
            End::Cancelled => return Err(ToolFailure::new("the run was cancelled; the command was killed")),
        };
        let used = out.kept.len() + err.kept.len();
        Ok((CommandOutput { stdout: out.into_text(), stderr: err.into_text(), outcome }, used))
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

/// A command with everything that it started. Killed as a whole when dropped.
struct Group(Option<Box<dyn ChildWrapper>>);

enum End {
    Exited(ExitStatus),
    OutOfTime,
    Cancelled,
}

type Pipe = Option<Box<dyn AsyncRead + Send + Unpin>>;

impl Group {
    fn pipes(&mut self) -> (Pipe, Pipe) {
        let Some(child) = &mut self.0 else { return (None, None) };
        let stdout = child.stdout().take().map(|pipe| Box::new(pipe) as Box<dyn AsyncRead + Send + Unpin>);
        let stderr = child.stderr().take().map(|pipe| Box::new(pipe) as Box<dyn AsyncRead + Send + Unpin>);
        (stdout, stderr)
    }

    /// Waits for the shell while its output is read, then kills what is left.
    async fn attend<T>(
        &mut self,
        context: &ToolContext,
        timeout: Duration,
        reading: impl Future<Output = T>,
    ) -> Result<End, ToolFailure> {
        let Some(child) = &mut self.0 else { return Ok(End::Cancelled) };
        tokio::pin!(reading);
        let mut is_read = false;
        let deadline = tokio::time::sleep(timeout);
        tokio::pin!(deadline);
        let end = loop {
            tokio::select! {
                // The shell alone, not its group: a process left in the background must not keep us.
                status = child.inner_mut().wait() => break status.map(End::Exited),
                _ = &mut reading, if !is_read => is_read = true,
                () = &mut deadline => break Ok(End::OutOfTime),
                () = context.cancelled.cancelled() => break Ok(End::Cancelled),
            }
        };
        // An error says that nobody is left.
        let _ = child.start_kill();
        let unread = async {
            if !is_read {
                reading.await;
            }
        };
        let _ = tokio::time::timeout(DRAIN, async { tokio::join!(child.wait(), unread) }).await;
        self.0 = None;
        end.map_err(|error| ToolFailure::new(format_args!("the shell's end is not known: {error}")))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.start_kill();
        }
    }
}

fn exit_code(status: ExitStatus) -> Option<i32> {
    status.code().or_else(|| status.signal().map(|signal| 128 + signal))
}

/// The first bytes of a stream, and how many there were.
struct Captured {
    kept: Vec<u8>,
    bytes_max: usize,
    bytes: u64,
}

impl Captured {
    fn new(bytes_max: usize) -> Self {
        Self { kept: Vec::new(), bytes_max, bytes: 0 }
    }

    /// Reads to the end, also past the bound: a command that cannot write does not end.
    async fn read(&mut self, pipe: Pipe) {
        let Some(mut pipe) = pipe else { return };
        let mut chunk = [0; 8 << 10];
        while let Ok(count @ 1..) = pipe.read(&mut chunk).await {
            let room = self.bytes_max.saturating_sub(self.kept.len());
            self.kept.extend_from_slice(&chunk[..count.min(room)]);
            self.bytes += count as u64;
        }
    }

    fn into_text(self) -> String {
        let text = String::from_utf8_lossy(&self.kept);
        let cut = self.bytes - self.kept.len() as u64;
        if cut == 0 {
            return text.into_owned();
        }
        // A character that was cut in two became a sign that is longer than its half.
        format!("{}\n[cut here: {cut} more bytes]", clamp(text.trim_end_matches('\u{fffd}'), self.bytes_max))
    }
}
