use holdpoint_core::pause::QuestionOption;
use serde_json::json;

use super::*;
use crate::protocols::blocks::from_wire::{self, Command, Given};

fn question(text: &str, multi_select: bool, labels: &[&str]) -> Question {
    let option =
        |label: &&str| QuestionOption { label: (*label).to_owned(), description: None, input: *label == "Khác" };
    Question { question: text.to_owned(), header: None, options: labels.iter().map(option).collect(), multi_select }
}

fn given(answers: serde_json::Value) -> Vec<(String, GivenAnswer)> {
    let command = json!({"type": "approval", "session_id": "s", "approval_key": "s_1", "answers": answers});
    match from_wire::command(&command.to_string(), None).command {
        Ok(Command::Approval(from_wire::Approval { given: Given::Answers(answers), .. })) => answers,
        other => panic!("answers expected: {other:?}"),
    }
}

#[track_caller]
fn reads(question: Question, answer: serde_json::Value, expected: &[&str]) {
    let text = question.question.clone();
    let read = read(&[question], &given(json!({ text.clone(): answer }))).unwrap();
    assert_eq!(read[&text], expected);
}

#[track_caller]
fn refuses(question: Question, answer: serde_json::Value, problem: &str) {
    let refused = read(std::slice::from_ref(&question), &given(json!({ question.question.clone(): answer })));
    let refused = refused.unwrap_err();
    assert_eq!(refused.code.name(), "bad_answers");
    assert!(refused.message.contains(problem), "{}", refused.message);
}

fn sectors() -> Question {
    question("Nhóm ngành quan tâm?", true, &["Ngân hàng", "Thép (Steel)", "Khác"])
}

fn goal() -> Question {
    question("Mục tiêu?", false, &["Cổ tức", "Tăng trưởng, dài hạn", "Khác"])
}

#[test]
fn one_choice_is_a_label_or_words_of_ones_own() {
    reads(goal(), json!("Cổ tức"), &["Cổ tức"]);
    reads(goal(), json!(["Cổ tức"]), &["Cổ tức"]);
    reads(goal(), json!("Tăng trưởng, dài hạn"), &["Tăng trưởng, dài hạn"]);
    reads(goal(), json!("  giữ vốn, không lỗ "), &["giữ vốn, không lỗ"]);
    refuses(goal(), json!("Cổ tức, Khác"), "one choice expected");
    refuses(goal(), json!(["Cổ tức", "Khác"]), "one choice expected");
    // What asks for words is no answer without them.
    refuses(goal(), json!("Khác"), "\"Khác\" needs a text");
    refuses(sectors(), json!("Ngân hàng, Khác"), "needs a text");
}

#[test]
fn several_choices_are_joined_or_a_list() {
    reads(sectors(), json!("Ngân hàng, Thép (Steel)"), &["Ngân hàng", "Thép (Steel)"]);
    reads(sectors(), json!(["Thép (Steel)", "Ngân hàng"]), &["Thép (Steel)", "Ngân hàng"]);
    reads(sectors(), json!("Ngân hàng, dầu khí, than"), &["Ngân hàng", "dầu khí, than"]);
    refuses(sectors(), json!("dầu, Ngân hàng, khí"), "two ways");
    refuses(sectors(), json!("Ngân hàng, Ngân hàng"), "twice");
    refuses(sectors(), json!(["dầu", "khí"]), "once at most");
    refuses(sectors(), json!([]), "an answer expected");
}

#[test]
fn what_can_be_read_in_two_ways_is_refused_and_a_list_says_which() {
    let tricky = || question("Which?", true, &["a", "b", "a, b", "c, d"]);
    refuses(tricky(), json!("a, b"), "two ways");
    reads(tricky(), json!(["a, b"]), &["a, b"]);
    reads(tricky(), json!(["a", "b"]), &["a", "b"]);
    reads(tricky(), json!("c, d"), &["c, d"]);
    reads(tricky(), json!("b, c, d"), &["b", "c, d"]);
    let takes_text = question("Which?", true, &["c, d", "Khác"]);
    refuses(takes_text, json!("x, c, d"), "two ways");
}

#[test]
fn texts_are_compared_in_one_unicode_form_and_without_space_around_them() {
    // The same letters, each followed by its marks.
    let apart = "Co\u{302}\u{309} tu\u{31b}\u{301}c";
    reads(goal(), json!(apart), &["Cổ tức"]);
    let question_apart = "Mu\u{323}c tie\u{302}u? ";
    let read = read(&[goal()], &given(json!({ question_apart: "Cổ tức" }))).unwrap();
    assert_eq!(read["Mục tiêu?"], ["Cổ tức"]);
}

#[test]
fn a_question_is_skipped_by_exactly_one_text_or_by_leaving_it_out() {
    reads(goal(), json!("[No preference]"), &["[No preference]"]);
    reads(sectors(), json!(["[No preference]"]), &["[No preference]"]);
    refuses(goal(), json!("[no preference]"), "spelt exactly");
    refuses(sectors(), json!("Ngân hàng, [No preference]"), "no other choice");
    let read = read(&[goal(), sectors()], &given(json!({"Mục tiêu?": "Cổ tức"}))).unwrap();
    assert_eq!(read["Nhóm ngành quan tâm?"], ["[No preference]"]);
}

#[test]
fn an_unknown_question_is_refused_and_so_is_one_answered_twice() {
    let refused = read(&[goal()], &given(json!({"mục tiêu?": "Cổ tức"}))).unwrap_err();
    assert!(refused.message.contains("is not a question of this request"), "{}", refused.message);
    let twice = given(json!({"Mục tiêu?": "Cổ tức", " Mục tiêu? ": "giữ vốn"}));
    assert!(read(&[goal()], &twice).unwrap_err().message.contains("answered twice"));
}

#[test]
fn without_room_for_other_words_only_options_are_taken() {
    let strict = || question("Which?", false, &["red", "blue"]);
    reads(strict(), json!("red"), &["red"]);
    refuses(strict(), json!("green"), "one of the options");
    refuses(strict(), json!("  "), "an answer expected");
}

#[test]
fn a_long_joined_answer_is_read_in_little_time() {
    let many: Vec<String> = (0..2_000).map(|n| n.to_string()).collect();
    let answer = many.join(", ");
    reads(sectors(), json!(&answer[..8_000]), &[&answer[..8_000]]);
}
