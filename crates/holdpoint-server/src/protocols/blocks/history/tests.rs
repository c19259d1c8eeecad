//! The specification's history, and what its example leaves open.

use holdpoint_core::decision::Decision;
use holdpoint_core::ids::ActorId;
use holdpoint_core::input::{Input, ReplyInput};
use holdpoint_core::policy::Verdict;
use serde_json::{Value, json};

use super::super::projection::testing::{Session, call, question, reply, trader};
use super::fold::History;
use super::testing::told;

/// A run that thinks, notes and asks, twice, and then sums up.
fn two_questions() -> Session {
    let mut session = Session::with(trader());
    session.start("hãy hỏi 2 lần");
    for number in [1, 2] {
        let title = json!({"title": format!("Chuẩn bị câu hỏi lần {number}")});
        let calls = vec![call(&format!("tc-{number}"), "write_todos", title)];
        session.reply(0, ReplyInput { thinking: Some("...".to_owned()), calls, ..reply() });
        session.screened(0, |_| Verdict::Allow);
        session.runs_with(0, "ok");
        session.calls(vec![question(&format!("q-{number}"), &format!("Q{number}"))]);
        session.holds(600);
        let answers = [(format!("Q{number}"), vec![format!("A{number}")])].into();
        session.decides(number, Decision::Answer { answers });
    }
    session.replies("Cảm ơn! Tổng kết...");
    session
}

/// The page's example, with this run's wording of the questions.
fn printed() -> Value {
    let group = |number: u32| {
        let (summary, id) = (format!("Chuẩn bị câu hỏi lần {number}"), format!("tc-{number}"));
        let options = json!([{"label": "A"}, {"label": "B", "input": true}]);
        let questions = json!([{"question": format!("Q{number}"), "multiSelect": false, "options": options}]);
        let answers = json!({format!("Q{number}"): format!("A{number}")});
        [
            json!({"role": "assistant", "content": [{"type": "thinking", "thinking": "..."}],
                "display_type": "group_start", "summary": summary}),
            json!({"role": "assistant", "content": [], "display_type": "group_item",
                "tool_calls": [{"id": id, "name": "write_todos", "tool_content_message": summary}]}),
            json!({"role": "tool", "tool_call_id": id, "name": "write_todos", "status": "success",
                "display_type": "group_end", "summary": summary}),
            json!({"role": "assistant", "display_type": "content", "content": [{"type": "approval_request",
                "isResolved": true, "submittedAnswers": answers, "actionRequests": [{"name": "ask_user_question",
                    "args": {"questions": questions, "answers": answers}}]}]}),
        ]
    };
    let user =
        json!({"role": "user", "content": [{"type": "text", "text": "hãy hỏi 2 lần"}], "display_type": "content"});
    let text = json!({"role": "assistant", "display_type": "content",
        "content": [{"type": "text", "text": "Cảm ơn! Tổng kết...", "is_final": true}]});
    Value::Array([user].into_iter().chain(group(1)).chain(group(2)).chain([text]).collect())
}

#[test]
fn two_questions_come_out_as_the_page_prints_them() {
    let mut messages = told(&two_questions().facts());
    // The page has it on one message and leaves it out on others.
    for message in &mut messages {
        if let Some(kind) = message.as_object_mut().unwrap().remove("message_type") {
            assert_eq!(kind, "step");
        }
    }
    assert_eq!(Value::Array(messages), printed());
}

#[test]
fn a_resolved_question_is_a_step_and_the_last_words_are_final() {
    let messages = told(&two_questions().facts());
    let asked = messages.iter().find(|message| message["content"][0]["type"] == "approval_request").unwrap();
    assert_eq!(asked["message_type"], "step");
    assert_eq!(messages.last().unwrap()["message_type"], Value::Null);
}

fn held() -> Session {
    let mut session = Session::begun();
    session.calls(vec![
        call("A", "execute_trade", json!({"symbol": "A"})),
        call("B", "execute_trade", json!({"symbol": "B"})),
    ]);
    session.holds(300);
    session
}

