//! Calls start, and something comes of them.

use holdpoint_core::input::Input;
use holdpoint_core::message::{Content, Part, Source};
use holdpoint_core::run::limits;
use holdpoint_core::tool::Outcome;

use super::common::{check, play};

#[test]
fn a_call_that_may_not_run_does_not_start() {
    check(
        r#"user: go
           model: pay & sell & drop
           policy: hold & deny & skip
           ---
           start 1.0
           start 1.1
           start 1.2
           start 7.7"#,
        "refused out_of_turn
         refused out_of_turn
         refused out_of_turn
         refused out_of_turn
         next    screen 1.2; word 1.1",
    );
}

#[test]
fn a_call_starts_once() {
    check(
        r#"user: go
           model: pay & sell
           policy: allow
           ---
           start 1.0 1.0
           start 1.0
           start 1.0
           start 1.1 1.0"#,
        "refused      out_of_turn
         call started 1.0
         refused      out_of_turn
         refused      out_of_turn
         next         run 1.1",
    );
}

#[test]
fn a_run_whose_calls_are_under_way_waits_for_them() {
    check(
        r#"user: go
           model: pay & sell
           policy: allow
           ---
           start
           tool 1.1: "sold""#,
        r#"call started  1.0
           call started  1.1
           call answered 1.1 result "sold"
           next          await calls"#,
    );
}

#[test]
fn a_tool_that_fails_does_not_undo_its_siblings() {
    check(
        r#"user: go
           model: pay & sell
           policy: allow
           start
           ---
           tool 1.1: "sold"
           tool 1.0 fails: "no funds"
           look: model"#,
        r#"call answered     1.1 result "sold"
           call answered     1.0 failure "no funds"
           sees user         "go"
           sees assistant    pay#c1 sell#c2
           sees error result c1 "no funds"
           sees result       c2 "sold"
           next              call model root"#,
    );
}

#[test]
fn an_outcome_needs_a_start_and_comes_once() {
    let outcome = |at: &str| Input::CallEnded { call: at.parse().unwrap(), outcome: Outcome::Result("x".into()) };
    let mut world = play("user: go\n model: pay & sell\n policy: allow & hold\n ---");
    for at in ["1.0", "1.1", "1.2", "2.0"] {
        assert_eq!(world.give(outcome(at)).map_err(|refusal| refusal.code()), Err("out_of_turn"), "{at}");
    }
    super::common::play_on(&mut world, r#"tool 1.0: "paid""#);
    assert_eq!(world.give(outcome("1.0")).map_err(|refusal| refusal.code()), Err("out_of_turn"));
}

#[test]
fn a_tool_cannot_say_that_it_did_not_run() {
    for outcome in [
        Outcome::Expired,
        Outcome::Withdrawn,
        Outcome::Abandoned,
        Outcome::Denied("no".to_owned()),
        Outcome::Responded("yes".to_owned()),
    ] {
        let mut world = play("user: go\n model: pay\n policy: allow\n start\n ---");
        let ended = Input::CallEnded { call: "1.0".parse().unwrap(), outcome };
        assert_eq!(world.give(ended).map_err(|refusal| refusal.code()), Err("out_of_turn"));
    }
}

#[test]
fn a_guardrail_can_stop_an_approved_call_right_before_it_runs() {
    check(
        r#"user: go
           model: pay
           policy: hold
           ana: approve #1
           ---
           blocked 1.0: "not to this account"
           start 1.0"#,
        r#"guardrails ran 1.0 g objected "not to this account"
           call answered  1.0 denied "not to this account"
           refused        out_of_turn
           next           call model root"#,
    );
}

#[test]
fn an_outcome_that_is_too_long_is_cut_and_says_so() {
    let long = "é".repeat(limits::RESULT_BYTES_MAX / 2 + 1);
    let image = Part::Image { media_type: "image/png".to_owned(), source: Source::Base64(long.clone()) };
    for outcome in [
        Outcome::Result(long.clone().into()),
        Outcome::Failure(long.clone()),
        Outcome::Invalid(long.clone()),
        Outcome::Result(Content::Parts(vec![image])),
    ] {
        let mut world = play("user: go\n model: pay\n policy: allow\n start\n ---");
        world.give(Input::CallEnded { call: "1.0".parse().unwrap(), outcome }).unwrap();
        let items = world.run.items();
        let holdpoint_core::message::Item::ToolResult { output, .. } = &**items.last().unwrap() else { panic!() };
        assert!(output.size() < limits::RESULT_BYTES_MAX + 100);
        let text = output.to_text();
        assert!(text.contains("bytes"), "{}", &text[text.len() - 60..]);
    }
}

#[test]
fn each_family_of_tools_reports_a_denial_in_its_own_form() {
    for (family, told) in [
        ("", r#""no""#),
        ("shell", r#"{"output":[{"outcome":{"exit_code":null,"type":"exit"},"stderr":"no","stdout":""}]}"#),
        ("patch", r#"{"output":"no","status":"failed"}"#),
        ("computer", "2 parts"),
        ("mcp files", r#"{"approve":false,"reason":"no"}"#),
    ] {
        check(
            &format!(
                r#"given tool act: {family}
                   user: go
                   model: act
                   policy: hold
                   ana: deny #1 "no"
                   ---
                   look: model"#
            ),
            &format!("sees user \"go\"\n sees assistant act#c1\n sees error result c1 {told}\n next call model root"),
        );
    }
}
