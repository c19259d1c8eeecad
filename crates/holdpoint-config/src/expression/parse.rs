//! Text to tree.

use cel::{ParseError, ParseErrors};

use super::facts::ENVIRONMENT;
use super::lint;
use super::{ExpressionProblem, Program, on_deep_stack};
use crate::diagnostic::{Code, quoted};
use crate::limits::{EXPRESSION_BYTES_MAX, EXPRESSION_NESTING_MAX};

/// The checked tree of an expression, and what is wrong with it or doubtful.
pub(super) fn program(text: &str) -> (Option<Program>, Vec<ExpressionProblem>) {
    if let Some(problem) = outline(text) {
        return (None, vec![problem]);
    }
    on_deep_stack(|| parsed(text)).unwrap_or_else(|| {
        let problem = ExpressionProblem::error(0, text.len(), "this expression cannot be read");
        (None, vec![problem.with_hint("write it in a simpler way")])
    })
}

fn parsed(text: &str) -> (Option<Program>, Vec<ExpressionProblem>) {
    let depth = u16::try_from(EXPRESSION_NESTING_MAX).unwrap_or(u16::MAX);
    let parser = ENVIRONMENT.parser().max_recursion_depth(depth).error_recovery_limit(4);
    match parser.parse_with_source_info(text) {
        Ok((tree, places)) => lint::checked(text, tree, &places),
        Err(errors) => (None, vec![first_error(text, &errors)]),
    }
}

/// What can be told without parsing: an expression that is empty, too long or nested too deeply.
fn outline(text: &str) -> Option<ExpressionProblem> {
    if text.trim().is_empty() {
        return Some(ExpressionProblem::error(0, text.len(), "the expression is empty"));
    }
    if text.len() > EXPRESSION_BYTES_MAX {
        let message = format!("the expression has {} bytes, at most {EXPRESSION_BYTES_MAX} are accepted", text.len());
        let problem = ExpressionProblem::error(0, text.len(), message);
        return Some(ExpressionProblem { code: Code::CostlyExpression, ..problem });
    }
    let mut depth = 0_usize;
    let mut quote = None;
    let mut signs = 0_usize;
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (Some(_), _) if escaped => escaped = false,
            (Some(_), '\\') => escaped = true,
            (Some(open), c) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(c),
            (None, '(' | '[' | '{' | '?') => depth += 1,
            (None, ')' | ']' | '}') => depth = depth.saturating_sub(1),
            (None, _) => {}
        }
        signs = if matches!(c, '!' | '-') || (signs > 0 && c.is_whitespace()) { signs + 1 } else { 0 };
        if depth > EXPRESSION_NESTING_MAX || signs > EXPRESSION_NESTING_MAX {
            let message = format!("the expression is nested deeper than {EXPRESSION_NESTING_MAX} levels");
            let problem = ExpressionProblem::error(at, at + c.len_utf8(), message);
            return Some(ExpressionProblem { code: Code::CostlyExpression, ..problem });
        }
    }
    None
}

/// The first thing that the parser stumbled over. What follows it are mostly its echoes, and where it says that a part is
/// incomplete, it also says what is missing.
fn first_error(text: &str, errors: &ParseErrors) -> ExpressionProblem {
    let is_first = |error: &&ParseError| !error.msg.starts_with("Incomplete");
    let Some(error) = errors.errors.iter().find(is_first).or(errors.errors.first()) else {
        return ExpressionProblem::error(0, text.len(), "this expression cannot be read");
    };
    let start = offset(text, error.pos);
    let rest = &text[start..];
    let word = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').map(char::len_utf8).sum::<usize>();
    let length = word.max(rest.chars().next().map_or(0, char::len_utf8));
    let problem = ExpressionProblem::error(start, start + length, message(&error.msg, &rest[..length]));
    match advice(text, start, &error.msg) {
        Some(hint) => problem.with_hint(hint),
        None => problem,
    }
}

/// The byte at a line and column, both from one; columns count characters.
fn offset(text: &str, (line, column): (isize, isize)) -> usize {
    let line = usize::try_from(line).unwrap_or(1).max(1);
    let column = usize::try_from(column).unwrap_or(1).max(1);
    let start: usize = text.split_inclusive('\n').take(line - 1).map(str::len).sum();
    let rest = &text[start.min(text.len())..];
    rest.char_indices().nth(column - 1).map_or(text.len(), |(at, _)| start + at)
}

fn message(parser_says: &str, found: &str) -> String {
    let says = |words: &str| parser_says.contains(words);
    if says("Recursion limit") || says("recovery attempt limit") {
        "the expression is nested too deeply".to_owned()
    } else if found.trim().is_empty() {
        "the expression ends too early".to_owned()
    } else if says("invalid argument to has()") {
        "`has` takes a field".to_owned()
    } else if says("token recognition error") && found.starts_with(['"', '\'']) {
        "this text has no closing quote, or an unknown `\\` in it".to_owned()
    } else if says("literal") {
        format!("{} is too large a number", quoted(found))
    } else if says("reserved identifier") {
        format!("{} is reserved", quoted(found))
    } else {
        format!("unexpected {}", quoted(found))
    }
}

/// Advice for what people write who know another language better.
fn advice(text: &str, start: usize, parser_says: &str) -> Option<&'static str> {
    let (before, rest) = text.split_at(start);
    let word: String = rest.chars().take_while(|c| c.is_alphanumeric()).collect();
    let is_single = |c: char| rest.starts_with(c) && !rest[1..].starts_with(c);
    match word.as_str() {
        "and" | "AND" => Some("write `&&`"),
        "or" | "OR" => Some("write `||`"),
        "not" | "NOT" => Some("write `!`"),
        "is" => Some("write `==`"),
        _ if parser_says.contains("invalid argument to has()") => Some("write `has(args.name)`"),
        _ if parser_says.contains("unsupported syntax: '`'") => Some("write `args[\"name\"]`"),
        _ if before.ends_with('<') && rest.starts_with('>') => Some("write `!=`"),
        _ if rest.starts_with('#') => Some("a comment starts with `//`"),
        _ if is_single('=') && !before.ends_with(['=', '!', '<', '>']) => Some("to compare, write `==`"),
        _ if is_single('&') => Some("write `&&`"),
        _ if is_single('|') => Some("write `||`"),
        _ if before.trim_end().ends_with("not") => Some("write `!` for not"),
        _ => None,
    }
}
