//! What is wrong with a file: where, how bad, what, and what to do about it.

mod code;
mod render;
pub(crate) mod suggest;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;

use holdpoint_core::text::{clamp, visible};

use crate::source::{Position, Source, Span};

pub use code::Code;
pub use render::{Style, render_all};

/// One problem of a file, a setting or an environment variable.
///
/// It prints as one line, `agents/trader.yaml:7:3: error: … (hint: …)`; [`Diagnostic::render`] shows the text of the
/// file with it. Neither message nor hint ever holds the value of a secret. A shown line of the file is the operator's
/// own text: print it in a terminal, and log the one-line form.
#[derive(Clone)]
pub struct Diagnostic {
    /// The file, or what else the problem is in.
    pub file: String,
    /// The line, from one; zero where the problem is not in a file's text.
    pub line: usize,
    /// The character within the line, from one; zero where the problem is not in a file's text.
    pub column: usize,
    /// Where the bad part ends: the place after its last character.
    pub end: Position,
    /// How bad it is.
    pub severity: Severity,
    /// What kind of problem it is. Codes are stable.
    pub code: Code,
    /// What is wrong, in a sentence without a full stop.
    pub message: String,
    /// What to do.
    pub hint: Option<String>,
    place: Option<(Arc<Source>, Span)>,
}

/// How bad a problem is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// It works, though probably not as meant.
    Warning,
    /// The file cannot be used.
    Error,
}

impl Severity {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

impl Diagnostic {
    /// A problem that is not in a file's text: with the file as a whole, a flag or an environment variable.
    pub fn outside(file: impl Into<String>, severity: Severity, code: Code, message: impl Into<String>) -> Self {
        Self {
            file: file.into(),
            line: 0,
            column: 0,
            end: Position { line: 0, column: 0 },
            severity,
            code,
            message: message.into(),
            hint: None,
            place: None,
        }
    }

    pub(crate) fn within(
        source: &Arc<Source>,
        span: Span,
        severity: Severity,
        code: Code,
        message: impl Into<String>,
    ) -> Self {
        let start = source.position(span.start);
        Self {
            file: source.name().to_owned(),
            line: start.line,
            column: start.column,
            end: source.position(span.end.max(span.start)),
            severity,
            code,
            message: message.into(),
            hint: None,
            place: Some((Arc::clone(source), span)),
        }
    }

    /// The same problem with advice.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Whether the file cannot be used.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }

    /// The problem with the lines of the file that it is about, in the manner of compilers, without a line break at the
    /// end.
    pub fn render(&self, style: Style) -> String {
        render::render(self, style)
    }

    fn key(&self) -> (&str, usize, usize, Code, &str) {
        (&self.file, self.line, self.column, self.code, &self.message)
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&visible(&self.file))?;
        if self.line > 0 {
            write!(f, ":{}:{}", self.line, self.column)?;
        }
        write!(f, ": {}: {}", self.severity.name(), self.message)?;
        match &self.hint {
            Some(hint) => write!(f, " (hint: {hint})"),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}] {self}", self.code)
    }
}

impl PartialEq for Diagnostic {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key() && self.severity == other.severity && self.hint == other.hint && self.end == other.end
    }
}

impl Eq for Diagnostic {}

/// Sorts problems by file, line and column, and drops those that were found twice.
pub(crate) fn sort(problems: &mut Vec<Diagnostic>) {
    problems.sort_by(|one, other| one.key().cmp(&other.key()));
    problems.dedup();
}

/// Text of a file as a message may repeat it: in backticks, on one line, short, with nothing hidden in it.
pub(crate) fn quoted(text: &str) -> String {
    let short = clamp(text, 60);
    let dots = if short.len() < text.len() { "…" } else { "" };
    let plain = visible(short).replace(['\n', '\t', '`'], " ");
    format!("`{plain}{dots}`")
}
