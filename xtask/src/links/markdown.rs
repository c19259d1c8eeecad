//! Reads the links out of a markdown text: inline links and pictures, link definitions, and `href` and `src` of HTML.
//! Code is not read for links, but an error page named in code counts as named.

/// What a link says, and the line it stands on, counted from one.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) line: usize,
    pub(super) text: String,
}

/// The targets of all links in `text`.
pub(super) fn link_targets(text: &str) -> Vec<Target> {
    let prose = without_code_spans(&without_fences(text));
    let inline = prose.match_indices("](").map(|(at, opening)| (at, destination(&prose[at + opening.len()..])));
    let attributes = ["href=\"", "src=\""].into_iter().flat_map(|opening| {
        let value = |at: usize| prose[at + opening.len()..].split('"').next().unwrap_or_default();
        prose.match_indices(opening).map(move |(at, _)| (at, value(at))).collect::<Vec<_>>()
    });
    let spans = inline.chain(attributes).map(|(at, target)| (line_at(&prose, at), target));
    let definitions = prose.lines().enumerate().filter_map(|(index, line)| Some((index + 1, definition(line)?)));
    spans.chain(definitions).map(|(line, target)| Target { line, text: target.to_owned() }).collect()
}

/// Every `docs/errors/<name>.md` in `text`, wherever it stands.
pub(super) fn named_error_pages(text: &str) -> Vec<Target> {
    const FOLDER: &str = "docs/errors/";
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    text.match_indices(FOLDER)
        .filter_map(|(at, _)| {
            let after = &text[at + FOLDER.len()..];
            let name = &after[..after.find(|c| !is_name(c)).unwrap_or(after.len())];
            let behind = after[name.len()..].strip_prefix(".md")?;
            let is_page = !name.is_empty() && !behind.starts_with(is_name);
            is_page.then(|| Target { line: line_at(text, at), text: format!("{FOLDER}{name}.md") })
        })
        .collect()
}

/// The destination at the start of what follows `](`: in angle brackets, or up to a space or the closing parenthesis.
fn destination(after: &str) -> &str {
    let after = after.trim_start();
    if let Some(bracketed) = after.strip_prefix('<') {
        return bracketed.split(['>', '\n']).next().unwrap_or_default();
    }
    let mut depth = 0;
    let end = after.find(|c: char| {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        depth < 0 || c.is_whitespace()
    });
    &after[..end.unwrap_or(after.len())]
}

/// The destination of `[label]: destination`. Footnotes, `[^label]: text`, are none.
fn definition(line: &str) -> Option<&str> {
    let (label, after) = line.trim_start().strip_prefix('[')?.split_once("]:")?;
    let is_label = !label.starts_with('^') && !label.contains(['[', ']']);
    is_label.then(|| destination(after))
}

/// The text with fenced blocks emptied; the number of lines stays.
fn without_fences(text: &str) -> String {
    let mut open: Option<Fence> = None;
    let mut prose = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let fence = Fence::read(line);
        let is_code = open.is_some() || fence.is_some();
        open = match (open, fence) {
            (None, fence) => fence,
            (Some(opening), Some(closing)) if closing.closes(opening) => None,
            (opening, _) => opening,
        };
        prose.push_str(match is_code {
            true if line.ends_with('\n') => "\n",
            true => "",
            false => line,
        });
    }
    prose
}

#[derive(Clone, Copy)]
struct Fence {
    mark: char,
    length: usize,
    is_bare: bool,
}

impl Fence {
    fn read(line: &str) -> Option<Self> {
        let line = line.trim_start_matches([' ', '>']).trim_end();
        let mark = line.chars().next().filter(|c| ['`', '~'].contains(c))?;
        let info = line.trim_start_matches(mark);
        let length = line.len() - info.len();
        let is_code_span = mark == '`' && info.contains('`');
        (length >= 3 && !is_code_span).then_some(Self { mark, length, is_bare: info.is_empty() })
    }

