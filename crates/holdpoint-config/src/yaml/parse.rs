//! Text to tree, within bounds on size, depth and what aliases stand for.

use std::collections::HashMap;
use std::sync::Arc;

use serde_saphyr::granit_parser::{self, ErrorKind, Event, Parser, ScalarStyle, ScanError, StrInput, Tag};

use super::node::{Entry, Node, Value};
use super::scalar;
use crate::diagnostic::{Code, Diagnostic, Severity, quoted};
use crate::limits::{FILE_BYTES_MAX, NESTING_MAX, NODES_MAX, TEXT_BYTES_MAX};
use crate::source::{Source, Span};

/// The tree of a file with one document. Problems that leave a tree are added to `problems` too; the tree is missing
/// only where the text is not YAML, is out of bounds, or is empty.
pub(crate) fn parse(source: &Arc<Source>, problems: &mut Vec<Diagnostic>) -> Option<Node> {
    if source.text().len() > FILE_BYTES_MAX {
        let message = format!("the file has {} bytes, at most {FILE_BYTES_MAX} are read", source.text().len());
        problems.push(Diagnostic::outside(source.name(), Severity::Error, Code::FileTooLarge, message));
        return None;
    }
    let options = granit_parser::options! {
        emit_comments: false,
        flow_nesting_limit: NESTING_MAX + 1,
        block_nesting_limit: NESTING_MAX + 1,
    };
    let events = Parser::new_from_str_with_options(source.text(), options);
    let mut tree = Tree { source, problems, events, anchors: HashMap::new(), nodes: 0, text_bytes: 0 };
    match tree.document() {
        Ok(node) => node,
        Err(problem) => {
            tree.problems.push(*problem);
            None
        }
    }
}

struct Tree<'s, 'p> {
    source: &'s Arc<Source>,
    problems: &'p mut Vec<Diagnostic>,
    events: Parser<'s, StrInput<'s>>,
    anchors: HashMap<usize, Node>,
    nodes: usize,
    text_bytes: usize,
}

type Parsed<T> = Result<T, Box<Diagnostic>>;

