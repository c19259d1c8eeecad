//! The fields of one mapping, asked for by name. What was never asked for is unknown, and reported with the nearest name
//! that was.

use std::cell::RefCell;
use std::ops::RangeInclusive;

use super::node::Entry;
use super::{Node, Reader, Value};
use crate::diagnostic::suggest::did_you_mean;
use crate::diagnostic::{Code, quoted};
use crate::source::Span;

/// The fields of a mapping. Each getter reports a value of the wrong type itself and then gives `None`.
pub(crate) struct Fields<'n> {
    pub reader: &'n Reader<'n>,
    pub span: Span,
    what: &'n str,
    entries: &'n [Entry],
    known: RefCell<Vec<&'static str>>,
}

/// A value that was found, and where.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Item<'n, T> {
    pub value: T,
    pub node: &'n Node,
}

impl<'n, T> Item<'n, T> {
    pub(crate) fn span(&self) -> Span {
        self.node.span
    }
}

impl<'n> Fields<'n> {
    pub(super) fn of(reader: &'n Reader<'n>, node: &'n Node, what: &'n str) -> Option<Self> {
        match &node.value {
            Value::Mapping(entries) => Some(Self { reader, span: node.span, what, entries, known: RefCell::default() }),
            _ => {
                let message = format!("{what} must be a mapping and is {}", node.kind());
                reader.error_with_hint(node.span, Code::WrongType, message, "write `name: value` lines below it");
                None
            }
        }
    }

