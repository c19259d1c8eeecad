//! Text from models, tools and strangers as it may stand in Slack: every hidden character is shown, and none of Slack's
//! own marks is left in it, so that nothing in it pings, links or pretends to be ours.

use holdpoint_core::json::CanonicalJson;
use holdpoint_core::text::{is_plain, visible};

/// A text for people, and whether all of it is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Shown {
    pub(super) text: String,
    pub(super) is_whole: bool,
}

/// A text with `&`, `<` and `>` as Slack wants them, and hidden characters shown as `⟦U+202E⟧`.
pub(super) fn plain(text: &str) -> String {
    visible(text).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// As [`plain`], in one line.
pub(super) fn line(text: &str) -> String {
    plain(text).replace('\n', "⏎").replace('\t', "⇥")
}

/// A text of several lines, of at most so many characters.
pub(super) fn words(text: &str, characters_max: usize) -> Shown {
    cut(plain(text), characters_max)
}

/// JSON exactly as it would run: indented where there is room for it. Characters that hide, and those that Slack reads as
/// its own marks, are written as JSON's own escapes, so that the text still is the same JSON.
pub(super) fn json(json: &CanonicalJson, characters_max: usize) -> Shown {
    let spacious = spell(json, Layout::Indented);
    match length(&spacious) <= characters_max {
        true => Shown { text: spacious, is_whole: true },
        false => cut(spell(json, Layout::Dense), characters_max),
    }
}

/// How long Slack takes a text to be: what JavaScript counts, which is never less than its characters.
pub(super) fn length(text: &str) -> usize {
    text.encode_utf16().count()
}

/// The beginning of a text that is too long, with a mark that no JSON ends with.
fn cut(text: String, characters_max: usize) -> Shown {
    let found = length(&text);
    if found <= characters_max {
        return Shown { text, is_whole: true };
    }
    let mark = format!("\n⟦cut here: {found} characters in all⟧");
    let room = characters_max.saturating_sub(length(&mark));
    let mut taken = 0;
    let kept: String = text
        .chars()
        .take_while(|c| {
            taken += c.len_utf16();
            taken <= room
        })
        .collect();
    Shown { text: kept + &mark, is_whole: false }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Layout {
    Indented,
    Dense,
}

/// Canonical JSON has no white space outside of its texts, so that only brackets, commas and colons are touched.
fn spell(json: &CanonicalJson, layout: Layout) -> String {
    let mut spelt = String::with_capacity(json.as_str().len());
    let (mut depth, mut is_inside, mut is_escaped) = (0_usize, false, false);
    let mut rest = json.as_str().chars().peekable();
    let line_break = |spelt: &mut String, depth: usize| {
        if layout == Layout::Indented {
            spelt.push('\n');
            spelt.extend(std::iter::repeat_n("  ", depth));
        }
    };
    while let Some(c) = rest.next() {
        if is_inside {
            character(&mut spelt, c);
            is_inside = is_escaped || c != '"';
            is_escaped = !is_escaped && c == '\\';
            continue;
        }
        match c {
            '{' | '[' if rest.peek().is_some_and(|next| matches!(next, '}' | ']')) => spelt.push(c),
            '{' | '[' => {
                spelt.push(c);
                depth += 1;
                line_break(&mut spelt, depth);
            }
            '}' | ']' if spelt.ends_with(['{', '[']) => spelt.push(c),
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                line_break(&mut spelt, depth);
                spelt.push(c);
            }
            ',' => {
                spelt.push(c);
                line_break(&mut spelt, depth);
            }
            ':' if layout == Layout::Indented => spelt.push_str(": "),
            '"' => {
                spelt.push(c);
                is_inside = true;
            }
            other => spelt.push(other),
        }
    }
    spelt
}

/// One character inside a text of JSON.
fn character(spelt: &mut String, c: char) {
    let is_mark = matches!(c, '<' | '>' | '&');
    let is_odd_space = c.is_whitespace() && c != ' ';
    if is_plain(c) && !is_mark && !is_odd_space {
        spelt.push(c);
        return;
    }
    let mut units = [0; 2];
    for unit in c.encode_utf16(&mut units) {
        spelt.push_str(&format!("\\u{unit:04x}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn canonical(text: &str) -> CanonicalJson {
        CanonicalJson::parse(text).unwrap()
    }

    #[test]
    fn json_is_indented_where_there_is_room_and_dense_where_there_is_less() {
        let arguments = canonical(r#"{"to":"ana","list":[1,2.50,{}],"none":[],"deep":{"a":"x:{,}\"y\\"}}"#);
        let spacious = "{\n  \"deep\": {\n    \"a\": \"x:{,}\\\"y\\\\\"\n  },\n  \"list\": [\n    1,\n    2.5,\n    {}\n  ],\n  \"none\": [],\n  \"to\": \"ana\"\n}";
        assert_eq!(json(&arguments, 3_000), Shown { text: spacious.to_owned(), is_whole: true });
        let dense = json(&arguments, length(spacious) - 1);
        assert_eq!((dense.text.as_str(), dense.is_whole), (arguments.as_str(), true));
    }

    #[test]
    fn what_is_shown_is_the_same_json_without_marks_of_slack_or_hidden_characters() {
        let hostile = canonical(
            r#"{"a":"<!channel> <@U1> <https://evil.example|approve> & \u202e\u200b\u0007\u007f\u00a0\u2028","\udb40\udc41<":1}"#,
        );
        for layout in [Layout::Indented, Layout::Dense] {
            let shown = spell(&hostile, layout);
            assert!(!shown.contains(['<', '>', '&', '\u{202e}', '\u{200b}', '\u{a0}', '\u{e0041}']), "{shown}");
            assert!(shown.chars().all(|c| is_plain(c) || c == '\n'), "{shown}");
            assert_eq!(canonical(&shown), hostile);
        }
    }

    #[test]
    fn a_text_that_is_too_long_is_cut_and_says_so() {
        let long = canonical(&format!(r#"{{"a":"{}"}}"#, "x".repeat(4_000)));
        let shown = json(&long, 3_000);
        assert!(!shown.is_whole);
        assert!(length(&shown.text) <= 3_000, "{}", length(&shown.text));
        assert!(shown.text.ends_with("⟦cut here: 4008 characters in all⟧"), "{}", shown.text);
        // Slack counts both halves of such a character.
        let wide = words(&"😀".repeat(60), 100);
        assert!(!wide.is_whole && length(&wide.text) <= 100, "{}", wide.text);
    }

    #[test]
    fn words_are_escaped_and_their_hidden_characters_shown() {
        assert_eq!(plain("a <!here> & \u{202e}b"), "a &lt;!here&gt; &amp; ⟦U+202E⟧b");
        assert_eq!(line("a\nb\tc"), "a⏎b⇥c");
    }
}
