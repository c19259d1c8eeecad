//! Did this call take effect before the process died?

use std::fmt;

use holdpoint_core::decision::Decision;
use holdpoint_core::message::Content;
use inquire::InquireError;

use crate::prompt::{Said, choose, write};

#[derive(Clone, Copy)]
enum Choice {
    Happened,
    RunAgain,
    Abandon,
    Later,
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Happened => "Happened: it took effect, and you say what came of it",
            Self::RunAgain => "Run again: it did not take effect, or may take effect once more",
            Self::Abandon => "Abandon: leave it open, and tell the model so",
            Self::Later => "Later: leave the question open",
        })
    }
}

/// Asks until there is an answer. Nothing is preselected that would run something: the first choice runs nothing.
pub(super) fn ask() -> Result<Said, InquireError> {
    let choices = [Choice::Happened, Choice::RunAgain, Choice::Abandon, Choice::Later];
    loop {
        let said = match choose("The call was started, and how it ended is not known.", choices.to_vec())? {
            Some(Choice::Happened) => write("What came of it?", "the model is told this as the tool's result")?
                .map(|text| Said::Decide(Decision::Happened { result: Content::Text(text) })),
            Some(Choice::RunAgain) => Some(Said::Decide(Decision::RunAgain)),
            Some(Choice::Abandon) => Some(Said::Decide(Decision::Abandon)),
            Some(Choice::Later) | None => Some(Said::Later),
        };
        if let Some(said) = said {
            return Ok(said);
        }
    }
}