    /// The value of a field; one without a value (`name:`) counts as absent.
    pub(crate) fn get(&self, key: &'static str) -> Option<&'n Node> {
        self.known.borrow_mut().push(key);
        let entry = self.entries.iter().find(|entry| entry.key == key)?;
        (!matches!(entry.value.value, Value::Null)).then_some(&entry.value)
    }

    /// The value of a field that must be there.
    pub(crate) fn required(&self, key: &'static str) -> Option<&'n Node> {
        let found = self.get(key);
        if found.is_none() {
            let span = self.key_span(key).unwrap_or_else(|| self.start());
            self.reader.error(span, Code::MissingField, format!("{} needs `{key}`", self.what));
        }
        found
    }

    pub(crate) fn text(&self, key: &'static str) -> Option<Item<'n, &'n str>> {
        self.get(key).and_then(|node| text(self.reader, node, key))
    }

    pub(crate) fn required_text(&self, key: &'static str) -> Option<Item<'n, &'n str>> {
        let item = self.required(key).and_then(|node| text(self.reader, node, key))?;
        if item.value.trim().is_empty() {
            self.reader.error(item.span(), Code::BadValue, format!("`{key}` is empty"));
            return None;
        }
        Some(item)
    }

    pub(crate) fn boolean(&self, key: &'static str) -> Option<Item<'n, bool>> {
        let node = self.get(key)?;
        match &node.value {
            Value::Bool(value) => Some(Item { value: *value, node }),
            Value::Text(text) => {
                let hint = match text.to_ascii_lowercase().as_str() {
                    "yes" | "on" | "y" | "true" => "write true, without quotes",
                    "no" | "off" | "n" | "false" => "write false, without quotes",
                    _ => "write true or false",
                };
                let message = format!("`{key}` must be true or false and is text");
                self.reader.error_with_hint(node.span, Code::WrongType, message, hint);
                None
            }
            _ => self.wrong(node, key, "true or false"),
        }
    }

    pub(crate) fn integer(&self, key: &'static str, range: RangeInclusive<i64>) -> Option<Item<'n, i64>> {
        let node = self.get(key)?;
        let Value::Number(number) = &node.value else {
            return self.wrong(node, key, "a whole number");
        };
        match number.as_i64() {
            Some(value) if range.contains(&value) => Some(Item { value, node }),
            None if !number.is_u64() && number.as_f64().is_some_and(|number| number.fract() != 0.0) => {
                self.wrong(node, key, "a whole number")
            }
            _ => {
                let message = format!("`{key}` must be from {} to {}", range.start(), range.end());
                self.reader.error(node.span, Code::OutOfRange, message);
                None
            }
        }
    }

    pub(crate) fn number(&self, key: &'static str, range: RangeInclusive<f64>) -> Option<Item<'n, f64>> {
        let node = self.get(key)?;
        let Value::Number(number) = &node.value else {
            return self.wrong(node, key, "a number");
        };
        match number.as_f64() {
            Some(value) if range.contains(&value) => Some(Item { value, node }),
            _ => {
                let message = format!("`{key}` must be from {} to {}", range.start(), range.end());
                self.reader.error(node.span, Code::OutOfRange, message);
                None
            }
        }
    }

    pub(crate) fn list(&self, key: &'static str, count_max: usize) -> Option<Item<'n, &'n [Node]>> {
        let node = self.get(key)?;
        let Value::List(items) = &node.value else {
            let message = format!("`{key}` must be a list and is {}", node.kind());
            self.reader.error_with_hint(node.span, Code::WrongType, message, "write one `- …` line for each");
            return None;
        };
        if items.len() > count_max {
            let message = format!("`{key}` has {} items, at most {count_max} are accepted", items.len());
            self.reader.error(node.span, Code::OutOfRange, message);
            return None;
        }
        Some(Item { value: items, node })
    }

    /// The texts of a list; those that are not text are reported and left out.
    pub(crate) fn texts(&self, key: &'static str, count_max: usize) -> Vec<Item<'n, &'n str>> {
        let items = self.list(key, count_max).map_or(&[][..], |list| list.value);
        items.iter().filter_map(|item| text(self.reader, item, "an item of the list")).collect()
    }

    pub(crate) fn mapping(&self, key: &'static str) -> Option<Fields<'n>> {
        self.get(key).and_then(|node| self.reader.fields(node, key))
    }

    /// The entries of a mapping with free keys.
    pub(crate) fn entries(&self, key: &'static str, count_max: usize) -> &'n [Entry] {
        let Some(node) = self.get(key) else { return &[] };
        match &node.value {
            Value::Mapping(entries) if entries.len() <= count_max => entries,
            Value::Mapping(entries) => {
                let message = format!("`{key}` has {} entries, at most {count_max} are accepted", entries.len());
                self.reader.error(node.span, Code::OutOfRange, message);
                &[]
            }
            _ => {
                let message = format!("`{key}` must be a mapping and is {}", node.kind());
                self.reader.error(node.span, Code::WrongType, message);
                &[]
            }
        }
    }

    /// One of several words.
    pub(crate) fn choice<T: Copy>(&self, key: &'static str, choices: &[(&'static str, T)]) -> Option<Item<'n, T>> {
        let item = self.text(key)?;
        let found = choices.iter().find(|(name, _)| *name == item.value);
        if found.is_none() {
            self.bad_choice(key, &item, choices.iter().map(|(name, _)| *name));
        }
        found.map(|(_, value)| Item { value: *value, node: item.node })
    }

    pub(crate) fn bad_choice(
        &self,
        key: &str,
        item: &Item<'_, &str>,
        choices: impl Iterator<Item = &'static str> + Clone,
    ) {
        let all: Vec<&str> = choices.clone().collect();
        let hint = did_you_mean(item.value, choices).unwrap_or_else(|| format!("write {}", one_of(&all)));
        let message = format!("`{key}` cannot be {}", quoted(item.value));
        self.reader.error_with_hint(item.span(), Code::BadValue, message, hint);
    }

    /// Says that a field is known from elsewhere and cannot be used here.
    pub(crate) fn unsupported(&self, key: &'static str, message: &str, hint: &str) {
        self.known.borrow_mut().push(key);
        if let Some(span) = self.key_span(key) {
            self.reader.error_with_hint(span, Code::Unsupported, message, hint);
        }
    }

    /// Where the key of a field stands, whatever its value.
    pub(crate) fn key_span(&self, key: &str) -> Option<Span> {
        self.entries.iter().find(|entry| entry.key == key).map(|entry| entry.key_span)
    }

    /// Reports every field that was not asked for.
    pub(crate) fn finish(self) {
        let known = self.known.borrow();
        for entry in self.entries.iter().filter(|entry| !known.contains(&entry.key.as_str())) {
            let message = format!("{} has no field {}", self.what, quoted(&entry.key));
            let mut names: Vec<&str> = known.to_vec();
            names.dedup();
            let hint = did_you_mean(&entry.key, names.iter().copied())
                .unwrap_or_else(|| format!("the fields are {}", names.join(", ")));
            self.reader.error_with_hint(entry.key_span, Code::UnknownField, message, hint);
        }
    }

    fn wrong<T>(&self, node: &Node, key: &str, expected: &str) -> Option<T> {
        let message = format!("`{key}` must be {expected} and is {}", node.kind());
        self.reader.error(node.span, Code::WrongType, message);
        None
    }

    /// The place of a mapping as a whole: its first key, since a block mapping has no bracket.
    fn start(&self) -> Span {
        self.entries.first().map_or(self.span, |entry| entry.key_span)
    }
}

/// The text of a value; anything else is a problem.
pub(crate) fn text<'n>(reader: &Reader<'_>, node: &'n Node, what: &str) -> Option<Item<'n, &'n str>> {
    if let Value::Text(text) = &node.value {
        return Some(Item { value: text, node });
    }
    let name = if what.contains(' ') { what.to_owned() } else { format!("`{what}`") };
    let message = format!("{name} must be text and is {}", node.kind());
    match &node.value {
        Value::Number(_) | Value::Bool(_) => {
            let hint = format!("put it in quotes: \"{}\"", reader.source().slice(node.span));
            reader.error_with_hint(node.span, Code::WrongType, message, hint);
        }
        _ => reader.error(node.span, Code::WrongType, message),
    }
    None
}

/// `a`, `b` or `c`.
pub(crate) fn one_of(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => format!("`{one}`"),
        [front @ .., last] => {
            let front: Vec<String> = front.iter().map(|name| format!("`{name}`")).collect();
            format!("{} or `{last}`", front.join(", "))
        }
    }
}
