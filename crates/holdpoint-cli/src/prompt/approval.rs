//! May this call run?

use std::fmt;

use holdpoint_core::decision::Decision;
use inquire::InquireError;

use crate::asked::{About, Asked};
use crate::prompt::{EditProblem, Said, choose, edit, write};

#[derive(Clone, Copy)]
enum Choice {
    Approve,
    Edit,
    Deny,
    Respond,
    Always,
    Later,
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Approve => "Approve: run it exactly as shown",
            Self::Edit => "Edit: change the arguments, then run it",
            Self::Deny => "Deny: do not run it, and say why",
            Self::Respond => "Respond: do not run it, and give the result yourself",
            Self::Always => "Always: approve it, and every further call of this tool in this session",
            Self::Later => "Later: leave it open",
        })
    }
}

/// Asks until there is an answer.
pub(super) fn ask(asked: &Asked) -> Result<Said, InquireError> {
    let choices = [Choice::Approve, Choice::Edit, Choice::Deny, Choice::Respond, Choice::Always, Choice::Later];
    loop {
        let Some(choice) = choose("May this call run?", choices.to_vec())? else { return Ok(Said::Later) };
        let said = match choice {
            Choice::Approve => Some(Said::Decide(Decision::Approve)),
            Choice::Edit => edited(asked, None)?,
            Choice::Deny => deny("Why not?")?.map(Said::Decide),
            Choice::Respond => respond("What is the model told as the result?")?.map(Said::Decide),
            Choice::Always => Some(Said::Always(Decision::Approve)),
            Choice::Later => Some(Said::Later),
        };
        if let Some(said) = said {
            return Ok(said);
        }
    }
}

/// The arguments that were written do not fit: they are at hand to be mended.
pub(super) fn edit_again(asked: &Asked, problem: &EditProblem) -> Result<Said, InquireError> {
    match edited(asked, Some(problem))? {
        Some(said) => Ok(said),
        None => ask(asked),
    }
}

fn edited(asked: &Asked, problem: Option<&EditProblem>) -> Result<Option<Said>, InquireError> {
    let About::Call { arguments, .. } = &asked.about else { return Ok(None) };
    let arguments = edit::arguments(arguments, problem)?;
    Ok(arguments.map(|arguments| Said::Decide(Decision::ApproveEdited { arguments })))
}

/// A denial with its words.
pub(super) fn deny(message: &str) -> Result<Option<Decision>, InquireError> {
    let said = write(message, "the model is told this; empty for the usual words")?;
    Ok(said.map(|said| match said.trim() {
        "" => Decision::Deny { message: None },
        said => Decision::deny(said),
    }))
}

/// The person's words as the outcome.
pub(super) fn respond(message: &str) -> Result<Option<Decision>, InquireError> {
    let said = write(message, "nothing runs; these words are the outcome")?;
    Ok(said.filter(|said| !said.trim().is_empty()).map(|content| Decision::Respond { content }))
}
