//! What holds for every JSON text: spelling does not matter, meaning does, and `serde_json` agrees on what JSON is.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{CanonicalJson, JsonProblem, Limits};

proptest! {
    #[test]
    fn canonical_text_is_its_own_canonical_form(tree in tree(), taste in taste()) {
        let once = canonical(&spell(&tree, taste));
        prop_assert_eq!(canonical(once.as_str()), once);
    }

    #[test]
    fn spelling_changes_neither_text_nor_digest(tree in tree(), one in taste(), other in taste()) {
        let (one, other) = (canonical(&spell(&tree, one)), canonical(&spell(&tree, other)));
        prop_assert_eq!(one.digest(), other.digest());
        prop_assert_eq!(one.as_str(), other.as_str());
    }

    #[test]
    fn numbers_share_a_text_exactly_when_they_are_equal(
        one in (1u128..2_000, 0u32..33),
        other in (1u128..2_000, 0u32..33),
        one_taste in taste(),
        other_taste in taste(),
    ) {
        let value = |(digits, power): (u128, u32)| digits * 10u128.pow(power);
        let text = |(digits, power): (u128, u32), taste| {
            canonical(&spell(&Tree::Number(false, digits.to_string(), power as i32 - 10), taste))
        };
        prop_assert_eq!(text(one, one_taste) == text(other, other_taste), value(one) == value(other));
    }

    #[test]
    fn integers_that_fit_a_machine_word_stand_as_they_are(signed in any::<i64>(), unsigned in any::<u64>()) {
        let text = format!("[{signed},{unsigned}]");
        let canonical = canonical(&text);
        prop_assert_eq!(canonical.as_str(), text);
    }

    #[test]
    fn a_float_keeps_its_value(float in any::<f64>().prop_filter("json has finite numbers", |float| float.is_finite())) {
        let canonical = CanonicalJson::from_serialize(&float).unwrap();
        prop_assert_eq!(canonical.as_str().parse::<f64>(), Ok(float));
    }

    #[test]
    fn the_tree_is_the_one_serde_json_reads_from_the_text_given(value in exact_value()) {
        for text in [serde_json::to_string(&value).unwrap(), serde_json::to_string_pretty(&value).unwrap()] {
            let canonical = canonical(&text);
            prop_assert_eq!(canonical.to_value(), serde_json::from_str::<Value>(&text).unwrap());
            prop_assert_eq!(canonical, CanonicalJson::from_serialize(&value).unwrap());
        }
    }

    #[test]
    fn a_stored_value_is_read_back_as_it_was(tree in tree(), taste in taste()) {
        let canonical = canonical(&spell(&tree, taste));
        let stored = serde_json::to_string(&canonical).unwrap();
        prop_assert_eq!(&stored, canonical.as_str());
        prop_assert_eq!(serde_json::from_str::<CanonicalJson>(&stored).unwrap(), canonical);
    }

    #[test]
    fn no_bytes_cause_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        read_in_every_way(&bytes);
    }

    #[test]
    fn no_text_causes_a_panic(text in "\\PC*") {
        read_in_every_way(text.as_bytes());
        read_in_every_way(format!("\"{text}\"").as_bytes());
    }

    #[test]
    fn serde_json_agrees_on_any_row_of_tokens(tokens in prop::collection::vec(prop::sample::select(TOKENS), 0..12)) {
        check_against_serde_json(&tokens.concat())?;
    }

    #[test]
    fn serde_json_agrees_on_json_with_a_mistake(
        tree in tree(), taste in taste(), place in any::<prop::sample::Index>(), mistake in prop::sample::select(TOKENS),
    ) {
        let text: Vec<_> = spell(&tree, taste).chars().collect();
        let (before, after) = text.split_at(place.index(text.len()));
        let (before, skipped): (String, String) = (before.iter().collect(), after.iter().skip(1).collect());
        let after: String = after.iter().collect();
        check_against_serde_json(&before)?;
        check_against_serde_json(&format!("{before}{mistake}{after}"))?;
        check_against_serde_json(&format!("{before}{skipped}"))?;
    }
}

#[test]
fn serde_json_agrees_on_every_short_number() {
    check_every_row(&["0", "1", "-", "+", ".", "e", " "], 6);
}

#[test]
fn serde_json_agrees_on_every_short_structure() {
    check_every_row(&["{", "}", "[", "]", ",", ":", "1", "\"a\"", " "], 5);
}

