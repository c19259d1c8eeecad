//! Text that came from a model, a tool or a stranger: which characters a person can trust to see.

use std::fmt::Write as _;

/// Whether a character shows itself: not a control, a bidirectional mark, a zero-width or a tag character.
pub fn is_plain(c: char) -> bool {
    !c.is_control()
        && !matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

/// The text with every character that would hide shown as `⟦U+202E⟧`; line breaks and tabs stay.
pub fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if is_plain(c) || c == '\n' || c == '\t' {
            shown.push(c);
        } else {
            // Writing to a String cannot fail.
            let _ = write!(shown, "⟦U+{:04X}⟧", u32::from(c));
        }
    }
    shown
}

/// The first `bytes_max` bytes of a text, cut between characters.
pub fn clamp(text: &str, bytes_max: usize) -> &str {
    let mut end = bytes_max.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_characters_are_shown() {
        assert_eq!(visible("a\u{202e}b\u{1b}[2Kc\u{200b}\u{e0041}"), "a⟦U+202E⟧b⟦U+001B⟧[2Kc⟦U+200B⟧⟦U+E0041⟧");
        assert_eq!(visible("two\nlines\tof täxt 日本"), "two\nlines\tof täxt 日本");
    }

    #[test]
    fn a_clamped_text_is_cut_between_characters() {
        assert_eq!(clamp("日本", 4), "日");
        assert_eq!(clamp("ab", 4), "ab");
    }
}
