//! The form that a client fills in: every open pause of a run, of whatever kind, as fields with distinct names.
//!
//! A held call is one yes or no. A question is a choice or a text. A confirmation has the agent's own fields. A call in
//! doubt is a choice, and room for its result.

use std::collections::BTreeMap;

use holdpoint_core::ids::{AgentId, PauseId};
use holdpoint_core::json::Digest;
use holdpoint_core::pause::{HeldCall, PauseKind, PauseView, Question, Subject, questions};
use holdpoint_core::text::{clamp, visible};

use super::wire::{FieldType, InputField};
use super::words::Words;
use crate::agents::{FieldCard, FieldKind, InterruptCard};

/// The choices about a call in doubt.
pub(super) const HAPPENED: &str = "happened";
/// Run it once more.
pub(super) const RUN_AGAIN: &str = "run_again";
/// Leave it open.
pub(super) const ABANDON: &str = "abandon";

/// The longest label, in bytes: a model's question may be longer, and stands whole in the reason.
const LABEL_BYTES_MAX: usize = 2_048;

/// What a client is asked to fill in.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Form {
    /// Why: one line or more for each pause.
    pub(super) reason: String,
    /// The fields, in the order of the pauses.
    pub(super) fields: Vec<Field>,
    /// What the fields answer; each names its fields by their position.
    pub(super) asks: Vec<Ask>,
}

/// One field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Field {
    pub(super) name: String,
    pub(super) kind: FieldType,
    pub(super) label: String,
    pub(super) is_required: bool,
    /// What can be chosen, as it is shown and as it is meant.
    pub(super) options: Vec<Choice>,
}

/// One option: a model's label may hold characters that are shown in another way than they are meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Choice {
    pub(super) shown: String,
    pub(super) meant: String,
}

/// One pause, and the positions of the fields that answer it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Ask {
    pub(super) pause: PauseId,
    /// What the person sees; the decision binds to it.
    pub(super) seen: Option<Digest>,
    pub(super) about: About,
}

/// What a pause is about, as far as its answer must know.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum About {
    Approval { confirm: usize },
    Question { questions: Vec<(Question, usize)> },
    Confirmation { fields: Vec<usize> },
    InDoubt { outcome: usize, result: usize },
}

impl Form {
    /// The form of these pauses. `own` is the agent that was asked, and `card` what its confirmations look like: an
    /// agent inside it that asks in its own words gets the plain field.
    pub(super) fn of(pauses: &[PauseView], own: &AgentId, card: Option<&InterruptCard>, words: &Words) -> Self {
        let mut form = Self { reason: String::new(), fields: Vec::new(), asks: Vec::new() };
        for view in pauses {
            let card = card.filter(|_| view.agent == *own);
            let about = form.add(view, card, words);
            let seen = view.call.as_ref().map(|call| call.digest);
            form.asks.push(Ask { pause: view.id(), seen, about });
        }
        name_apart(&mut form.fields);
        form
    }

    /// The fields as clients are sent them.
    pub(super) fn to_wire(&self) -> Vec<InputField> {
        let field = |field: &Field| InputField {
            name: field.name.clone(),
            kind: field.kind,
            label: field.label.clone(),
            required: field.is_required,
            options: field.options.iter().map(|choice| choice.shown.clone()).collect(),
        };
        self.fields.iter().map(field).collect()
    }

    fn add(&mut self, view: &PauseView, card: Option<&InterruptCard>, words: &Words) -> About {
        match (view.kind(), &view.call) {
            (PauseKind::Question, Some(call)) => self.add_questions(call, words),
            (PauseKind::InDoubt, Some(call)) => self.add_in_doubt(call, words),
            (PauseKind::Confirmation, _) | (_, None) => self.add_confirmation(view, card, words),
            (PauseKind::Approval, Some(call)) => self.add_approval(view, call, words),
        }
    }

    fn add_approval(&mut self, view: &PauseView, call: &HeldCall, words: &Words) -> About {
        let because = view.pause.reason.as_ref().map(|reason| format!(" ({})", visible(reason))).unwrap_or_default();
        self.say(&format!("{}{because}", shown_call(call)));
        let label = words.approve(call.tool.as_str());
        About::Approval { confirm: self.push("confirm", FieldType::Confirm, label, true, Vec::new()) }
    }

