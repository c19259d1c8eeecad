//! What people are asked, and in which requests.

use holdpoint_core::ids::{ActorId, FramePath};
use holdpoint_core::input::{Confirmation, Input, ReplyInput};
use holdpoint_core::pause::PauseKind;
use holdpoint_core::policy::{PauseTerms, Screening, Verdict};
use serde_json::{Value, json};

use super::super::Status;
use super::super::testing::{Session, call, json, question, reply};

fn trade(id: &str) -> holdpoint_core::tool::CallRecord {
    call(id, "execute_trade", json!({"symbol": id}))
}

/// The requests of a session, as their starts say them.
fn requests(session: &Session) -> Vec<Value> {
    let events = session.replay();
    let starts = events.iter().map(json).filter(|event| event["content_block"]["type"] == "approval_request");
    starts.map(|event| event["content_block"].clone()).collect()
}

#[test]
fn all_calls_of_a_turn_that_wait_are_one_request() {
    let mut session = Session::begun();
    session.calls(vec![trade("A"), call("B", "free", json!({})), trade("C")]);
    session.screened(0, |call| match call.tool.as_str() {
        "free" => Verdict::Allow,
        _ => Verdict::Hold { reason: None, expires_at: None, terms: PauseTerms::default() },
    });
    let [request] = &requests(&session)[..] else { panic!("one request expected") };
    let ids: Vec<&str> =
        request["actions"].as_array().unwrap().iter().map(|a| a["tool_use_id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["A", "C"]);
    // Nothing ends by itself.
    assert_eq!(request["review_configs"][0], json!({"require_approval": true, "timeout": 0}));
    assert_eq!(request["pause"]["expires_at"], Value::Null);
    assert_eq!(request["pause"]["ids"].as_array().unwrap().len(), 2);
    assert_eq!(session.projection().status(), Status::Running, "the free call can run");
}

#[test]
fn a_call_that_is_looked_at_later_is_asked_about_with_the_others() {
    let mut session = Session::begun();
    session.calls(vec![trade("A"), trade("B")]);
    let hold = || Verdict::Hold { reason: None, expires_at: None, terms: PauseTerms::default() };
    for (place, requests_by_then) in [(0, 0), (1, 1)] {
        let call = FramePath::root().call(1, place);
        let screening = Screening { call, verdict: hold(), guardrails: Vec::new() };
        session.give(0, Input::Screened(vec![screening]));
        assert_eq!(requests(&session).len(), requests_by_then);
    }
    assert_eq!(requests(&session)[0]["actions"].as_array().unwrap().len(), 2);
    assert_eq!(session.projection().status(), Status::Waiting);
}

#[test]
fn questions_come_first_each_as_a_request_of_its_own() {
    let mut session = Session::begun();
    session.calls(vec![trade("A"), question("Q1", "Which?"), question("Q2", "Cái nào?")]);
    session.holds(600);
    let told: Vec<String> =
        session.told_in_short().into_iter().filter(|line| !line.contains("delta") && !line.contains("stop")).collect();
    assert_eq!(
        told[1..],
        [
            r#"2 group_start g1 "Đặt lệnh mua A""#,
            "content_block_start 0 tool_use execute_trade",
            r#"4 group_end g1 "Đặt lệnh mua A" 1 waiting"#,
            "content_block_start 1 approval_request abc-123_1",
            "content_block_start 2 approval_request abc-123_2",
            r#"7 group_start g2 "Đặt lệnh mua A""#,
            "8 content_block_start 3 approval_request abc-123_3",
        ]
    );
    let projection = session.projection();
    let kinds: Vec<PauseKind> = projection.open().map(|request| request.kind).collect();
    assert_eq!(kinds, [PauseKind::Question, PauseKind::Question, PauseKind::Approval]);
    assert_eq!(projection.request("abc-123_2").unwrap().asks[0].questions[0].question, "Cái nào?");
    assert!(projection.request("abc-123_4").is_none());
}

#[test]
fn a_question_is_asked_in_its_delta_and_is_not_shown_as_a_call() {
    let mut session = Session::begun();
    session.calls(vec![question("Q1", "Which?")]);
    session.holds(600);
    let events: Vec<Value> = session.replay().iter().map(json).collect();
    let [start, delta, stop] = &events[1..] else { panic!("{events:?}") };
    assert_eq!(start["content_block"]["actions"], Value::Null);
    assert_eq!(start["seq"], Value::Null);
    assert_eq!(start["content_block"]["pause"]["allowed_decisions"], json!([["answer"]]));
    let options = json!([{"label": "A"}, {"label": "B", "input": true}]);
    let asked = json!({"question": "Which?", "multiSelect": false, "options": options});
    assert_eq!(
        delta["delta"],
        json!({
            "action_requests": [{"name": "ask_user_question", "args": {"questions": [asked]}}],
            "review_configs": [{"action_name": "ask_user_question", "allowed_decisions": ["approve", "edit", "reject"]}],
            "timeout_seconds": 600,
        })
    );
    assert_eq!(stop["seq"], 2);
}

#[test]
fn a_confirmation_stands_outside_the_groups_and_has_one_action() {
    let mut session = Session::begun();
    let asks_confirmation = Some(Confirmation { reason: Some("keyword".to_owned()), expires_at: None });
    session.reply(0, ReplyInput { text: Some("Mua nhé?".to_owned()), asks_confirmation, ..reply() });
    let [request] = &requests(&session)[..] else { panic!("one request expected") };
    assert_eq!(
        request["actions"],
        json!([{"name": "confirmation", "args": {"message": "Mua nhé?"}, "tool_use_id": null}])
    );
    assert_eq!(request["pause"]["kind"], "confirmation");
    assert_eq!(request["pause"]["reason"], "keyword");
    assert_eq!(request["pause"]["args_sha256"], json!([null]));
    assert_eq!(request["pause"]["allowed_decisions"], json!([["approve", "reject", "respond"]]));
    assert!(!session.told_in_short().iter().any(|line| line.contains("group")));
}

#[test]
fn a_call_in_doubt_is_asked_about() {
    let mut session = Session::begun();
    session.calls(vec![trade("A")]);
    session.screened(0, |_| Verdict::Allow);
    let calls = session.work(0).run_tools;
    session.give(0, Input::StartCalls(calls.clone()));
    session.give(0, Input::Orphaned(calls));
    let [request] = &requests(&session)[..] else { panic!("one request expected") };
    assert_eq!(request["pause"]["kind"], "in_doubt");
    assert_eq!(request["pause"]["allowed_decisions"], json!([["happened", "run_again", "abandon"]]));
    assert_eq!(request["actions"][0]["tool_use_id"], "A");
}

#[test]
fn where_several_must_approve_nobody_edits() {
    let mut session = Session::begun();
    session.calls(vec![trade("A")]);
    let terms =
        || PauseTerms { quorum: 2, approvers: vec!["ana".to_owned(), "ben".to_owned()], ..PauseTerms::default() };
    session.screened(0, |_| Verdict::Hold { reason: Some("large".to_owned()), expires_at: None, terms: terms() });
    let [request] = &requests(&session)[..] else { panic!("one request expected") };
    assert_eq!(request["pause"]["allowed_decisions"], json!([["approve", "reject"]]));
    assert_eq!(request["pause"]["approvals_needed"], 2);
    let mut vote = session.decision(0, 1, holdpoint_core::decision::Decision::Approve);
    vote.by = ActorId::new("ana").unwrap();
    session.give(0, Input::Decision(vote.clone()));
    assert_eq!(session.projection().open().count(), 1, "one approval is not enough");
    vote.by = ActorId::new("ben").unwrap();
    session.give(0, Input::Decision(vote));
    assert!(session.told_in_short().iter().any(|line| line.ends_with("approval_resolved abc-123_1 decided ben")));
}

#[test]
fn keys_count_the_requests_of_the_session_across_its_runs() {
    let mut session = Session::begun();
    let other = session.start("too");
    for run in [0, other] {
        session.reply(run, ReplyInput { calls: vec![trade("A")], ..reply() });
        session.screened(run, |_| Verdict::Hold { reason: None, expires_at: None, terms: PauseTerms::default() });
    }
    let keys: Vec<Value> = requests(&session).iter().map(|request| request["approval_key"].clone()).collect();
    assert_eq!(keys, ["abc-123_1", "abc-123_2"]);
    assert_eq!(session.projection().status(), Status::Waiting);
}

#[test]
fn the_time_that_is_told_is_the_time_of_telling() {
    let mut session = Session::begun();
    session.calls(vec![trade("A")]);
    session.holds(300);
    session.wait(100);
    let mut events = session.replay();
    events.iter_mut().for_each(|event| event.stamp(session.now));
    let pauses: Vec<Value> = events.iter().map(json).map(|event| event["content_block"]["pause"].clone()).collect();
    let pause = pauses.iter().find(|pause| pause.is_object()).unwrap();
    assert_eq!(pause["server_time"], session.now.to_string());
    assert_ne!(pause["server_time"], session.runs[0].started_at().unwrap().to_string());
}