#[test]
fn a_page_that_is_loaded_anew_can_go_on_with_what_waits() {
    let messages = told(&held().facts());
    let [_, calls, request] = &messages[..] else { panic!("{messages:?}") };
    assert_eq!(
        (calls["display_type"].as_str(), calls["summary"].as_str()),
        (Some("group_start"), Some("Đặt lệnh mua A"))
    );
    assert_eq!(calls["tool_calls"].as_array().unwrap().len(), 2, "calls of one reply stand together");
    let block = &request["content"][0];
    assert_eq!((request["display_type"].as_str(), &block["isResolved"]), (Some("group_item"), &json!(false)));
    assert_eq!(block["approval_key"], "abc-123_1");
    assert_eq!(
        block["actionRequests"][1],
        json!({"name": "execute_trade", "args": {"symbol": "B"}, "tool_use_id": "B"})
    );
    assert_eq!(block["pause"]["ids"].as_array().unwrap().len(), 2);
}

#[test]
fn a_settled_approval_stands_within_its_group_with_what_was_decided() {
    let mut session = held();
    let inputs = vec![session.decision(0, 1, Decision::Approve), session.decision(0, 2, Decision::deny("no"))];
    session.give(0, Input::Decisions(inputs));
    session.runs_with(0, "done");
    session.replies("Xong.");
    let messages = told(&session.facts());
    let shown: Vec<(&str, &str)> = messages
        .iter()
        .map(|message| (message["role"].as_str().unwrap(), message["display_type"].as_str().unwrap()))
        .collect();
    assert_eq!(
        shown,
        [
            ("user", "content"),
            ("assistant", "group_start"),
            ("assistant", "group_item"),
            ("tool", "group_item"),
            ("tool", "group_end"),
            ("assistant", "content"),
        ]
    );
    let block = &messages[2]["content"][0];
    assert_eq!(block["isResolved"], true);
    assert_eq!(block["submittedDecisions"], json!([{"type": "approve"}, {"type": "reject", "message": "no"}]));
    assert_eq!((&block["approval_key"], &block["pause"]), (&Value::Null, &Value::Null));
    assert_eq!((messages[3]["status"].as_str(), messages[4]["status"].as_str()), (Some("rejected"), Some("success")));
}

#[test]
fn what_nobody_answered_says_so() {
    let mut session = Session::begun();
    session.calls(vec![question("q", "Which?")]);
    session.holds(600);
    session.wait(600);
    session.expire(0);
    let messages = told(&session.facts());
    let block = &messages[1]["content"][0];
    assert_eq!((&block["isResolved"], &block["outcome"]), (&json!(true), &json!("expired")));
    assert_eq!(block["submittedAnswers"], Value::Null);
}

#[test]
fn words_said_while_work_goes_on_follow_the_group() {
    let mut session = held();
    session.give(0, Input::Stage { content: "nhanh lên".into(), by: ActorId::local(), request: None });
    session.give(0, Input::Cancel { by: ActorId::local(), reason: "enough".to_owned(), request: None });
    let messages = told(&session.facts());
    let last = messages.last().unwrap();
    assert_eq!((last["role"].as_str(), last["content"][0]["text"].as_str()), (Some("user"), Some("nhanh lên")));
    assert_eq!(messages[messages.len() - 2]["display_type"], "group_end");
}

#[test]
fn a_group_of_one_message_has_a_beginning_and_an_end() {
    let mut session = Session::begun();
    session.reply(0, ReplyInput { thinking: Some("hm".to_owned()), text: Some("So.".to_owned()), ..reply() });
    let messages = told(&session.facts());
    let shown: Vec<&str> = messages.iter().map(|message| message["display_type"].as_str().unwrap()).collect();
    assert_eq!(shown, ["content", "group_start", "group_end", "content"]);
    assert_eq!(messages[2]["content"], json!([]));
}

#[test]
fn runs_at_the_same_time_stand_one_after_the_other() {
    let mut session = Session::begun();
    let other = session.start("Và cái này");
    session.reply(other, ReplyInput { text: Some("two".to_owned()), ..reply() });
    session.replies("one");
    let texts: Vec<Value> =
        told(&session.facts()).iter().map(|message| message["content"][0]["text"].clone()).collect();
    assert_eq!(texts, ["Mua 100 VNM", "one", "Và cái này", "two"]);
}

#[test]
fn of_a_long_session_the_oldest_runs_are_left_out_as_a_whole() {
    let mut session = Session::begun();
    session.replies("one");
    for words in ["two", "three"] {
        let run = session.start(words);
        session.reply(run, ReplyInput { text: Some(words.to_owned()), ..reply() });
    }
    let kept = |messages_max| {
        let mut history = History::default();
        session.facts().into_iter().for_each(|fact| history.take(fact));
        history.into_messages(messages_max).len()
    };
    assert_eq!([kept(6), kept(5), kept(4), kept(3), kept(1)], [6, 4, 4, 2, 2]);
}
