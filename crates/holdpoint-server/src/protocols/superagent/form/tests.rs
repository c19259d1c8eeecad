use holdpoint_core::event::{CallAllowed, CallStarted, RunEvent};
use holdpoint_core::ids::FramePath;
use holdpoint_core::tool::{Allowance, ToolKind};
use serde_json::{Value, json};

use super::super::testing::{Story, at, call, call_of};
use super::*;

fn form(story: &Story, card: Option<&InterruptCard>) -> Form {
    let own = story.run.agent().unwrap().id.clone();
    Form::of(&story.run.open_pauses(), &own, card, Words::of(None))
}

#[track_caller]
fn check(form: &Form, reason: &str, fields: Value) {
    assert_eq!((form.reason.as_str(), serde_json::to_value(form.to_wire()).unwrap()), (reason, fields));
}

/// A run whose model asked to confirm in its own words.
fn confirming(words: &str) -> Story {
    let mut story = Story::begin();
    story.replies(Some(words), Vec::new());
    story.pauses(PauseKind::Confirmation, FramePath::root());
    story
}

/// A run with these calls held.
fn holding(kind: PauseKind, calls: Vec<holdpoint_core::tool::CallRecord>) -> Story {
    let mut story = Story::begin();
    let count = u32::try_from(calls.len()).unwrap();
    story.replies(None, calls);
    for index in 0..count {
        story.pauses(kind, at(1, index));
    }
    story
}

#[test]
fn a_confirmation_shows_the_reply_and_one_field() {
    let story = confirming("Please confirm: 即将删除 1,234 条记录,此操作不可逆。");
    check(
        &form(&story, None),
        "Please confirm: 即将删除 1,234 条记录,此操作不可逆。",
        json!([{"name": "confirm", "type": "confirm", "label": "Confirm action", "required": true}]),
    );
}

#[test]
fn the_agents_own_fields_take_the_place_of_the_default() {
    let card = InterruptCard {
        fields: vec![
            FieldCard {
                name: "confirm".to_owned(),
                kind: FieldKind::Confirm,
                label: "确认删除".to_owned(),
                is_required: true,
                options: Vec::new(),
            },
            FieldCard {
                name: "region".to_owned(),
                kind: FieldKind::Select,
                label: "Region".to_owned(),
                is_required: false,
                options: vec!["eu".to_owned(), "us".to_owned()],
            },
        ],
    };
    check(
        &form(&confirming("Are you sure?"), Some(&card)),
        "Are you sure?",
        json!([
            {"name": "confirm", "type": "confirm", "label": "确认删除", "required": true},
            {"name": "region", "type": "select", "label": "Region", "required": false, "options": ["eu", "us"]},
        ]),
    );
}

#[test]
fn a_held_call_is_one_yes_or_no_and_shows_tool_and_arguments() {
    let story = holding(PauseKind::Approval, vec![call("c1", "deploy", json!({"version": "2.0\u{202e}"}))]);
    check(
        &form(&story, None),
        r#"deploy {"version":"2.0⟦U+202E⟧"}"#,
        json!([{"name": "confirm", "type": "confirm", "label": "Approve deploy", "required": true}]),
    );
}

#[test]
fn several_held_calls_are_numbered() {
    let calls = vec![call("c1", "deploy", json!({"version": "2.0"})), call("c2", "notify", json!({}))];
    let form = form(&holding(PauseKind::Approval, calls), None);
    let names: Vec<&str> = form.fields.iter().map(|field| field.name.as_str()).collect();
    assert_eq!(names, ["confirm_1", "confirm_2"]);
    assert_eq!(form.reason, "deploy {\"version\":\"2.0\"}\nnotify {}");
}

#[test]
fn a_question_is_a_choice_or_a_text() {
    let asked = json!({"questions": [
        {"question": "Which region?", "options": [{"label": "eu"}, {"label": "us"}]},
        {"question": "Which tags?", "options": [{"label": "a"}, {"label": "b"}], "multi_select": true},
        {"question": "Which size?", "options": [{"label": "small"}, {"label": "other", "input": true}]},
        {"question": "Why?"},
    ]});
    let story = holding(PauseKind::Question, vec![call_of(ToolKind::Question, "c1", "ask_user_question", asked)]);
    check(
        &form(&story, None),
        "Which region?\nWhich tags?\nWhich size?\nWhy?",
        json!([
            {"name": "answer_1", "type": "select", "label": "Which region?", "required": true, "options": ["eu", "us"]},
            {"name": "answer_2", "type": "text", "required": true,
             "label": "Which tags? (one or more of, separated by commas: a, b)"},
            {"name": "answer_3", "type": "text", "label": "Which size? (for example: small, other)", "required": true},
            {"name": "answer_4", "type": "text", "label": "Why?", "required": true},
        ]),
    );
}

#[test]
fn a_call_in_doubt_is_a_choice_with_room_for_its_result() {
    let mut story = Story::begin();
    story.replies(None, vec![call("c1", "deploy", json!({}))]);
    story.happens(RunEvent::CallAllowed(CallAllowed { call: at(1, 0), by: Allowance::Policy }));
    story.happens(RunEvent::CallStarted(CallStarted { call: at(1, 0) }));
    story.pauses(PauseKind::InDoubt, at(1, 0));
    let form = form(&story, None);
    assert_eq!(form.reason, "deploy was interrupted and may or may not have taken effect: deploy {}");
    let fields = serde_json::to_value(form.to_wire()).unwrap();
    assert_eq!(fields[0]["options"], json!(["happened", "run_again", "abandon"]));
    assert_eq!((&fields[0]["name"], &fields[0]["required"]), (&json!("outcome"), &json!(true)));
    assert_eq!((&fields[1]["name"], &fields[1]["required"]), (&json!("result"), &json!(false)));
}

#[test]
fn no_two_fields_share_a_name_whatever_they_are_called() {
    let field = |name: &str| Field {
        name: name.to_owned(),
        kind: FieldType::Text,
        label: String::new(),
        is_required: true,
        options: Vec::new(),
    };
    let mut fields: Vec<Field> = ["confirm", "confirm_1", "confirm", "answer"].map(field).to_vec();
    name_apart(&mut fields);
    let names: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
    assert_eq!(names, ["confirm_2", "confirm_1", "confirm_3", "answer"]);
}