    /// The machine opens no pause for questions that cannot be read; one that it did open can be answered in words.
    fn add_questions(&mut self, call: &HeldCall, words: &Words) -> About {
        let Ok(asked) = questions(&call.arguments) else {
            self.say(&shown_call(call));
            let label = call.tool.to_string();
            return About::Confirmation { fields: vec![self.push("answer", FieldType::Text, label, true, Vec::new())] };
        };
        let add = |question: Question| {
            self.say(&visible(&question.question));
            let position = self.add_question(&question, words);
            (question, position)
        };
        About::Question { questions: asked.into_iter().map(add).collect() }
    }

    fn add_question(&mut self, question: &Question, words: &Words) -> usize {
        let text = visible(&question.question);
        let options: Vec<Choice> = question.options.iter().map(|option| Choice::of(&option.label)).collect();
        let takes_text = options.is_empty() || question.options.iter().any(|option| option.input);
        let listed = options.iter().map(|choice| choice.shown.as_str()).collect::<Vec<_>>().join(", ");
        match (question.multi_select, takes_text) {
            (false, false) => self.push("answer", FieldType::Select, text, true, options),
            (_, _) if options.is_empty() => self.push("answer", FieldType::Text, text, true, Vec::new()),
            (true, _) => {
                let label = format!("{text} ({}: {listed})", words.one_or_more_of);
                self.push("answer", FieldType::Text, label, true, Vec::new())
            }
            (false, true) => {
                let label = format!("{text} ({}: {listed})", words.suggestions);
                self.push("answer", FieldType::Text, label, true, Vec::new())
            }
        }
    }

    fn add_confirmation(&mut self, view: &PauseView, card: Option<&InterruptCard>, words: &Words) -> About {
        match &view.pause.subject {
            Subject::Words { text, .. } => self.say(&visible(text)),
            Subject::Call { path, .. } => self.say(&path.to_string()),
        }
        let cards = card.map_or(&[][..], |card| &card.fields);
        let fields = match cards {
            [] => vec![self.push("confirm", FieldType::Confirm, words.confirm.to_owned(), true, Vec::new())],
            cards => cards.iter().map(|card| self.push_card(card)).collect(),
        };
        About::Confirmation { fields }
    }

    fn add_in_doubt(&mut self, call: &HeldCall, words: &Words) -> About {
        let tool = call.tool.as_str();
        self.say(&format!("{} {}", words.in_doubt(tool), shown_call(call)));
        let options = [HAPPENED, RUN_AGAIN, ABANDON].map(Choice::of).to_vec();
        let outcome = self.push("outcome", FieldType::Select, words.outcome(tool), true, options);
        let result = self.push("result", FieldType::Text, words.result(tool), false, Vec::new());
        About::InDoubt { outcome, result }
    }

    fn push_card(&mut self, card: &FieldCard) -> usize {
        let kind = match card.kind {
            FieldKind::Text => FieldType::Text,
            FieldKind::Confirm => FieldType::Confirm,
            FieldKind::Select => FieldType::Select,
        };
        let options = card.options.iter().map(|option| Choice { shown: option.clone(), meant: option.clone() });
        self.push(&card.name, kind, card.label.clone(), card.is_required, options.collect())
    }

    fn push(&mut self, name: &str, kind: FieldType, label: String, is_required: bool, options: Vec<Choice>) -> usize {
        let label = clamp(&label, LABEL_BYTES_MAX).to_owned();
        self.fields.push(Field { name: name.to_owned(), kind, label, is_required, options });
        self.fields.len() - 1
    }

    fn say(&mut self, line: &str) {
        if !self.reason.is_empty() {
            self.reason.push('\n');
        }
        self.reason.push_str(line);
    }
}

impl Choice {
    fn of(label: &str) -> Self {
        Self { shown: visible(label), meant: label.to_owned() }
    }
}

/// The tool and exactly the arguments that would run: whole, with nothing hidden.
fn shown_call(call: &HeldCall) -> String {
    format!("{} {}", call.tool, visible(call.arguments.as_str()))
}

/// Fields that would share a name are numbered from one, past every name that is taken.
fn name_apart(fields: &mut [Field]) {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for field in fields.iter() {
        *counts.entry(field.name.clone()).or_default() += 1;
    }
    let mut next: BTreeMap<String, usize> = BTreeMap::new();
    for field in fields.iter_mut().filter(|field| counts[&field.name] > 1) {
        let number = next.entry(field.name.clone()).or_default();
        let numbered = loop {
            *number += 1;
            let numbered = format!("{}_{number}", field.name);
            if !counts.contains_key(&numbered) {
                break numbered;
            }
        };
        field.name = numbered;
    }
}

#[cfg(test)]
mod tests;
