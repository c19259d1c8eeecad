//! The diff format of the apply_patch tool, read and applied. Pure text in, text out.
//!
//! A diff has no file headers: the path is said apart. Lines are compared to the letter, never loosely, and a hunk that
//! fits nowhere or in several places is refused: what a person approved must mean one thing.
//!
//! **A new file** is written as lines that begin with `+`.
//!
//! **A change** is one or more hunks:
//!
//! ```text
//! @@ fn greet() {            where: after the first line that reads so; several such lines lead inwards
//!  let name = "Ana";         a line that stays (an empty line stands for an empty line that stays)
//! -println!("hi {name}");    a line that goes
//! +println!("hello {name}"); a line that comes
//! @@ -20,2 +20,3 @@          where: a line number as in unified diffs, used if the lines stand right there
//!  …
//! @@                         where: wherever the lines stand; they must stand in one place only
//!  …
//! *** End of File            the hunk ends at the end of the file
//! ```
//!
//! The first `@@` may be left out. Hunks come in the order of the file. A hunk that only adds lines needs a place: a
//! line that stays, a line to go after, a number, or the end of the file. `\ No newline at end of file` after a line
//! means what it does in unified diffs; otherwise a file keeps its last line break, and a new one gets one. In a file
//! whose lines all end in `\r\n`, lines that come get that ending too.

/// Why a diff was not applied. Hunks and lines count from one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DiffProblem {
    /// The diff changes nothing.
    #[error("the diff has no lines that go or come")]
    Empty,
    /// A line is not of the format.
    #[error("line {line} of the diff does not belong there: {expected} expected")]
    Line {
        /// The line of the diff.
        line: usize,
        /// What would have been accepted there.
        expected: &'static str,
    },
    /// The lines that stay and go are not in the file.
    #[error("hunk {hunk}: its lines do not stand in the file, or only before the hunk above")]
    NotFound {
        /// The hunk.
        hunk: usize,
    },
    /// The lines that stay and go are in the file several times.
    #[error("hunk {hunk}: its lines stand in {places} places; add lines around them, or `@@` with a line before them")]
    Ambiguous {
        /// The hunk.
        hunk: usize,
        /// In how many places they stand.
        places: usize,
    },
    /// The line after `@@` is not in the file.
    #[error("hunk {hunk}: the line after `@@` does not stand in the file, or only before the hunk above")]
    NoAnchor {
        /// The hunk.
        hunk: usize,
    },
    /// A hunk that only adds lines does not say where.
    #[error("hunk {hunk}: it only adds lines, and nothing says where")]
    NoPlace {
        /// The hunk.
        hunk: usize,
    },
}

/// The text of a new file.
///
/// # Errors
/// A line that does not begin with `+`.
pub fn create(diff: &str) -> Result<String, DiffProblem> {
    let mut text = String::with_capacity(diff.len());
    let mut is_ended = false;
    for (line, content) in (1..).zip(diff.lines()) {
        match content.strip_prefix('+') {
            Some(content) if !is_ended => {
                text.push_str(content);
                text.push('\n');
            }
            None if content.starts_with('\\') && !is_ended && !text.is_empty() => {
                text.pop();
                is_ended = true;
            }
            _ => return Err(DiffProblem::Line { line, expected: "a line that begins with `+`" }),
        }
    }
    Ok(text)
}

/// The text of a file after a change.
///
/// # Errors
/// A diff that cannot be read, changes nothing, or does not fit the text in exactly one way.
pub fn update(text: &str, diff: &str) -> Result<String, DiffProblem> {
    let hunks = read(diff)?;
    let file = File::split(text);
    let mut changed: Vec<&str> = Vec::with_capacity(file.lines.len());
    let mut ends_in_break = file.ends_in_break;
    let mut cursor = 0;
    for (number, hunk) in (1..).zip(&hunks) {
        let at = hunk.locate(&file.lines, cursor, number)?;
        changed.extend(&file.lines[cursor..at]);
        changed.extend(hunk.lines.iter().filter(|line| line.mark != Mark::Goes).map(|line| line.text));
        cursor = at + hunk.old().count();
        ends_in_break = hunk.last_break.unwrap_or(ends_in_break);
    }
    changed.extend(&file.lines[cursor..]);
    Ok(file.join(&changed, ends_in_break))
}

