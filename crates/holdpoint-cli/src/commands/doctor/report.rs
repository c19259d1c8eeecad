//! What was found, as a table: what is fine, what is doubtful, what is wrong, and what to do.

use console::style;
use holdpoint_config::Diagnostic;
use holdpoint_core::text::visible;

/// What was found about one thing.
pub(super) struct Finding {
    state: State,
    what: String,
    advice: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Fine,
    Caution,
    Failure,
}

impl Finding {
    pub(super) fn fine(what: impl Into<String>) -> Self {
        Self { state: State::Fine, what: what.into(), advice: None }
    }

    pub(super) fn caution(what: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { state: State::Caution, what: what.into(), advice: Some(advice.into()) }
    }

    pub(super) fn failure(what: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { state: State::Failure, what: what.into(), advice: Some(advice.into()) }
    }

    pub(super) fn of_diagnostic(problem: &Diagnostic) -> Self {
        let state = if problem.is_error() { State::Failure } else { State::Caution };
        Self { state, what: problem.to_string(), advice: None }
    }
}

/// Everything that was found, in order.
#[derive(Default)]
pub(super) struct Report(Vec<(&'static str, Finding)>);

impl Report {
    pub(super) fn add(&mut self, about: &'static str, finding: Finding) {
        self.0.push((about, finding));
    }

    pub(super) fn has_failures(&self) -> bool {
        self.0.iter().any(|(_, finding)| finding.state == State::Failure)
    }

    pub(super) fn print(&self) {
        for (about, finding) in &self.0 {
            let sign = match finding.state {
                State::Fine => style("✓").green(),
                State::Caution => style("!").yellow(),
                State::Failure => style("✗").red(),
            };
            out!("{sign} {about:<9} {}", visible(&finding.what));
            if let Some(advice) = &finding.advice {
                out!("  {:<9} {}", "", style(format!("→ {}", visible(advice))).dim());
            }
        }
    }
}
