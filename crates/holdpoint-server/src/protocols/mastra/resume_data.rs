//! What a client answers with: a yes, a no with a reason, or data. It becomes one decision, or is refused.

use holdpoint_core::decision::{Answers, Decision};
use holdpoint_core::message::Content;
use holdpoint_core::pause::{PauseKind, Question, questions};
use serde_json::{Map, Value};

use super::calls::Named;
use super::from_wire::{REASON_BYTES_MAX, check_text};
use super::refuse;
use crate::problem::Problem;

/// What the model is told where nobody gave a reason.
pub(super) const NOT_APPROVED: &str = "Tool call was not approved by the user";

/// What a client answers with.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Given {
    Approve,
    Decline { reason: Option<String> },
    Data(Value),
}

/// The decision that an answer means for this question.
pub(super) fn decision(named: &Named, given: &Given) -> Result<Decision, Problem> {
    match (named.view.kind(), given) {
        (PauseKind::Approval | PauseKind::Confirmation, Given::Approve) => Ok(Decision::Approve),
        (PauseKind::Approval | PauseKind::Confirmation | PauseKind::Question, Given::Decline { reason }) => {
            Ok(deny(reason.as_deref()))
        }
        (PauseKind::Approval | PauseKind::Confirmation, Given::Data(data)) => approval(data),
        (PauseKind::Question, Given::Data(data)) => answer(named, data),
        (PauseKind::InDoubt, Given::Data(data)) => in_doubt(data),
        (PauseKind::Question, Given::Approve) => {
            Err(refuse::invalid_resume_data("a question waits: answer it with resume-stream and resumeData.answers"))
        }
        (PauseKind::InDoubt, Given::Approve | Given::Decline { .. }) => Err(refuse::invalid_resume_data(
            "whether the call took effect is asked: answer with resume-stream and resumeData.outcome",
        )),
    }
}

/// A denial. Its words are the call's outcome at once: they are told before the model goes on.
fn deny(reason: Option<&str>) -> Decision {
    Decision::deny(reason.filter(|reason| !reason.trim().is_empty()).unwrap_or(NOT_APPROVED))
}

fn approval(data: &Value) -> Result<Decision, Problem> {
    let members = only(data, &["approved", "reason"], "{\"approved\": true or false, \"reason\": text}")?;
    let reason = text(members, "reason")?;
    match (members.get("approved"), reason) {
        (Some(Value::Bool(true)), None) => Ok(Decision::Approve),
        (Some(Value::Bool(true)), Some(_)) => {
            Err(refuse::invalid_resume_data("a reason goes only with approved: false"))
        }
        (Some(Value::Bool(false)), reason) => Ok(deny(reason)),
        _ => Err(refuse::invalid_resume_data("approved must be true or false")),
    }
}

fn in_doubt(data: &Value) -> Result<Decision, Problem> {
    let members = only(data, &["outcome", "result"], "{\"outcome\": \"happened\", \"run_again\" or \"abandon\"}")?;
    let result = text(members, "result")?;
    match (members.get("outcome").and_then(Value::as_str), result) {
        (Some("happened"), result) => {
            Ok(Decision::Happened { result: Content::Text(result.unwrap_or("done").to_owned()) })
        }
        (Some("run_again"), None) => Ok(Decision::RunAgain),
        (Some("abandon"), None) => Ok(Decision::Abandon),
        (Some("run_again" | "abandon"), Some(_)) => {
            Err(refuse::invalid_resume_data("a result goes only with the outcome happened"))
        }
        _ => Err(refuse::invalid_resume_data("outcome must be happened, run_again or abandon")),
    }
}

/// Answers, by the text of the question. Where one was asked, its answer alone is enough.
fn answer(named: &Named, data: &Value) -> Result<Decision, Problem> {
    let asked = named.view.arguments().and_then(|arguments| questions(arguments).ok()).unwrap_or_default();
    let given = match data {
        Value::Object(members) => match (members.get("answers"), members.get("answer"), &asked[..]) {
            (Some(Value::Object(answers)), None, _) if members.len() == 1 => answers.clone(),
            (None, Some(answer), [one]) if members.len() == 1 => single(one, answer),
            _ => members.clone(),
        },
        answer => match &asked[..] {
            [one] => single(one, answer),
            _ => return Err(refuse::invalid_resume_data("an object with answers expected")),
        },
    };
    let mut answers = Answers::new();
    for (question, answer) in given {
        let Some(asked) = asked.iter().find(|asked| asked.question == question) else {
            let detail = format!("\"{}\" was not asked", refuse::echo(&question));
            return Err(refuse::invalid_resume_data(detail));
        };
        answers.insert(question, choices(asked, &answer)?);
    }
    match asked.iter().find(|asked| !answers.contains_key(&asked.question)) {
        Some(open) => {
            let detail = format!("\"{}\" has no answer", refuse::echo(&open.question));
            Err(refuse::invalid_resume_data(detail))
        }
        None => Ok(Decision::Answer { answers }),
    }
}

fn single(question: &Question, answer: &Value) -> Map<String, Value> {
    Map::from_iter([(question.question.clone(), answer.clone())])
}

fn choices(question: &Question, answer: &Value) -> Result<Vec<String>, Problem> {
    let bad = || {
        let detail = format!("\"{}\": a text, or a list of texts, expected", refuse::echo(&question.question));
        refuse::invalid_resume_data(detail)
    };
    let texts: Vec<String> = match answer {
        Value::String(text) => vec![text.clone()],
        Value::Array(items) => {
            items.iter().map(|item| item.as_str().map(str::to_owned).ok_or_else(bad)).collect::<Result<_, _>>()?
        }
        _ => return Err(bad()),
    };
    for text in &texts {
        check_text("resumeData", text, ANSWER_BYTES_MAX)?;
    }
    Ok(texts)
}

/// Bytes of one answer.
const ANSWER_BYTES_MAX: usize = 16 << 10;

/// An object with no other members than these.
fn only<'a>(data: &'a Value, known: &[&str], expected: &str) -> Result<&'a Map<String, Value>, Problem> {
    let members = data.as_object().ok_or_else(|| refuse::invalid_resume_data(format!("expected {expected}")))?;
    match members.keys().find(|name| !known.contains(&name.as_str())) {
        Some(name) => {
            Err(refuse::invalid_resume_data(format!("\"{}\" is not expected: {expected}", refuse::echo(name))))
        }
        None => Ok(members),
    }
}

fn text<'a>(members: &'a Map<String, Value>, name: &str) -> Result<Option<&'a str>, Problem> {
    match members.get(name) {
        None => Ok(None),
        Some(Value::String(text)) => {
            check_text("resumeData", text, REASON_BYTES_MAX)?;
            Ok(Some(text))
        }
        Some(_) => Err(refuse::invalid_resume_data(format!("{name} must be a string"))),
    }
}
