//! Asks a person in the terminal, and gives back a decision. Nothing is recorded here.
//!
//! Prompts go to the terminal's error side, so that what an agent says can be piped. Leaving a prompt with Esc goes one
//! step back, or leaves the pause for later; Ctrl-C stops, and the pause stays as it is.

mod approval;
mod confirmation;
mod edit;
mod in_doubt;
mod question;
mod typed_ahead;

use std::fmt;

use anyhow::Result;
use holdpoint_core::decision::Decision;
use holdpoint_core::pause::PauseKind;
use inquire::{InquireError, Select, Text};

use crate::asked::Asked;

pub use edit::EditProblem;

/// What a person said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    /// An answer.
    Decide(Decision),
    /// An answer that is to stand for this tool in this session.
    Always(Decision),
    /// Not now: the pause stays open.
    Later,
    /// Ctrl-C: the pause stays open, and nothing more is asked.
    Stop,
}

/// Asks about one pause, after `problem` was found with the last answer.
///
/// # Errors
/// The terminal is none, or is gone.
pub fn ask(asked: &Asked, problem: Option<&EditProblem>) -> Result<Said> {
    typed_ahead::forget();
    let said = match (asked.kind, problem) {
        (PauseKind::Approval, Some(problem)) => approval::edit_again(asked, problem),
        (PauseKind::Approval, None) => approval::ask(asked),
        (PauseKind::Question, _) => question::ask(asked),
        (PauseKind::Confirmation, _) => confirmation::ask(),
        (PauseKind::InDoubt, _) => in_doubt::ask(),
    };
    match said {
        Ok(said) => Ok(said),
        Err(InquireError::OperationInterrupted) => Ok(Said::Stop),
        Err(InquireError::OperationCanceled) => Ok(Said::Later),
        Err(error) => Err(error.into()),
    }
}

/// What a prompt gives back: an answer, or `None` for one step back.
type Step<T> = Result<Option<T>, InquireError>;

/// Lets a person choose; Esc gives `None`.
fn choose<T: fmt::Display>(message: &str, choices: Vec<T>) -> Step<T> {
    let hint = "↑↓ or type to choose, Enter to take it, Esc for one step back, Ctrl-C to stop";
    back(Select::new(message, choices).with_help_message(hint).with_page_size(10).prompt())
}

/// Lets a person write a line; Esc gives `None`.
fn write(message: &str, hint: &str) -> Step<String> {
    back(Text::new(message).with_help_message(hint).prompt())
}

fn back<T>(given: Result<T, InquireError>) -> Step<T> {
    match given {
        Ok(given) => Ok(Some(given)),
        Err(InquireError::OperationCanceled) => Ok(None),
        Err(error) => Err(error),
    }
}
