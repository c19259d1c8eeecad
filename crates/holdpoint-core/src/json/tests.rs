//! The rules of canonical JSON, one test each, and a table of texts that are accepted or refused.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{CanonicalJson, Digest, JsonProblem, Limits};

fn check(text: &str, expected: &str) {
    let canonical = CanonicalJson::parse(text).unwrap_or_else(|problem| panic!("{text}: {problem}"));
    assert_eq!(canonical.as_str(), expected, "{text}");
}

fn check_refused(text: &str, expected: JsonProblem) {
    assert_eq!(CanonicalJson::parse(text), Err(expected), "{text}");
}

fn syntax(offset: usize, expected: &'static str) -> JsonProblem {
    JsonProblem::Syntax { offset, expected }
}

fn parse(text: &str) -> CanonicalJson {
    CanonicalJson::parse(text).unwrap()
}

#[test]
fn texts_that_are_json_are_accepted() {
    let cases = [
        ("null", "null"),
        ("true", "true"),
        ("false", "false"),
        (" \t\r\n true \t\r\n ", "true"),
        ("0", "0"),
        ("-7", "-7"),
        ("[]", "[]"),
        ("[ ]", "[]"),
        ("{}", "{}"),
        ("{\n}", "{}"),
        ("[null , 1,\"1\" ,{ },[ ]]", r#"[null,1,"1",{},[]]"#),
        ("[[[[ 1 ]]]]", "[[[[1]]]]"),
        (r#"{"a":{"a":{"a":1}}}"#, r#"{"a":{"a":{"a":1}}}"#),
        (r#"{ "" : 0 }"#, r#"{"":0}"#),
        (r#"{"a":null,"b":[{"d":1,"c":2}]}"#, r#"{"a":null,"b":[{"c":2,"d":1}]}"#),
        (r#""""#, r#""""#),
        (r#""[1,2]{}:,""#, r#""[1,2]{}:,""#),
        (r#""\"\\\/\b\f\n\r\t""#, r#""\"\\/\b\f\n\r\t""#),
        (r#""\u0000\u001F\u007f""#, "\"\\u0000\\u001f\u{7f}\""),
        (r#""\u20AC\u20ac""#, r#""€€""#),
        (r#""\uD83D\uDE00""#, r#""😀""#),
        (r#""\\ud83d""#, r#""\\ud83d""#),
        ("\"\u{2028}\u{feff}\u{10ffff}\"", "\"\u{2028}\u{feff}\u{10ffff}\""),
        (r#"[1,1.0,1e0,10e-1]"#, "[1,1,1,1]"),
        ("[-0,-0.0,0e5,0E-5]", "[0,0,0,0]"),
    ];
    for (text, expected) in cases {
        check(text, expected);
    }
}

#[test]
fn texts_that_are_not_json_are_refused_where_they_go_wrong() {
    let cases = [
        ("", 0, "a value"),
        ("  ", 2, "a value"),
        ("\u{feff}1", 0, "a value"),
        ("\u{a0}1", 0, "a value"),
        ("1\u{b}", 1, "the end of the text"),
        ("1 2", 2, "the end of the text"),
        ("{}}", 2, "the end of the text"),
        ("null\0", 4, "the end of the text"),
        ("nul", 0, "a value"),
        ("True", 0, "a value"),
        ("nullx", 4, "the end of the text"),
        ("NaN", 0, "a value"),
        ("-Infinity", 1, "a digit"),
        ("undefined", 0, "a value"),
        ("'a'", 0, "a value"),
        ("/**/1", 0, "a value"),
        ("[", 1, "a value"),
        ("]", 0, "a value"),
        ("[1", 2, "`,` or `]`"),
        ("[1 2]", 3, "`,` or `]`"),
        ("[1,]", 3, "a value"),
        ("[,1]", 1, "a value"),
        ("[1}", 2, "`,` or `]`"),
        ("[1:2]", 2, "`,` or `]`"),
        ("{", 1, "a key"),
        ("{1:2}", 1, "a key"),
        ("{a:2}", 1, "a key"),
        (r#"{"a"}"#, 4, "`:`"),
        (r#"{"a",1}"#, 4, "`:`"),
        (r#"{"a":}"#, 5, "a value"),
        (r#"{"a":1"#, 6, "`,` or `}`"),
        (r#"{"a":1,}"#, 7, "a key"),
        (r#"{"a":1 "b":2}"#, 7, "`,` or `}`"),
        (r#"{"a":1]"#, 6, "`,` or `}`"),
        ("+1", 0, "a value"),
        (".5", 0, "a value"),
        ("-", 1, "a digit"),
        ("- 1", 1, "a digit"),
        ("01", 0, "no zero before other digits"),
        ("-00", 1, "no zero before other digits"),
        ("1.", 2, "a digit"),
        ("1.e3", 2, "a digit"),
        ("1e", 2, "a digit"),
        ("1e+", 3, "a digit"),
        ("1e1.5", 3, "the end of the text"),
        ("0x10", 1, "the end of the text"),
        ("1_000", 1, "the end of the text"),
        ("１", 0, "a value"),
        (r#"""#, 1, "a closing quote"),
        (r#""a"#, 2, "a closing quote"),
        (r#""\""#, 3, "a closing quote"),
        ("\"a\nb\"", 2, "no bare control character"),
        ("\"\t\"", 1, "no bare control character"),
        ("\"\0\"", 1, "no bare control character"),
        (r#""\"#, 1, "an escape"),
        (r#""\a""#, 1, "an escape"),
        (r#""\x41""#, 1, "an escape"),
        (r#""\U0041""#, 1, "an escape"),
        (r#""\é""#, 1, "an escape"),
        (r#""\u""#, 1, "`\\u` and four hex digits"),
        (r#""\u004""#, 1, "`\\u` and four hex digits"),
        (r#""\u004g""#, 1, "`\\u` and four hex digits"),
        (r#""\u+041""#, 1, "`\\u` and four hex digits"),
        (r#""\u00é""#, 1, "`\\u` and four hex digits"),
        (r#""\ud83d""#, 1, "a surrogate pair"),
        (r#""\ude00""#, 1, "a surrogate pair"),
        (r#""\ude00\ud83d""#, 1, "a surrogate pair"),
        (r#""\ud83d\ud83d""#, 1, "a surrogate pair"),
        (r#""\ud83dx""#, 1, "a surrogate pair"),
        (r#""\ud83d\n""#, 1, "a surrogate pair"),
        (r#""\ud83d\u0041""#, 1, "a surrogate pair"),
    ];
    for (text, offset, expected) in cases {
        check_refused(text, syntax(offset, expected));
    }
}

#[test]
fn keys_are_sorted_by_code_point() {
    check(r#"{"b":1,"a":2,"B":3,"":4,"aa":5}"#, r#"{"":4,"B":3,"a":2,"aa":5,"b":1}"#);
    // UTF-16 would put the emoji, a surrogate pair, before the private use character.
    check("{\"😀\":1,\"\u{e000}\":2,\"é\":3,\"z\":4}", "{\"z\":4,\"é\":3,\"\u{e000}\":2,\"😀\":1}");
}

#[test]
fn keys_are_sorted_by_what_they_mean_not_by_their_escapes() {
    check(r#"{"[":1,"\"":2,"!":3}"#, r#"{"!":3,"\"":2,"[":1}"#);
    check(r#"{"a":1,"\\":2,"A":3,"]":4}"#, r#"{"A":3,"\\":2,"]":4,"a":1}"#);
    check(r#"{" ":1,"\u001f":2,"\n":3,"\u0000":4}"#, r#"{"\u0000":4,"\n":3,"\u001f":2," ":1}"#);
    check(r#"{"a\nb":1,"a\n":2,"a":3,"é\n":4}"#, r#"{"a":3,"a\n":2,"a\nb":1,"é\n":4}"#);
}

#[test]
fn nested_objects_are_sorted_inside_sorted_objects() {
    check(
        r#"{"b":{"d":{"f":1,"e":2},"c":3},"a":[{"h":4,"g":5}]}"#,
        r#"{"a":[{"g":5,"h":4}],"b":{"c":3,"d":{"e":2,"f":1}}}"#,
    );
}

#[test]
fn a_repeated_key_is_refused_wherever_it_stands() {
    check_refused(r#"{"a":1,"a":1}"#, JsonProblem::DuplicateKey { offset: 7 });
    check_refused(r#"{"a":1,"b":2,"a":3}"#, JsonProblem::DuplicateKey { offset: 13 });
    check_refused(r#"{"b":1,"a":2,"c":3,"b":4}"#, JsonProblem::DuplicateKey { offset: 19 });
    check_refused(r#"[{"x":{"":1,"":2}}]"#, JsonProblem::DuplicateKey { offset: 12 });
}

#[test]
fn a_key_is_repeated_however_it_is_escaped() {
    check_refused(r#"{"a":1,"\u0061":2}"#, JsonProblem::DuplicateKey { offset: 7 });
    check_refused(r#"{"\n":1,"a":2,"\u000a":3}"#, JsonProblem::DuplicateKey { offset: 14 });
}

#[test]
fn the_same_key_may_stand_in_different_objects() {
    check(r#"[{"a":1},{"a":{"a":2}}]"#, r#"[{"a":1},{"a":{"a":2}}]"#);
}

#[test]
fn numbers_of_equal_value_get_equal_text() {
    let cases = [
        ("1E2", "100"),
        ("1.50", "1.5"),
        ("150e-2", "1.5"),
        ("0.015E+02", "1.5"),
        ("-12.340e1", "-123.4"),
        ("0.1e1", "1"),
        ("100e-2", "1"),
        ("1e-1", "0.1"),
        ("123e00000002", "12300"),
        ("-0.0e-7", "0"),
    ];
    for (text, expected) in cases {
        check(text, expected);
    }
}

#[test]
fn large_integers_keep_every_digit() {
    check("18446744073709551616", "18446744073709551616");
    check("-9223372036854775809.0", "-9223372036854775809");
    check("9007199254740993", "9007199254740993");
    check("123456789012345678901234567890", "1.2345678901234567890123456789e+29");
    check("0.1234567890123456789012345678901234567890", "0.123456789012345678901234567890123456789");
}

#[test]
fn an_exponent_is_written_only_for_very_large_and_very_small_numbers() {
    check("1e20", "100000000000000000000");
    check("999999999999999999999", "999999999999999999999");
    check("1e21", "1e+21");
    check("1000000000000000000000", "1e+21");
    check("-1234567890123456789012.5", "-1.2345678901234567890125e+21");
    check("1e-8", "0.00000001");
    check("12.5e-8", "0.000000125");
    check("1e-9", "1e-9");
    check("-0.00000000125", "-1.25e-9");
    check("1e400", "1e+400");
}

#[test]
fn exponents_are_bounded_as_given_and_as_written() {
    check("1e100000", "1e+100000");
    check("1e-100000", "1e-100000");
    check("10e99999", "1e+100000");
    for text in
        ["1e100001", "1e-100001", "10e100000", "0.1e-100000", "0e100001", "1e99999999999999999999", "1e-4294967296"]
    {
        check_refused(text, JsonProblem::Number { offset: 0 });
    }
}

#[test]
fn the_text_of_a_number_is_bounded_as_given_and_as_written() {
    let longest = format!("0.{}", "1".repeat(1022));
    check(&longest, &longest);
    check_refused(&format!("[{longest}1]"), JsonProblem::Number { offset: 1 });
    check_refused(&format!("-{longest}"), JsonProblem::Number { offset: 0 });
    check_refused(&format!("1.{}", "0".repeat(1023)), JsonProblem::Number { offset: 0 });
    // 1,024 digits would need a point and an exponent in canonical form.
    check_refused(&"1".repeat(1024), JsonProblem::Number { offset: 0 });
    check(&format!("1{}", "0".repeat(1023)), "1e+1023");
}

#[test]
fn texts_larger_than_the_limit_are_refused() {
    let limits = Limits { bytes_max: 6, ..Limits::default() };
    assert_eq!(CanonicalJson::parse_within("[1, 2]", &limits), Ok(parse("[1,2]")));
    let refused = |bytes| Err(JsonProblem::TooLarge { bytes, bytes_max: 6 });
    assert_eq!(CanonicalJson::parse_within("[1,  2]", &limits), refused(7));
    assert_eq!(CanonicalJson::parse_within("1e6", &limits), refused(7));
}

#[test]
fn the_default_limit_on_size_is_one_mebibyte() {
    let longest = format!("\"{}\"", "a".repeat(1024 * 1024 - 2));
    check(&longest, &longest);
    let bytes_max = 1024 * 1024;
    check_refused(&format!("{longest} "), JsonProblem::TooLarge { bytes: bytes_max + 1, bytes_max });
}

#[test]
fn nesting_deeper_than_the_limit_is_refused() {
    let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    check(&nested(64), &nested(64));
    check_refused(&nested(65), JsonProblem::TooDeep { depth_max: 64 });
    check_refused(&"{\"a\":".repeat(65), JsonProblem::TooDeep { depth_max: 64 });
    check_refused(&"[".repeat(1_000_000), JsonProblem::TooDeep { depth_max: 64 });
    let scalars_only = Limits { depth_max: 0, ..Limits::default() };
    assert_eq!(CanonicalJson::parse_within("[]", &scalars_only), Err(JsonProblem::TooDeep { depth_max: 0 }));
    assert_eq!(CanonicalJson::parse_within("1", &scalars_only), Ok(parse("1")));
}

#[test]
fn no_limit_lets_nesting_outgrow_what_can_be_decoded() {
    let limits = Limits { depth_max: usize::MAX, ..Limits::default() };
    let nested = |depth: usize, inside: &str| format!("{}{inside}{}", "[".repeat(depth), "]".repeat(depth));
    let deepest = CanonicalJson::parse_within(&nested(127, "1"), &limits).unwrap();
    assert_eq!(deepest.to_value().to_string(), nested(127, "1"));
    let saturated = CanonicalJson::parse_within(&nested(127, "1e400"), &limits).unwrap();
    assert_eq!(saturated.to_value().to_string(), nested(127, "1.7976931348623157e+308"));
    let too_deep = CanonicalJson::parse_within(&"[".repeat(1_000_000), &limits);
    assert_eq!(too_deep, Err(JsonProblem::TooDeep { depth_max: 127 }));
}

#[test]
fn more_values_than_the_limit_are_refused() {
    let limits = Limits { members_max: 4, ..Limits::default() };
    assert_eq!(CanonicalJson::parse_within(r#"{"a":[1,2]}"#, &limits), Ok(parse(r#"{"a":[1,2]}"#)));
    assert_eq!(CanonicalJson::parse_within("[1,2,3,4]", &limits), Err(JsonProblem::TooMany { members_max: 4 }));
    let many = |count: usize| format!("[{}]", vec!["1"; count].join(","));
    check(&many(99_999), &many(99_999));
    check_refused(&many(100_000), JsonProblem::TooMany { members_max: 100_000 });
}

#[test]
fn a_large_object_in_reverse_order_is_sorted() {
    let member = |key: usize| format!("\"{key:05}\":{key}");
    let forward: Vec<_> = (0..20_000).map(member).collect();
    let reverse: Vec<_> = (0..20_000).rev().map(member).collect();
    check(&format!("{{{}}}", reverse.join(", ")), &format!("{{{}}}", forward.join(",")));
}

#[test]
fn problems_say_where_and_never_what() {
    let cases = [
        (r#"{"secret":1,"secret":2}"#, "object key at byte 12 is a duplicate"),
        (r#"{"secret" 1}"#, "expected `:` at byte 10"),
        ("[1e999999]", "number at byte 1 has too large an exponent or too many digits"),
    ];
    for (text, expected) in cases {
        assert_eq!(CanonicalJson::parse(text).unwrap_err().to_string(), expected);
    }
    let too_large = JsonProblem::TooLarge { bytes: 9, bytes_max: 8 };
    assert_eq!(too_large.to_string(), "json has 9 bytes, at most 8 are accepted");
    assert_eq!(JsonProblem::TooDeep { depth_max: 64 }.to_string(), "json is nested deeper than 64 levels");
    assert_eq!(JsonProblem::TooMany { members_max: 9 }.to_string(), "json has more than 9 values");
}

#[test]
fn a_digest_is_of_the_canonical_bytes() {
    let canonical = parse(r#"{ "b": 1.0, "a": "\u0041" }"#);
    assert_eq!(canonical.as_bytes(), br#"{"a":"A","b":1}"#);
    assert_eq!(canonical.digest(), Digest::of(br#"{"a":"A","b":1}"#));
}

#[test]
fn only_an_object_is_an_object() {
    assert!(parse(" {} ").is_object());
    for text in ["[{}]", "\"{}\"", "1", "null"] {
        assert!(!parse(text).is_object(), "{text}");
    }
}

#[test]
fn debug_and_display_show_the_text() {
    let canonical = parse(r#"{"a": "b"}"#);
    assert_eq!(canonical.to_string(), r#"{"a":"b"}"#);
    assert_eq!(format!("{canonical:?}"), r#"{"a":"b"}"#);
}

#[test]
fn rust_values_become_canonical_json() {
    #[derive(Serialize)]
    struct Payment {
        to: &'static str,
        amount: f64,
        cents: u128,
    }
    let payment = Payment { to: "ana", amount: 1.0, cents: 1 << 64 };
    let canonical = CanonicalJson::from_serialize(&payment).unwrap();
    assert_eq!(canonical.as_str(), r#"{"amount":1,"cents":18446744073709551616,"to":"ana"}"#);
    assert_eq!(CanonicalJson::from_serialize(&canonical), Ok(canonical));
}

#[test]
fn a_rust_value_without_a_json_form_is_refused() {
    let problem = CanonicalJson::from_serialize(&BTreeMap::from([(vec![1], 2)])).unwrap_err();
    assert_eq!(problem, JsonProblem::Unserializable { reason: "key must be a string".to_owned() });
}

#[test]
fn a_tree_has_the_nearest_numbers_it_can_hold() {
    let canonical = parse(r#"{"a":[18446744073709551615,1.0,0.5],"b":1e400,"c":[-1e400,"1e400"],"d":1e-400}"#);
    let expected = json!({
        "a": [18446744073709551615u64, 1, 0.5], "b": f64::MAX, "c": [f64::MIN, "1e400"], "d": 0.0,
    });
    assert_eq!(canonical.to_value(), expected);
}

#[test]
fn decoding_gives_the_type_asked_for() {
    let decoded: BTreeMap<String, f64> = parse(r#"{"a":1.0,"b":0.25}"#).decode().unwrap();
    assert_eq!(decoded, BTreeMap::from([("a".to_owned(), 1.0), ("b".to_owned(), 0.25)]));
    assert!(parse("[1]").decode::<String>().is_err());
    assert!(parse("1e400").decode::<f64>().is_err());
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Record {
    arguments: CanonicalJson,
    before: Option<CanonicalJson>,
}

#[test]
fn a_record_holds_the_json_as_it_stands() {
    let record = Record { arguments: parse(r#"{"n":18446744073709551617,"m":1e400}"#), before: None };
    let stored = serde_json::to_string(&record).unwrap();
    assert_eq!(stored, r#"{"arguments":{"m":1e+400,"n":18446744073709551617},"before":null}"#);
    assert_eq!(serde_json::from_str::<Record>(&stored).unwrap(), record);
    assert_eq!(serde_json::from_reader::<_, Record>(stored.as_bytes()).unwrap(), record);
}

#[test]
fn a_record_that_was_pretty_printed_reads_as_the_same_json() {
    let stored = "{\n  \"arguments\" : {\n    \"b\": 1.0,\n    \"a\": [ ]\n  },\n \"before\": [ 1 ]\n}";
    let record = Record { arguments: parse(r#"{"a":[],"b":1}"#), before: Some(parse("[1]")) };
    assert_eq!(serde_json::from_str::<Record>(stored).unwrap(), record);
    let tree = serde_json::to_value(&record).unwrap();
    assert_eq!(tree, json!({ "arguments": { "a": [], "b": 1 }, "before": [1] }));
    assert_eq!(serde_json::from_value::<Record>(tree).unwrap(), record);
}

#[test]
fn what_was_accepted_under_wider_limits_can_be_read_back() {
    let text = format!("{}\"{}\"{}", "[".repeat(100), "a".repeat(2 * 1024 * 1024), "]".repeat(100));
    let accepted = CanonicalJson::parse_within(&text, &Limits::WIDEST).unwrap();
    let stored = serde_json::to_string(&accepted).unwrap();
    assert_eq!(serde_json::from_str::<CanonicalJson>(&stored).unwrap(), accepted);
}

#[test]
fn a_record_with_a_problem_says_which() {
    let problem = serde_json::from_str::<Record>(r#"{"arguments":{"a":1,"a":2}}"#).unwrap_err();
    assert!(problem.to_string().starts_with("object key at byte 7 is a duplicate"), "{problem}");
}

#[test]
fn json_that_serde_has_already_turned_into_a_tree_is_refused() {
    #[derive(Debug, Deserialize)]
    #[serde(tag = "type")]
    enum Tagged {
        Called { _arguments: CanonicalJson },
    }
    let read = serde_json::from_str::<Tagged>(r#"{"type":"Called","_arguments":{"n":18446744073709551617}}"#);
    assert!(read.is_err(), "{read:?}");
}

#[test]
fn a_number_that_does_not_fit_64_bits_is_found() {
    let found = |text: &str| CanonicalJson::parse(text).unwrap().inexact_number().map(str::to_owned);
    for exact in [
        "18446744073709551615",
        "-9223372036854775808",
        "9007199254740993",
        "0.1",
        "-0.1",
        "1e20",
        "1e300",
        "1.5e-300",
        "123456.789",
        "0",
        "-0",
        "1e-7",
        r#"{"text": "18446744073709551616", "18446744073709551616\\\"": [1, 2.5, true, null]}"#,
    ] {
        assert_eq!(found(exact), None, "{exact}");
    }
    for (text, number) in [
        ("18446744073709551616", "18446744073709551616"),
        ("-9223372036854775809", "-9223372036854775809"),
        ("123456789012345678901", "123456789012345678901"),
        ("1e400", "1e+400"),
        ("-1e400", "-1e+400"),
        ("1e-400", "1e-400"),
        ("0.1000000000000000055511151231257827", "0.1000000000000000055511151231257827"),
        (r#"{"a": [1, {"\"b\"": "x\\"}], "c": 1e400}"#, "1e+400"),
    ] {
        assert_eq!(found(text).as_deref(), Some(number), "{text}");
    }
}
