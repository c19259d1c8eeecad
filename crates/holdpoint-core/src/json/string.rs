//! Strings: read strictly, written with the fewest escapes. Only quotes, backslashes and control characters are escaped;
//! everything else is plain UTF-8.

use super::JsonProblem;

/// Writes the string that opens at `open`. Returns where it ends, and whether it has escapes as written.
pub(super) fn write(text: &str, open: usize, out: &mut String) -> Result<(usize, bool), JsonProblem> {
    let bytes = text.as_bytes();
    let mut has_escapes = false;
    let mut copied = open;
    let mut at = open + 1;
    loop {
        at += plain_length(&bytes[at..]);
        match bytes.get(at) {
            Some(b'"') => {
                out.push_str(&text[copied..=at]);
                return Ok((at + 1, has_escapes));
            }
            Some(b'\\') => {
                out.push_str(&text[copied..at]);
                let (character, end) = unescape(bytes, at)?;
                has_escapes |= push(character, out);
                (at, copied) = (end, end);
            }
            Some(_) => return Err(expected("no bare control character", at)),
            None => return Err(expected("a closing quote", at)),
        }
    }
}

/// Reads the escape whose backslash is at `at`. Returns the character it stands for, and where it ends.
pub(super) fn unescape(bytes: &[u8], at: usize) -> Result<(char, usize), JsonProblem> {
    let character = match bytes.get(at + 1) {
        Some(b'"') => '"',
        Some(b'\\') => '\\',
        Some(b'/') => '/',
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{c}',
        Some(b'n') => '\n',
        Some(b'r') => '\r',
        Some(b't') => '\t',
        Some(b'u') => return unescape_unicode(bytes, at),
        _ => return Err(expected("an escape", at)),
    };
    Ok((character, at + 2))
}

fn unescape_unicode(bytes: &[u8], at: usize) -> Result<(char, usize), JsonProblem> {
    let first = code_unit(bytes, at)?;
    if let Some(character) = char::from_u32(first.into()) {
        return Ok((character, at + 6));
    }
    // Half of a surrogate pair: the other half must follow, or the string is not Unicode.
    let second = code_unit(bytes, at + 6).map_err(|_| expected("a surrogate pair", at))?;
    match char::decode_utf16([first, second]).next() {
        Some(Ok(character)) => Ok((character, at + 12)),
        _ => Err(expected("a surrogate pair", at)),
    }
}

/// Reads `\uxxxx`, whose backslash is at `at`.
fn code_unit(bytes: &[u8], at: usize) -> Result<u16, JsonProblem> {
    let problem = || expected("`\\u` and four hex digits", at);
    let digits = bytes.get(at..at + 6).and_then(|escape| escape.strip_prefix(br"\u")).ok_or_else(problem)?;
    digits.iter().try_fold(0, |unit, &digit| {
        let digit = char::from(digit).to_digit(16).ok_or_else(problem)?;
        // Four hex digits fill a code unit exactly.
        Ok(unit << 4 | digit as u16)
    })
}

/// Writes one character of a string, and says whether it took an escape.
fn push(character: char, out: &mut String) -> bool {
    match character {
        '"' => out.push_str(r#"\""#),
        '\\' => out.push_str(r"\\"),
        '\u{8}' => out.push_str(r"\b"),
        '\t' => out.push_str(r"\t"),
        '\n' => out.push_str(r"\n"),
        '\u{c}' => out.push_str(r"\f"),
        '\r' => out.push_str(r"\r"),
        '\0'..' ' => out.push_str(&format!("\\u{:04x}", u32::from(character))),
        _ => {
            out.push(character);
            return false;
        }
    }
    true
}

/// How many of the first bytes stand for themselves.
fn plain_length(bytes: &[u8]) -> usize {
    bytes.iter().position(|&byte| byte < b' ' || byte == b'"' || byte == b'\\').unwrap_or(bytes.len())
}

fn expected(expected: &'static str, offset: usize) -> JsonProblem {
    JsonProblem::Syntax { offset, expected }
}
