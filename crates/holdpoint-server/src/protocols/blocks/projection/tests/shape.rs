//! What must hold of any stream: groups, indexes, requests and their ends.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::super::testing::json;
use super::super::{Fact, Projection};

/// What is under way in a message.
#[derive(Default)]
struct Message {
    next_index: u64,
    group: Option<String>,
    groups: usize,
    is_over: bool,
}

/// Complains where a stream breaks a rule.
pub(super) fn check(facts: &[Fact], projection: &Projection) {
    let mut messages: BTreeMap<String, Message> = BTreeMap::new();
    let (mut asked, mut resolved) = (BTreeSet::new(), BTreeSet::new());
    let mut seq = 0;
    for event in facts.iter().cloned().flat_map(Fact::into_events).map(|event| json(&event)) {
        if let Some(number) = event["seq"].as_u64() {
            seq += 1;
            assert_eq!(number, seq, "{event}");
        }
        let message = messages.entry(event["message_id"].as_str().unwrap().to_owned()).or_default();
        assert!(!message.is_over, "nothing follows the end: {event}");
        match event["type"].as_str().unwrap() {
            "group_start" => {
                message.groups += 1;
                assert_eq!(event["group_id"], format!("g{}", message.groups));
                let before = message.group.replace(event["group_id"].to_string());
                assert_eq!(before, None, "{event}");
            }
            "group_end" => assert_eq!(message.group.take(), Some(event["group_id"].to_string()), "{event}"),
            "content_block_start" => {
                assert_eq!(event["index"], message.next_index, "{event}");
                message.next_index += 1;
                check_place(&event["content_block"], message.group.is_some());
                if event["content_block"]["type"] == "approval_request" {
                    let key = event["content_block"]["approval_key"].as_str().unwrap().to_owned();
                    assert!(asked.insert(key), "{event}");
                    assert_eq!(event["content_block"]["approval_key"], format!("abc-123_{}", asked.len()));
                }
            }
            "approval_resolved" => {
                let key = event["approval_key"].as_str().unwrap().to_owned();
                assert!(asked.contains(&key) && resolved.insert(key), "{event}");
            }
            "message_stop" => {
                assert_eq!(message.group, None, "{event}");
                message.is_over = true;
            }
            _ => {}
        }
    }
    assert_eq!(seq, projection.head_seq());
    let open: BTreeSet<String> = projection.open().map(|request| request.key.clone()).collect();
    assert_eq!(open, asked.difference(&resolved).cloned().collect());
}

fn check_place(block: &Value, is_grouped: bool) {
    let is_question = block["pause"]["kind"] == "question";
    let is_confirmation = block["pause"]["kind"] == "confirmation";
    match block["type"].as_str().unwrap() {
        "text" => assert!(!is_grouped, "{block}"),
        "approval_request" if is_question || is_confirmation => assert!(!is_grouped, "{block}"),
        "thinking" => assert!(is_grouped, "{block}"),
        "tool_use" | "tool_result" => assert_eq!(is_grouped, block["name"] != "show_chart", "{block}"),
        _ => {}
    }
    assert!(!["quiet", "ask_user_question"].contains(&block["name"].as_str().unwrap_or_default()), "{block}");
}
