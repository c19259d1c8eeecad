//! A file's text, and where in it something stands.

use std::fmt;

/// A file's name and text. Its `Debug` shows no text, which may hold secrets.
pub struct Source {
    name: String,
    text: String,
    line_starts: Vec<usize>,
}

impl Source {
    /// A file of this name with this text; a byte order mark in front is taken off.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        let mut text = text.into();
        if text.starts_with('\u{feff}') {
            text.drain(..'\u{feff}'.len_utf8());
        }
        let line_starts = std::iter::once(0).chain(line_ends(&text)).collect();
        Self { name: name.into(), text, line_starts }
    }

    /// The file's name, as diagnostics show it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The whole text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The part of the text at `span`.
    pub(crate) fn slice(&self, span: Span) -> &str {
        self.text.get(span.start..span.end).unwrap_or_default()
    }

    /// The line and column of a byte; what lies beyond the end is at the end.
    pub(crate) fn position(&self, offset: usize) -> Position {
        let offset = self.boundary(offset);
        let line = self.line_starts.partition_point(|start| *start <= offset);
        let start = self.line_starts[line - 1];
        Position { line, column: self.text[start..offset].chars().count() + 1 }
    }

    /// Where the line of a byte starts, and where it ends without its line break.
    pub(crate) fn line_of(&self, offset: usize) -> Span {
        let line = self.line_starts.partition_point(|start| *start <= offset.min(self.text.len()));
        let start = self.line_starts[line - 1];
        let end = self.line_starts.get(line).copied().unwrap_or(self.text.len());
        Span { start, end: start + self.text[start..end].trim_end_matches(['\n', '\r']).len() }
    }

    fn boundary(&self, offset: usize) -> usize {
        let mut offset = offset.min(self.text.len());
        while !self.text.is_char_boundary(offset) {
            offset -= 1;
        }
        offset
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Where lines start, but for the first: after `\n`, and after `\r` that stands alone.
fn line_ends(text: &str) -> impl Iterator<Item = usize> {
    let bytes = text.as_bytes();
    (0..bytes.len())
        .filter(|at| bytes[*at] == b'\n' || (bytes[*at] == b'\r' && bytes.get(at + 1) != Some(&b'\n')))
        .map(|at| at + 1)
}

/// A place in a file. Lines and columns start at one; a column counts characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The character within the line.
    pub column: usize,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// A part of a file's text, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Span {
    /// The first byte.
    pub start: usize,
    /// The byte after the last.
    pub end: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_characters_from_one() {
        let source = Source::new("a.yaml", "\u{feff}ab\nxác: y\r\nz\rq");
        let at = |needle: &str| source.position(source.text().find(needle).unwrap()).to_string();
        assert_eq!([at("ab"), at("b"), at("x"), at("y"), at("z"), at("q")], ["1:1", "1:2", "2:1", "2:6", "3:1", "4:1"]);
        assert_eq!(source.position(999).to_string(), "4:2");
        let line = source.line_of(source.text().find('y').unwrap());
        assert_eq!(source.slice(line), "xác: y");
    }

    #[test]
    fn an_empty_file_has_a_first_line() {
        assert_eq!(Source::new("a.yaml", "").position(0), Position { line: 1, column: 1 });
    }
}
