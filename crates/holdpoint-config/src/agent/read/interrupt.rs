//! `interrupt`: when the model's own words ask for a confirmation.

use std::time::Duration;

use super::texts;
use crate::agent::{CheckpointBackend, FieldKind, InputField, InterruptSpec};
use crate::confirmation::Phrases;
use crate::diagnostic::{Code, quoted};
use crate::limits::{DEADLINE_SECONDS_MAX, FIELDS_MAX, OPTIONS_MAX, PHRASE_CHARACTERS_MAX, PHRASES_MAX};
use crate::source::Span;
use crate::yaml::{Fields, Node, Reader};

const BACKENDS: [(&str, CheckpointBackend); 2] =
    [("memory", CheckpointBackend::Memory), ("redis", CheckpointBackend::Redis)];

pub(super) fn read(reader: &Reader<'_>, node: &Node) -> Option<InterruptSpec> {
    let fields = reader.fields(node, "`interrupt`")?;
    let enabled = fields.boolean("enabled").is_some_and(|item| item.value);
    if fields.key_span("enabled").is_none() {
        let message = "`interrupt` has no effect: it is not switched on";
        reader.warning(node.span, Code::NoEffect, message, "add `enabled: true`");
    }
    let checkpoint_backend = fields.choice("checkpoint_backend", &BACKENDS).map(|item| item.value);
    let timeout = fields.integer("timeout_seconds", 1..=DEADLINE_SECONDS_MAX);
    let timeout = timeout.and_then(|item| u64::try_from(item.value).ok()).map(Duration::from_secs);
    let phrases = phrases(reader, &fields);
    let inputs = inputs(reader, &fields);
    fields.finish();
    Some(InterruptSpec {
        enabled,
        checkpoint_backend,
        timeout: timeout.unwrap_or_else(InterruptSpec::default_timeout),
        phrases: phrases.unwrap_or_default(),
        fields: inputs.unwrap_or_else(InterruptSpec::default_fields),
    })
}

fn phrases(reader: &Reader<'_>, fields: &Fields<'_>) -> Option<Phrases> {
    fields.get("keywords")?;
    let items = fields.texts("keywords", PHRASES_MAX);
    let mut keywords = Vec::new();
    for item in &items {
        if !Phrases::is_searchable(item.value) {
            reader.error(item.span(), Code::BadValue, "a keyword is empty");
        } else if item.value.chars().count() > PHRASE_CHARACTERS_MAX {
            let message = format!("a keyword has at most {PHRASE_CHARACTERS_MAX} characters");
            reader.error(item.span(), Code::OutOfRange, message);
        } else {
            keywords.push(texts::plain(reader, item));
        }
    }
    if items.is_empty() {
        let span = fields.key_span("keywords").unwrap_or(fields.span);
        let message = "without keywords no reply asks for a confirmation";
        reader.warning(span, Code::NoEffect, message, "leave `keywords` out for the usual ones, or write some");
    }
    Some(Phrases::from_keywords(keywords))
}

fn inputs(reader: &Reader<'_>, fields: &Fields<'_>) -> Option<Vec<InputField>> {
    let list = fields.list("fields", FIELDS_MAX)?;
    if list.value.is_empty() {
        let hint = "leave `fields` out for a single field `confirm`";
        reader.error_with_hint(list.span(), Code::BadValue, "a confirmation needs at least one field", hint);
    }
    let mut inputs: Vec<InputField> = Vec::new();
    for node in list.value {
        let Some((input, span)) = input(reader, node) else { continue };
        if inputs.iter().any(|other| other.name == input.name) {
            reader.error(span, Code::Conflict, format!("two fields are called {}", quoted(&input.name)));
        } else {
            inputs.push(input);
        }
    }
    Some(inputs)
}

fn input(reader: &Reader<'_>, node: &Node) -> Option<(InputField, Span)> {
    let fields = reader.fields(node, "a field")?;
    let name = fields.required_text("name");
    let kind = fields.required("type").and_then(|_| fields.choice("type", &KINDS)).map(|item| item.value);
    let label = fields.text("label").map(|item| texts::plain(reader, &item));
    let required = fields.boolean("required").is_some_and(|item| item.value);
    let options: Vec<String> =
        fields.texts("options", OPTIONS_MAX).iter().map(|item| texts::plain(reader, item)).collect();
    let options_span = fields.key_span("options");
    let kind = match kind {
        Some(Kind::Select) if options.is_empty() => {
            let span = options_span.unwrap_or(fields.span);
            reader.error(span, Code::MissingField, "a field of type select needs `options`");
            None
        }
        Some(Kind::Select) => Some(FieldKind::Select { options }),
        Some(Kind::Text | Kind::Confirm) => {
            if let Some(span) = options_span {
                let hint = "write `type: select`, or leave `options` out";
                reader.error_with_hint(span, Code::Conflict, "only a field of type select has `options`", hint);
            }
            Some(if kind == Some(Kind::Text) { FieldKind::Text } else { FieldKind::Confirm })
        }
        None => None,
    };
    fields.finish();
    let name = name?;
    let is_name =
        name.value.len() <= 64 && name.value.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
    if !is_name {
        let message = format!("a field cannot be called {}", quoted(name.value));
        reader.error_with_hint(name.span(), Code::BadName, message, "use letters, digits, `_` and `-`, 64 at most");
    }
    let label = label.unwrap_or_else(|| name.value.to_owned());
    Some((InputField { name: name.value.to_owned(), kind: kind?, label, required }, name.span()))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Confirm,
    Select,
}

const KINDS: [(&str, Kind); 3] = [("text", Kind::Text), ("confirm", Kind::Confirm), ("select", Kind::Select)];
