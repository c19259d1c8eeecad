//! Keeping text inside its lines. A reader must never take a model's words for a frame, or for the end of a stream.

/// Every character that some reader of lines takes for the end of one: browsers know three, Python's `splitlines`, by
/// which its HTTP clients read streams, knows the rest.
fn is_line_break(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// JSON in which no line can end: outside of strings there is no such character, and inside it may be escaped.
pub(super) fn one_line(json: &str) -> String {
    json.replace('\u{85}', "\\u0085").replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029")
}

/// What ends a stream of the legacy mode.
pub(super) const DONE: &str = "[DONE]";

/// Turns a model's words into tokens that cannot be taken for anything else.
///
/// - A line break, of whatever kind, is a line break of the frame; a carriage return and a line feed are one, also where
///   they come in two pieces.
/// - A NUL is shown as `⟦U+0000⟧`, so that the only NUL on the wire begins an interrupt of ours.
/// - A line that says `[DONE]` is cut in the middle and goes out as two tokens. Put together they are what was said.
#[derive(Debug, Default)]
pub(super) struct Tokens {
    ended_in_return: bool,
}

impl Tokens {
    /// The tokens of one more piece of text.
    pub(super) fn of(&mut self, text: &str) -> Vec<String> {
        let text = self.lines(text);
        let mut tokens = Vec::new();
        let mut token = String::new();
        for (index, line) in text.split('\n').enumerate() {
            if index > 0 {
                token.push('\n');
            }
            match line.trim() == DONE {
                true => {
                    let middle = line.find(DONE).unwrap_or_default() + DONE.len() / 2;
                    token.push_str(&line[..middle]);
                    tokens.push(std::mem::replace(&mut token, line[middle..].to_owned()));
                }
                false => token.push_str(line),
            }
        }
        tokens.push(token);
        tokens.retain(|token| !token.is_empty());
        tokens
    }

    /// The text with line feeds only.
    fn lines(&mut self, text: &str) -> String {
        let mut lines = String::with_capacity(text.len());
        for c in text.chars() {
            let is_second_half = c == '\n' && self.ended_in_return;
            self.ended_in_return = c == '\r';
            match c {
                _ if is_second_half => {}
                '\0' => lines.push_str("⟦U+0000⟧"),
                c if is_line_break(c) => lines.push('\n'),
                c => lines.push(c),
            }
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pieces: &[&str], tokens: &[&str]) {
        let mut made = Tokens::default();
        let got: Vec<String> = pieces.iter().flat_map(|piece| made.of(piece)).collect();
        assert_eq!(got, tokens, "{pieces:?}");
    }

    #[test]
    fn plain_words_go_through_as_they_are() {
        check(&["我将要删除", " two  spaces ", "", "a\nb"], &["我将要删除", " two  spaces ", "a\nb"]);
    }

    #[test]
    fn every_kind_of_line_break_is_one() {
        check(&["a\r\nb\rc\u{2028}d\u{85}e\u{b}f\u{1d}g"], &["a\nb\nc\nd\ne\nf\ng"]);
        check(&["a\r", "\nb", "\nc"], &["a\n", "b", "\nc"]);
    }

    #[test]
    fn the_end_of_the_stream_cannot_be_said_by_a_model() {
        check(&["[DONE]"], &["[DO", "NE]"]);
        check(&["a\n [DONE] \nb"], &["a\n [DO", "NE] \nb"]);
        check(&["[DONE]\n[DONE]"], &["[DO", "NE]\n[DO", "NE]"]);
        check(&["said [DONE] in a sentence"], &["said [DONE] in a sentence"]);
    }

    #[test]
    fn an_interrupt_cannot_be_said_by_a_model() {
        check(&["\0INTERRUPT:{}"], &["⟦U+0000⟧INTERRUPT:{}"]);
    }
}
