//! Reads a request: which reply is next, what a person said last, what the tools gave back.

use std::sync::Arc;

use holdpoint_core::ids::ToolName;
use holdpoint_core::message::{Content, Item};
use holdpoint_runtime::ports::model::ModelRequest;

/// What a person (or the agent outside) said last; empty where nobody has.
pub fn last_said(request: &ModelRequest) -> String {
    last_user_text(&request.items)
}

/// What the tools of the last turn gave back: tool and text, in the model's order.
pub fn last_results(request: &ModelRequest) -> Vec<(String, String)> {
    last_turn(request).map(|(tool, output, _)| (tool.to_string(), output.to_text())).collect()
}

/// Whether a call of the last turn was turned down, failed, or was never run.
pub(super) fn has_error(request: &ModelRequest) -> bool {
    last_turn(request).any(|(_, _, is_error)| is_error)
}

fn last_turn(request: &ModelRequest) -> impl Iterator<Item = (&ToolName, &Content, bool)> {
    let is_reply = |item: &Arc<Item>| matches!(**item, Item::Assistant { .. });
    let after = request.items.iter().rposition(is_reply).map_or(0, |reply| reply + 1);
    request.items[after..].iter().filter_map(|item| match &**item {
        Item::ToolResult { tool, output, is_error, .. } => Some((tool, output, *is_error)),
        _ => None,
    })
}

/// How many model calls the frame has behind it.
pub(super) fn replies_of_frame(request: &ModelRequest) -> usize {
    (request.turn as usize).saturating_sub(1)
}

/// How many of them were the agent's own: those of others before and between hand-offs are left out.
pub(super) fn replies_of_agent(request: &ModelRequest) -> usize {
    let mut of_others = 0;
    let mut speaker: Option<&str> = None;
    let mut replies = 0;
    for item in own_items(request) {
        if matches!(**item, Item::Assistant { .. }) {
            replies += 1;
        }
        let Some((tool, to)) = handed_over(item) else { continue };
        // Who spoke first is not said; a place that this very tool leads to begins with the one who has the tool.
        let first = || to.strip_suffix(tool).and_then(|outer| outer.strip_suffix('/'));
        if speaker.or_else(first) != Some(request.agent.as_str()) {
            of_others += replies;
        }
        speaker = Some(to);
        replies = 0;
    }
    replies_of_frame(request).saturating_sub(of_others)
}

/// What the frame was asked at its start.
pub(super) fn opening(request: &ModelRequest) -> String {
    let first = request.items.len() - own_items(request).len();
    last_user_text(&request.items[..first])
}

/// The items from the frame's first reply on; what stands before is its input and the session's earlier runs.
fn own_items(request: &ModelRequest) -> &[Arc<Item>] {
    let replies = request.items.iter().enumerate().rev().filter(|(_, item)| matches!(***item, Item::Assistant { .. }));
    let first = replies.take(replies_of_frame(request)).last();
    &request.items[first.map_or(request.items.len(), |(index, _)| index)..]
}

/// The tool of a hand-off that took place, and the agent that it reached.
fn handed_over(item: &Item) -> Option<(&str, &str)> {
    let Item::ToolResult { tool, output: Content::Text(text), is_error: false, .. } = item else {
        return None;
    };
    let to = text.strip_prefix("The conversation was handed over to ")?.strip_suffix('.')?;
    Some((tool.as_str(), to))
}

fn last_user_text(items: &[Arc<Item>]) -> String {
    let said = items.iter().rev().find_map(|item| match &**item {
        Item::User(content) => Some(content.to_text()),
        _ => None,
    });
    said.unwrap_or_default()
}
