//! Problems as people read them, with the lines of the file they are about.

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};
use holdpoint_core::text::{is_plain, visible};

use super::{Diagnostic, Severity};
use crate::source::{Source, Span};

/// The longest line of a file that is shown, in bytes.
const LINE_BYTES_MAX: usize = 16 * 1024;

/// Whether text is coloured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Plain text.
    Plain,
    /// Colours for a terminal.
    Coloured,
}

/// All problems one after the other, and a closing line that counts them. Empty where there are none.
pub fn render_all(problems: &[Diagnostic], style: Style) -> String {
    let mut text: String = problems.iter().map(|problem| problem.render(style) + "\n\n").collect();
    let errors = problems.iter().filter(|problem| problem.is_error()).count();
    let counts = [(errors, "error"), (problems.len() - errors, "warning")];
    let counts: Vec<String> = counts
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, word)| format!("{count} {word}{}", if count == 1 { "" } else { "s" }))
        .collect();
    if !counts.is_empty() {
        text.push_str(&counts.join(", "));
        text.push('\n');
    }
    text
}

pub(super) fn render(problem: &Diagnostic, style: Style) -> String {
    let level = match problem.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let title = level.primary_title(problem.message.as_str()).id(problem.code.name());
    let file = visible(&problem.file);
    let shown = problem.place.as_ref().and_then(|(source, span)| Shown::new(source, *span));
    let origin = Origin::path(file.as_str());
    let mut group: Group<'_> = match &shown {
        Some(shown) => title.element(
            Snippet::source(shown.text.as_str())
                .path(file.as_str())
                .line_start(problem.line)
                .annotation(AnnotationKind::Primary.span(shown.mark.start..shown.mark.end)),
        ),
        None if problem.line > 0 => title.element(origin.line(problem.line).char_column(problem.column)),
        None => title.element(origin),
    };
    if let Some(hint) = &problem.hint {
        group = group.element(Level::HELP.with_name("hint").message(hint.as_str()));
    }
    let renderer = match style {
        Style::Plain => Renderer::plain(),
        Style::Coloured => Renderer::styled(),
    };
    renderer.render(&[group]).to_string()
}

/// The line that a problem starts in, and the part of it that is marked. The renderer cuts it to what a terminal shows.
struct Shown {
    text: String,
    mark: Span,
}

impl Shown {
    /// `None` for a line that is too long to be of help, or that may hold a secret: diagnostics end up in logs.
    fn new(source: &Source, span: Span) -> Option<Self> {
        let line = source.line_of(span.start);
        if may_hold_a_secret(&source.text()[line.start..line.end]) {
            return None;
        }
        if line.end - line.start > LINE_BYTES_MAX {
            return None;
        }
        let start = boundary(source.text(), span.start.clamp(line.start, line.end));
        let end = boundary(source.text(), span.end.clamp(start, line.end));
        let part = |start: usize, end: usize| -> String {
            // One character stands for one, so that the mark stays in its place.
            let show = |c: char| if is_plain(c) { c } else { char::REPLACEMENT_CHARACTER };
            source.text().get(start..end).unwrap_or_default().replace('\t', " ").chars().map(show).collect()
        };
        let (before, marked, after) = (part(line.start, start), part(start, end), part(end, line.end));
        let mark = Span { start: before.len(), end: before.len() + marked.len() };
        Some(Self { text: before + &marked + &after, mark })
    }
}

/// Whether a line gives a key, a hash of one or a signing secret, or looks like it.
fn may_hold_a_secret(line: &str) -> bool {
    let line = line.to_lowercase();
    let named = ["secret:", "sha256:", "password:", "api_key:", "token:"];
    let shaped = ["hpk_", "whsec_", "xoxb-", "xoxp-", "xapp-"];
    named.iter().chain(&shaped).any(|mark| line.contains(mark)) || has_address_with_password(&line)
}

/// Whether there is somebody before the host of an address, as in `smtp://name:word@host`.
fn has_address_with_password(line: &str) -> bool {
    let who = |rest: &str| rest.split(['/', '?', '#', ' ', '"', '\'']).next().is_some_and(|host| host.contains('@'));
    line.split("://").skip(1).any(who)
}

fn boundary(text: &str, mut offset: usize) -> usize {
    offset = offset.min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    offset
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::Code;
    use super::*;

    #[test]
    fn a_line_that_may_hold_a_secret_is_not_shown() {
        for line in [
            "webhooks: { secret: abc }",
            "  SECRET:   abc",
            "password: abc",
            "  - { name: ci, api_key: abc }",
            "sha256: abc",
            "  key: hpk_abc",
            "hook: whsec_abc",
            "headers: { X: 'HPK_abc' }",
            "    bot_token: xoxb-abc",
            "    - XOXB-abc",
            "smtp: smtp://ana:abc@mail.example:25",
            "url: \"https://:abc@hooks.example/x\"",
        ] {
            assert!(may_hold_a_secret(line), "{line}");
        }
        for line in [
            "listen: 127.0.0.1:8888",
            "secretary: ana",
            "name: password-reset",
            "public_url: https://hold.example/x?to=ana@example.com",
            "",
        ] {
            assert!(!may_hold_a_secret(line), "{line}");
        }
    }

    #[test]
    fn of_a_line_that_is_not_shown_the_place_is_told_and_of_others_the_text() {
        let text = "listen: nowhere\nwebhooks: { secret: whsec_s3cret }\n";
        let source = Arc::new(Source::new("holdpoint.yaml", text));
        let shown = |start: usize, end: usize| {
            let (span, code) = (Span { start, end }, Code::WrongType);
            let problem = Diagnostic::within(&source, span, Severity::Error, code, "`x` is wrong");
            [Style::Plain, Style::Coloured].map(|style| render(&problem, style))
        };
        let open = text.find("nowhere").unwrap();
        for text in shown(open, open + 7) {
            assert!(text.contains("listen: ") && text.contains("nowhere"), "{text}");
        }
        let masked = text.find("whsec").unwrap();
        for text in shown(masked, masked + 5) {
            assert!(text.contains("`x` is wrong") && text.contains("holdpoint.yaml:2:21"), "{text}");
            assert!(!text.contains("s3cret") && !text.contains("webhooks"), "{text}");
        }
    }
}
