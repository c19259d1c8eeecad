//! Work and words: groups, calls and how they are shown, nested agents, hand-offs, ends.

use holdpoint_core::agent::FinishRule;
use holdpoint_core::event::RunEnd;
use holdpoint_core::ids::{ActorId, FramePath};
use holdpoint_core::input::{Input, ReplyInput, StartInput};
use holdpoint_core::policy::Verdict;
use holdpoint_core::run::Run;
use serde_json::json;

use super::super::Status;
use super::super::testing::{Session, brief, call, handoff, id, json, nested, reply};

fn allow(session: &mut Session) {
    session.screened(0, |_| Verdict::Allow);
}

#[test]
fn words_alone_need_no_group() {
    let mut session = Session::begun();
    session.replies("Xin chào");
    assert_eq!(
        session.told_in_short(),
        [
            "1 message_start",
            "content_block_start 0 text",
            r#"content_block_delta 0 {"text":"Xin chào","type":"text_delta"}"#,
            "2 content_block_stop 0",
            "message_delta",
            "3 message_stop end_turn",
        ]
    );
    assert_eq!(session.projection().status(), Status::Completed);
}

#[test]
fn words_close_the_group_and_work_opens_another() {
    let mut session = Session::begun();
    let todo = call("c1", "write_todos", json!({"title": "Chuẩn bị"}));
    session.reply(
        0,
        ReplyInput {
            thinking: Some("hm".to_owned()),
            text: Some("Tôi ghi lại.".to_owned()),
            calls: vec![todo],
            ..reply()
        },
    );
    allow(&mut session);
    session.runs_with(0, "ok");
    assert_eq!(
        session.told_in_short()[1..],
        [
            r#"2 group_start g1 """#,
            "content_block_start 0 thinking",
            r#"content_block_delta 0 {"thinking":"hm","type":"thinking_delta"}"#,
            "3 content_block_stop 0",
            r#"4 group_end g1 "" 1 done"#,
            "content_block_start 1 text",
            r#"content_block_delta 1 {"text":"Tôi ghi lại.","type":"text_delta"}"#,
            "5 content_block_stop 1",
            r#"6 group_start g2 "Chuẩn bị""#,
            "content_block_start 2 tool_use write_todos",
            r#"content_block_delta 2 {"partial_json":"{\"title\":\"Chuẩn bị\"}","type":"input_json_delta"}"#,
            "7 content_block_stop 2",
            "content_block_start 3 tool_result write_todos success",
            r#"content_block_delta 3 {"content":"ok"}"#,
            "8 content_block_stop 3",
        ]
    );
    assert_eq!(session.projection().status(), Status::Running);
}

