//! Messages and modals exactly as Slack spells them (Block Kit), as far as they are used here. No logic.

use serde::Serialize;

/// A piece of a message or modal.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Block {
    Header { text: Text },
    Section { text: Text },
    Context { elements: Vec<Text> },
    RichText { elements: Vec<Rich> },
    Actions { elements: Vec<Button> },
    Input(Input),
}

/// A text. Only what we wrote ourselves is ever `mrkdwn`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Text {
    PlainText {
        text: String,
        emoji: bool,
    },
    Mrkdwn {
        text: String,
        /// Names and addresses in it stay text.
        verbatim: bool,
    },
}

/// Text that is not looked into for marks, names or addresses.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Rich {
    RichTextPreformatted { elements: Vec<RichElement> },
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum RichElement {
    Text { text: String },
}

/// A button.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename = "button")]
pub(super) struct Button {
    pub(super) text: Text,
    pub(super) action_id: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) value: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) style: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) confirm: Option<Confirm>,
}

/// What is asked once more before a click counts.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Confirm {
    pub(super) title: Text,
    pub(super) text: Text,
    pub(super) confirm: Text,
    pub(super) deny: Text,
}

/// A field of a modal.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Input {
    pub(super) block_id: String,
    pub(super) label: Text,
    pub(super) element: Element,
    pub(super) optional: bool,
}

/// What a field takes.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Element {
    PlainTextInput {
        action_id: &'static str,
        multiline: bool,
        max_length: usize,
        #[serde(skip_serializing_if = "Option::is_none")]
        initial_value: Option<String>,
    },
    RadioButtons {
        action_id: &'static str,
        options: Vec<Choice>,
    },
    Checkboxes {
        action_id: &'static str,
        options: Vec<Choice>,
    },
    StaticSelect {
        action_id: &'static str,
        options: Vec<Choice>,
    },
    MultiStaticSelect {
        action_id: &'static str,
        options: Vec<Choice>,
    },
}

/// What can be chosen.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Choice {
    pub(super) text: Text,
    pub(super) value: String,
}

/// A modal.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename = "modal")]
pub(super) struct View {
    pub(super) title: Text,
    pub(super) close: Text,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) submit: Option<Text>,
    pub(super) callback_id: &'static str,
    pub(super) private_metadata: String,
    pub(super) blocks: Vec<Block>,
}

impl Text {
    /// Text that stays text.
    pub(super) fn plain(text: impl Into<String>) -> Self {
        Self::PlainText { text: text.into(), emoji: false }
    }

    /// Words of ours with marks of Slack in them.
    pub(super) fn ours(text: impl Into<String>) -> Self {
        Self::Mrkdwn { text: text.into(), verbatim: true }
    }
}

impl Block {
    /// A line of ours.
    pub(super) fn line(text: impl Into<String>) -> Self {
        Self::Section { text: Text::plain(text) }
    }

    /// Text as it is, in letters of one width.
    pub(super) fn verbatim(text: String) -> Self {
        Self::RichText { elements: vec![Rich::RichTextPreformatted { elements: vec![RichElement::Text { text }] }] }
    }
}
