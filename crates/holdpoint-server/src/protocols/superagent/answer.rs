//! A filled-in form becomes decisions: all of them, or a refusal that names the field. Nothing is guessed: a yes is a
//! JSON boolean, a choice is one of the options, and a field that was not asked for is refused.

use std::collections::BTreeMap;

use holdpoint_core::decision::{Answers, Decision};
use holdpoint_core::ids::PauseId;
use holdpoint_core::json::Digest;
use holdpoint_core::message::Content;
use holdpoint_core::pause::Question;
use holdpoint_core::tool::DENIED_TEXT;
use serde_json::{Map, Value};

use super::form::{ABANDON, About, Ask, Field, Form, HAPPENED, RUN_AGAIN};
use super::refuse;
use super::wire::FieldType;
use crate::problem::Problem;

/// Bytes of one text that is filled in.
pub(super) const TEXT_BYTES_MAX: usize = 16 << 10;

/// The decision about one pause, and what its maker was shown.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Answer {
    pub(super) pause: PauseId,
    pub(super) seen: Option<Digest>,
    pub(super) decision: Decision,
}

/// What was filled in, by the position of the field.
type Filled = BTreeMap<usize, Value>;

/// The decisions that `input` makes, one for each pause of the form.
pub(super) fn decisions(form: &Form, input: &Map<String, Value>) -> Result<Vec<Answer>, Problem> {
    let filled = read(form, input)?;
    let answer = |ask: &Ask| {
        let decision = decision(form, &ask.about, &filled)?;
        Ok(Answer { pause: ask.pause, seen: ask.seen, decision })
    };
    form.asks.iter().map(answer).collect()
}

/// The values that were given, each of the type that its field takes.
fn read(form: &Form, input: &Map<String, Value>) -> Result<Filled, Problem> {
    let is_known = |name: &String| form.fields.iter().any(|field| field.name == *name);
    if let Some(name) = input.keys().find(|name| !is_known(name)) {
        let names: Vec<&str> = form.fields.iter().map(|field| field.name.as_str()).collect();
        return Err(refuse::unknown_input(name, &names));
    }
    let mut filled = Filled::new();
    for (position, field) in form.fields.iter().enumerate() {
        match input.get(&field.name).filter(|value| !value.is_null()) {
            Some(value) => {
                filled.insert(position, take(field, value)?);
            }
            None if field.is_required => return Err(refuse::missing_input(field)),
            None => {}
        }
    }
    Ok(filled)
}

fn take(field: &Field, value: &Value) -> Result<Value, Problem> {
    match (field.kind, value) {
        (FieldType::Confirm, Value::Bool(_)) => Ok(value.clone()),
        (FieldType::Select, Value::String(text)) => match field.options.iter().find(|choice| choice.shown == *text) {
            Some(choice) => Ok(Value::String(choice.meant.clone())),
            None => Err(refuse::invalid_option(field)),
        },
        (FieldType::Text, Value::String(text)) => check_text(field, text).map(|()| value.clone()),
        _ => Err(refuse::invalid_input(field)),
    }
}

fn check_text(field: &Field, text: &str) -> Result<(), Problem> {
    if text.len() > TEXT_BYTES_MAX {
        return Err(refuse::too_long(field, TEXT_BYTES_MAX));
    }
    if field.is_required && text.trim().is_empty() {
        return Err(refuse::missing_input(field));
    }
    match text.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\r' | '\t')) {
        true => Err(refuse::control_character(field)),
        false => Ok(()),
    }
}

fn decision(form: &Form, about: &About, filled: &Filled) -> Result<Decision, Problem> {
    match about {
        About::Approval { confirm } => Ok(match filled.get(confirm) {
            Some(Value::Bool(true)) => Decision::Approve,
            // With words, the denial is the call's outcome at once: it is told before the model goes on.
            _ => Decision::deny(DENIED_TEXT),
        }),
        About::Question { questions } => {
            let answer = |(question, position): &(Question, usize)| {
                let given = text_at(filled, *position).unwrap_or_default();
                Ok((question.question.clone(), chosen(&form.fields[*position], question, given)?))
            };
            let answers: Answers = questions.iter().map(answer).collect::<Result<_, Problem>>()?;
            Ok(Decision::Answer { answers })
        }
        About::Confirmation { fields } => Ok(confirmation(form, fields, filled)),
        About::InDoubt { outcome, result } => in_doubt(&form.fields[*result], *outcome, *result, filled),
    }
}