/// A file's text as lines, with what is needed to put it together again.
struct File<'a> {
    lines: Vec<&'a str>,
    line_break: &'static str,
    ends_in_break: bool,
}

impl<'a> File<'a> {
    fn split(text: &'a str) -> Self {
        let breaks = text.matches('\n').count();
        let is_windows = breaks > 0 && text.matches("\r\n").count() == breaks;
        let line_break = if is_windows { "\r\n" } else { "\n" };
        let body = text.strip_suffix(line_break);
        let lines = match body.unwrap_or(text) {
            "" if body.is_none() => Vec::new(),
            body => body.split(line_break).collect(),
        };
        Self { lines, line_break, ends_in_break: text.is_empty() || body.is_some() }
    }

    fn join(&self, lines: &[&str], ends_in_break: bool) -> String {
        let mut text = lines.join(self.line_break);
        if ends_in_break && !lines.is_empty() {
            text.push_str(self.line_break);
        }
        text
    }
}

#[derive(Default)]
struct Hunk<'a> {
    anchors: Vec<&'a str>,
    /// The old side of `@@ -20,2 +20,3 @@`.
    number: Option<usize>,
    lines: Vec<Line<'a>>,
    is_at_end: bool,
    /// Whether the file ends in a line break after this hunk, where it says so.
    last_break: Option<bool>,
}

struct Line<'a> {
    mark: Mark,
    text: &'a str,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mark {
    Stays,
    Goes,
    Comes,
}

impl<'a> Hunk<'a> {
    fn old(&self) -> impl Iterator<Item = &'a str> {
        self.lines.iter().filter(|line| line.mark != Mark::Comes).map(|line| line.text)
    }

    /// Where in the file the hunk's old lines stand, at or after `from`.
    fn locate(&self, lines: &[&str], from: usize, hunk: usize) -> Result<usize, DiffProblem> {
        let mut from = from;
        let mut after_anchor = None;
        for anchor in &self.anchors {
            let reads_so = |line: &&str| line == anchor || line.trim() == anchor.trim();
            let found = lines[from..].iter().position(reads_so).ok_or(DiffProblem::NoAnchor { hunk })?;
            from += found;
            after_anchor = Some(from + 1);
        }
        let old: Vec<&str> = self.old().collect();
        if old.is_empty() {
            return self.place_to_add(lines, from, after_anchor).ok_or(DiffProblem::NoPlace { hunk });
        }
        let fits = |at: &usize| lines[*at..].starts_with(&old);
        let is_last = |at: &usize| !self.is_at_end || at + old.len() == lines.len();
        let places: Vec<usize> = (from..lines.len()).filter(fits).filter(is_last).collect();
        let numbered = self.number.and_then(|line| line.checked_sub(1)).filter(|at| places.contains(at));
        match (numbered, places.as_slice()) {
            (Some(at), _) => Ok(at),
            (None, [at]) => Ok(*at),
            (None, []) => Err(DiffProblem::NotFound { hunk }),
            (None, [first, ..]) if after_anchor.is_some() => Ok(*first),
            (None, places) => Err(DiffProblem::Ambiguous { hunk, places: places.len() }),
        }
    }

    fn place_to_add(&self, lines: &[&str], from: usize, after_anchor: Option<usize>) -> Option<usize> {
        if self.is_at_end || lines.is_empty() {
            return Some(lines.len());
        }
        // In `@@ -20,0 +21,3 @@` the lines come after line 20.
        let numbered = self.number.filter(|at| (from..=lines.len()).contains(at));
        after_anchor.or(numbered)
    }
}