#[test]
fn a_group_is_named_after_the_first_call_that_has_a_sentence() {
    let mut session = Session::begun();
    let todo = |id, title| call(id, "write_todos", json!({"title": title}));
    let calls = vec![call("c0", "plain", json!({})), todo("c1", "first"), todo("c2", "second")];
    session.reply(0, ReplyInput { thinking: Some("hm".to_owned()), calls, ..reply() });
    allow(&mut session);
    session.runs_with(0, "ok");
    session.replies("Xong.");
    let told = session.told_in_short();
    assert!(told.contains(&r#"2 group_start g1 """#.to_owned()), "{told:?}");
    assert!(told.iter().any(|line| line.ends_with(r#"group_end g1 "first" 4 done"#)), "{told:?}");
}

#[test]
fn display_settings_hide_calls_and_results_or_put_them_outside() {
    let mut session = Session::begun();
    let calls = ["quiet", "only_result", "show_chart"];
    session.calls(calls.iter().map(|tool| call(tool, tool, json!({}))).collect());
    allow(&mut session);
    session.runs_with(0, "ok");
    let told: Vec<String> =
        session.told_in_short().into_iter().filter(|line| !line.contains("delta") && !line.contains("stop")).collect();
    assert_eq!(
        told[1..],
        [
            "content_block_start 0 tool_use show_chart",
            r#"3 group_start g1 """#,
            "content_block_start 1 tool_result only_result success",
            r#"5 group_end g1 "" 1 done"#,
            "content_block_start 2 tool_result show_chart success",
        ]
    );
}

#[test]
fn a_call_that_cannot_run_is_shown_with_its_problem() {
    let mut session = Session::begun();
    let mut unknown = call("c1", "unknown", json!({}));
    unknown.problem = Some("there is no such tool".to_owned());
    session.calls(vec![unknown]);
    let told = session.told_in_short();
    assert!(told.contains(&"content_block_start 1 tool_result unknown error".to_owned()), "{told:?}");
    assert!(told.contains(&r#"content_block_delta 1 {"content":"there is no such tool"}"#.to_owned()), "{told:?}");
}

#[test]
fn a_call_that_repeats_another_to_the_letter_is_not_shown_twice() {
    let mut session = Session::begun();
    let same = || vec![call("c1", "execute_trade", json!({"symbol": "VNM"}))];
    session.calls(same());
    allow(&mut session);
    session.runs_with(0, "done");
    session.calls(same());
    let told = session.told_in_short();
    assert_eq!(told.iter().filter(|line| line.contains("tool_use")).count(), 1, "{told:?}");
}

#[test]
fn a_nested_agent_says_who_it_is_and_works_within_the_message() {
    let mut session = Session::begun();
    session.calls(vec![nested("outer")]);
    allow(&mut session);
    let frame = FramePath::root().call(1, 0);
    let todo = call("inner", "write_todos", json!({"title": "tìm"}));
    session.reply(0, ReplyInput { frame: frame.clone(), calls: vec![todo], ..reply() });
    allow(&mut session);
    session.runs_with(0, "found");
    session.reply(0, ReplyInput { frame, text: Some("It is so.".to_owned()), ..reply() });
    session.replies("Xong.");
    let events: Vec<serde_json::Value> = session.replay().iter().map(json).collect();
    let blocks = events.iter().filter(|event| event["type"] == "content_block_start");
    let who: Vec<_> = blocks
        .map(|event| (event["content_block"]["type"].clone(), event["content_block"]["subagent"].clone()))
        .collect();
    let research = json!({"id": "trader/ask_research", "name": "research", "path": ["outer"]});
    let null = json!(null);
    assert_eq!(
        who,
        [
            (json!("tool_use"), null.clone()),
            (json!("tool_use"), research.clone()),
            (json!("tool_result"), research.clone()),
            (json!("text"), research),
            (json!("tool_result"), null.clone()),
            (json!("text"), null),
        ]
    );
    // The outer call had not ended when the inner words closed the group.
    let told = session.told_in_short();
    assert!(told.iter().any(|line| line.ends_with(r#"group_end g1 "tìm" 2 waiting"#)), "{told:?}");
}

#[test]
fn a_hand_off_is_a_call_with_an_outcome_and_the_message_goes_on() {
    let mut session = Session::begun();
    session.calls(vec![handoff("h1")]);
    allow(&mut session);
    session.replies("Tôi là support.");
    let told = session.told_in_short();
    assert!(told.contains(&"content_block_start 1 tool_result transfer_to_support success".to_owned()), "{told:?}");
    assert!(
        told.contains(
            &r#"content_block_delta 1 {"content":"The conversation was handed over to support."}"#.to_owned()
        ),
        "{told:?}"
    );
    assert_eq!(told.last().unwrap(), "7 message_stop end_turn");
}

#[test]
fn an_output_that_is_not_the_models_last_words_is_said() {
    let mut session = Session::with(super::super::testing::trader());
    session.runs.push(Run::new("run_0198c0ffee007000800000000000beef".parse().unwrap()));
    let start = StartInput {
        session: id(),
        agent: brief("trader", FinishRule::FirstToolResult),
        content: "go".into(),
        context: None,
        turns_max: None,
        by: ActorId::local(),
        holds_every_call: false,
    };
    session.give(0, Input::Start(start));
    session.calls(vec![call("c1", "execute_trade", json!({"symbol": "VNM"}))]);
    allow(&mut session);
    session.runs_with(0, "order 991");
    assert!(matches!(session.runs[0].end(), Some(RunEnd::Done(_))));
    let told = session.told_in_short();
    let said = r#"content_block_delta 2 {"text":"order 991","type":"text_delta"}"#.to_owned();
    assert!(told.contains(&said), "{told:?}");
}

#[test]
fn a_run_ends_as_it_ended() {
    let ends = [
        (Input::Cancel { by: ActorId::local(), reason: "enough".to_owned(), request: None }, "cancelled", json!(null)),
        (
            Input::Fail { code: "model_failed".to_owned(), message: "it\u{202e} did".to_owned() },
            "error",
            json!({"code": "model_failed", "message": "it⟦U+202E⟧ did"}),
        ),
        (
            Input::Fail { code: "turns_exhausted".to_owned(), message: "no more".to_owned() },
            "max_turns",
            json!({"code": "turns_exhausted", "message": "no more"}),
        ),
    ];
    for (input, stop_reason, error) in ends {
        let mut session = Session::begun();
        session.calls(vec![call("c1", "execute_trade", json!({"symbol": "VNM"}))]);
        session.holds(300);
        session.give(0, input);
        let told = session.told_in_short();
        assert!(told.iter().any(|line| line.ends_with("approval_resolved abc-123_1 withdrawn")), "{told:?}");
        assert!(told.iter().any(|line| line.ends_with("1 cancelled") && line.contains("group_end")), "{told:?}");
        let last = json(session.replay().last().unwrap());
        assert_eq!((last["stop_reason"].as_str(), &last["error"]), (Some(stop_reason), &error));
        assert_eq!(session.projection().open().count(), 0);
    }
}

#[test]
fn runs_at_the_same_time_count_blocks_each_for_itself_and_events_together() {
    let mut session = Session::begun();
    let other = session.start("And this");
    session.reply(other, ReplyInput { text: Some("two".to_owned()), ..reply() });
    session.replies("one");
    let events: Vec<serde_json::Value> = session.replay().iter().map(json).collect();
    let numbers: Vec<u64> = events.iter().filter_map(|event| event["seq"].as_u64()).collect();
    assert_eq!(numbers, (1..=6).collect::<Vec<_>>());
    let indexes: Vec<u64> = events.iter().filter_map(|event| event["index"].as_u64()).collect();
    assert!(indexes.iter().all(|index| *index == 0), "{indexes:?}");
    assert_ne!(events[0]["message_id"], events[1]["message_id"]);
}

#[test]
fn what_is_long_is_cut_and_says_so() {
    let mut session = Session::begun();
    session.calls(vec![call("c1", "execute_trade", json!({"symbol": "VNM"}))]);
    allow(&mut session);
    session.runs_with(0, &"ế".repeat(100_000));
    let events: Vec<serde_json::Value> = session.replay().iter().map(json).collect();
    let content = events.iter().find_map(|event| event["delta"]["content"].as_str()).unwrap();
    assert!(content.len() <= (64 << 10) + 16 && content.ends_with("… (cut)"), "{}", content.len());
}
