//! Questions as people are shown them: each with an option for an answer in one's own words.

use holdpoint_core::json::CanonicalJson;
use holdpoint_core::pause::{Question, QuestionOption, questions};
use serde::Serialize;

use super::super::labels::Language;

/// The questions of a call, each with an option that takes a text. Its label is in the agent's language, or else in that of
/// the question.
pub(super) fn shown(arguments: &CanonicalJson, locale: Option<&str>) -> Vec<Question> {
    // What cannot be read never becomes a question: the machine answers such a call with the problem.
    let mut questions = questions(arguments).unwrap_or_default();
    for question in &mut questions {
        if !question.options.iter().any(|option| option.input) {
            let other = other(question, locale);
            question.options.push(other);
        }
    }
    questions
}

fn other(question: &Question, locale: Option<&str>) -> QuestionOption {
    let other = &Language::of(locale, &question.question).labels().other;
    let mut label = other.label.clone();
    // The model may have used the label for something else.
    while question.options.iter().any(|option| option.label == label) {
        label.push('…');
    }
    QuestionOption { label, description: Some(other.description.clone()), input: true }
}

/// The arguments of a question as this protocol spells them, with the answers where they are given.
pub(in super::super) fn arguments(
    questions: &[Question],
    answers: Option<&std::collections::BTreeMap<String, String>>,
) -> CanonicalJson {
    let questions = questions.iter().map(Spelt::of).collect();
    // Texts that were read from JSON can be written as JSON; the bounds are those of what was read, and a label.
    CanonicalJson::from_serialize(&Arguments { questions, answers }).unwrap_or_else(|_| empty())
}

/// An object without members.
pub(super) fn empty() -> CanonicalJson {
    CanonicalJson::parse("{}").expect("an empty object is JSON")
}

#[derive(Serialize)]
struct Arguments<'a> {
    questions: Vec<Spelt<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    answers: Option<&'a std::collections::BTreeMap<String, String>>,
}

#[derive(Serialize)]
struct Spelt<'a> {
    question: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    header: Option<&'a str>,
    #[serde(rename = "multiSelect")]
    multi_select: bool,
    options: &'a [QuestionOption],
}

impl<'a> Spelt<'a> {
    fn of(question: &'a Question) -> Self {
        Self {
            question: &question.question,
            header: question.header.as_deref(),
            multi_select: question.multi_select,
            options: &question.options,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn spelt(value: serde_json::Value, locale: Option<&str>) -> serde_json::Value {
        arguments(&shown(&CanonicalJson::from_serialize(&value).unwrap(), locale), None).to_value()
    }

    #[test]
    fn a_question_without_an_option_for_a_text_gets_one_in_its_language() {
        let asked = |text: &str| json!({"questions": [{"question": text, "options": [{"label": "A"}]}]});
        let other = |value: serde_json::Value| value["questions"][0]["options"][1].clone();
        assert_eq!(
            other(spelt(asked("Mục tiêu nào?"), None)),
            json!({"label": "Khác", "description": "Nhập giá trị tùy chỉnh", "input": true})
        );
        assert_eq!(other(spelt(asked("Which one?"), None))["label"], "Other");
        assert_eq!(other(spelt(asked("Which one?"), Some("ja")))["label"], "その他");
    }

    #[test]
    fn a_question_that_takes_a_text_is_left_as_it_is() {
        let asked = json!({"questions": [{"question": "Nào?", "header": "H", "multiSelect": true,
            "options": [{"label": "A", "description": "a"}, {"label": "Tự nhập", "input": true}]}]});
        assert_eq!(spelt(asked.clone(), None), asked);
    }

    #[test]
    fn several_choices_are_spelt_as_this_protocol_does() {
        let asked = json!({"questions": [{"question": "Which?", "multi_select": true}]});
        let shown = spelt(asked, None);
        assert_eq!(shown["questions"][0]["multiSelect"], true);
        assert_eq!(shown["questions"][0]["options"].as_array().map(Vec::len), Some(1));
    }

    #[test]
    fn a_label_that_is_taken_is_not_used_twice() {
        let asked = json!({"questions": [{"question": "Which?", "options": [{"label": "Other"}]}]});
        assert_eq!(spelt(asked, None)["questions"][0]["options"][1]["label"], "Other…");
    }
}
