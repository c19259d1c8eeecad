use holdpoint_core::ids::FramePath;
use holdpoint_core::pause::PauseKind;
use holdpoint_core::tool::ToolKind;
use serde_json::json;

use super::super::testing::{Story, at, call, call_of};
use super::super::words::Words;
use super::*;
use crate::agents::{FieldCard, FieldKind, InterruptCard};

fn form_of(story: &Story, card: Option<&InterruptCard>) -> Form {
    let own = story.run.agent().unwrap().id.clone();
    Form::of(&story.run.open_pauses(), &own, card, Words::of(None))
}

/// What `input` decides, or the code and the words of its refusal.
fn decided(form: &Form, input: Value) -> Result<Vec<Decision>, (&'static str, String)> {
    let Value::Object(input) = input else { panic!("an object expected") };
    match decisions(form, &input) {
        Ok(answers) => Ok(answers.into_iter().map(|answer| answer.decision).collect()),
        Err(problem) => Err((problem.code(), problem.detail().to_owned())),
    }
}

#[track_caller]
fn refused(form: &Form, input: Value, code: &str, words: &str) {
    assert_eq!(decided(form, input), Err((code_named(code), words.to_owned())));
}

fn code_named(name: &str) -> &'static str {
    refuse::ALL.iter().find(|code| code.name == name).unwrap().name
}

fn confirming(card: Option<&InterruptCard>) -> Form {
    let mut story = Story::begin();
    story.replies(Some("Please confirm."), Vec::new());
    story.pauses(PauseKind::Confirmation, FramePath::root());
    form_of(&story, card)
}

fn holding(kind: PauseKind, calls: Vec<holdpoint_core::tool::CallRecord>) -> Form {
    let mut story = Story::begin();
    let count = u32::try_from(calls.len()).unwrap();
    story.replies(None, calls);
    for index in 0..count {
        story.pauses(kind, at(1, index));
    }
    form_of(&story, None)
}

fn field(name: &str, kind: FieldKind, label: &str, is_required: bool, options: &[&str]) -> FieldCard {
    FieldCard {
        name: name.to_owned(),
        kind,
        label: label.to_owned(),
        is_required,
        options: options.iter().map(|option| (*option).to_owned()).collect(),
    }
}

#[test]
fn yes_goes_on_and_no_does_not() {
    let form = confirming(None);
    assert_eq!(decided(&form, json!({"confirm": true})), Ok(vec![Decision::Approve]));
    assert_eq!(decided(&form, json!({"confirm": false})), Ok(vec![Decision::Deny { message: None }]));
}

#[test]
fn other_fields_are_passed_by_label() {
    let card = InterruptCard {
        fields: vec![
            field("confirm", FieldKind::Confirm, "Xác nhận", true, &[]),
            field("region", FieldKind::Select, "Region", false, &["eu", "us"]),
            field("comment", FieldKind::Text, "Comment", false, &[]),
        ],
    };
    let form = confirming(Some(&card));
    assert_eq!(decided(&form, json!({"confirm": true})), Ok(vec![Decision::Approve]));
    assert_eq!(
        decided(&form, json!({"confirm": true, "region": "eu", "comment": "after 18:00"})),
        Ok(vec![Decision::Respond { content: "Confirmed. Go on.\nRegion: eu\nComment: after 18:00".to_owned() }])
    );
    assert_eq!(
        decided(&form, json!({"confirm": false, "comment": "too risky"})),
        Ok(vec![Decision::deny("do not go on with it.\nComment: too risky")])
    );
    assert_eq!(decided(&form, json!({"confirm": true, "comment": null})), Ok(vec![Decision::Approve]));
}

#[test]
fn a_form_without_a_yes_is_not_taken_for_one() {
    let card = InterruptCard {
        fields: vec![
            field("sure", FieldKind::Confirm, "Sure", false, &[]),
            field("comment", FieldKind::Text, "Comment", false, &[]),
        ],
    };
    let form = confirming(Some(&card));
    let respond = |content: &str| Ok(vec![Decision::Respond { content: content.to_owned() }]);
    assert_eq!(decided(&form, json!({})), respond("The form was sent back empty."));
    assert_eq!(decided(&form, json!({"comment": "hm"})), respond("Comment: hm"));
}

#[test]
fn of_several_yes_or_no_one_no_is_enough() {
    let card = InterruptCard {
        fields: vec![
            field("read", FieldKind::Confirm, "I read it", true, &[]),
            field("agree", FieldKind::Confirm, "I agree", true, &[]),
        ],
    };
    let form = confirming(Some(&card));
    assert_eq!(
        decided(&form, json!({"read": true, "agree": false})),
        Ok(vec![Decision::deny("do not go on with it.\nI read it: yes\nI agree: no")])
    );
}

#[test]
fn each_held_call_is_decided_by_its_own_field_and_what_was_shown_is_bound() {
    let calls = vec![call("c1", "deploy", json!({"version": "2.0"})), call("c2", "notify", json!({}))];
    let digests: Vec<_> = calls.iter().map(|call| Some(call.arguments.digest())).collect();
    let form = holding(PauseKind::Approval, calls);
    let Value::Object(input) = json!({"confirm_1": true, "confirm_2": false}) else { unreachable!() };
    let answers = decisions(&form, &input).unwrap();
    let made: Vec<_> = answers.iter().map(|answer| (answer.pause.number, &answer.decision)).collect();
    assert_eq!(made, [(1, &Decision::Approve), (2, &Decision::deny("Tool execution was not approved."))]);
    assert_eq!(answers.iter().map(|answer| answer.seen).collect::<Vec<_>>(), digests);
}