impl<'s> Tree<'s, '_> {
    fn document(&mut self) -> Parsed<Option<Node>> {
        let mut root = None;
        while let Some((event, span)) = self.next()? {
            match event {
                Event::StreamStart | Event::DocumentEnd => {}
                Event::DocumentStart(..) if root.is_none() => {}
                Event::StreamEnd => break,
                Event::DocumentStart(..) => {
                    let problem = self.error(span, Code::YamlFeature, "a file has one document");
                    return Err(Box::new(problem.with_hint("put what follows `---` into a file of its own")));
                }
                event => root = Some(self.node(event, span, 0)?),
            }
        }
        if root.is_none() {
            let problem = Diagnostic::within(
                self.source,
                Span::default(),
                Severity::Error,
                Code::MissingField,
                "the file is empty",
            );
            self.problems.push(problem);
        }
        Ok(root)
    }

    fn next(&mut self) -> Parsed<Option<(Event<'s>, Span)>> {
        match self.events.next() {
            None => Ok(None),
            Some(Ok((event, span))) => {
                let range = span.byte_range().unwrap_or_default();
                Ok(Some((event, Span { start: range.start, end: range.end.max(range.start) })))
            }
            Some(Err(error)) => Err(Box::new(syntax(self.source, &error))),
        }
    }

    fn expect_next(&mut self, within: Span) -> Parsed<(Event<'s>, Span)> {
        let next = self.next()?;
        next.ok_or_else(|| Box::new(self.error(within, Code::YamlSyntax, "the file ends within this value")))
    }

    fn node(&mut self, event: Event<'s>, span: Span, depth: usize) -> Parsed<Node> {
        if depth > NESTING_MAX {
            let message = format!("values are nested deeper than {NESTING_MAX} levels");
            return Err(Box::new(self.error(span, Code::YamlBudget, message)));
        }
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                self.count(span, 1, text.len())?;
                let value = self.scalar(&text, style, tag.as_deref(), span);
                let end = span.start + self.source.slice(span).trim_end().len();
                let quotes = match style {
                    ScalarStyle::SingleQuoted => Some('\''),
                    ScalarStyle::DoubleQuoted => Some('"'),
                    _ => None,
                };
                Ok(self.anchored(anchor, Node { span: Span { start: span.start, end }, value, quotes }))
            }
            Event::SequenceStart(_, anchor, tag) => {
                self.check_tag(tag.as_deref(), "seq", span);
                let mut items = Vec::new();
                let end = loop {
                    match self.expect_next(span)? {
                        (Event::SequenceEnd, end) => break end,
                        (event, span) => items.push(self.node(event, span, depth + 1)?),
                    }
                };
                self.count(span, 1, 0)?;
                let end = closing(span, end, items.last().map(|item| item.span));
                Ok(self.anchored(anchor, Node { span: end, value: Value::List(items), quotes: None }))
            }
            Event::MappingStart(_, anchor, tag) => {
                self.check_tag(tag.as_deref(), "map", span);
                let (entries, end) = self.entries(span, depth)?;
                self.count(span, 1, 0)?;
                let end = closing(span, end, entries.last().map(|entry| entry.value.span));
                Ok(self.anchored(anchor, Node { span: end, value: Value::Mapping(entries), quotes: None }))
            }
            Event::Alias(anchor) => match self.anchors.get(&anchor).cloned() {
                Some(node) => {
                    let (nodes, bytes) = node.size();
                    self.count(span, nodes, bytes)?;
                    Ok(node)
                }
                None => {
                    let message = "an alias cannot stand within what it stands for";
                    Err(Box::new(self.error(span, Code::YamlFeature, message)))
                }
            },
            _ => Err(Box::new(self.error(span, Code::YamlSyntax, "a value was expected here"))),
        }
    }

    fn entries(&mut self, mapping: Span, depth: usize) -> Parsed<(Vec<Entry>, Span)> {
        let mut entries: Vec<Entry> = Vec::new();
        let mut seen: HashMap<String, Span> = HashMap::new();
        loop {
            let (event, key_span) = self.expect_next(mapping)?;
            if matches!(event, Event::MappingEnd) {
                return Ok((entries, key_span));
            }
            let key = self.node(event, key_span, depth + 1)?;
            let (event, span) = self.expect_next(mapping)?;
            let value = self.node(event, span, depth + 1)?;
            let text = match (&key.value, self.source.slice(key.span)) {
                (Value::Text(text), _) => text.clone(),
                // `1: one`, `true: yes` and `null: none` are keys by what is written.
                (Value::Null | Value::Bool(_) | Value::Number(_), written) if !written.is_empty() => written.to_owned(),
                _ => {
                    self.problems.push(self.error(key_span, Code::YamlFeature, "a key must be text"));
                    continue;
                }
            };
            if text == "<<" {
                let problem = self.error(key.span, Code::YamlFeature, "merge keys (`<<`) are not supported");
                self.problems.push(problem.with_hint("write the fields out"));
                continue;
            }
            if let Some(first) = seen.get(&text) {
                let line = self.source.position(first.start).line;
                let message = format!("{} stands twice in this mapping, first in line {line}", quoted(&text));
                self.problems.push(self.error(key.span, Code::YamlDuplicateKey, message));
                continue;
            }
            seen.insert(text.clone(), key.span);
            entries.push(Entry { key: text, key_span: key.span, value });
        }
    }

    fn scalar(&mut self, text: &str, style: ScalarStyle, tag: Option<&Tag>, span: Span) -> Value {
        let is_plain = style == ScalarStyle::Plain;
        let wanted = match tag {
            None => return if is_plain { self.plain(text, span) } else { Value::Text(text.to_owned()) },
            Some(tag) => core_tag(tag),
        };
        match (wanted, scalar::resolve(text)) {
            (Some("str"), _) => Value::Text(text.to_owned()),
            (Some("null"), Some(value @ Value::Null))
            | (Some("bool"), Some(value @ Value::Bool(_)))
            | (Some("int" | "float"), Some(value @ Value::Number(_))) => value,
            _ => {
                let problem =
                    self.error(span, Code::YamlFeature, "this tag is not supported, or does not fit its value");
                self.problems.push(problem.with_hint("leave the tag out"));
                Value::Null
            }
        }
    }

    fn plain(&mut self, text: &str, span: Span) -> Value {
        if scalar::is_not_finite(text) {
            self.problems.push(self.error(span, Code::BadValue, format!("{} is not a number here", quoted(text))));
            return Value::Null;
        }
        scalar::resolve(text).unwrap_or_else(|| Value::Text(text.to_owned()))
    }

    fn check_tag(&mut self, tag: Option<&Tag>, wanted: &str, span: Span) {
        if tag.is_some_and(|tag| core_tag(tag) != Some(wanted)) {
            let problem = self.error(span, Code::YamlFeature, "this tag is not supported");
            self.problems.push(problem.with_hint("leave the tag out"));
        }
    }

    fn anchored(&mut self, anchor: usize, node: Node) -> Node {
        if anchor > 0 {
            self.anchors.insert(anchor, node.clone());
        }
        node
    }

    fn count(&mut self, span: Span, nodes: usize, bytes: usize) -> Parsed<()> {
        self.nodes = self.nodes.saturating_add(nodes);
        self.text_bytes = self.text_bytes.saturating_add(bytes);
        let message = if self.nodes > NODES_MAX {
            format!("the file stands for more than {NODES_MAX} values")
        } else if self.text_bytes > TEXT_BYTES_MAX {
            format!("the file stands for more than {TEXT_BYTES_MAX} bytes of text")
        } else {
            return Ok(());
        };
        Err(Box::new(self.error(span, Code::YamlBudget, message)))
    }

    fn error(&self, span: Span, code: Code, message: impl Into<String>) -> Diagnostic {
        Diagnostic::within(self.source, span, Severity::Error, code, message)
    }
}

