//! What is shown while models speak, and what becomes of it.

use holdpoint_core::ids::FramePath;
use holdpoint_core::input::{Input, ReplyInput};
use holdpoint_core::policy::Verdict;
use holdpoint_runtime::ports::model::Delta;
use serde_json::json;

use super::super::super::wire::events::Event;
use super::super::Live;
use super::super::testing::{Session, call, json, reply, short};

fn in_short(events: &[Event]) -> Vec<String> {
    events.iter().map(|event| short(&json(event))).collect()
}

/// What a subscriber is shown of everything that happened after so many items.
fn shown_after(session: &Session, items: usize) -> Vec<String> {
    let mut live = session.watching();
    session.items[..items].iter().for_each(|item| drop(live.take(item)));
    in_short(&session.items[items..].iter().flat_map(|item| live.take(item)).collect::<Vec<_>>())
}

/// A run that looked something up, in a group that is open.
fn worked() -> Session {
    let mut session = Session::begun();
    session.calls(vec![call("c1", "write_todos", json!({"title": "Tìm"}))]);
    session.screened(0, |_| Verdict::Allow);
    session.runs_with(0, "ok");
    session
}

#[test]
fn words_are_shown_at_once_and_close_the_group_with_the_number_that_it_will_have() {
    let mut session = worked();
    let before = session.items.len();
    session.says("Xin ");
    session.says("chào");
    session.replies("Xin chào");
    assert_eq!(
        shown_after(&session, before),
        [
            r#"5 group_end g1 "Tìm" 1 done"#,
            "content_block_start 2 text",
            r#"content_block_delta 2 {"text":"Xin ","type":"text_delta"}"#,
            r#"content_block_delta 2 {"text":"chào","type":"text_delta"}"#,
            "6 content_block_stop 2",
            "message_delta",
            "7 message_stop end_turn",
        ]
    );
}

#[test]
fn thoughts_are_shown_in_the_group_and_end_with_the_first_word() {
    let mut session = Session::begun();
    let before = session.items.len();
    session.thinks("hm");
    session.says("So");
    session.thinks("late");
    session.reply(0, ReplyInput { thinking: Some("hm".to_owned()), text: Some("So".to_owned()), ..reply() });
    assert_eq!(
        shown_after(&session, before)[..9],
        [
            r#"2 group_start g1 """#,
            "content_block_start 0 thinking",
            r#"content_block_delta 0 {"thinking":"hm","type":"thinking_delta"}"#,
            "3 content_block_stop 0",
            r#"4 group_end g1 "" 1 done"#,
            "content_block_start 1 text",
            r#"content_block_delta 1 {"text":"So","type":"text_delta"}"#,
            "5 content_block_stop 1",
            "message_delta",
        ]
    );
}