fn read(diff: &str) -> Result<Vec<Hunk<'_>>, DiffProblem> {
    let mut hunks: Vec<Hunk> = Vec::new();
    for (line, content) in (1..).zip(diff.lines()) {
        if let Some(place) = content.strip_prefix("@@") {
            begin(&mut hunks, place, line)?;
            continue;
        }
        if hunks.is_empty() {
            hunks.push(Hunk::default());
        }
        // There is one: it was pushed above if there was none.
        if let Some(hunk) = hunks.last_mut() {
            hunk.take(content, line)?;
        }
    }
    let changes = |hunk: &Hunk| hunk.lines.iter().any(|line| line.mark != Mark::Stays);
    if hunks.is_empty() || !hunks.iter().all(changes) { Err(DiffProblem::Empty) } else { Ok(hunks) }
}

/// Begins a hunk, or leads one that has no lines yet further inwards.
fn begin<'a>(hunks: &mut Vec<Hunk<'a>>, place: &'a str, line: usize) -> Result<(), DiffProblem> {
    let mut hunk = match hunks.pop() {
        Some(hunk) if hunk.lines.is_empty() => hunk,
        earlier => {
            hunks.extend(earlier);
            Hunk::default()
        }
    };
    match (number(place), place.strip_prefix(' ').unwrap_or(place)) {
        (Some(number), _) if hunk.number.is_none() && hunk.anchors.is_empty() => hunk.number = Some(number),
        (Some(_), _) => return Err(DiffProblem::Line { line, expected: "one place for each hunk" }),
        (None, anchor) if anchor.trim().is_empty() => {}
        (None, _) if hunk.number.is_some() => {
            return Err(DiffProblem::Line { line, expected: "one place for each hunk" });
        }
        (None, anchor) => hunk.anchors.push(anchor),
    }
    hunks.push(hunk);
    Ok(())
}

/// Reads ` -20,2 +20,3 @@`, with or without the counts, and whatever follows.
fn number(place: &str) -> Option<usize> {
    let (numbers, _) = place.trim_start().strip_prefix('-')?.split_once("@@")?;
    let (old, new) = numbers.trim_end().split_once(" +")?;
    let count = |range: &str| {
        let (line, count) = range.split_once(',').unwrap_or((range, "1"));
        count.parse::<usize>().ok()?;
        line.parse::<usize>().ok()
    };
    count(new)?;
    count(old)
}

impl<'a> Hunk<'a> {
    fn take(&mut self, content: &'a str, line: usize) -> Result<(), DiffProblem> {
        let expected = "a line that begins with ` `, `-`, `+` or `@@`";
        if self.is_at_end {
            return Err(DiffProblem::Line { line, expected: "`@@` or the end of the diff" });
        }
        let (mark, text) = match content.as_bytes().first() {
            None => (Mark::Stays, ""),
            Some(b' ') => (Mark::Stays, &content[1..]),
            Some(b'-') => (Mark::Goes, &content[1..]),
            Some(b'+') => (Mark::Comes, &content[1..]),
            Some(b'\\') => return self.take_no_break(line),
            Some(_) if content == "*** End of File" => {
                self.is_at_end = true;
                return Ok(());
            }
            Some(_) => return Err(DiffProblem::Line { line, expected }),
        };
        self.lines.push(Line { mark, text });
        Ok(())
    }

    /// `\ No newline at end of file`: of the old file after a line that goes, otherwise of the new one.
    fn take_no_break(&mut self, line: usize) -> Result<(), DiffProblem> {
        let Some(last) = self.lines.last() else {
            return Err(DiffProblem::Line { line, expected: "a line before it" });
        };
        self.last_break = Some(last.mark == Mark::Goes);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, diff: &str, expected: &str) {
        assert_eq!(update(text, diff).as_deref(), Ok(expected), "{diff}");
    }

    fn check_refused(text: &str, diff: &str, problem: DiffProblem) {
        assert_eq!(update(text, diff), Err(problem), "{diff}");
    }

