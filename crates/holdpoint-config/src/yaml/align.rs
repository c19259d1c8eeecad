//! From a place in a text's value back to the file: quotes, escapes, indentation and folded lines stand between.

use super::Node;
use crate::source::{Source, Span};

/// Where a part of a text's value stands in the file. `start` and `end` are bytes of the value.
pub(crate) fn align(source: &Source, node: &Node, value: &str, start: usize, end: usize) -> Span {
    let raw = source.slice(node.span);
    let places = places(raw, value, node.quotes);
    // Where it ends is one character after where its last character starts.
    let last = value.get(start..end.max(start)).and_then(|part| part.char_indices().next_back());
    let at = |byte: usize| places.iter().rev().find(|(value, _)| *value <= byte).map_or(0, |(_, raw)| *raw);
    let first = at(start);
    let end = match last {
        Some((offset, _)) => {
            let from = at(start + offset);
            from + raw[from..].chars().next().map_or(0, char::len_utf8)
        }
        None => first,
    };
    Span { start: node.span.start + first, end: node.span.start + end.max(first) }
}

/// For each character of the value its byte there, and its byte in the file's text; the end of both comes last.
fn places(raw: &str, value: &str, quotes: Option<char>) -> Vec<(usize, usize)> {
    let mut at = usize::from(quotes.is_some());
    let mut places = Vec::with_capacity(value.len() + 1);
    for (byte, c) in value.char_indices() {
        at = skip_to(raw, at, c, quotes);
        places.push((byte, at.min(raw.len())));
        at += written_length(&raw[at.min(raw.len())..], quotes);
    }
    places.push((value.len(), at.min(raw.len())));
    places
}

/// Passes over what the value does not have: line breaks and indentation that became one space or nothing.
fn skip_to(raw: &str, mut at: usize, wanted: char, quotes: Option<char>) -> usize {
    if wanted.is_whitespace() {
        return at;
    }
    while let Some(c) = raw.get(at..).and_then(|rest| rest.chars().next()) {
        let is_escaped_break = quotes == Some('"') && c == '\\' && raw[at + 1..].starts_with(['\n', '\r']);
        if c == wanted || (!c.is_whitespace() && !is_escaped_break) {
            break;
        }
        at += c.len_utf8();
    }
    at
}

/// How many bytes of the file the next character of the value takes.
fn written_length(rest: &str, quotes: Option<char>) -> usize {
    let mut characters = rest.chars();
    match (quotes, characters.next()) {
        (_, None) => 0,
        (Some('\''), Some('\'')) => 2.min(rest.len()),
        (Some('"'), Some('\\')) => match characters.next() {
            Some('x') => 4.min(rest.len()),
            Some('u') => 6.min(rest.len()),
            Some('U') => 10.min(rest.len()),
            Some(c) => 1 + c.len_utf8(),
            None => 1,
        },
        // A run of white space with a line break in it is one character of the value, and the rest is passed over.
        (_, Some(c)) => c.len_utf8(),
    }
}
