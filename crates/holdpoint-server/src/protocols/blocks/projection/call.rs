//! A call of the model, as people are shown it.

use holdpoint_core::ids::AgentId;
use holdpoint_core::json::CanonicalJson;
use holdpoint_core::text::{clamp, visible};
use holdpoint_core::tool::{CallRecord, Outcome, ToolKind};
use serde_json::Value;

use super::super::wire::events::{Block, BlockDelta, Nothing, ResultStatus, Subagent, Token};
use crate::agents::{DisplayCard, ServedAgent};

/// Bytes of a tool's result that clients are sent; the model gets all of it.
const RESULT_BYTES_MAX: usize = 64 << 10;

/// Bytes of a sentence for a call.
const SENTENCE_BYTES_MAX: usize = 512;

/// A call that was asked for and is not settled.
#[derive(Debug, Clone)]
pub(super) struct Call {
    pub(super) id: String,
    pub(super) tool: String,
    kind: ToolKind,
    display: DisplayCard,
    /// A sentence for it.
    pub(super) sentence: Option<String>,
    subagent: Option<Subagent>,
}

impl Call {
    pub(super) fn new(
        record: &CallRecord,
        by: &AgentId,
        card: Option<&ServedAgent>,
        subagent: Option<Subagent>,
    ) -> Self {
        let display = match &record.kind {
            // The request stands for the call, and the answer for its outcome.
            ToolKind::Question => DisplayCard {
                stream_tool_use: false,
                stream_tool_result: false,
                as_content: true,
                ..DisplayCard::default()
            },
            _ => card.and_then(|card| card.tool(by, &record.tool)).map(|tool| tool.display.clone()).unwrap_or_default(),
        };
        let sentence = display.message.as_ref().map(|template| sentence(template, &record.arguments));
        let (id, tool, kind) = (record.call_id.clone(), record.tool.to_string(), record.kind.clone());
        Self { id, tool, kind, display, sentence, subagent }
    }

    /// Whether it stands outside of the groups.
    pub(super) fn is_content(&self) -> bool {
        self.display.as_content
    }

    /// Whether people are shown that it was asked for.
    pub(super) fn shows_use(&self) -> bool {
        self.display.stream_tool_use
    }

    /// Whether people are shown what came of it.
    pub(super) fn shows_result(&self) -> bool {
        self.display.stream_tool_result
    }

    /// Who leads to the nested agent that it runs, where it runs one.
    pub(super) fn nested(&self, card: Option<&ServedAgent>) -> Option<Subagent> {
        let ToolKind::Agent { agent, .. } = &self.kind else { return None };
        let mut path = self.subagent.as_ref().map(|outer| outer.path.clone()).unwrap_or_default();
        path.push(self.id.clone());
        let name = card.and_then(|card| card.graph.name_of(&agent.id)).unwrap_or(agent.id.as_str());
        Some(Subagent { id: agent.id.to_string(), name: name.to_owned(), path })
    }

    /// That it was asked for, with all its arguments.
    pub(super) fn asked(&self, arguments: &CanonicalJson) -> (Block, BlockDelta) {
        let block = Block::ToolUse {
            id: self.id.clone(),
            name: self.tool.clone(),
            input: Nothing {},
            tool_content_message: self.sentence.clone(),
            subagent: self.subagent.clone(),
        };
        (block, BlockDelta::Token(Token::InputJson { partial_json: arguments.as_str().to_owned() }))
    }

    /// What came of it.
    pub(super) fn answered(&self, outcome: &Outcome) -> (Block, BlockDelta) {
        let block = Block::ToolResult {
            tool_use_id: self.id.clone(),
            name: self.tool.clone(),
            status: status(outcome),
            subagent: self.subagent.clone(),
        };
        let whole = outcome.to_output(&self.kind).to_text();
        let shown = clamp(&whole, RESULT_BYTES_MAX);
        let content = if shown.len() < whole.len() { format!("{shown}… (cut)") } else { whole };
        (block, BlockDelta::Result { content })
    }
}

fn status(outcome: &Outcome) -> ResultStatus {
    match outcome {
        Outcome::Result(_) | Outcome::Responded(_) => ResultStatus::Success,
        Outcome::Failure(_) | Outcome::Invalid(_) | Outcome::Abandoned => ResultStatus::Error,
        Outcome::Denied(_) | Outcome::Withdrawn => ResultStatus::Rejected,
        Outcome::Expired => ResultStatus::Timeout,
    }
}

/// A template over a call's arguments: `{name}` becomes the argument of that name, or nothing where there is none. What
/// the model put there cannot hide itself, and is cut.
fn sentence(template: &str, arguments: &CanonicalJson) -> String {
    let arguments = arguments.to_value();
    let mut filled = String::new();
    let mut rest = template;
    while let Some((before, name, after)) = next_place(rest) {
        filled.push_str(before);
        match arguments.get(name) {
            Some(Value::String(text)) => filled.push_str(text),
            Some(value) => filled.push_str(&value.to_string()),
            None => {}
        }
        rest = after;
    }
    filled.push_str(rest);
    let shown = visible(clamp(&filled, SENTENCE_BYTES_MAX));
    shown.replace(['\n', '\t'], " ")
}

/// The text before the next `{name}`, the name, and the text after it.
fn next_place(text: &str) -> Option<(&str, &str, &str)> {
    let mut from = 0;
    loop {
        let open = from + text[from..].find('{')?;
        let close = open + text[open..].find('}')?;
        let name = &text[open + 1..close];
        if !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-') {
            return Some((&text[..open], name, &text[close + 1..]));
        }
        from = open + 1;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn filled(template: &str, arguments: Value) -> String {
        sentence(template, &CanonicalJson::from_serialize(&arguments).unwrap())
    }

    #[test]
    fn a_sentence_names_the_arguments() {
        let arguments = json!({"symbol": "VNM", "quantity": 100, "is_urgent": true});
        assert_eq!(filled("Mua {quantity} {symbol}", arguments.clone()), "Mua 100 VNM");
        assert_eq!(filled("{symbol}{symbol} {is_urgent}", arguments.clone()), "VNMVNM true");
        assert_eq!(filled("no place at all", arguments.clone()), "no place at all");
        assert_eq!(filled("{unknown}!", arguments.clone()), "!");
        assert_eq!(filled("{ {symbol} } {} {", arguments), "{ VNM } {} {");
    }

    #[test]
    fn what_a_model_puts_into_a_sentence_is_one_short_line_in_which_nothing_hides() {
        assert_eq!(filled("To {to}", json!({"to": "a\u{202e}b\nc"})), "To a⟦U+202E⟧b c");
        assert!(filled("{to}", json!({"to": "x".repeat(10_000)})).len() <= SENTENCE_BYTES_MAX);
        assert_eq!(filled("{a}", json!({"a": "{b}", "b": "never"})), "{b}");
    }

    #[test]
    fn arguments_that_are_no_object_leave_the_places_empty() {
        assert_eq!(filled("Mua {symbol}", json!("VNM")), "Mua ");
    }
}
