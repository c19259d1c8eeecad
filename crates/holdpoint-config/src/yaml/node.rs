//! The tree.

use crate::source::Span;

/// A value and where it stands.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub span: Span,
    pub value: Value,
    /// The quotes around a text, which are part of its span.
    pub quotes: Option<char>,
}

/// A value, by YAML 1.2's core schema.
#[derive(Debug, Clone)]
pub(crate) enum Value {
    Null,
    Bool(bool),
    Number(serde_json::Number),
    Text(String),
    List(Vec<Node>),
    Mapping(Vec<Entry>),
}

/// A key of a mapping and its value.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub key: String,
    pub key_span: Span,
    pub value: Node,
}

impl Node {
    /// What it is, as messages have it.
    pub(crate) fn kind(&self) -> &'static str {
        match &self.value {
            Value::Null => "nothing",
            Value::Bool(_) => "true or false",
            Value::Number(_) => "a number",
            Value::Text(_) => "text",
            Value::List(_) => "a list",
            Value::Mapping(_) => "a mapping",
        }
    }

    /// The value under a key of a mapping.
    pub(crate) fn get(&self, key: &str) -> Option<&Node> {
        match &self.value {
            Value::Mapping(entries) => entries.iter().find(|entry| entry.key == key).map(|entry| &entry.value),
            _ => None,
        }
    }

    /// How many values it is made of, and how many bytes of text.
    pub(crate) fn size(&self) -> (usize, usize) {
        let sum = |one: (usize, usize), other: (usize, usize)| (one.0 + other.0, one.1 + other.1);
        match &self.value {
            Value::Text(text) => (1, text.len()),
            Value::List(items) => items.iter().map(Node::size).fold((1, 0), sum),
            Value::Mapping(entries) => {
                entries.iter().map(|entry| sum((1, entry.key.len()), entry.value.size())).fold((1, 0), sum)
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => (1, 0),
        }
    }
}
