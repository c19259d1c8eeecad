//! Plain text that means something else: `null`, `true`, numbers. By YAML 1.2's core schema, so `yes` and `1_000` are
//! text.

use serde_json::Number;

use super::Value;

/// What plain text stands for, or `None` where it is text.
pub(super) fn resolve(text: &str) -> Option<Value> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Some(Value::Null),
        "true" | "True" | "TRUE" => return Some(Value::Bool(true)),
        "false" | "False" | "FALSE" => return Some(Value::Bool(false)),
        _ => {}
    }
    number(text).map(Value::Number)
}

/// Whether plain text is one of YAML's numbers that JSON has not.
pub(super) fn is_not_finite(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    matches!(unsigned, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN")
}

fn number(text: &str) -> Option<Number> {
    if let Some(digits) = text.strip_prefix("0x") {
        return u64::from_str_radix(digits, 16).ok().filter(|_| is_digits(digits, 16)).map(Number::from);
    }
    if let Some(digits) = text.strip_prefix("0o") {
        return u64::from_str_radix(digits, 8).ok().filter(|_| is_digits(digits, 8)).map(Number::from);
    }
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if is_digits(unsigned, 10) {
        let whole = text.strip_prefix('+').unwrap_or(text);
        let small = whole.parse::<i64>().ok().map(Number::from);
        return small.or_else(|| whole.parse::<u64>().ok().map(Number::from)).or_else(|| float(text));
    }
    is_float(unsigned).then(|| float(text)).flatten()
}

fn float(text: &str) -> Option<Number> {
    text.parse::<f64>().ok().and_then(Number::from_f64)
}

fn is_digits(text: &str, radix: u32) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_digit(radix))
}

/// `1.5`, `.5`, `1.`, `1e9`.
fn is_float(unsigned: &str) -> bool {
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let is_empty_or_digits = |text: &str| text.is_empty() || is_digits(text, 10);
    let exponent = exponent.map(|exponent| exponent.strip_prefix(['+', '-']).unwrap_or(exponent));
    (!whole.is_empty() || !fraction.is_empty())
        && is_empty_or_digits(whole)
        && is_empty_or_digits(fraction)
        && exponent.is_none_or(|exponent| is_digits(exponent, 10))
}
