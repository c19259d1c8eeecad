//! Numbers as exact decimals: equal values get equal text, and no digit that matters is lost. Nothing here is a float,
//! since `18446744073709551617` and the number before it are the same float and may be different accounts.

use std::iter;

use super::JsonProblem;

/// The longest integer part written without an exponent. A `u64` and an `i64` always are.
const INTEGER_DIGITS_MAX: usize = 21;
/// The most zeros between the point and the first digit that are written without an exponent.
const FRACTION_ZEROS_MAX: usize = 7;
const EXPONENT_MAX: i32 = 100_000;
const TEXT_MAX: usize = 1_024;

/// Writes the number that starts at `start`, and returns where it ends.
pub(super) fn write(text: &str, start: usize, out: &mut String) -> Result<usize, JsonProblem> {
    let bytes = text.as_bytes();
    let is_negative = bytes.get(start) == Some(&b'-');
    let integer = start + usize::from(is_negative);
    let integer_end = integer_end(bytes, integer)?;
    if integer_end - integer > INTEGER_DIGITS_MAX || matches!(bytes.get(integer_end), Some(b'.' | b'e' | b'E')) {
        return write_decimal(text, start, integer, integer_end, out);
    }
    // Most numbers are integers of some digits, and canonical as they stand; `-0` alone is not.
    let canonical = if bytes[integer] == b'0' { "0" } else { &text[start..integer_end] };
    out.push_str(canonical);
    Ok(integer_end)
}

fn write_decimal(
    text: &str,
    start: usize,
    integer: usize,
    integer_end: usize,
    out: &mut String,
) -> Result<usize, JsonProblem> {
    let (fraction, fraction_end) = fraction(text, integer_end)?;
    let (exponent, end) = exponent(text, fraction_end)?;
    let out_of_bounds = || JsonProblem::Number { offset: start };
    if end - start > TEXT_MAX {
        return Err(out_of_bounds());
    }
    let exponent = exponent.parse().ok().filter(in_bounds).ok_or_else(out_of_bounds)?;
    let written = out.len();
    if let Some(decimal) = Decimal::new(&text[integer..integer_end], fraction, exponent) {
        out.push_str(if integer > start { "-" } else { "" });
        decimal.write(out);
        // What we write must be accepted again: its exponent and length may differ from those given.
        if !in_bounds(&decimal.power) || out.len() - written > TEXT_MAX {
            return Err(out_of_bounds());
        }
    } else {
        out.push('0');
    }
    Ok(end)
}

fn in_bounds(exponent: &i32) -> bool {
    (-EXPONENT_MAX..=EXPONENT_MAX).contains(exponent)
}

/// A number other than zero without its sign: the digits of `head` and then of `tail`, of which the very first and the
/// very last are not zero.
struct Decimal<'a> {
    head: &'a str,
    tail: &'a str,
    /// The power of ten the first digit stands for.
    power: i32,
}

impl<'a> Decimal<'a> {
    /// Reads `integer.fraction` times ten to the `exponent`, or `None` where that is zero.
    fn new(integer: &'a str, fraction: &'a str, exponent: i32) -> Option<Self> {
        let head = integer.trim_start_matches('0');
        let tail = fraction.trim_end_matches('0');
        match (head, tail) {
            ("", "") => None,
            ("", tail) => {
                let digits = tail.trim_start_matches('0');
                let zeros = tail.len() - digits.len();
                Some(Self { head: "", tail: digits, power: exponent - small(zeros) - 1 })
            }
            (head, tail) => {
                let power = exponent + small(head.len()) - 1;
                let head = if tail.is_empty() { head.trim_end_matches('0') } else { head };
                Some(Self { head, tail, power })
            }
        }
    }

    fn write(&self, out: &mut String) {
        let distance = self.power.unsigned_abs() as usize;
        match self.power {
            0.. if distance < INTEGER_DIGITS_MAX => self.write_with_point(distance + 1, out),
            ..0 if distance <= FRACTION_ZEROS_MAX + 1 => {
                out.push_str("0.");
                out.extend(iter::repeat_n('0', distance - 1));
                out.extend(self.digits());
            }
            power => {
                self.write_with_point(1, out);
                out.push_str(&format!("e{power:+}"));
            }
        }
    }

    /// Writes `integer_digits` digits, zeros where there are not that many, and then the others after a point.
    fn write_with_point(&self, integer_digits: usize, out: &mut String) {
        let count = self.head.len() + self.tail.len();
        out.extend(self.digits().take(integer_digits));
        if count > integer_digits {
            out.push('.');
            out.extend(self.digits().skip(integer_digits));
        }
        out.extend(iter::repeat_n('0', integer_digits.saturating_sub(count)));
    }

    fn digits(&self) -> impl Iterator<Item = char> {
        self.head.chars().chain(self.tail.chars())
    }
}

/// A count of digits, which `TEXT_MAX` keeps small.
fn small(digits: usize) -> i32 {
    i32::try_from(digits).unwrap_or(i32::MAX)
}

fn integer_end(bytes: &[u8], at: usize) -> Result<usize, JsonProblem> {
    let end = digits_end(bytes, at)?;
    if bytes[at] == b'0' && end > at + 1 {
        return Err(JsonProblem::Syntax { offset: at, expected: "no zero before other digits" });
    }
    Ok(end)
}

/// Reads `.ddd` if it is there. Returns the digits, and where they end.
fn fraction(text: &str, at: usize) -> Result<(&str, usize), JsonProblem> {
    if text.as_bytes().get(at) != Some(&b'.') {
        return Ok(("", at));
    }
    let end = digits_end(text.as_bytes(), at + 1)?;
    Ok((&text[at + 1..end], end))
}

/// Reads `e+ddd` if it is there. Returns the exponent with its sign, or `0`, and where it ends.
fn exponent(text: &str, at: usize) -> Result<(&str, usize), JsonProblem> {
    let bytes = text.as_bytes();
    if !matches!(bytes.get(at), Some(b'e' | b'E')) {
        return Ok(("0", at));
    }
    let has_sign = matches!(bytes.get(at + 1), Some(b'+' | b'-'));
    let end = digits_end(bytes, at + 1 + usize::from(has_sign))?;
    Ok((&text[at + 1..end], end))
}

/// Where the digits that start at `at` end. There must be one.
fn digits_end(bytes: &[u8], at: usize) -> Result<usize, JsonProblem> {
    let count = bytes[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    if count == 0 { Err(JsonProblem::Syntax { offset: at, expected: "a digit" }) } else { Ok(at + count) }
}