#[test]
fn words_that_were_lost_on_the_way_follow_with_the_reply() {
    let mut session = worked();
    session.says("Xin ");
    let before = session.items.len();
    session.replies("Xin chào");
    assert_eq!(
        shown_after(&session, before)[..2],
        [r#"content_block_delta 2 {"text":"chào","type":"text_delta"}"#, "6 content_block_stop 2"]
    );
}

#[test]
fn words_that_turned_out_otherwise_are_replaced() {
    let mut session = worked();
    session.says("Bro");
    let before = session.items.len();
    session.says("Xin chào");
    session.replies("Xin chào");
    assert_eq!(
        shown_after(&session, before)[1..4],
        [
            "content_block_start 2 text",
            r#"content_block_delta 2 {"text":"Xin chào","type":"text_delta"}"#,
            "6 content_block_stop 2",
        ]
    );
}

#[test]
fn what_was_shown_and_never_came_is_rewound() {
    let mut session = worked();
    session.says("Bro");
    let before = session.items.len();
    session.calls(vec![call("c2", "write_todos", json!({"title": "Lại"}))]);
    let shown = shown_after(&session, before);
    assert_eq!(shown[..2], ["rewind 4", "content_block_start 2 tool_use write_todos"]);
    let mut live = session.watching();
    let rewind = session.items.iter().flat_map(|item| live.take(item)).map(|event| json(&event));
    let rewind = rewind.into_iter().find(|event| event["type"] == "rewind").unwrap();
    let message_id = super::super::Projection::message_id(session.runs[0].id());
    assert_eq!(rewind, json!({"type": "rewind", "after": 4, "session_id": "abc-123", "message_id": message_id}));
}

#[test]
fn a_reply_that_was_refused_is_rewound() {
    let mut session = worked();
    session.says("Bro");
    let before = session.items.len();
    // The id stands for another call.
    session.calls(vec![call("c1", "write_todos", json!({"title": "other"}))]);
    assert_eq!(shown_after(&session, before), ["rewind 4"]);
}

#[test]
fn a_run_that_ends_while_its_model_speaks_is_rewound() {
    let mut session = worked();
    session.says("Bro");
    let before = session.items.len();
    session.give(0, Input::Fail { code: "model_failed".to_owned(), message: "it did".to_owned() });
    assert_eq!(
        shown_after(&session, before),
        ["rewind 4", r#"5 group_end g1 "Tìm" 1 cancelled"#, "message_delta", "6 message_stop error"]
    );
}

#[test]
fn words_wait_until_what_comes_before_them_is_stored() {
    let mut session = Session::begun();
    session.calls(vec![call("c1", "write_todos", json!({"title": "Tìm"}))]);
    session.screened(0, |_| Verdict::Allow);
    let before = session.items.len();
    session.says("Early");
    session.runs_with(0, "ok");
    session.replies("Early");
    let shown = shown_after(&session, before);
    assert_eq!(shown[0], "content_block_start 1 tool_result write_todos success");
    assert_eq!(
        shown[3..6],
        [
            r#"5 group_end g1 "Tìm" 1 done"#,
            "content_block_start 2 text",
            r#"content_block_delta 2 {"text":"Early","type":"text_delta"}"#,
        ]
    );
    assert!(!shown.iter().any(|line| line.starts_with("rewind")), "{shown:?}");
}

#[test]
fn what_another_run_stores_leaves_words_without_numbers_alone() {
    let mut session = Session::begun();
    let other = session.start("too");
    session.says("One ");
    let before = session.items.len();
    session.reply(other, ReplyInput { text: Some("two".to_owned()), ..reply() });
    session.says("more");
    session.replies("One more");
    let shown = shown_after(&session, before);
    assert!(!shown.iter().any(|line| line.starts_with("rewind")), "{shown:?}");
    assert!(shown.contains(&"5 content_block_stop 0".to_owned()), "{shown:?}");
}

#[test]
fn what_another_run_stores_moves_the_numbers_that_were_shown() {
    let mut session = worked();
    let other = session.start("too");
    session.says("One");
    let before = session.items.len();
    session.reply(other, ReplyInput { text: Some("two".to_owned()), ..reply() });
    let shown = shown_after(&session, before);
    assert_eq!(shown[0], "rewind 5");
    assert!(shown.contains(&"6 content_block_stop 0".to_owned()), "{shown:?}");
    assert_eq!(shown.last().unwrap(), r#"content_block_delta 2 {"text":"One","type":"text_delta"}"#);
    assert!(shown.contains(&r#"8 group_end g1 "Tìm" 1 done"#.to_owned()), "{shown:?}");
}

#[test]
fn of_two_that_speak_at_once_one_is_shown_and_the_other_after_it() {
    let mut session = Session::begun();
    let other = session.start("too");
    session.says("One");
    session.speaks(other, &FramePath::root(), Delta::Text("Two".to_owned()));
    let before = session.items.len();
    session.replies("One");
    let shown = shown_after(&session, before);
    assert_eq!(shown[0], "3 content_block_stop 0");
    assert!(shown.contains(&r#"content_block_delta 0 {"text":"Two","type":"text_delta"}"#.to_owned()), "{shown:?}");
    let whole = shown_after(&session, 0);
    let two = whole.iter().position(|line| line.contains("Two"));
    assert!(two > whole.iter().position(|line| line == "3 content_block_stop 0"), "{whole:?}");
}

#[test]
fn a_cursor_beyond_the_head_is_rewound_to_it() {
    let session = worked();
    let mut live = Live::new(session.empty(), 9);
    assert_eq!(session.items.iter().flat_map(|item| live.take(item)).count(), 0);
    assert_eq!(in_short(&live.caught_up()), ["rewind 4"]);
    assert_eq!(live.caught_up(), []);
}

#[test]
fn who_comes_while_a_model_speaks_is_shown_what_it_said_so_far() {
    let mut session = worked();
    let mut live = Live::new(session.empty(), 4);
    session.says("Xin ");
    // What is said comes to a new subscriber before what is stored.
    let said = session.items.last().unwrap();
    assert_eq!(live.take(said), []);
    session.items[..session.items.len() - 1].iter().for_each(|item| assert_eq!(live.take(item), []));
    assert_eq!(
        in_short(&live.caught_up()),
        [
            r#"5 group_end g1 "Tìm" 1 done"#,
            "content_block_start 2 text",
            r#"content_block_delta 2 {"text":"Xin ","type":"text_delta"}"#,
        ]
    );
}
