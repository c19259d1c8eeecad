//! Answers to questions: texts that a client sends by the text of the question, read as what was chosen. What can be read
//! in two ways is refused, never guessed.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use holdpoint_core::decision::Answers;
use holdpoint_core::pause::Question;
use icu_normalizer::ComposingNormalizerBorrowed;

use crate::protocols::blocks::from_wire::GivenAnswer;
use crate::protocols::blocks::refuse::{Refused, bad_answers, echo};

/// What stands for a question that the person skipped.
pub(in crate::protocols::blocks) const NO_PREFERENCE: &str = "[No preference]";

/// Between the choices of a joined answer.
const JOINT: &str = ", ";

/// The answer to each question, by its text as it was asked. A question that was left out counts as skipped.
pub(super) fn read(questions: &[Question], given: &[(String, GivenAnswer)]) -> Result<Answers, Refused> {
    let mut answers = Answers::new();
    for (text, answer) in given {
        let question = find(questions, text)?;
        let chosen = chosen(question, answer)
            .map_err(|problem| bad_answers(format!("answers[\"{}\"]: {problem}", echo(&question.question))))?;
        if answers.insert(question.question.clone(), chosen).is_some() {
            return Err(bad_answers(format!("\"{}\" is answered twice", echo(&question.question))));
        }
    }
    for question in questions {
        answers.entry(question.question.clone()).or_insert_with(|| vec![NO_PREFERENCE.to_owned()]);
    }
    Ok(answers)
}

/// The question of this text, in whatever Unicode form it comes back.
fn find<'a>(questions: &'a [Question], text: &str) -> Result<&'a Question, Refused> {
    if let Some(question) = questions.iter().find(|question| question.question == text) {
        return Ok(question);
    }
    let wanted = normal(text);
    let mut alike = questions.iter().filter(|question| normal(&question.question) == wanted);
    match (alike.next(), alike.next()) {
        (Some(question), None) => Ok(question),
        _ => Err(bad_answers(format!("\"{}\" is not a question of this request", echo(text)))),
    }
}

/// What was chosen: labels as they were offered, or the person's own words.
fn chosen(question: &Question, answer: &GivenAnswer) -> Result<Vec<String>, String> {
    let labels = Labels::of(question);
    let choices = match answer {
        GivenAnswer::Chosen(choices) => choices.iter().map(|choice| normal(choice).into_owned()).collect(),
        GivenAnswer::Joined(text) if question.multi_select => labels.split(&normal(text))?,
        GivenAnswer::Joined(text) => labels.split_one(&normal(text)),
    };
    check(question, &labels, &choices)?;
    Ok(choices.into_iter().map(|choice| labels.find(&choice).map_or(choice, str::to_owned)).collect())
}

fn check(question: &Question, labels: &Labels<'_>, choices: &[String]) -> Result<(), String> {
    let takes_text = question.options.is_empty() || question.options.iter().any(|option| option.input);
    let is_skip = |choice: &String| labels.find(choice).is_none() && choice.eq_ignore_ascii_case(NO_PREFERENCE);
    let own_words = choices.iter().filter(|choice| labels.find(choice).is_none() && !is_skip(choice)).count();
    let distinct: BTreeSet<&String> = choices.iter().collect();
    if choices.is_empty() || choices.iter().any(String::is_empty) {
        return Err(format!("an answer expected; \"{NO_PREFERENCE}\" skips the question"));
    }
    if choices.iter().any(|choice| is_skip(choice) && choice != NO_PREFERENCE) {
        return Err(format!("what skips a question is spelt exactly \"{NO_PREFERENCE}\""));
    }
    if choices.len() > 1 && choices.iter().any(is_skip) {
        return Err("a question that is skipped has no other choice".to_owned());
    }
    if choices.len() > 1 && !question.multi_select {
        return Err(format!("one choice expected, and {} were given", choices.len()));
    }
    if distinct.len() < choices.len() {
        return Err("a choice is given twice".to_owned());
    }
    let asks_for_text = |choice: &String| {
        let label = labels.find(choice)?;
        question.options.iter().find(|option| option.input && option.label == label)
    };
    if let Some(option) = choices.iter().find_map(asks_for_text) {
        return Err(format!("\"{}\" needs a text, which is the answer", echo(&option.label)));
    }
    match own_words {
        0 => Ok(()),
        1 if takes_text => Ok(()),
        1 => Err("one of the options expected".to_owned()),
        _ => Err("words of one's own are given once at most, and the rest are options".to_owned()),
    }
}

