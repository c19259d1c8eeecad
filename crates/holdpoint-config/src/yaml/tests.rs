use std::time::{Duration, Instant};

use super::*;
use crate::environment::FixedEnvironment;
use crate::source::Source;

/// The tree of a text, as JSON, and what is wrong with it.
fn parsed(text: &str) -> (Option<serde_json::Value>, Vec<String>) {
    let environment = FixedEnvironment::empty();
    let reader = Reader::new(Source::new("a.yaml", text).into(), &environment);
    let node = reader.parse();
    let problems = reader.finish();
    (node.map(|node| node.to_json()), problems.iter().map(ToString::to_string).collect())
}

#[test]
fn scalars_are_read_by_the_core_schema() {
    for (text, expected) in [
        ("~", "null"),
        ("null", "null"),
        ("true", "true"),
        ("False", "false"),
        ("yes", "\"yes\""),
        ("off", "\"off\""),
        ("12", "12"),
        ("+12", "12"),
        ("-7", "-7"),
        ("007", "7"),
        ("0x1F", "31"),
        ("0o17", "15"),
        ("1_000", "\"1_000\""),
        ("18446744073709551615", "18446744073709551615"),
        ("1.5", "1.5"),
        (".5", "0.5"),
        ("1e3", "1000.0"),
        ("1.2.3", "\"1.2.3\""),
        ("-", "[null]"),
        ("'12'", "\"12\""),
        ("\"true\"", "\"true\""),
        ("!!str 12", "\"12\""),
        ("!!int 12", "12"),
        ("2026-11-15", "\"2026-11-15\""),
        ("12:30", "\"12:30\""),
        ("[a, {b: c}]", "[\"a\",{\"b\":\"c\"}]"),
        ("1: one\ntrue: yes\n", "{\"1\":\"one\",\"true\":\"yes\"}"),
        ("a: &x [1]\nb: *x\n", "{\"a\":[1],\"b\":[1]}"),
    ] {
        let (json, problems) = parsed(text);
        assert_eq!(problems, Vec::<String>::new(), "{text}");
        assert_eq!(json.map(|json| json.to_string()), Some(expected.to_owned()), "{text}");
    }
}

#[test]
fn what_is_not_used_here_is_refused() {
    for (text, expected) in [
        ("a: .inf", "a.yaml:1:4: error: `.inf` is not a number here"),
        ("a: .nan", "a.yaml:1:4: error: `.nan` is not a number here"),
        (
            "a: !mine 1",
            "a.yaml:1:10: error: this tag is not supported, or does not fit its value (hint: leave the tag out)",
        ),
        (
            "a: !!int x",
            "a.yaml:1:10: error: this tag is not supported, or does not fit its value (hint: leave the tag out)",
        ),
        ("a: !!set {b: }", "a.yaml:1:10: error: this tag is not supported (hint: leave the tag out)"),
        ("[a]: b", "a.yaml:1:1: error: a key must be text"),
        ("<<: {a: 1}", "a.yaml:1:1: error: merge keys (`<<`) are not supported (hint: write the fields out)"),
        ("a: &x [*x]", "a.yaml:1:8: error: an alias cannot stand within what it stands for"),
    ] {
        assert_eq!(parsed(text).1, [expected], "{text}");
    }
}

#[test]
fn bombs_are_refused_at_once() {
    let levels: String =
        (1..40).map(|n| format!("a{n}: &a{n} [*a{0},*a{0},*a{0},*a{0},*a{0},*a{0},*a{0}]\n", n - 1)).collect();
    let texts: String = format!("a: &a \"{}\"\nb: [{}]\n", "x".repeat(500_000), vec!["*a"; 100].join(","));
    for (name, text) in [
        ("aliases", format!("a0: &a0 [x]\n{levels}")),
        ("aliases of long texts", texts),
        ("brackets", "[".repeat(100_000)),
        ("braces", "{a: ".repeat(50_000)),
        ("block lists", "- ".repeat(50_000)),
        ("indented mappings", (0..2_000).map(|n| format!("{}a:\n", " ".repeat(n))).collect()),
        ("many values", format!("[{}]", vec!["1"; 20_000].join(","))),
        ("many keys", (0..12_000).map(|n| format!("k{n}: 1\n")).collect()),
        ("many documents", "---\n".repeat(50_000)),
        ("many anchors", (0..20_000).map(|n| format!("- &a{n} x\n")).collect()),
        ("a long key", format!("{}: 1", "k".repeat(200_000))),
        ("question marks", "? ".repeat(50_000)),
        ("tags", "!a ".repeat(50_000)),
        ("a large file", "#".repeat(2 * 1024 * 1024)),
        ("quotes", "\"".repeat(100_001)),
        ("colons", "a: ".repeat(100_000)),
        ("null characters", "\0".repeat(10_000)),
        ("directives", format!("%YAML {}\n---\na", "1".repeat(100_000))),
    ] {
        let started = Instant::now();
        let (_, problems) = parsed(&text);
        assert!(!problems.is_empty(), "{name}");
        assert!(problems.len() <= 201, "{name}: {} problems", problems.len());
        assert!(started.elapsed() < Duration::from_secs(10), "{name} took {:?}", started.elapsed());
    }
}

#[test]
fn spans_cover_what_is_written() {
    let text = "a: plain # note\nb: 'quo''ted'\nc: \"dou\\tble\"\nd: [1, 2]\ne: {f: g}\nh:\n  - i\n  - j\nk: |\n  two\n  lines\nl: end\n";
    let environment = FixedEnvironment::empty();
    let reader = Reader::new(Source::new("a.yaml", text).into(), &environment);
    let root = reader.parse().unwrap();
    for (key, expected) in [
        ("a", "plain"),
        ("b", "'quo''ted'"),
        ("c", "\"dou\\tble\""),
        ("d", "[1, 2]"),
        ("e", "{f: g}"),
        ("h", "- i\n  - j"),
        // A block of text is where its lines are.
        ("k", "two\n  lines"),
        ("l", "end"),
    ] {
        assert_eq!(reader.source().slice(root.get(key).unwrap().span), expected, "{key}");
    }
}
