//! Which numbers a usual reader of JSON takes as they stand. Canonical text keeps every digit; most programs that a tool is
//! made of hold a number in 64 bits, and would silently go on with another one.

use super::number;

/// The first number of a canonical text that does not fit 64 bits: neither as an integer, nor as a float that is written
/// as it was read.
pub(super) fn first_inexact(canonical: &str) -> Option<&str> {
    let bytes = canonical.as_bytes();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        at = match byte {
            b'"' => string_end(bytes, at),
            b'-' | b'0'..=b'9' => {
                let is_part = |byte: &u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e');
                let end = at + bytes[at..].iter().take_while(|byte| is_part(byte)).count();
                let number = &canonical[at..end];
                if !is_exact(number) {
                    return Some(number);
                }
                end
            }
            _ => at + 1,
        };
    }
    None
}

/// Where the string that starts at `at` has ended.
fn string_end(bytes: &[u8], at: usize) -> usize {
    let mut at = at + 1;
    loop {
        match bytes.get(at) {
            Some(b'\\') => at += 2,
            Some(b'"') => return at + 1,
            Some(_) => at += 1,
            None => return at,
        }
    }
}

fn is_exact(number: &str) -> bool {
    if number.parse::<i64>().is_ok() || number.parse::<u64>().is_ok() {
        return true;
    }
    let Some(float) = number.parse::<f64>().ok().filter(|float| float.is_finite()) else { return false };
    // The shortest text that is read as this float again, in canonical form.
    let mut again = String::new();
    number::write(&format!("{float:e}"), 0, &mut again).is_ok() && again == number
}