    #[test]
    fn a_new_file_is_its_lines() {
        assert_eq!(create("+a\n+\n+ b"), Ok("a\n\n b\n".to_owned()));
        assert_eq!(create("+a\r\n+b\r\n"), Ok("a\nb\n".to_owned()));
        assert_eq!(create(""), Ok(String::new()));
        assert_eq!(create("++a\n\\ No newline at end of file\n"), Ok("+a".to_owned()));
        for (diff, line) in [("a", 1), ("+a\nb", 2), ("+a\n\n+b", 2), ("@@\n+a", 1), ("\\ No newline", 1)] {
            assert_eq!(
                create(diff),
                Err(DiffProblem::Line { line, expected: "a line that begins with `+`" }),
                "{diff}"
            );
        }
    }

    #[test]
    fn lines_go_and_come_where_the_lines_around_them_stand() {
        check("a\nb\nc\n", "@@\n a\n-b\n+B\n c\n", "a\nB\nc\n");
        check("a\nb\nc\n", "-b\n+B", "a\nB\nc\n");
        check("a\nb\nc\n", " b\n+b2\n", "a\nb\nb2\nc\n");
        check("a\nb\nc\n", "-a\n-b\n-c\n", "");
        check("a\n\nc\n", " a\n\n-c\n+C\n", "a\n\nC\n");
        check("", "+a\n+b\n", "a\nb\n");
    }

    #[test]
    fn hunks_come_in_the_order_of_the_file() {
        check("a\nb\nc\nd\n", "@@\n-a\n+A\n@@\n-d\n+D\n", "A\nb\nc\nD\n");
        check_refused("a\nb\n", "@@\n-b\n+B\n@@\n-a\n+A\n", DiffProblem::NotFound { hunk: 2 });
        check_refused("a\nb\n", "@@\n a\n-b\n@@\n a\n+c\n", DiffProblem::NotFound { hunk: 2 });
    }

    #[test]
    fn a_hunk_that_fits_in_several_places_is_refused() {
        check_refused("x\na\nx\nb\n", "-x\n+y\n", DiffProblem::Ambiguous { hunk: 1, places: 2 });
        check("x\na\nx\nb\n", "-x\n+y\n b\n", "x\na\ny\nb\n");
    }

    #[test]
    fn lines_are_compared_to_the_letter() {
        for line in ["a ", " a", "\ta", "A", "а"] {
            check_refused("a\n", &format!("-{line}\n+b\n"), DiffProblem::NotFound { hunk: 1 });
        }
    }

    #[test]
    fn a_line_after_the_sign_says_where() {
        let text = "fn a() {\n    x\n}\nfn b() {\n    x\n}\n";
        check(text, "@@ fn b() {\n-    x\n+    y\n", "fn a() {\n    x\n}\nfn b() {\n    y\n}\n");
        check(text, "@@ fn a() {\n-    x\n+    y\n", "fn a() {\n    y\n}\nfn b() {\n    x\n}\n");
        check(text, "@@ fn b() {\n fn b() {\n-    x\n", "fn a() {\n    x\n}\nfn b() {\n}\n");
        check(text, "@@ fn b() {\n+    w\n", "fn a() {\n    x\n}\nfn b() {\n    w\n    x\n}\n");
        let nested = "class A\n  def f\n    x\nclass B\n  def f\n    x\n";
        check(nested, "@@ class B\n@@ def f\n-    x\n+    y\n", "class A\n  def f\n    x\nclass B\n  def f\n    y\n");
        check_refused(text, "@@ fn c() {\n-    x\n", DiffProblem::NoAnchor { hunk: 1 });
    }