    fn closes(self, opening: Self) -> bool {
        self.is_bare && self.mark == opening.mark && self.length >= opening.length
    }
}

/// The text with code spans emptied; the number of lines stays.
fn without_code_spans(text: &str) -> String {
    let mut prose = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find('`') {
        let (before, span) = rest.split_at(start);
        let ticks = leading_ticks(span);
        prose.push_str(before);
        match span_end(&span[ticks..], ticks) {
            Some(end) => {
                let (code, after) = span.split_at(ticks + end);
                prose.extend(code.matches('\n'));
                rest = after;
            }
            None => rest = &span[ticks..],
        }
    }
    prose + rest
}

/// Where the span that `ticks` backticks opened ends, behind its closing ones. A span stays within its paragraph.
fn span_end(body: &str, ticks: usize) -> Option<usize> {
    let paragraph = body.split("\n\n").next().unwrap_or_default();
    let mut at = 0;
    while let Some(found) = paragraph[at..].find('`') {
        let run = leading_ticks(&paragraph[at + found..]);
        at += found + run;
        if run == ticks {
            return Some(at);
        }
    }
    None
}

fn leading_ticks(text: &str) -> usize {
    text.len() - text.trim_start_matches('`').len()
}

fn line_at(text: &str, offset: usize) -> usize {
    text[..offset].matches('\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the links found in `text`, each as `line target`.
    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let found: Vec<String> =
            link_targets(text).iter().map(|target| format!("{} {}", target.line, target.text)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn links_pictures_and_titles_are_read() {
        check("[a](a.md)\n![b](b.png \"Title\")\n[![c](c.svg)](d.md)", &["1 a.md", "2 b.png", "3 c.svg", "3 d.md"]);
    }

    #[test]
    fn a_link_text_may_hold_code_and_line_breaks() {
        check("[`code`](a.md)\n[two\nlines](b.md)", &["1 a.md", "3 b.md"]);
    }

    #[test]
    fn parentheses_in_a_target_are_balanced() {
        check("([a](a_(b).md))", &["1 a_(b).md"]);
    }

    #[test]
    fn a_target_in_angle_brackets_may_hold_spaces() {
        check("[a](<a b.md>)", &["1 a b.md"]);
    }

    #[test]
    fn definitions_are_links_and_footnotes_are_not() {
        check("[a][b]\n\n[b]: b.md\n[^1]: not a link\n", &["3 b.md"]);
    }

    #[test]
    fn html_attributes_are_read() {
        check("<a href=\"a.md\"><img src=\"b.png\"></a>", &["1 a.md", "1 b.png"]);
    }

    #[test]
    fn code_holds_no_links() {
        check("`[a](a.md)` and ``[`b`](b.md)`` then [c](c.md)", &["1 c.md"]);
        check("```text\n[a](a.md)\n```\n[b](b.md)\n", &["4 b.md"]);
    }

    #[test]
    fn a_fence_is_closed_only_by_its_own_kind() {
        check("````\n```\n[a](a.md)\n```\n````\n[b](b.md)", &["6 b.md"]);
        check("~~~\n```\n[a](a.md)\n~~~\n[b](b.md)", &["5 b.md"]);
        check("```\n```rust\n[a](a.md)\n```\n[b](b.md)", &["5 b.md"]);
    }

    #[test]
    fn a_lone_backtick_hides_nothing() {
        check("a ` here\n\n[b](b.md) and a ` there", &["3 b.md"]);
    }

    #[test]
    fn error_pages_are_found_by_name_in_code_too() {
        let text = "`docs/errors/out_of_turn.md`\n```\ndocs/errors/gone.md\n```\ndocs/errors/*.md docs/errors/x.mdoc";
        let named: Vec<String> =
            named_error_pages(text).iter().map(|page| format!("{} {}", page.line, page.text)).collect();
        assert_eq!(named, ["1 docs/errors/out_of_turn.md", "3 docs/errors/gone.md"]);
    }
}