#[test]
fn serde_json_agrees_on_every_short_string() {
    check_every_row(&["\"", "\\", "u", "n", "\\ud800", "\\udc00", "\\u0022", "00", "\n", "é"], 4);
}

const TOKENS: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    " ",
    "\n",
    "\u{feff}",
    "\u{0}",
    "null",
    "true",
    "false",
    "nul",
    "\"",
    "\"a\"",
    "\"b\"",
    "\"a\":1",
    "\"\\u0061\"",
    "\"\\ud83d\\ude00\"",
    "\"\\ud83d\"",
    "\\",
    "\\u",
    "é",
    "0",
    "1",
    "-",
    "+",
    ".",
    "e",
    "E",
    "-0",
    "01",
    "1.5",
    "1e5",
    "1e400",
    "1e-400",
    "1e100001",
    "18446744073709551616",
    "NaN",
    "'",
    "/",
];

fn canonical(text: &str) -> CanonicalJson {
    CanonicalJson::parse(text).unwrap_or_else(|problem| panic!("{text}: {problem}"))
}

fn read_in_every_way(bytes: &[u8]) {
    let read = [
        CanonicalJson::parse(&String::from_utf8_lossy(bytes)).ok(),
        CanonicalJson::parse_within(&String::from_utf8_lossy(bytes), &Limits::WIDEST).ok(),
        serde_json::from_slice(bytes).ok(),
    ];
    for canonical in read.into_iter().flatten() {
        canonical.to_value();
    }
}

/// We accept what `serde_json` accepts, but for repeated keys and our limits; and we accept numbers too large for it.
fn check_against_serde_json(text: &str) -> Result<(), TestCaseError> {
    match (CanonicalJson::parse(text), serde_json::from_str::<Value>(text)) {
        (Ok(_), Err(problem)) => {
            prop_assert!(problem.to_string().starts_with("number out of range"), "{text:?}: {problem}");
        }
        (Err(JsonProblem::Syntax { offset, expected }), Ok(_)) => {
            prop_assert!(false, "{text:?}: expected {expected} at {offset}");
        }
        _ => {}
    }
    Ok(())
}

fn check_every_row(tokens: &[&str], length_max: usize) {
    let mut rows = vec![String::new()];
    for _ in 0..length_max {
        rows = rows.iter().flat_map(|row| tokens.iter().map(move |token| format!("{row}{token}"))).collect();
        rows.iter().for_each(|row| check_against_serde_json(row).unwrap());
    }
}

/// A JSON value, apart from how it is spelt.
#[derive(Debug, Clone)]
enum Tree {
    Word(&'static str),
    /// Whether it is negative, its digits, and the power of ten that the last of them stands for.
    Number(bool, String, i32),
    Text(String),
    Array(Vec<Tree>),
    Object(BTreeMap<String, Tree>),
}

fn tree() -> impl Strategy<Value = Tree> {
    let leaf = prop_oneof![
        prop::sample::select(&["null", "true", "false"][..]).prop_map(Tree::Word),
        (any::<bool>(), "0|[1-9][0-9]{0,30}", -60..60)
            .prop_map(|(minus, digits, power)| Tree::Number(minus, digits, power)),
        (any::<bool>(), "[1-9]{1,3}", -9_000..9_000)
            .prop_map(|(minus, digits, power)| Tree::Number(minus, digits, power)),
        key().prop_map(Tree::Text),
    ];
    leaf.prop_recursive(4, 40, 8, |inside| {
        prop_oneof![
            prop::collection::vec(inside.clone(), 0..6).prop_map(Tree::Array),
            prop::collection::btree_map(key(), inside, 0..8).prop_map(Tree::Object),
        ]
    })
}

/// Keys that are often close to each other, often escaped, and sometimes anything.
fn key() -> impl Strategy<Value = String> {
    prop_oneof!["[ab\"\\\\\n\u{1}!\u{e000}😀]{0,3}", "[a-z_]{1,8}", any::<String>()]
}

/// Values that a `serde_json::Value` holds exactly, and holds in one way only.
fn exact_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        prop::sample::select(vec![json!(null), json!(true), json!(false)]),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (any::<i32>(), 1..64).prop_map(|(whole, part)| json!(f64::from(whole) + f64::from(part) / 64.0)),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 8, |inside| {
        prop_oneof![
            prop::collection::vec(inside.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(key(), inside, 0..8).prop_map(|members| members.into_iter().collect()),
        ]
    })
}

