//! Answers to questions: each must fit the question that was asked, and the model is told all of them.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::decision::Answers;
use crate::json::CanonicalJson;
use crate::message::Content;
use crate::pause::{Pause, Question, Subject, questions};
use crate::refusal::Refusal;
use crate::run::{Begun, limits};
use crate::tool::Outcome;

/// What the model is told of a person's answers; a refusal where they do not fit the questions.
///
/// Other words than the options are taken where the question says so, or where the person was offered to use their own.
pub(super) fn outcome(begun: &Begun, pause: &Pause, answers: &Answers, in_own_words: bool) -> Result<Outcome, Refusal> {
    let refuse = |problem: String| Refusal::InvalidAnswers { pause: pause.id, problem };
    let Subject::Call { path, .. } = &pause.subject else { return Err(refuse("no question was asked".to_owned())) };
    let call = begun.call(path).ok_or(Refusal::PauseNotFound(pause.id))?;
    let questions = questions(&call.arguments).map_err(refuse)?;
    let by_text: BTreeMap<&str, &Question> =
        questions.iter().map(|question| (question.question.as_str(), question)).collect();
    if answers.keys().any(|text| !by_text.contains_key(text.as_str())) {
        return Err(refuse("an answer stands for a question that was not asked".to_owned()));
    }
    let mut told = Map::new();
    for (index, question) in questions.iter().enumerate() {
        let given = answers.get(&question.question);
        let given = given.ok_or_else(|| refuse(format!("question {} has no answer", index + 1)))?;
        check(question, given, in_own_words).map_err(|problem| refuse(format!("question {}: {problem}", index + 1)))?;
        told.insert(question.question.clone(), value_of(question, given));
    }
    let value = Value::Object(Map::from_iter([("answers".to_owned(), Value::Object(told))]));
    let json = CanonicalJson::from_serialize(&value).map_err(|problem| refuse(problem.to_string()))?;
    Ok(Outcome::Result(Content::Json(json)))
}

fn check(question: &Question, given: &[String], in_own_words: bool) -> Result<(), String> {
    let takes_text = in_own_words || question.options.is_empty() || question.options.iter().any(|option| option.input);
    let is_option = |text: &String| question.options.iter().any(|option| option.label == *text);
    if given.is_empty() {
        return Err("an answer expected".to_owned());
    }
    if given.len() > 1 && !question.multi_select {
        return Err("one answer expected, not several".to_owned());
    }
    if given.iter().map(String::len).sum::<usize>() > limits::TEXT_BYTES_MAX {
        return Err(format!("at most {} bytes expected", limits::TEXT_BYTES_MAX));
    }
    if !takes_text && !given.iter().all(is_option) {
        return Err("one of the options expected".to_owned());
    }
    Ok(())
}

fn value_of(question: &Question, given: &[String]) -> Value {
    match given {
        [one] if !question.multi_select => Value::String(one.clone()),
        several => Value::Array(several.iter().cloned().map(Value::String).collect()),
    }
}