/// The labels of a question, by the form in which they are compared.
struct Labels<'a> {
    by_form: BTreeMap<String, &'a str>,
    /// How many pieces the label has that is cut most often by what joins choices.
    pieces_max: usize,
}

impl<'a> Labels<'a> {
    fn of(question: &'a Question) -> Self {
        let by_form: BTreeMap<String, &str> =
            question.options.iter().map(|option| (normal(&option.label).into_owned(), option.label.as_str())).collect();
        let pieces_max = by_form.keys().map(|label| label.split(JOINT).count()).max().unwrap_or(0);
        Self { by_form, pieces_max }
    }

    /// The label as it was offered.
    fn find(&self, text: &str) -> Option<&'a str> {
        self.by_form.get(text).copied()
    }

    /// The choice that a text is where one is expected; several where it clearly is several labels.
    fn split_one(&self, text: &str) -> Vec<String> {
        let pieces: Vec<&str> = text.split(JOINT).collect();
        match self.find(text) {
            None if pieces.len() > 1 => self.readings(&pieces).pop().unwrap_or_else(|| vec![text.to_owned()]),
            _ => vec![text.to_owned()],
        }
    }

    /// The choices of a joined answer. A label may hold what joins them, so every way to read it counts.
    fn split(&self, text: &str) -> Result<Vec<String>, String> {
        let pieces: Vec<&str> = text.split(JOINT).collect();
        let mut readings = self.readings(&pieces);
        match (readings.pop(), readings.pop()) {
            (Some(only), None) => Ok(only),
            (None, _) => self.with_own_words(&pieces),
            (Some(_), Some(_)) => Err(ambiguous()),
        }
    }

    /// The ways to read the pieces as labels and nothing else; two are enough to know that there is no telling.
    fn readings(&self, pieces: &[&str]) -> Vec<Vec<String>> {
        // For each place, where the last label before it begins: at most two ways to get there.
        let mut begins: Vec<Vec<usize>> = vec![Vec::new(); pieces.len() + 1];
        let mut ways = vec![0_u8; pieces.len() + 1];
        ways[0] = 1;
        for end in 1..=pieces.len() {
            for start in end.saturating_sub(self.pieces_max)..end {
                if ways[start] > 0 && self.find(&pieces[start..end].join(JOINT)).is_some() {
                    begins[end].push(start);
                    ways[end] = ways[end].saturating_add(ways[start]).min(2);
                }
            }
        }
        match ways[pieces.len()] {
            0 => Vec::new(),
            count => vec![walk_back(&begins, pieces); usize::from(count)],
        }
    }

    /// Labels of one piece each, and beside them one stretch of the person's own words.
    fn with_own_words(&self, pieces: &[&str]) -> Result<Vec<String>, String> {
        let is_label = |piece: &&str| self.find(piece).is_some();
        let first = pieces.iter().position(|piece| !is_label(piece)).unwrap_or(0);
        let last = pieces.iter().rposition(|piece| !is_label(piece)).unwrap_or(0);
        let words = &pieces[first..=last];
        if words.iter().any(is_label) || (0..pieces.len()).any(|at| self.begins_long_label(&pieces[at..])) {
            return Err(ambiguous());
        }
        let owned = |piece: &&str| (*piece).to_owned();
        let (before, after) = (pieces[..first].iter().map(owned), pieces[last + 1..].iter().map(owned));
        Ok(before.chain([words.join(JOINT)]).chain(after).collect())
    }

    /// Whether a label of several pieces begins here.
    fn begins_long_label(&self, pieces: &[&str]) -> bool {
        (2..=self.pieces_max.min(pieces.len())).any(|end| self.find(&pieces[..end].join(JOINT)).is_some())
    }
}

/// One way to read the pieces, from where each label begins.
fn walk_back(begins: &[Vec<usize>], pieces: &[&str]) -> Vec<String> {
    let mut labels = Vec::new();
    let mut end = pieces.len();
    while let Some(start) = begins[end].first().copied() {
        labels.push(pieces[start..end].join(JOINT));
        end = start;
    }
    labels.reverse();
    labels
}

fn ambiguous() -> String {
    "this can be read in two ways: send a list of choices".to_owned()
}

/// A text as it is compared: in one Unicode form, without space around it.
fn normal(text: &str) -> Cow<'_, str> {
    ComposingNormalizerBorrowed::new_nfc().normalize(text.trim())
}

#[cfg(test)]
mod tests;
