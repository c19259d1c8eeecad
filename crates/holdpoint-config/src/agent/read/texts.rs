//! Texts of a file: those in which `${NAME}` is a secret, and those that a model or a person reads, where it must not
//! stand.

use secrecy::{ExposeSecret, SecretString};

use crate::diagnostic::{Code, quoted};
use crate::expression::Expression;
use crate::source::Span;
use crate::template::{Template, is_variable_name};
use crate::yaml::{Item, Node, Reader, Value, align};

/// A text that a model, a person or a client reads. `${NAME}` is refused in it, and `$${` stands for `${`.
pub(crate) fn plain(reader: &Reader<'_>, item: &Item<'_, &str>) -> String {
    refuse_names(reader, item.node);
    item.value.replace("$${", "${")
}

/// Refuses `${NAME}` in all texts of a value.
pub(crate) fn refuse_names(reader: &Reader<'_>, node: &Node) {
    match &node.value {
        Value::Text(text) => {
            if let Some((start, end)) = first_name(text) {
                let message =
                    format!("{} would put a secret where models or people read it", quoted(&text[start..end]));
                let hint = "environment variables can stand in addresses, headers, commands and keys; \
                            write `$${` for the text `${`";
                let span = align(reader.source(), node, text, start, end);
                reader.error_with_hint(span, Code::BadTemplate, message, hint);
            }
        }
        Value::List(items) => items.iter().for_each(|item| refuse_names(reader, item)),
        Value::Mapping(entries) => entries.iter().for_each(|entry| refuse_names(reader, &entry.value)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Where the first `${NAME}` of a text stands.
fn first_name(text: &str) -> Option<(usize, usize)> {
    text.match_indices("${").find_map(|(start, _)| {
        let is_escaped = text[..start].ends_with('$');
        let end = start + text[start..].find('}')? + 1;
        (!is_escaped && is_variable_name(&text[start + 2..end - 1])).then_some((start, end))
    })
}

/// A text with `${NAME}` in it, whose names are all set today.
pub(crate) fn template(reader: &Reader<'_>, item: &Item<'_, &str>) -> Option<Template> {
    match item.value.parse::<Template>() {
        Ok(template) => {
            missing(reader, item, &template);
            Some(template)
        }
        Err(problem) => {
            let end = item.value[problem.at..].find('}').map_or(item.value.len(), |end| problem.at + end + 1);
            let span = align(reader.source(), item.node, item.value, problem.at, end);
            let hint = "write `${NAME}`, or `$$` for one `$`";
            reader.error_with_hint(span, Code::BadTemplate, problem.to_string(), hint);
            None
        }
    }
}

fn missing(reader: &Reader<'_>, item: &Item<'_, &str>, template: &Template) {
    for name in template.names() {
        if reader.environment.value(name).is_none() {
            let written = format!("${{{name}}}");
            let start = item.value.find(&written).unwrap_or(0);
            let span = align(reader.source(), item.node, item.value, start, start + written.len());
            let message = format!("environment variable {name} is not set");
            reader.error_with_hint(span, Code::MissingVariable, message, format!("set {name} before the start"));
        }
    }
}

/// What a template means today, where everything in it is set; what is missing was reported before.
pub(crate) fn today(reader: &Reader<'_>, template: &Template) -> Option<SecretString> {
    template.resolve(reader.environment).ok()
}

/// A value under a name that tells a secret: it must come from the environment, or it would be stored with every run.
pub(crate) fn refuse_written_secret(reader: &Reader<'_>, name: &str, template: &Template, span: Span) {
    const WORDS: [&str; 10] = [
        "authorization",
        "cookie",
        "token",
        "secret",
        "password",
        "passwd",
        "api-key",
        "apikey",
        "private-key",
        "credential",
    ];
    let name = name.to_ascii_lowercase().replace('_', "-");
    let is_secret = WORDS.iter().any(|word| name.contains(word));
    if is_secret && template.is_constant() && !template.as_written().is_empty() {
        let message = format!("{} is written into the file, and would be stored with every run", quoted(&name));
        let hint = "keep it in an environment variable and write `${NAME}`";
        reader.error_with_hint(span, Code::SecretInFile, message, hint);
    }
}

/// Whether a template's value today passes a check. One that cannot be known today passes.
pub(crate) fn passes(reader: &Reader<'_>, template: &Template, check: impl Fn(&str) -> bool) -> bool {
    today(reader, template).is_none_or(|text| check(text.expose_secret()))
}

/// A condition; what is wrong with it is reported at its exact place.
pub(crate) fn expression(reader: &Reader<'_>, item: &Item<'_, &str>) -> Option<Expression> {
    let (expression, problems) = Expression::read(item.value);
    for problem in problems {
        let span = align(reader.source(), item.node, item.value, problem.start, problem.end);
        let mut found = crate::diagnostic::Diagnostic::within(
            reader.source(),
            span,
            problem.severity,
            problem.code,
            problem.message,
        );
        found.hint = problem.hint;
        reader.report(found);
    }
    expression
}
