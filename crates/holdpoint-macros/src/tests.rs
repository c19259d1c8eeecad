//! What the attribute refuses, in which words and where. What it makes is tested in `tests/tool.rs`.

use std::str::FromStr;

use proc_macro2::TokenStream;

use crate::tool::expand;

/// The refusal, and the source text that it points at.
fn refusal(options: &str, function: &str) -> (String, String) {
    let read = |text: &str| TokenStream::from_str(text).expect("tokens");
    let (options_tokens, function_tokens) = (read(options), read(function));
    let error = expand(options_tokens, function_tokens).expect_err("a refusal");
    (error.to_string(), error.span().source_text().unwrap_or_default())
}

fn check(function: &str, message: &str, at: &str) {
    assert_eq!(refusal("", function), (message.to_owned(), at.to_owned()), "{function}");
}

fn check_options(options: &str, message: &str, at: &str) {
    assert_eq!(refusal(options, "async fn f() {}"), (message.to_owned(), at.to_owned()), "{options}");
}

const KNOWN: &str = "one of `name = \"…\"`, `needs_approval`, `needs_approval_when = …`, `effect = …` and `timeout_seconds = …` expected";

#[test]
fn only_an_async_function_is_a_tool() {
    check("fn f() {}", "a tool is an `async fn`", "fn");
    check("struct S;", "`#[tool]` stands on an async function with a body", "struct");
    check("async fn f();", "`#[tool]` stands on an async function with a body", ";");
    check("async unsafe fn f() {}", "a tool is called by a model's wish: it cannot be unsafe", "unsafe");
    check(r#"async extern "C" fn f() {}"#, "a tool is a plain `async fn`", r#"extern "C""#);
}

#[test]
fn a_method_is_no_tool() {
    for receiver in ["self", "&self", "&mut self", "self: Box<Self>"] {
        let function = format!("async fn f({receiver}, a: String) {{}}");
        check(&function, "a tool is a free function: it has no `self`", receiver);
    }
}

#[test]
fn generics_have_no_schema() {
    let message = "a tool has no generics: its arguments need one schema";
    check("async fn f<T: Clone>(a: T) {}", message, "<T: Clone>");
    check("async fn f<'a>(a: Cow<'a, str>) {}", message, "<'a>");
    check("async fn f(a: String) where String: Clone {}", message, "where String: Clone");
    check(
        "async fn f(a: impl Into<String>) {}",
        "an argument needs a type of its own, not `impl Trait`",
        "impl Into<String>",
    );
}

#[test]
fn an_argument_has_a_plain_name() {
    let message = "an argument needs a plain name, which models give it by; take it apart in the function";
    check("async fn f((a, b): (u8, u8)) {}", message, "(a, b)");
    check("async fn f(_: u8) {}", message, "_");
    check("async fn f(ref a: u8) {}", "an argument needs a plain name", "ref a");
}

#[test]
fn an_argument_is_owned() {
    let message = "an argument is owned: `String` instead of `&str`, `Vec<T>` instead of `&[T]`";
    for of in ["&str", "&'static str", "Option<&str>", "Vec<(u8, &'a [u8])>", "Cow<'a, str>"] {
        check(&format!("async fn f(a: {of}) {{}}"), message, of);
    }
    let owned = "async fn f(a: Cow<'static, str>) {}".parse().expect("tokens");
    assert!(expand(TokenStream::new(), owned).is_ok());
}

#[test]
fn arguments_are_not_flattened() {
    let message = "arguments are not flattened: what no parameter is named after is refused";
    check("async fn f(#[serde(flatten)] a: Map) {}", message, "#[serde(flatten)]");
}

#[test]
fn the_context_is_the_first_parameter_and_given_by_value() {
    let message = "the context is given by value: `ToolContext`";
    check("async fn f(c: &ToolContext) {}", message, "&ToolContext");
    check("async fn f(c: &mut holdpoint::ToolContext) {}", message, "&mut holdpoint::ToolContext");
    let message = "the context is the first parameter, and there is one";
    check("async fn f(a: u8, c: ToolContext) {}", message, "c: ToolContext");
    check("async fn f(c: ToolContext, d: ToolContext) {}", message, "d: ToolContext");
    let message = "the context is no argument: it takes no attributes";
    check("async fn f(#[serde(default)] c: ToolContext) {}", message, "#[serde(default)]");
}

#[test]
fn an_unknown_option_is_named() {
    check_options("need_approval", KNOWN, "need_approval");
    check_options("\"name\"", KNOWN, "\"name\"");
    check_options("strict = true", KNOWN, "strict");
}

#[test]
fn an_option_is_said_once() {
    check_options("effect = read_only, effect = idempotent", "`effect` is said twice", "effect");
    check_options("name = \"a\", name = \"b\"", "`name` is said twice", "name");
    check_options("timeout_seconds = 1, timeout_seconds = 1", "`timeout_seconds` is said twice", "timeout_seconds");
    let message = "when approval is needed is said twice";
    check_options("needs_approval, needs_approval", message, "needs_approval");
    check_options("needs_approval, needs_approval_when = p", message, "needs_approval_when");
    check_options("needs_approval_when = p, needs_approval = false", message, "needs_approval");
}

#[test]
fn an_effect_is_one_of_three() {
    let message = "`read_only`, `idempotent` or `at_most_once` expected";
    for effect in ["pure", "\"read_only\"", "ReadOnly", "Effect::ReadOnly"] {
        check_options(&format!("effect = {effect}"), message, effect);
    }
}

#[test]
fn a_timeout_is_a_number_of_seconds() {
    let message = "a number of seconds from 1 to 86400 expected";
    for seconds in ["0", "86401", "99999999999999999999999"] {
        check_options(&format!("timeout_seconds = {seconds}"), message, seconds);
    }
    check_options("timeout_seconds = \"30\"", "expected integer literal", "\"30\"");
}

#[test]
fn a_predicate_is_a_function() {
    let message = "the path of a function, or a closure, expected";
    check_options("needs_approval_when = true", message, "true");
    check_options("needs_approval_when = \"is_far\"", message, "\"is_far\"");
    check_options("needs_approval = 1", "expected boolean literal", "1");
}

#[test]
fn a_bad_name_is_refused_when_the_program_is_compiled() {
    let expected = "is no tool name: 1 to 128 letters, digits, '_', '-', '.' or ':' expected";
    for name in ["", "get weather", "wetter_für_morgen", "a/b"] {
        check_options(&format!("name = {name:?}"), &format!("{name:?} {expected}"), &format!("{name:?}"));
    }
    let long = "x".repeat(129);
    check_options(&format!("name = {long:?}"), &format!("{long:?} {expected}"), &format!("{long:?}"));
    let message = format!("\"größe\" {expected}; give it one: `#[tool(name = \"…\")]`");
    check("async fn größe() {}", &message, "größe");
}

#[test]
fn a_description_is_written_out_and_bounded() {
    let message = "a tool's description is written out: `///` comments, or a string";
    check("#[doc = include_str!(\"a\")] async fn f() {}", message, "include_str!(\"a\")");
    let long = format!("\"{}\"", "x".repeat((64 << 10) + 1));
    check(&format!("#[doc = {long}] async fn f() {{}}"), "the description is longer than 64 KiB", &long);
}
