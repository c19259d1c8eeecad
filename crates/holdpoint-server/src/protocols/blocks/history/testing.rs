//! What must hold of any history, beside the facts it was folded from.

use std::collections::BTreeMap;

use serde_json::Value;

use super::super::projection::testing::json;
use super::super::projection::{Fact, Projection};
use super::fold::History;

/// The history of these facts, as clients get it.
pub(in super::super) fn told(facts: &[Fact]) -> Vec<Value> {
    let mut history = History::default();
    facts.iter().cloned().for_each(|fact| history.take(fact));
    history.into_messages(usize::MAX).iter().map(|message| serde_json::to_value(message).unwrap()).collect()
}

/// Complains where a history and the stream differ.
pub(in super::super) fn check(facts: &[Fact], projection: &Projection) {
    let messages = told(facts);
    let events: Vec<Value> = facts.iter().cloned().flat_map(Fact::into_events).map(|event| json(&event)).collect();
    let blocks = |kind: &str| events.iter().filter(|event| event["content_block"]["type"] == kind).count();
    let shown = |kind: &str| {
        let content = messages.iter().filter(|message| message["role"] == "assistant");
        content.flat_map(|message| message["content"].as_array().unwrap()).filter(|block| block["type"] == kind).count()
    };
    for kind in ["text", "thinking", "approval_request"] {
        assert_eq!(shown(kind), blocks(kind), "{kind}");
    }
    let calls = messages.iter().filter_map(|message| message["tool_calls"].as_array()).map(Vec::len).sum::<usize>();
    assert_eq!(calls, blocks("tool_use"));
    assert_eq!(messages.iter().filter(|message| message["role"] == "tool").count(), blocks("tool_result"));
    let said = facts.iter().filter(|fact| matches!(fact, Fact::Said { .. })).count();
    assert_eq!(messages.iter().filter(|message| message["role"] == "user").count(), said);
    check_groups(&messages, &events);
    let keys: Vec<&str> = messages
        .iter()
        .filter_map(|message| message["content"].as_array())
        .flatten()
        .filter(|block| block["isResolved"] == false)
        .map(|block| block["approval_key"].as_str().unwrap())
        .collect();
    let mut open: Vec<&str> = projection.open().map(|request| request.key.as_str()).collect();
    let mut keys = keys;
    open.sort_unstable();
    keys.sort_unstable();
    assert_eq!(keys, open);
}

/// Groups begin, go on and end in their order; those that are open do not end. One in which nothing is shown but what was
/// decided is not seen: that stands with the request.
fn check_groups(messages: &[Value], events: &[Value]) {
    let shown = |kind: &str| messages.iter().filter(|message| message["display_type"] == kind).count();
    assert_eq!((shown("group_start"), shown("group_end")), groups(events));
    let mut is_open = false;
    for message in messages {
        is_open = match message["display_type"].as_str().unwrap() {
            "group_start" => true,
            "group_item" => {
                assert!(is_open, "{message}");
                true
            }
            "group_end" => {
                assert!(is_open && message["summary"].is_string(), "{message}");
                false
            }
            // A run that is under way may have left its group open.
            _ => false,
        };
    }
}

/// How many groups begin and end in which something is seen.
fn groups(events: &[Value]) -> (usize, usize) {
    let (mut begun, mut ended) = (0, 0);
    // The groups that are open, by message, and whether something was seen in them.
    let mut open: BTreeMap<&str, bool> = BTreeMap::new();
    for event in events {
        let message = event["message_id"].as_str().unwrap_or_default();
        let is_seen = ["thinking", "tool_use", "tool_result", "approval_request"]
            .contains(&event["content_block"]["type"].as_str().unwrap_or_default());
        match event["type"].as_str() {
            Some("group_start") => drop(open.insert(message, false)),
            Some("group_end") => ended += usize::from(open.remove(message) == Some(true)),
            _ if is_seen => {
                if let Some(is_seen) = open.get_mut(message) {
                    begun += usize::from(!std::mem::replace(is_seen, true));
                }
            }
            _ => {}
        }
    }
    (begun, ended)
}