/// `str` for `!!str`, and so on; `None` for any other tag.
fn core_tag(tag: &Tag) -> Option<&str> {
    (tag.handle() == "tag:yaml.org,2002:").then(|| tag.suffix())
}

/// From where a collection starts to where it ends. A block collection has no closing sign: it ends with its last value.
fn closing(start: Span, end: Span, last: Option<Span>) -> Span {
    let last = last.map_or(start.end, |last| last.end);
    let end = if end.end > end.start { end.end } else { last };
    Span { start: start.start, end: end.max(start.start) }
}

fn syntax(source: &Arc<Source>, error: &ScanError) -> Diagnostic {
    let found = error.marker().byte_offset().unwrap_or(0);
    let line = source.line_of(found);
    let indent = source.slice(line).len() - source.slice(line).trim_start().len();
    let tab = source.slice(Span { start: line.start, end: line.start + indent }).find('\t');
    let start = tab.map_or(found, |tab| line.start + tab);
    let next = source.text().get(start..).and_then(|rest| rest.chars().next()).filter(|c| !matches!(c, '\n' | '\r'));
    let span = Span { start, end: start + next.map_or(0, char::len_utf8) };
    let is_budget = matches!(error.kind(), ErrorKind::RecursionLimitExceeded);
    let code = if is_budget { Code::YamlBudget } else { Code::YamlSyntax };
    let (message, hint) = words(error.kind(), tab.is_some());
    let problem = Diagnostic::within(source, span, Severity::Error, code, message);
    match hint {
        Some(hint) => problem.with_hint(hint),
        None => problem,
    }
}

/// What the parser stumbled over, for people who do not know the grammar.
fn words(kind: &ErrorKind, has_tab: bool) -> (String, Option<&'static str>) {
    let (message, hint) = match kind {
        ErrorKind::TabNotAllowed
        | ErrorKind::TabInBlockIndentation
        | ErrorKind::TabAtBlockScalarStart
        | ErrorKind::TabInIndentation => ("a tab cannot indent a line", Some("indent with spaces")),
        _ if has_tab => ("a tab cannot indent a line", Some("indent with spaces")),
        ErrorKind::RecursionLimitExceeded => ("values are nested too deeply", None),
        ErrorKind::UnknownAnchor => ("there is no such anchor before this alias", None),
        ErrorKind::InvalidQuotedScalarIndent => {
            ("a text in quotes goes on here, and this line is not indented", Some("close the quotes before it"))
        }
        ErrorKind::InvalidColonPlacement => ("`:` cannot stand here", Some("close the bracket before it")),
        ErrorKind::UnclosedQuotedScalar => ("this text has no closing quote", None),
        ErrorKind::UnclosedFlowCollection { .. } => ("this bracket is not closed", None),
        ErrorKind::MappingValueNotAllowed => (
            "a key and its value cannot stand here",
            Some("text with `: ` in it needs quotes, and fields of one mapping stand in one column"),
        ),
        ErrorKind::SimpleKeyExpected | ErrorKind::InvalidSimpleKey => {
            ("this line is no field: `:` is missing", Some("write `name: value`"))
        }
        ErrorKind::InvalidIndentation | ErrorKind::ExpectedBlockMappingKey | ErrorKind::ExpectedBlockSequenceEntry => (
            "this line does not fit the lines before it",
            Some("fields of one mapping, and items of one list, stand in one column"),
        ),
        ErrorKind::UnexpectedCharacter { character } => {
            let message = format!("text cannot start with {}", quoted(&character.to_string()));
            return (message, Some("put it in quotes"));
        }
        other => return (format!("not YAML: {other}"), None),
    };
    (message.to_owned(), hint)
}
