//! What a person sees of a pause, and whether it is all of it. Nobody can approve here what is not shown whole: both the
//! message and the check of a click are made from the same sheet.

use holdpoint_core::ids::ActorId;
use holdpoint_core::pause::{PauseKind, PauseView, Subject, questions};

use super::blocks::Block;
use super::form::Form;
use super::text::{Shown, json, words};

/// Characters of the arguments, or of the model's words. Slack has room for about 13,000 in a message, and for 3,000 in a
/// field of a modal, in which they can be edited.
pub(super) const SUBJECT_CHARACTERS_MAX: usize = 3_000;

/// Characters of the first line: an agent's place and a tool's name have room in it.
const HEADLINE_CHARACTERS_MAX: usize = 1_500;

/// Characters of each line about the pause.
const LINE_CHARACTERS_MAX: usize = 500;

/// A pause as it is shown.
pub(super) struct Sheet {
    /// Who wants what, in a line of ours.
    pub(super) headline: String,
    /// What it is about, and on what terms.
    pub(super) blocks: Vec<Block>,
    /// Whether everything that would run, and everything that is said about it, is there.
    pub(super) is_whole: bool,
}

impl Sheet {
    pub(super) fn of(view: &PauseView, started_by: Option<&ActorId>) -> Self {
        let agent = view.agent.as_str();
        let tool = view.tool().map(|tool| tool.as_str()).unwrap_or_default();
        let headline = match view.kind() {
            PauseKind::Approval => format!("{agent} wants to run {tool}"),
            PauseKind::Question => format!("{agent} has a question"),
            PauseKind::Confirmation => format!("{agent} asks whether to go on"),
            PauseKind::InDoubt => format!("{agent} started {tool}, and whether it took effect is not known"),
        };
        let headline = words(&headline, HEADLINE_CHARACTERS_MAX);
        let (subject, answers_fit) = subject(view);
        let about = about(view, started_by);
        let is_whole = match view.kind() {
            // Questions are answered in a modal, which has room of its own.
            PauseKind::Question => answers_fit,
            PauseKind::Approval | PauseKind::Confirmation | PauseKind::InDoubt => {
                headline.is_whole && subject.is_whole && about.is_whole
            }
        };
        let blocks = [subject, about].into_iter().filter(|part| !part.text.is_empty());
        let blocks = blocks.map(|part| Block::verbatim(part.text)).collect();
        Self { headline: headline.text, blocks, is_whole }
    }
}

/// What it is about, and whether the questions in it can be answered in a modal.
fn subject(view: &PauseView) -> (Shown, bool) {
    match (&view.call, &view.pause.subject) {
        (Some(call), _) if view.kind() == PauseKind::Question => match questions(&call.arguments) {
            Ok(asked) => {
                let texts: Vec<&str> = asked.iter().map(|question| question.question.as_str()).collect();
                (words(&texts.join("\n"), SUBJECT_CHARACTERS_MAX), Form::of(&asked).is_some())
            }
            Err(_) => (json(&call.arguments, SUBJECT_CHARACTERS_MAX), false),
        },
        (Some(call), _) => (json(&call.arguments, SUBJECT_CHARACTERS_MAX), false),
        (None, Subject::Words { text, .. }) => (words(text, SUBJECT_CHARACTERS_MAX), false),
        (None, Subject::Call { .. }) => (Shown { text: String::new(), is_whole: false }, false),
    }
}

/// Who asked, why it is held, and who may decide: a line each.
fn about(view: &PauseView, started_by: Option<&ActorId>) -> Shown {
    let (pause, terms) = (&view.pause, &view.pause.terms);
    let mut lines = Vec::new();
    lines.extend(started_by.map(|by| ("asked by", by.to_string())));
    lines.extend(pause.reason.clone().map(|reason| ("reason", reason)));
    lines.extend(terms.rule.clone().map(|rule| ("rule", rule)));
    if !terms.approvers.is_empty() {
        lines.push(("for", terms.approvers.join(", ")));
    }
    if terms.quorum > 1 {
        lines.push(("approvals", format!("{} different people must approve", terms.quorum)));
    }
    lines.extend(view.call.as_ref().map(|call| ("digest", format!("sha256 {}", call.digest))));
    let mut is_whole = true;
    let lines = lines.into_iter().map(|(name, text)| {
        let shown = words(&text, LINE_CHARACTERS_MAX);
        is_whole &= shown.is_whole;
        format!("{name:<10}{}", shown.text.replace('\n', "⏎").replace('\t', "⇥"))
    });
    let text = lines.collect::<Vec<_>>().join("\n");
    Shown { text, is_whole }
}
