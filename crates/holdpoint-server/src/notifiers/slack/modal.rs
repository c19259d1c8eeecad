//! The modals: a denial with its reason, other arguments, answers, what came of a call, and what there is to say.

use holdpoint_core::pause::{PauseView, questions};

use super::blocks::{Block, Input, Text, View};
use super::form::{FIELD_CHARACTERS_MAX, Form, text};
use super::message::editable;
use super::reference::Reference;
use super::text::words;

/// The names of the modals, by which they are known when they are sent off.
pub(super) const DENY: &str = "holdpoint.deny";
pub(super) const EDIT: &str = "holdpoint.edit";
pub(super) const ANSWER: &str = "holdpoint.answer";
pub(super) const HAPPENED: &str = "holdpoint.happened";
const TOLD: &str = "holdpoint.told";

/// The fields that are not answers.
pub(super) const REASON: &str = "reason";
pub(super) const ARGUMENTS: &str = "arguments";
pub(super) const RESULT: &str = "result";

/// Asks why not.
pub(super) fn deny(view: &PauseView) -> View {
    let reason = field(REASON, "Why not? The agent is told this.", None, true);
    modal(view, DENY, ("Do not run it", "Deny"), vec![reason])
}

/// Asks for other arguments; `None` where those that are held do not fit.
pub(super) fn edit(view: &PauseView) -> Option<View> {
    let held = editable(view, FIELD_CHARACTERS_MAX)?;
    let arguments = field(ARGUMENTS, "Arguments, as a JSON object", Some(held), false);
    let blocks = vec![Block::line("It runs with exactly what stands here when you approve."), arguments];
    Some(modal(view, EDIT, ("Other arguments", "Approve"), blocks))
}

/// Asks the questions; `None` where they do not fit.
pub(super) fn answer(view: &PauseView) -> Option<View> {
    let asked = questions(view.arguments()?).ok()?;
    let blocks = Form::of(&asked)?.blocks();
    Some(modal(view, ANSWER, ("Answer", "Answer"), blocks))
}

/// Asks what came of a call that took effect.
pub(super) fn happened(view: &PauseView) -> View {
    let result = field(RESULT, "What came of it? The agent is told this as the tool's result.", None, false);
    modal(view, HAPPENED, ("It happened", "Settle"), vec![result])
}

/// Says something in the place of a modal.
pub(super) fn told(said: &str) -> View {
    View {
        title: Text::plain("holdpoint"),
        close: Text::plain("Close"),
        submit: None,
        callback_id: TOLD,
        private_metadata: String::new(),
        blocks: vec![Block::line(words(said, 2_500).text)],
    }
}

fn modal(view: &PauseView, callback_id: &'static str, (title, submit): (&str, &str), blocks: Vec<Block>) -> View {
    View {
        title: Text::plain(title),
        close: Text::plain("Cancel"),
        submit: Some(Text::plain(submit)),
        callback_id,
        private_metadata: Reference::to(&view.pause).to_string(),
        blocks,
    }
}

fn field(block_id: &str, label: &str, initial_value: Option<String>, optional: bool) -> Block {
    let (block_id, label) = (block_id.to_owned(), Text::plain(label));
    Block::Input(Input { block_id, label, element: text(initial_value), optional })
}