#[test]
fn one_missing_answer_decides_nothing() {
    let form = holding(PauseKind::Approval, vec![call("c1", "deploy", json!({})), call("c2", "notify", json!({}))]);
    refused(&form, json!({"confirm_1": true}), "missing_input", "input.confirm_2 is required (confirm)");
}

#[test]
fn questions_are_answered_by_their_options_or_in_words() {
    let asked = json!({"questions": [
        {"question": "Which region?", "options": [{"label": "eu"}, {"label": "us"}]},
        {"question": "Which tags?", "options": [{"label": "a, b"}, {"label": "c"}, {"label": "d"}], "multi_select": true},
        {"question": "Why?"},
    ]});
    let form = holding(PauseKind::Question, vec![call_of(ToolKind::Question, "c1", "ask_user_question", asked)]);
    let answers = |tags: &[&str]| {
        let list = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let answers = [("Which region?", list(&["us"])), ("Which tags?", list(tags)), ("Why?", list(&["because"]))];
        let answers = answers.into_iter().map(|(question, chosen)| (question.to_owned(), chosen)).collect();
        Ok(vec![Decision::Answer { answers }])
    };
    let with = |tags: &str| json!({"answer_1": "us", "answer_2": tags, "answer_3": "because"});
    assert_eq!(decided(&form, with("a, b")), answers(&["a, b"]));
    assert_eq!(decided(&form, with("c, d")), answers(&["c", "d"]));
    assert_eq!(decided(&form, with("a, b\nd")), answers(&["a, b", "d"]));
    assert_eq!(decided(&form, with("d,d")), answers(&["d"]));
    refused(&form, with("e"), "invalid_option", "input.answer_2 must be one of: a, b, c, d");
    refused(
        &form,
        json!({"answer_1": "mars", "answer_2": "c", "answer_3": "x"}),
        "invalid_option",
        "input.answer_1 must be one of: eu, us",
    );
}

#[test]
fn an_option_is_shown_with_nothing_hidden_and_still_means_what_the_model_wrote() {
    let asked = json!({"questions": [{"question": "Which?", "options": [{"label": "a\u{200b}"}, {"label": "a"}]}]});
    let form = holding(PauseKind::Question, vec![call_of(ToolKind::Question, "c1", "ask_user_question", asked)]);
    let answers = [("Which?".to_owned(), vec!["a\u{200b}".to_owned()])].into();
    assert_eq!(decided(&form, json!({"answer": "a⟦U+200B⟧"})), Ok(vec![Decision::Answer { answers }]));
}

#[test]
fn a_call_in_doubt_happened_runs_again_or_is_left() {
    let mut story = Story::begin();
    story.replies(None, vec![call("c1", "deploy", json!({}))]);
    story.pauses(PauseKind::InDoubt, at(1, 0));
    let form = form_of(&story, None);
    let happened = |text: &str| Ok(vec![Decision::Happened { result: Content::Text(text.to_owned()) }]);
    assert_eq!(decided(&form, json!({"outcome": "happened", "result": "v2 is live"})), happened("v2 is live"));
    assert_eq!(
        decided(&form, json!({"outcome": "happened"})),
        happened("It took effect; a person looked. What it gave back is not known.")
    );
    assert_eq!(decided(&form, json!({"outcome": "run_again"})), Ok(vec![Decision::RunAgain]));
    assert_eq!(decided(&form, json!({"outcome": "abandon"})), Ok(vec![Decision::Abandon]));
    refused(
        &form,
        json!({"outcome": "abandon", "result": "x"}),
        "invalid_input",
        "input.result goes only with the choice happened",
    );
}

#[test]
fn what_does_not_fit_is_refused_by_name() {
    let card = InterruptCard {
        fields: vec![
            field("confirm", FieldKind::Confirm, "Confirm", true, &[]),
            field("comment", FieldKind::Text, "Comment", false, &[]),
        ],
    };
    let form = confirming(Some(&card));
    for bad in [json!("true"), json!(1), json!("yes"), json!([true]), json!({"value": true})] {
        refused(
            &form,
            json!({"confirm": bad}),
            "invalid_input",
            "input.confirm must be true or false (a JSON boolean)",
        );
    }
    refused(&form, json!({}), "missing_input", "input.confirm is required (confirm)");
    refused(&form, json!({"confirm": null}), "missing_input", "input.confirm is required (confirm)");
    refused(
        &form,
        json!({"confirm": true, "force": true}),
        "unknown_input",
        "\"force\" is not asked for; fields: confirm, comment",
    );
    refused(
        &form,
        json!({"confirm": true, "comment": "a\u{0}b"}),
        "control_character",
        "input.comment holds control characters; only line breaks and tabs are taken",
    );
    refused(
        &form,
        json!({"confirm": true, "comment": "x".repeat(TEXT_BYTES_MAX + 1)}),
        "too_long",
        "input.comment is limited to 16384 bytes",
    );
}
