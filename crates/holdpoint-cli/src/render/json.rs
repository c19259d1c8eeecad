//! JSON for people: indented, every digit as it is, and nothing in it that hides.

use holdpoint_core::json::CanonicalJson;
use holdpoint_core::text::visible;

/// The text with line breaks and indents; hidden characters are shown as `⟦U+202E⟧`.
pub fn indented(json: &CanonicalJson) -> String {
    visible(&raw_indented(json))
}

/// The text with line breaks and indents, and otherwise as it is: to be edited, not to be shown.
///
/// It works on the text itself and never reads numbers, so that what is shown is what would run, digit by digit.
pub fn raw_indented(json: &CanonicalJson) -> String {
    let mut shown = String::with_capacity(json.as_str().len() * 2);
    let mut depth = 0_usize;
    let mut in_string = false;
    let mut is_escaped = false;
    let mut chars = json.as_str().chars().peekable();
    while let Some(c) = chars.next() {
        if in_string {
            shown.push(c);
            in_string = is_escaped || c != '"';
            is_escaped = !is_escaped && c == '\\';
            continue;
        }
        match c {
            '{' | '[' => {
                shown.push(c);
                match chars.next_if(|next| matches!(next, '}' | ']')) {
                    Some(end) => shown.push(end),
                    None => {
                        depth += 1;
                        new_line(&mut shown, depth);
                    }
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                new_line(&mut shown, depth);
                shown.push(c);
            }
            ',' => {
                shown.push(c);
                new_line(&mut shown, depth);
            }
            ':' => shown.push_str(": "),
            c => {
                in_string = c == '"';
                shown.push(c);
            }
        }
    }
    shown
}

fn new_line(shown: &mut String, depth: usize) {
    shown.push('\n');
    shown.extend(std::iter::repeat_n("  ", depth));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(json: &str, expected: &str) {
        assert_eq!(indented(&CanonicalJson::parse(json).unwrap()), expected);
    }

    #[test]
    fn structure_is_indented_and_empty_things_stay_short() {
        check(
            r#"{"a": [1, {"b": null}], "c": {}, "d": []}"#,
            "{\n  \"a\": [\n    1,\n    {\n      \"b\": null\n    }\n  ],\n  \"c\": {},\n  \"d\": []\n}",
        );
        check("7", "7");
    }

    #[test]
    fn strings_keep_what_looks_like_structure_and_show_what_hides() {
        check(r#"{"a": "x{,:\"]\\"}"#, "{\n  \"a\": \"x{,:\\\"]\\\\\"\n}");
        check("{\"to\": \"a\u{202e}b\"}", "{\n  \"to\": \"a⟦U+202E⟧b\"\n}");
    }

    #[test]
    fn digits_stay_as_they_are() {
        check(r#"{"n": 1.2345678901234567890123456789e+29}"#, "{\n  \"n\": 1.2345678901234567890123456789e+29\n}");
        check(r#"{"n": 1234567890123456789}"#, "{\n  \"n\": 1234567890123456789\n}");
    }
}
