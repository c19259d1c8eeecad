//! How the program ends: scripts read these numbers, so they do not change.

/// How the program ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// It did what was asked.
    Done = 0,
    /// It could not: standard error says why. For `check` and `doctor`: something is wrong.
    Failed = 1,
    /// The command line cannot be read.
    Usage = 2,
    /// A run waits for a person.
    Paused = 3,
    /// A run ended without an output: it failed, or somebody cancelled it.
    RunFailed = 4,
    /// Ctrl-C.
    Interrupted = 130,
}

impl From<Exit> for std::process::ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}
