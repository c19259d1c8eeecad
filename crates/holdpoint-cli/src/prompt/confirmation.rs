//! The model asked in its own words: go on?

use std::fmt;

use holdpoint_core::decision::Decision;
use inquire::InquireError;

use crate::prompt::{Said, approval, choose};

#[derive(Clone, Copy)]
enum Choice {
    Confirm,
    Decline,
    Respond,
    Later,
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Confirm => "Confirm: go on",
            Self::Decline => "Decline: do not go on, and say why",
            Self::Respond => "Respond: answer in your own words",
            Self::Later => "Later: leave it open",
        })
    }
}

/// Asks until there is an answer.
pub(super) fn ask() -> Result<Said, InquireError> {
    let choices = [Choice::Confirm, Choice::Decline, Choice::Respond, Choice::Later];
    loop {
        let said = match choose("The agent asks for your confirmation.", choices.to_vec())? {
            Some(Choice::Confirm) => Some(Said::Decide(Decision::Approve)),
            Some(Choice::Decline) => approval::deny("Why not?")?.map(Said::Decide),
            Some(Choice::Respond) => approval::respond("What do you say?")?.map(Said::Decide),
            Some(Choice::Later) | None => Some(Said::Later),
        };
        if let Some(said) = said {
            return Ok(said);
        }
    }
}