/// Where choices of spelling come from: the same bytes, over and over.
#[derive(Debug, Clone)]
struct Taste {
    bytes: Vec<u8>,
    next: usize,
}

fn taste() -> impl Strategy<Value = Taste> {
    prop::collection::vec(any::<u8>(), 1..60).prop_map(|bytes| Taste { bytes, next: 0 })
}

impl Taste {
    fn below(&mut self, bound: usize) -> usize {
        let byte = self.bytes[self.next % self.bytes.len()];
        self.next += 1;
        usize::from(byte) % bound
    }

    fn one_of<'a>(&mut self, spellings: &[&'a str]) -> &'a str {
        spellings[self.below(spellings.len())]
    }

    fn space(&mut self) -> &'static str {
        self.one_of(&["", "", "", " ", "\n\t", " \r\n"])
    }
}

fn spell(tree: &Tree, mut taste: Taste) -> String {
    spell_value(tree, &mut taste)
}

fn spell_value(tree: &Tree, taste: &mut Taste) -> String {
    let value = match tree {
        Tree::Word(word) => (*word).to_owned(),
        Tree::Number(is_negative, digits, power) => spell_number(*is_negative, digits, *power, taste),
        Tree::Text(text) => spell_text(text, taste),
        Tree::Array(elements) => {
            let elements: Vec<_> = elements.iter().map(|element| spell_value(element, taste)).collect();
            format!("[{}{}]", taste.space(), elements.join(","))
        }
        Tree::Object(members) => {
            let mut rest: Vec<_> = members.iter().collect();
            let mut spelt = Vec::new();
            while !rest.is_empty() {
                let (key, value) = rest.remove(taste.below(rest.len()));
                let (key, space) = (spell_text(key, taste), taste.space());
                spelt.push(format!("{space}{key}{space}:{}", spell_value(value, taste)));
            }
            format!("{{{}{}}}", taste.space(), spelt.join(","))
        }
    };
    format!("{}{value}{}", taste.space(), taste.space())
}

/// Moving the point or adding zeros keeps the value as long as the exponent follows.
fn spell_number(is_negative: bool, digits: &str, power: i32, taste: &mut Taste) -> String {
    let zeros = taste.below(4);
    let digits = format!("{digits}{}", "0".repeat(zeros));
    let point = if digits.starts_with('0') { 1 } else { taste.below(digits.len() + 1) };
    let (integer, fraction) = digits.split_at(point);
    let minus = if is_negative { "-" } else { "" };
    let integer = if integer.is_empty() { "0" } else { integer };
    let exponent = spell_exponent(power - zeros as i32 + fraction.len() as i32, taste);
    let fraction = if fraction.is_empty() { taste.one_of(&["", ".0", ".000"]) } else { &format!(".{fraction}") };
    format!("{minus}{integer}{fraction}{exponent}")
}

fn spell_exponent(exponent: i32, taste: &mut Taste) -> String {
    let sign = if exponent < 0 { "-" } else { taste.one_of(&["", "+"]) };
    let (mark, zeros) = (taste.one_of(&["e", "E"]), taste.one_of(&["", "0", "00"]));
    match exponent {
        0 if taste.below(2) == 0 => String::new(),
        _ => format!("{mark}{sign}{zeros}{}", exponent.abs()),
    }
}

fn spell_text(text: &str, taste: &mut Taste) -> String {
    let characters: String = text.chars().map(|character| spell_character(character, taste)).collect();
    format!("\"{characters}\"")
}

fn spell_character(character: char, taste: &mut Taste) -> String {
    let short = match character {
        '"' => "\\\"",
        '\\' => "\\\\",
        '/' => "\\/",
        '\u{8}' => "\\b",
        '\t' => "\\t",
        '\n' => "\\n",
        '\u{c}' => "\\f",
        '\r' => "\\r",
        _ => "",
    };
    let units = |case: fn(&u16) -> String| character.encode_utf16(&mut [0; 2]).iter().map(case).collect::<String>();
    match taste.below(4) {
        0 => units(|unit| format!("\\u{unit:04x}")),
        1 => units(|unit| format!("\\u{unit:04X}")),
        _ if !short.is_empty() => short.to_owned(),
        _ if character < ' ' => units(|unit| format!("\\u{unit:04x}")),
        _ => character.to_string(),
    }
}
