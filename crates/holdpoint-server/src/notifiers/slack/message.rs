//! The message that asks about a pause, and what becomes of it when the pause ends.

use holdpoint_core::ids::ActorId;
use holdpoint_core::pause::{Pause, PauseKind, PauseState, PauseView};
use holdpoint_core::policy::OnTimeout;
use holdpoint_core::time::Timestamp;

use super::blocks::{Block, Button, Confirm, Text};
use super::reference::Reference;
use super::sheet::Sheet;
use super::text::{json, words};
use crate::notifiers::outcome::{Outcome, as_decided, link};

/// A message.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Message {
    /// What stands where blocks do not, such as in a notification.
    pub(super) text: String,
    pub(super) blocks: Vec<Block>,
}

/// Characters of who decided and how.
const TOLD_CHARACTERS_MAX: usize = 1_000;

/// Characters of what somebody said with their decision.
const SAID_CHARACTERS_MAX: usize = 2_000;

/// Asks.
pub(super) fn open(view: &PauseView, started_by: Option<&ActorId>, public_url: Option<&str>) -> Message {
    let sheet = Sheet::of(view, started_by);
    let title = match view.kind() {
        PauseKind::Approval => "Approval needed",
        PauseKind::Question => "Answer needed",
        PauseKind::Confirmation => "Confirmation needed",
        PauseKind::InDoubt => "Did this happen?",
    };
    let link = public_url.map(|url| link(url, view.id()));
    let mut blocks = head(title, &sheet);
    blocks.extend(sheet.blocks);
    blocks.push(Block::Context { elements: vec![Text::ours(deadline(&view.pause))] });
    if !sheet.is_whole {
        blocks.push(Block::line(NOT_WHOLE));
    }
    blocks.push(Block::Actions { elements: buttons(view, sheet.is_whole, link) });
    Message { text: format!("{title}: {}", sheet.headline), blocks }
}

/// Tells how it ended, with the arguments that run. Nothing can be clicked any more.
pub(super) fn settled(view: &PauseView, started_by: Option<&ActorId>) -> Message {
    let sheet = Sheet::of(&as_decided(view), started_by);
    let Outcome { title, told, said, at } = Outcome::of(&view.pause);
    let mut blocks = head(title, &sheet);
    blocks.extend(sheet.blocks);
    blocks.push(Block::line(words(&told, TOLD_CHARACTERS_MAX).text));
    blocks.extend(said.map(|said| Block::verbatim(words(&said, SAID_CHARACTERS_MAX).text)));
    blocks.push(Block::Context { elements: vec![Text::ours(date(at))] });
    Message { text: format!("{title}: {}", sheet.headline), blocks }
}

fn head(title: &str, sheet: &Sheet) -> Vec<Block> {
    vec![Block::Header { text: Text::plain(title) }, Block::line(sheet.headline.clone())]
}

const NOT_WHOLE: &str = "There is more than fits into a message here, so it cannot be approved here: nobody should \
                         approve what they do not see. Open it in holdpoint, where all of it is shown.";

fn buttons(view: &PauseView, is_whole: bool, link: Option<String>) -> Vec<Button> {
    let value = Reference::to(&view.pause).to_string();
    let button = |action_id, text: &str, style| Button {
        text: Text::plain(text),
        action_id,
        value: Some(value.clone()),
        url: None,
        style,
        confirm: None,
    };
    let mut buttons = Vec::new();
    match view.kind() {
        PauseKind::Approval => {
            if is_whole {
                buttons.push(button("approve", "Approve", Some("primary")));
            }
            if is_whole && view.pause.terms.takes_one() {
                buttons.push(button("edit", "Edit…", None));
            }
            buttons.push(button("deny", "Deny…", Some("danger")));
        }
        PauseKind::Confirmation => {
            if is_whole {
                buttons.push(button("approve", "Go on", Some("primary")));
            }
            buttons.push(button("deny", "Do not…", Some("danger")));
        }
        PauseKind::Question => {
            if is_whole {
                buttons.push(button("answer", "Answer…", Some("primary")));
            }
            buttons.push(button("deny", "Do not answer…", None));
        }
        PauseKind::InDoubt => {
            if is_whole {
                buttons.push(button("happened", "It happened…", None));
                let again = button("run_again", "Run again", Some("danger"));
                buttons.push(Button { confirm: Some(twice()), ..again });
            }
            buttons.push(button("abandon", "Leave it", None));
        }
    }
    buttons.extend(link.map(|url| Button { url: Some(url), value: None, ..button("open", "Open in holdpoint", None) }));
    buttons
}

/// Running again may do it twice.
fn twice() -> Confirm {
    Confirm {
        title: Text::plain("Run it again?"),
        text: Text::plain("If it took effect before, it will take effect twice."),
        confirm: Text::plain("Run again"),
        deny: Text::plain("Cancel"),
    }
}

fn deadline(pause: &Pause) -> String {
    let then = match pause.terms.on_timeout {
        OnTimeout::Deny => "without an answer it does not run",
        OnTimeout::Approve => "without an answer it runs as shown",
    };
    match &pause.state {
        PauseState::Open { expires_at: Some(at) } => format!("Waits until {}; {then}.", date(*at)),
        _ => "Waits until somebody answers.".to_owned(),
    }
}

/// A time as Slack shows it to each reader in their own zone, and in UTC where it cannot.
fn date(at: Timestamp) -> String {
    format!("<!date^{}^{{date_short_pretty}} at {{time_secs}}|{at}>", at.as_millis() / 1_000)
}

/// Arguments as a field of a modal takes them; `None` where they do not fit.
pub(super) fn editable(view: &PauseView, characters_max: usize) -> Option<String> {
    let shown = json(view.arguments()?, characters_max);
    shown.is_whole.then_some(shown.text)
}
