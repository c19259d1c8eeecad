//! Questions as fields of a modal, and what was entered there as answers. All questions of a pause stand in one modal.

use std::collections::BTreeMap;

use holdpoint_core::decision::Answers;
use holdpoint_core::pause::{Question, QuestionOption};

use super::blocks::{Block, Choice, Element, Input, Text};
use super::payload::{Entered, Values};
use super::text::{length, line, words};

/// Characters of one question with everything that is said about its options.
const QUESTION_CHARACTERS_MAX: usize = 2_500;
/// Characters of an option that Slack shows.
const OPTION_CHARACTERS_MAX: usize = 75;
/// Options that Slack shows as buttons to tick; more go into a menu.
const TICKED_MAX: usize = 10;
/// Characters of all questions together.
const FORM_CHARACTERS_MAX: usize = 30_000;
/// Characters of a field.
pub(super) const FIELD_CHARACTERS_MAX: usize = 3_000;

/// Questions that fit into a modal.
pub(super) struct Form<'q> {
    questions: &'q [Question],
}

/// What is wrong with fields, by their names.
pub(super) type FieldErrors = BTreeMap<String, String>;

impl<'q> Form<'q> {
    /// The questions, where all of them fit whole.
    pub(super) fn of(questions: &'q [Question]) -> Option<Self> {
        let fits = |question: &Question| {
            words(&told(question), QUESTION_CHARACTERS_MAX).is_whole
                && question.options.iter().all(|option| {
                    let label = line(&option.label);
                    !label.is_empty() && length(&label) <= OPTION_CHARACTERS_MAX
                })
        };
        let total: usize = questions.iter().map(|question| length(&words(&told(question), usize::MAX).text)).sum();
        (questions.iter().all(fits) && total <= FORM_CHARACTERS_MAX).then_some(Self { questions })
    }

    pub(super) fn blocks(&self) -> Vec<Block> {
        self.questions.iter().enumerate().flat_map(|(index, question)| fields(index, question)).collect()
    }

    /// The answers that were entered.
    ///
    /// # Errors
    /// What is missing, by field.
    pub(super) fn read(&self, values: &Values) -> Result<Answers, FieldErrors> {
        let (mut answers, mut errors) = (Answers::new(), FieldErrors::new());
        for (index, question) in self.questions.iter().enumerate() {
            match answer(index, question, values) {
                Ok(given) => {
                    answers.insert(question.question.clone(), given);
                }
                Err((field, problem)) => {
                    errors.insert(field, problem.to_owned());
                }
            }
        }
        if errors.is_empty() { Ok(answers) } else { Err(errors) }
    }

    /// The field at which what is wrong with the answers as a whole is told.
    pub(super) fn first_field(&self) -> String {
        let has_options = self.questions.first().is_some_and(|question| !question.options.is_empty());
        if has_options { choice_field(0) } else { text_field(0) }
    }
}

fn choice_field(index: usize) -> String {
    format!("choice_{index}")
}

fn text_field(index: usize) -> String {
    format!("text_{index}")
}

/// The actions of the fields.
const CHOICE: &str = "choice";
const TEXT: &str = "text";

/// A question with everything that is said about its options.
fn told(question: &Question) -> String {
    let header = question.header.iter().cloned();
    let about = |option: &QuestionOption| option.description.as_ref().map(|about| format!("{}: {about}", option.label));
    let lines = header.chain([question.question.clone()]).chain(question.options.iter().filter_map(about));
    lines.collect::<Vec<_>>().join("\n")
}

fn fields(index: usize, question: &Question) -> Vec<Block> {
    let mut blocks = vec![Block::verbatim(words(&told(question), QUESTION_CHARACTERS_MAX).text)];
    let number = index + 1;
    if !question.options.is_empty() {
        let label = match question.multi_select {
            true => format!("Answer {number}: one or several"),
            false => format!("Answer {number}"),
        };
        blocks.push(Block::Input(field(choice_field(index), label, element(question))));
    }
    if question.options.is_empty() || question.options.iter().any(|option| option.input) {
        let label = match question.options.is_empty() {
            true => format!("Answer {number}"),
            false => format!("Answer {number} in your own words"),
        };
        let optional = !question.options.is_empty();
        blocks.push(Block::Input(Input { optional, ..field(text_field(index), label, text(None)) }));
    }
    blocks
}

/// A field that must be filled in.
fn field(block_id: String, label: String, element: Element) -> Input {
    Input { block_id, label: Text::plain(label), element, optional: false }
}

/// A field for words.
pub(super) fn text(initial_value: Option<String>) -> Element {
    Element::PlainTextInput { action_id: TEXT, multiline: true, max_length: FIELD_CHARACTERS_MAX, initial_value }
}

/// What was written into such a field; `None` for nothing but space.
pub(super) fn written<'v>(values: &'v Values, field: &str) -> Option<&'v str> {
    let entered = values.get(field)?.get(TEXT)?;
    entered.value.as_deref().filter(|text| !text.trim().is_empty())
}

fn element(question: &Question) -> Element {
    let option = |(index, option): (usize, &QuestionOption)| Choice {
        text: Text::plain(line(&option.label)),
        value: index.to_string(),
    };
    let options: Vec<Choice> = question.options.iter().enumerate().map(option).collect();
    let action_id = CHOICE;
    match (question.multi_select, options.len() <= TICKED_MAX) {
        (false, true) => Element::RadioButtons { action_id, options },
        (false, false) => Element::StaticSelect { action_id, options },
        (true, true) => Element::Checkboxes { action_id, options },
        (true, false) => Element::MultiStaticSelect { action_id, options },
    }
}

fn answer(index: usize, question: &Question, values: &Values) -> Result<Vec<String>, (String, &'static str)> {
    let own = written(values, &text_field(index)).map(str::to_owned);
    if question.options.is_empty() {
        return own.map(|own| vec![own]).ok_or_else(|| (text_field(index), "an answer is missing"));
    }
    let unknown = || (choice_field(index), "choose one of the options");
    let entered = values.get(&choice_field(index)).and_then(|block| block.get(CHOICE));
    let chosen = chosen(question, entered).ok_or_else(unknown)?;
    if chosen.is_empty() {
        return Err(unknown());
    }
    let takes_text = chosen.iter().any(|option| option.input);
    if own.is_some() && !takes_text {
        return Err((text_field(index), "choose the option that takes your own words too, or leave this empty"));
    }
    // An option is its label, or what is written for it.
    let given = chosen.into_iter().map(|option| match option.input {
        true => own.clone().ok_or_else(|| (text_field(index), "this option asks for your own words")),
        false => Ok(option.label.clone()),
    });
    given.collect()
}

/// The options that were chosen; `None` where one is not of this question.
fn chosen<'q>(question: &'q Question, entered: Option<&Entered>) -> Option<Vec<&'q QuestionOption>> {
    let Some(entered) = entered else { return Some(Vec::new()) };
    let several = entered.selected_options.iter().flatten();
    let all = entered.selected_option.iter().chain(several);
    all.map(|chosen| question.options.get(chosen.value.parse::<usize>().ok()?)).collect()
}
