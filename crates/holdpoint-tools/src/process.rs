//! A program on this machine with everything that it starts: bounded in time and output, and killed as a whole. What
//! shell and command tools share.

use std::ffi::OsStr;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use holdpoint_core::text::clamp;
use holdpoint_runtime::ports::tool::ToolContext;
use process_wrap::tokio::{ChildWrapper, CommandWrap, KillOnDrop, ProcessGroup};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;

/// What of our own environment a program sees. Keys and tokens of the process stay its own.
pub(crate) const PASSED: [&str; 8] = ["PATH", "HOME", "USER", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR"];

/// How long we wait for output after everything was killed: what escaped may hold the pipe for ever.
const DRAIN: Duration = Duration::from_secs(1);

/// The signal that asks a program to end. The same number on every Unix.
const SIGTERM: i32 = 15;

/// A program with everything that it started. Killed as a whole when dropped.
pub(crate) struct Group(Option<Box<dyn ChildWrapper>>);

/// How it came to an end.
pub(crate) enum End {
    /// By itself.
    Exited(ExitStatus),
    /// It was killed when its time was up.
    OutOfTime,
    /// It was killed because somebody cancelled the run.
    Cancelled,
}

/// How long a program may take.
#[derive(Clone, Copy)]
pub(crate) struct Patience {
    /// From start to end.
    pub(crate) timeout: Duration,
    /// Between asking it to end and killing it. Zero kills at once.
    pub(crate) grace: Duration,
}

/// One end of a pipe to a program.
pub(crate) type Pipe = Option<Box<dyn AsyncRead + Send + Unpin>>;

impl Group {
    /// Starts `program` in a process group of its own, with its output piped, and otherwise as `set` says.
    pub(crate) fn spawn(program: impl AsRef<OsStr>, set: impl FnOnce(&mut Command)) -> io::Result<Self> {
        let mut wrapped = CommandWrap::with_new(program, |command| {
            command.env_clear().stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
            set(command);
        });
        wrapped.wrap(ProcessGroup::leader()).wrap(KillOnDrop).spawn().map(|child| Self(Some(child)))
    }

    /// Its standard output and its standard error, once.
    pub(crate) fn pipes(&mut self) -> (Pipe, Pipe) {
        let Some(child) = &mut self.0 else { return (None, None) };
        let stdout = child.stdout().take().map(|pipe| Box::new(pipe) as Box<dyn AsyncRead + Send + Unpin>);
        let stderr = child.stderr().take().map(|pipe| Box::new(pipe) as Box<dyn AsyncRead + Send + Unpin>);
        (stdout, stderr)
    }

    /// Writes `bytes` to its standard input and closes it. A program that does not read them is free not to.
    pub(crate) fn feed<'a>(&mut self, bytes: &'a [u8]) -> impl Future<Output = ()> + use<'a> {
        let stdin = self.0.as_mut().and_then(|child| child.stdin().take());
        async move {
            let Some(mut stdin) = stdin else { return };
            let _ = stdin.write_all(bytes).await;
        }
    }

    /// Waits for the program while `talking` moves what goes in and out, then kills what is left of its group.
    pub(crate) async fn attend<T>(
        &mut self,
        context: &ToolContext,
        patience: Patience,
        talking: impl Future<Output = T>,
    ) -> io::Result<End> {
        let Some(child) = &mut self.0 else { return Ok(End::Cancelled) };
        tokio::pin!(talking);
        let mut is_said = false;
        let deadline = tokio::time::sleep(patience.timeout);
        tokio::pin!(deadline);
        let end = loop {
            tokio::select! {
                // The program alone, not its group: a process left in the background must not keep us.
                status = child.inner_mut().wait() => break status.map(End::Exited),
                _ = &mut talking, if !is_said => is_said = true,
                () = &mut deadline => break Ok(End::OutOfTime),
                () = context.cancelled.cancelled() => break Ok(End::Cancelled),
            }
        };
        let is_asked = !patience.grace.is_zero() && !matches!(end, Ok(End::Exited(_)));
        if is_asked && child.signal(SIGTERM).is_ok() {
            let leaving = async {
                loop {
                    tokio::select! {
                        _ = child.inner_mut().wait() => break,
                        _ = &mut talking, if !is_said => is_said = true,
                    }
                }
            };
            let _ = tokio::time::timeout(patience.grace, leaving).await;
        }
        // An error says that nobody is left.
        let _ = child.start_kill();
        let unsaid = async {
            if !is_said {
                talking.await;
            }
        };
        let _ = tokio::time::timeout(DRAIN, async { tokio::join!(child.wait(), unsaid) }).await;
        self.0 = None;
        end
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.start_kill();
        }
    }
}

/// The exit code as shells tell it: 128 and the signal's number where a signal ended the program.
pub(crate) fn exit_code(status: ExitStatus) -> Option<i32> {
    status.code().or_else(|| status.signal().map(|signal| 128 + signal))
}

/// A bounded part of a stream, and how long the stream was.
pub(crate) struct Captured {
    kept: Vec<u8>,
    bytes_max: usize,
    bytes: u64,
    part: KeptPart,
}

enum KeptPart {
    First,
    Last,
}

impl Captured {
    /// Keeps the first bytes: what a program says as its result.
    pub(crate) fn first(bytes_max: usize) -> Self {
        Self { kept: Vec::new(), bytes_max, bytes: 0, part: KeptPart::First }
    }

    /// Keeps the last bytes: what a program complains of before it gives up.
    pub(crate) fn last(bytes_max: usize) -> Self {
        Self { kept: Vec::new(), bytes_max, bytes: 0, part: KeptPart::Last }
    }

    /// How many bytes are kept.
    pub(crate) fn len(&self) -> usize {
        self.kept.len()
    }

    /// How many bytes were not kept.
    pub(crate) fn cut(&self) -> u64 {
        self.bytes - self.kept.len() as u64
    }

    /// Reads to the end, also past the bound: a program that cannot write does not end.
    pub(crate) async fn read(&mut self, pipe: Pipe) {
        let Some(mut pipe) = pipe else { return };
        let mut chunk = [0; 8 << 10];
        while let Ok(count @ 1..) = pipe.read(&mut chunk).await {
            self.keep(&chunk[..count]);
        }
    }

    fn keep(&mut self, chunk: &[u8]) {
        self.bytes += chunk.len() as u64;
        match self.part {
            KeptPart::First => {
                let room = self.bytes_max.saturating_sub(self.kept.len());
                self.kept.extend_from_slice(&chunk[..chunk.len().min(room)]);
            }
            KeptPart::Last => {
                self.kept.extend_from_slice(chunk);
                self.kept.drain(..self.kept.len().saturating_sub(self.bytes_max));
            }
        }
    }

    /// What was kept as text, which says where it was cut. What is no text is shown as `\u{fffd}`.
    pub(crate) fn into_text(self) -> String {
        let cut = self.cut();
        let text = String::from_utf8_lossy(&self.kept);
        if cut == 0 {
            return text.into_owned();
        }
        // A character that was cut in two became a sign that is longer than its half.
        match self.part {
            KeptPart::First => {
                let text = clamp(text.trim_end_matches('\u{fffd}'), self.bytes_max);
                format!("{text}\n[cut here: {cut} more bytes]")
            }
            KeptPart::Last => format!("[cut here: {cut} bytes before]\n{}", text.trim_start_matches('\u{fffd}')),
        }
    }
}