    #[test]
    fn a_number_says_where_if_the_lines_stand_right_there() {
        check("x\na\nx\n", "@@ -3,1 +3,1 @@\n-x\n+y\n", "x\na\ny\n");
        check("x\na\nx\n", "@@ -1 +1 @@ fn main() {\n-x\n+y\n", "y\na\nx\n");
        check("x\na\nb\n", "@@ -9,1 +9,1 @@\n-a\n+A\n", "x\nA\nb\n");
        check_refused("x\na\nx\n", "@@ -2,1 +2,1 @@\n-x\n+y\n", DiffProblem::Ambiguous { hunk: 1, places: 2 });
        check("a\nb\n", "@@ -1,0 +2,1 @@\n+new\n", "a\nnew\nb\n");
        check("a\nb\n", "@@ -0,0 +1,1 @@\n+new\n", "new\na\nb\n");
        check_refused("a\nb\n", "@@ -3,0 +3,1 @@\n+new\n", DiffProblem::NoPlace { hunk: 1 });
    }

    #[test]
    fn the_end_of_the_file_is_a_place() {
        check("x\nx\n", "@@\n-x\n+y\n*** End of File\n", "x\ny\n");
        check("a\n", "@@\n+b\n*** End of File", "a\nb\n");
        check_refused("x\ny\n", "@@\n-x\n*** End of File\n", DiffProblem::NotFound { hunk: 1 });
        let after = DiffProblem::Line { line: 4, expected: "`@@` or the end of the diff" };
        check_refused("x\n", "@@\n-x\n*** End of File\n+y", after);
    }

    #[test]
    fn lines_that_only_come_need_a_place() {
        check_refused("a\n", "@@\n+b\n", DiffProblem::NoPlace { hunk: 1 });
        check_refused("a\n", "+b\n", DiffProblem::NoPlace { hunk: 1 });
    }

    #[test]
    fn the_last_line_break_stays_as_it_was_unless_said_otherwise() {
        check("a\nb", "-b\n+c\n", "a\nc");
        check("a\nb\n", "-b\n+c\n", "a\nc\n");
        check("a\nb\n", "-b\n+c\n\\ No newline at end of file\n", "a\nc");
        check("a\nb", "-b\n\\ No newline at end of file\n+c\n", "a\nc\n");
        check("a\nb", "-b\n\\ No newline at end of file\n+c\n\\ No newline at end of file\n", "a\nc");
    }

    #[test]
    fn a_file_keeps_its_line_endings() {
        check("a\r\nb\r\n", "-b\n+c\n+d\n", "a\r\nc\r\nd\r\n");
        check("a\r\nb\r\n", "-b\r\n+c\r\n", "a\r\nc\r\n");
        check("a\r\nb\n", "-b\n+c\n", "a\r\nc\n");
        check("\n", "-\n+a\n", "a\n");
    }

    #[test]
    fn what_is_not_of_the_format_is_refused() {
        let expected = "a line that begins with ` `, `-`, `+` or `@@`";
        for (diff, line) in [
            ("*** Begin Patch\n-a\n", 1),
            ("*** Update File: b\n@@\n-a\n", 1),
            ("@@\na\n", 2),
            ("diff --git a/a b/b\n", 1),
            ("@@\n-a\n日\n", 3),
        ] {
            check_refused("a\n", diff, DiffProblem::Line { line, expected });
        }
        let one = DiffProblem::Line { line: 2, expected: "one place for each hunk" };
        check_refused("a\n", "@@ -1 +1 @@\n@@ a\n-a\n", one.clone());
        check_refused("a\n", "@@ a\n@@ -1 +1 @@\n-a\n", one);
        check_refused(
            "a\n",
            "\\ No newline at end of file\n-a\n",
            DiffProblem::Line { line: 1, expected: "a line before it" },
        );
    }

    #[test]
    fn headers_of_a_unified_diff_are_not_taken_for_a_change() {
        check_refused("a\n", "--- a/file\n+++ b/file\n@@ -1 +1 @@\n-a\n+b\n", DiffProblem::NotFound { hunk: 1 });
    }

    #[test]
    fn a_diff_that_changes_nothing_is_refused() {
        for diff in ["", "@@\n", " a\n", "@@\n a\n", "@@\n-a\n+b\n@@\n a\n"] {
            check_refused("a\n", diff, DiffProblem::Empty);
        }
    }
}
