use super::*;

fn problem(text: &str, part: &str) -> Diagnostic {
    let source = Arc::new(Source::new("agents/a.yaml", text));
    let start = text.find(part).expect("the part is in the text");
    let span = Span { start, end: start + part.len() };
    Diagnostic::within(&source, span, Severity::Error, Code::BadValue, "this is wrong")
}

fn check(problem: &Diagnostic, expected: &str) {
    let expected: Vec<&str> = expected.trim_matches('\n').lines().map(|line| line.trim_end()).collect();
    assert_eq!(problem.render(Style::Plain).trim_end(), expected.join("\n"), "\n{}", problem.render(Style::Plain));
}

#[test]
fn a_problem_is_one_line_for_logs() {
    let found = problem("a: 1\nb: xác\n", "xác").with_hint("write another");
    assert_eq!(found.to_string(), "agents/a.yaml:2:4: error: this is wrong (hint: write another)");
    assert_eq!(found.end, Position { line: 2, column: 7 });
    let outside = Diagnostic::outside("flag --listen", Severity::Warning, Code::BadValue, "odd");
    assert_eq!(outside.to_string(), "flag --listen: warning: odd");
}

#[test]
fn a_problem_is_shown_with_its_line() {
    check(
        &problem("a: 1\nb: xác # note\n", "xác").with_hint("write another"),
        "
error[bad_value]: this is wrong
 --> agents/a.yaml:2:4
  |
2 | b: xác # note
  |    ^^^
  |
  = hint: write another",
    );
}

#[test]
fn a_problem_over_several_lines_is_shown_with_the_first() {
    check(
        &problem("a: |\n  one\n  two\n", "|\n  one\n  two"),
        "
error[bad_value]: this is wrong
 --> agents/a.yaml:1:4
  |
1 | a: |
  |    ^",
    );
}

#[test]
fn a_problem_outside_of_a_file_has_no_line() {
    check(
        &Diagnostic::outside("environment variable X", Severity::Warning, Code::BadValue, "odd").with_hint("unset it"),
        "
warning[bad_value]: odd
--> environment variable X
 = hint: unset it",
    );
}

#[test]
fn what_would_hide_or_act_in_a_terminal_is_replaced() {
    let text = "a: \u{1b}[31m\u{202e}evil\t\u{200b}x\n";
    let shown = problem(text, "x").render(Style::Plain);
    assert!(!shown.contains(['\u{1b}', '\u{202e}', '\u{200b}']), "{shown:?}");
    assert_eq!(quoted("a\u{1b}`b\nc"), "`a⟦U+001B⟧ b c`");
    assert_eq!(quoted(&"x".repeat(100)), format!("`{}…`", "x".repeat(60)));
}

#[test]
fn a_long_line_is_cut_around_the_problem_and_its_column_stays_true() {
    let text = format!("a: {}BAD{}", "x".repeat(2_000), "y".repeat(2_000));
    let found = problem(&text, "BAD");
    let shown = found.render(Style::Plain);
    assert!(shown.contains("agents/a.yaml:1:2004"), "{shown}");
    assert!(shown.contains("BAD") && shown.len() < 1_000, "{shown}");

    let text = format!("a: {}BAD", "x".repeat(20_000));
    assert_eq!(
        problem(&text, "BAD").render(Style::Plain),
        "error[bad_value]: this is wrong\n--> agents/a.yaml:1:20004"
    );
}

#[test]
fn all_problems_are_shown_and_counted() {
    assert_eq!(render_all(&[], Style::Plain), "");
    let warning = Diagnostic::outside("a", Severity::Warning, Code::NoEffect, "odd");
    let error = Diagnostic::outside("b", Severity::Error, Code::BadValue, "bad");
    assert!(render_all(std::slice::from_ref(&warning), Style::Plain).ends_with("\n1 warning\n"));
    assert!(render_all(&[error.clone(), warning, error], Style::Plain).ends_with("\n2 errors, 1 warning\n"));
}

#[test]
fn colours_are_for_terminals_only() {
    let found = problem("a: 1\n", "1");
    assert!(found.render(Style::Coloured).contains('\u{1b}'));
    assert!(!found.render(Style::Plain).contains('\u{1b}'));
}

#[test]
fn codes_have_names_of_their_own() {
    let mut names: Vec<&str> = Code::ALL.iter().map(|code| code.name()).collect();
    for name in &names {
        assert!(name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_'), "{name}");
        assert_eq!(Code::from_name(name).map(Code::name), Some(*name));
    }
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), Code::ALL.len());
}