/// What was chosen. Several are given as a list separated by line breaks or commas; a label that holds one is still
/// found, because the longest reading is tried first.
fn chosen(field: &Field, question: &Question, given: &str) -> Result<Vec<String>, Problem> {
    let takes_text = question.options.is_empty() || question.options.iter().any(|option| option.input);
    if !question.multi_select {
        return Ok(vec![given.to_owned()]);
    }
    let label = |part: &str| question.options.iter().find(|option| option.label == part.trim());
    let labels = |parts: Vec<&str>| -> Option<Vec<String>> {
        let found: Option<Vec<_>> =
            parts.into_iter().map(|part| label(part).map(|option| option.label.clone())).collect();
        found.filter(|found| !found.is_empty())
    };
    let readings = [vec![given], given.lines().collect(), given.split([',', '，', '\n']).collect()];
    match readings.into_iter().find_map(labels) {
        Some(mut found) => {
            let mut seen = std::collections::BTreeSet::new();
            found.retain(|label| seen.insert(label.clone()));
            Ok(found)
        }
        None if takes_text => Ok(vec![given.to_owned()]),
        None => Err(refuse::invalid_options(field, question)),
    }
}

/// The person's word about the model's own: yes, no, or what they filled in, by label.
fn confirmation(form: &Form, fields: &[usize], filled: &Filled) -> Decision {
    let given: Vec<(&Field, &Value)> =
        fields.iter().filter_map(|at| filled.get(at).map(|value| (&form.fields[*at], value))).collect();
    let confirms: Vec<bool> = given.iter().filter_map(|(_, value)| value.as_bool()).collect();
    let is_denied = confirms.contains(&false);
    let is_confirmed = !is_denied && !confirms.is_empty();
    // A single yes or no is said by the decision itself.
    let is_said = |value: &Value| confirms.len() == 1 && value.is_boolean();
    let lines: Vec<String> =
        given.iter().filter(|(_, value)| !is_said(value)).map(|(field, value)| line(field, value)).collect();
    let told = lines.join("\n");
    match (is_denied, is_confirmed, told.is_empty()) {
        (true, _, true) => Decision::Deny { message: None },
        (true, _, false) => Decision::deny(format!("do not go on with it.\n{told}")),
        (false, true, true) => Decision::Approve,
        (false, true, false) => Decision::Respond { content: format!("Confirmed. Go on.\n{told}") },
        (false, false, true) => Decision::Respond { content: "The form was sent back empty.".to_owned() },
        (false, false, false) => Decision::Respond { content: told },
    }
}

fn line(field: &Field, value: &Value) -> String {
    let said = match value {
        Value::Bool(true) => "yes",
        Value::Bool(false) => "no",
        other => other.as_str().unwrap_or_default(),
    };
    format!("{}: {said}", field.label)
}

fn in_doubt(result_field: &Field, outcome: usize, result: usize, filled: &Filled) -> Result<Decision, Problem> {
    let result = text_at(filled, result).filter(|text| !text.is_empty());
    match (text_at(filled, outcome), result) {
        (Some(HAPPENED), result) => {
            let told = result.unwrap_or("It took effect; a person looked. What it gave back is not known.");
            Ok(Decision::Happened { result: Content::Text(told.to_owned()) })
        }
        (_, Some(_)) => Err(refuse::result_without_happening(result_field)),
        (Some(RUN_AGAIN), None) => Ok(Decision::RunAgain),
        (Some(ABANDON), None) => Ok(Decision::Abandon),
        // The options are these three, and a value that is none of them was refused.
        (_, None) => Ok(Decision::Abandon),
    }
}

fn text_at(filled: &Filled, position: usize) -> Option<&str> {
    filled.get(&position).and_then(Value::as_str)
}

#[cfg(test)]
mod tests;
