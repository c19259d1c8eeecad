//! How requests end, by whatever door.

use holdpoint_core::decision::{Decision, DecisionInput, Manner};
use holdpoint_core::ids::ActorId;
use holdpoint_core::input::{Input, SupersedeInput};
use holdpoint_core::json::CanonicalJson;
use holdpoint_core::policy::{OnTimeout, PauseTerms, Verdict};
use serde_json::{Value, json};

use super::super::super::wire::events::RequestOutcome;
use super::super::AskState;
use super::super::testing::{Session, call, json, question};

/// A run that waits with these trades.
fn held(ids: &[&str]) -> Session {
    let mut session = Session::begun();
    session.calls(ids.iter().map(|id| call(id, "execute_trade", json!({"symbol": id}))).collect());
    session.holds(300);
    session
}

/// What is told after a number, in short, without deltas and stops.
fn after(session: &Session, seq: u64) -> Vec<String> {
    let lines = session.facts().into_iter().filter(|fact| fact.seq() > Some(seq));
    let events = lines.flat_map(super::super::Fact::into_events);
    let short = events.map(|event| super::super::testing::short(&json(&event)));
    short.filter(|line| !line.contains("content_block_delta") && !line.contains("content_block_stop")).collect()
}

fn decisions(session: &Session) -> Value {
    let events = session.replay();
    let shown = events.iter().map(json).find(|event| event["delta"]["decisions"].is_array());
    shown.map(|event| event["delta"]["decisions"].clone()).unwrap_or_default()
}

