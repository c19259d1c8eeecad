//! How a pause ended, in words for people. What is said in it may come from anybody: whoever shows it escapes it.

use holdpoint_core::decision::{Decision, Manner};
use holdpoint_core::pause::{DecidedPause, Pause, PauseState, PauseView};
use holdpoint_core::time::Timestamp;

/// How a pause ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Outcome {
    /// In a word or two of ours.
    pub(super) title: &'static str,
    /// Who and how.
    pub(super) told: String,
    /// What somebody said with it.
    pub(super) said: Option<String>,
    /// When.
    pub(super) at: Timestamp,
}

impl Outcome {
    pub(super) fn of(pause: &Pause) -> Self {
        let ended = |title, told: &str, said: Option<String>, at| Self {
            title,
            told: told.to_owned(),
            said: said.filter(|said| !said.is_empty()),
            at,
        };
        match &pause.state {
            PauseState::Decided(decided) => Self::decided(decided),
            PauseState::Expired { at } => ended("Expired", "Nobody decided in time.", None, *at),
            PauseState::Withdrawn { at, reason } => {
                ended("Withdrawn", "It is not asked any more.", Some(reason.clone()), *at)
            }
            PauseState::Open { .. } => ended("Open", "It is still open.", None, pause.opened_at),
        }
    }

    fn decided(decided: &DecidedPause) -> Self {
        let (title, how, said) = match &decided.decision {
            _ if decided.manner == Manner::Superseded => ("Superseded", "A newer message took its place; sent", None),
            Decision::Approve => ("Approved", "Approved", None),
            Decision::ApproveEdited { .. } => {
                ("Approved", "Approved with the arguments shown, which were changed,", None)
            }
            Decision::Deny { message } => ("Denied", "Denied", message.clone()),
            Decision::Respond { content } => ("Answered", "Not run; told something else", Some(content.clone())),
            Decision::Answer { answers } => {
                let line = |(question, given): (&String, &Vec<String>)| format!("{question}\n  {}", given.join(", "));
                ("Answered", "Answered", Some(answers.iter().map(line).collect::<Vec<_>>().join("\n")))
            }
            Decision::Happened { result } => ("It happened", "Settled as done", Some(result.to_text())),
            Decision::RunAgain => ("Run again", "Run again, as told", None),
            Decision::Abandon => ("Left", "Left as it is, as told", None),
        };
        let via = decided.via.as_deref().map(|via| format!(" ({via})")).unwrap_or_default();
        let told = format!("{how} by {}{via}.", decided.by);
        Self { title, told, said: said.filter(|said| !said.is_empty()), at: decided.at }
    }
}

/// The pause with the arguments that run: those that somebody put in their place, where they were changed.
pub(super) fn as_decided(view: &PauseView) -> PauseView {
    let mut view = view.clone();
    if let PauseState::Decided(decided) = &view.pause.state
        && let Decision::ApproveEdited { arguments } = &decided.decision
        && let Some(call) = &mut view.call
    {
        call.arguments = arguments.clone();
        call.digest = arguments.digest();
    }
    view
}

/// The page of a pause. Opening it decides nothing.
pub(super) fn link(public_url: &str, pause: holdpoint_core::ids::PauseId) -> String {
    format!("{}/pauses/{pause}", public_url.trim_end_matches('/'))
}