#[test]
fn decisions_are_shown_as_a_whole_list_before_any_outcome() {
    let mut session = held(&["A", "B", "C"]);
    let head = session.projection().head_seq();
    let edited = CanonicalJson::parse(r#"{"symbol":"FPT"}"#).unwrap();
    let inputs = [
        session.decision(0, 1, Decision::deny("too dear")),
        session.decision(0, 2, Decision::ApproveEdited { arguments: edited }),
        DecisionInput { manner: Manner::Implied, ..session.decision(0, 3, Decision::Deny { message: None }) },
    ];
    session.give(0, Input::Decisions(inputs.into()));
    assert_eq!(
        decisions(&session),
        json!([
            {"type": "reject", "message": "too dear"},
            {"type": "edit", "edited_action": {"name": "execute_trade", "args": {"symbol": "FPT"}}},
            {"type": "reject", "implied": true},
        ])
    );
    assert_eq!(
        after(&session, head),
        [
            format!("{} approval_resolved abc-123_1 decided local", head + 1),
            "content_block_start 4 approval_result abc-123_1".to_owned(),
            "content_block_start 5 tool_result execute_trade rejected".to_owned(),
        ]
    );
}

#[test]
fn a_request_is_settled_with_the_last_of_its_calls_through_whatever_door() {
    let mut session = held(&["A", "B"]);
    let head = session.projection().head_seq();
    session.decides(2, Decision::deny("no"));
    let projection = session.projection();
    let request = projection.request("abc-123_1").unwrap();
    assert!(request.is_open());
    assert!(matches!(request.asks[1].state, AskState::Decided { .. }));
    assert_eq!(request.open_asks().map(|ask| ask.pause.number).collect::<Vec<_>>(), [1]);
    assert_eq!(after(&session, head), Vec::<String>::new(), "the outcome waits for the request");
    session.decides(1, Decision::Approve);
    session.runs_with(0, "done");
    assert_eq!(decisions(&session), json!([{"type": "approve"}, {"type": "reject", "message": "no"}]));
    let told = after(&session, head);
    let outcomes: Vec<&String> = told.iter().filter(|line| line.contains("tool_result")).collect();
    assert_eq!(
        outcomes,
        [
            "content_block_start 4 tool_result execute_trade rejected",
            "content_block_start 5 tool_result execute_trade success"
        ]
    );
    let end = session.projection().request("abc-123_1").unwrap().end.clone().unwrap();
    assert_eq!((end.outcome, end.by, end.at), (RequestOutcome::Decided, Some(ActorId::local()), session.now));
}

#[test]
fn what_a_tool_really_gave_does_not_wait_for_other_decisions() {
    let mut session = held(&["A", "B"]);
    let head = session.projection().head_seq();
    session.decides(1, Decision::Approve);
    session.runs_with(0, "done");
    assert_eq!(after(&session, head), ["content_block_start 3 tool_result execute_trade success"]);
}

#[test]
fn nobody_decided_in_time() {
    let mut session = held(&["A", "B"]);
    let head = session.projection().head_seq();
    session.wait(300);
    session.expire(0);
    assert_eq!(
        after(&session, head),
        [
            format!("{} approval_resolved abc-123_1 expired", head + 1),
            "content_block_start 3 approval_timeout abc-123_1".to_owned(),
            "content_block_start 4 tool_result execute_trade timeout".to_owned(),
            "content_block_start 5 tool_result execute_trade timeout".to_owned(),
        ]
    );
    let timeout = session.replay().iter().map(json).find(|event| event["content_block"]["type"] == "approval_timeout");
    assert_eq!(timeout.unwrap()["seq"], Value::Null, "its stop has the number");
}

#[test]
fn one_was_decided_and_the_other_was_not_in_time() {
    let mut session = held(&["A", "B"]);
    session.decides(1, Decision::Approve);
    session.wait(300);
    session.expire(0);
    assert_eq!(decisions(&session), json!([{"type": "approve"}, {"type": "reject", "outcome": "expired"}]));
    let projection = session.projection();
    assert_eq!(projection.request("abc-123_1").unwrap().end.as_ref().unwrap().outcome, RequestOutcome::Expired);
}

#[test]
fn a_request_ends_as_the_last_of_its_pauses_does() {
    let mut session = Session::begun();
    session.calls(["A", "B"].map(|id| call(id, "execute_trade", json!({"symbol": id}))).to_vec());
    let now = session.now;
    session.screened(0, |record| Verdict::Hold {
        reason: None,
        expires_at: Some(now.after(std::time::Duration::from_secs(if record.call_id == "A" { 2 } else { 300 }))),
        terms: PauseTerms::default(),
    });
    session.wait(2);
    session.expire(0);
    let head = session.projection().head_seq();
    session.decides(2, Decision::Approve);
    assert_eq!(decisions(&session), json!([{"type": "reject", "outcome": "expired"}, {"type": "approve"}]));
    let end = session.projection().request("abc-123_1").unwrap().end.clone().unwrap();
    assert_eq!((end.outcome, end.by), (RequestOutcome::Decided, Some(ActorId::local())));
    assert_eq!(after(&session, head)[0], format!("{} approval_resolved abc-123_1 decided local", head + 1));
}

#[test]
fn a_call_that_runs_when_nobody_decides_was_decided_by_waiting() {
    let mut session = Session::begun();
    session.calls(vec![call("A", "execute_trade", json!({"symbol": "A"}))]);
    let expires_at = Some(session.now.after(std::time::Duration::from_secs(60)));
    session.screened(0, |_| Verdict::Hold {
        reason: None,
        expires_at,
        terms: PauseTerms { on_timeout: OnTimeout::Approve, ..PauseTerms::default() },
    });
    session.wait(60);
    session.expire(0);
    assert!(session.told_in_short().iter().any(|line| line.ends_with("approval_resolved abc-123_1 decided timeout")));
    assert_eq!(decisions(&session), json!([{"type": "approve"}]));
}

#[test]
fn a_new_message_takes_the_place_of_decisions() {
    let mut session = held(&["A"]);
    let head = session.projection().head_seq();
    let input = SupersedeInput { content: "never mind".into(), by: ActorId::local(), via: None, request: None };
    session.give(0, Input::Supersede(input));
    assert_eq!(
        after(&session, head)[..2],
        [
            format!("{} approval_resolved abc-123_1 superseded local", head + 1),
            "content_block_start 2 tool_result execute_trade rejected".to_owned(),
        ]
    );
    assert_eq!(decisions(&session), Value::Null);
}

#[test]
fn answers_stand_in_the_resolution_of_a_question() {
    let mut session = Session::begun();
    session.calls(vec![question("Q1", "Which?")]);
    session.holds(600);
    let head = session.projection().head_seq();
    let answers = [("Which?".to_owned(), vec!["my own".to_owned()])].into();
    session.decides(1, Decision::Answer { answers });
    let told: Vec<Value> =
        session.replay().iter().map(json).filter(|event| event["seq"].as_u64() > Some(head)).collect();
    assert_eq!(told.len(), 1, "neither a result nor an outcome is shown: {told:?}");
    assert_eq!((&told[0]["outcome"], &told[0]["answers"]), (&json!("decided"), &json!({"Which?": "my own"})));
}

#[test]
fn nobody_answered_a_question_in_time() {
    let mut session = Session::begun();
    session.calls(vec![question("Q1", "Which?")]);
    session.holds(600);
    let head = session.projection().head_seq();
    session.wait(600);
    session.expire(0);
    assert_eq!(
        after(&session, head),
        [
            format!("{} approval_resolved abc-123_1 expired", head + 1),
            "content_block_start 1 approval_timeout abc-123_1".to_owned(),
        ]
    );
}

#[test]
fn a_call_that_is_held_again_is_a_new_request() {
    let mut session = held(&["A"]);
    session.decides(1, Decision::Approve);
    let calls = session.work(0).run_tools;
    session.give(0, Input::HoldAgain { calls, reason: "the tool changed".to_owned(), expires_at: None });
    let projection = session.projection();
    assert_eq!(projection.open().map(|request| request.key.as_str()).collect::<Vec<_>>(), ["abc-123_2"]);
    assert_eq!(projection.request("abc-123_2").unwrap().asks[0].reason.as_deref(), Some("the tool changed"));
}
