//! Somebody answers.

use holdpoint_core::decision::{Decision, DecisionInput};
use holdpoint_core::ids::PauseId;
use holdpoint_core::input::Input;
use holdpoint_core::json::{CanonicalJson, Limits};
use holdpoint_core::run::limits;

use super::common::{actor, check, play};

const HELD: &str = r#"user: go
    model: pay {"amount": 5}
    policy: hold
    ---
"#;

const IN_DOUBT: &str = "user: go
    model: pay
    policy: allow
    start
    crash
    ---
";

#[track_caller]
fn check_after(given: &str, script: &str, expected: &str) {
    check(&format!("{given}\n{script}"), expected);
}

#[test]
fn an_approved_call_runs() {
    check_after(
        HELD,
        r#"ana: approve #1
           tool 1.0: "paid""#,
        r#"pause decided #1 approve by ana
           call started  1.0
           call answered 1.0 result "paid"
           next          call model root"#,
    );
}

#[test]
fn a_denial_reaches_the_model_as_a_tool_outcome() {
    check_after(
        HELD,
        r#"ana: deny #1 "keep it until Friday"
           look: model"#,
        r#"pause decided     #1 deny "keep it until Friday" by ana
           call answered     1.0 denied "keep it until Friday"
           sees user         "go"
           sees assistant    pay#c1
           sees error result c1 "keep it until Friday"
           next              call model root"#,
    );
}

#[test]
fn an_empty_text_is_a_text() {
    check_after(
        HELD,
        r#"ana: deny #1 """#,
        r#"pause decided #1 deny "" by ana
           call answered 1.0 denied ""
           next          call model root"#,
    );
}

#[test]
fn a_denial_without_a_text_asks_for_words() {
    check_after(
        HELD,
        r#"ana: deny #1
           words: "Tool execution was not approved.""#,
        r#"pause decided #1 deny by ana
           call answered 1.0 denied "Tool execution was not approved."
           next          call model root"#,
    );
}

#[test]
fn a_denial_without_a_text_finds_the_words_of_a_standing_rule() {
    let script = r#"user: go
        model: pay & pay
        policy: hold
        ana: always deny #1 "ask the bank"
        ana: deny #2"#;
    let world = play(script);
    let call = "1.1".parse().unwrap();
    assert_eq!(world.run.rule_words(&call, &[], world.now), Some("ask the bank".to_owned()));
    let unruled = play("user: go\n model: pay\n policy: hold\n ana: deny #1");
    assert_eq!(unruled.run.rule_words(&"1.0".parse().unwrap(), &[], unruled.now), None);
}

#[test]
fn a_person_can_answer_in_the_tools_place() {
    check_after(
        HELD,
        r#"ana: respond #1 "paid by hand"
           look: model"#,
        r#"pause decided  #1 respond "paid by hand" by ana
           call answered  1.0 responded "paid by hand"
           sees user      "go"
           sees assistant pay#c1
           sees result    c1 "paid by hand"
           next           call model root"#,
    );
}

#[test]
fn edited_arguments_run_in_place_of_those_asked_for() {
    check_after(
        HELD,
        r#"ana: approve #1 edited {"amount": 4}
           look: call 1.0
           tool 1.0: "paid 4""#,
        r#"pause decided #1 approve_edited {"amount":4} by ana
           call          1.0 is allowed {"amount":4} after 0 starts
           call started  1.0
           call answered 1.0 result "paid 4"
           next          call model root"#,
    );
}

#[test]
fn edited_arguments_are_an_object() {
    check_after(HELD, "ana: approve #1 edited [1]", "refused invalid_arguments\n next await #1");
}

#[test]
fn edited_arguments_hold_no_number_that_would_run_as_another_one() {
    for number in ["18446744073709551616", "1e400", "0.1000000000000000055511151231257827", "1e-400"] {
        let mut world = play(HELD);
        let before = world.run.clone();
        let arguments = CanonicalJson::parse(&format!(r#"{{"amount": {number}}}"#)).unwrap();
        let pause = PauseId { run: world.run.id(), number: 1 };
        let edit = DecisionInput::new(pause, Decision::ApproveEdited { arguments }, actor("ana"));
        let refused = world.give(Input::Decision(edit)).unwrap_err();
        assert_eq!((refused.code(), refused.pause()), ("number_out_of_range", Some(pause)), "{refused}");
        assert_eq!(world.run, before);
    }
}

#[test]
fn decided_calls_go_on_and_the_rest_stays_open() {
    check(
        r#"user: go
           model: pay & sell & drop
           policy: hold
           ---
           ana: approve #2
           tool 1.1: "sold"
           ana: deny #3 "no"
           restart
           ana: approve #1"#,
        r#"pause decided #2 approve by ana
           call started  1.1
           call answered 1.1 result "sold"
           pause decided #3 deny "no" by ana
           call answered 1.2 denied "no"
           pause decided #1 approve by ana
           next          run 1.0"#,
    );
}

#[test]
fn deciding_one_of_several_calls_decides_only_that_one() {
    check(
        r#"user: go
           model: pay {"amount": 1} & pay {"amount": 2}
           policy: hold
           ---
           ana: approve #1
           look: pauses"#,
        r#"pause decided #1 approve by ana
           open          #2 approval of Support 1.1 pay {"amount":2}
           next          run 1.0"#,
    );
}

#[test]
fn the_same_decision_again_is_the_recorded_one() {
    check_after(
        HELD,
        r#"ana: approve #1
           ana: approve #1
           bo: approve #1
           tool 1.0: "paid"
           model says: done
           ana: approve #1"#,
        r#"pause decided #1 approve by ana
           call started  1.0
           call answered 1.0 result "paid"
           model replied
           run finished  done "done"
           next          finished done "done""#,
    );
}

#[test]
fn another_decision_is_told_who_was_first() {
    check_after(
        HELD,
        r#"ana: approve #1
           bo: deny #1 "no"
           bo: respond #1 "x"
           bo: approve #1 edited {"amount": 4}"#,
        "pause decided #1 approve by ana
         refused       already_decided
         refused       already_decided
         refused       already_decided
         next          run 1.0",
    );
    let mut world = play(&format!("{HELD}\nana: approve #1"));
    let pause = PauseId { run: world.run.id(), number: 1 };
    let refusal = world.give(Input::Decision(DecisionInput::new(pause, Decision::deny("no"), actor("bo")))).unwrap_err();
    assert_eq!(
        refusal.to_string(),
        format!("pause {pause} was already decided: approve by ana at 2026-11-15T09:30:00.000Z")
    );
}

#[test]
fn a_repeated_decision_with_a_new_rule_is_not_the_same_decision() {
    check_after(
        HELD,
        "ana: approve #1
         ana: always approve #1",
        "pause decided #1 approve by ana
         refused       already_decided
         next          run 1.0",
    );
}

#[test]
fn a_repeated_decision_with_its_rule_is_the_recorded_one() {
    check_after(
        HELD,
        "ana: always approve #1
         ana: always approve #1
         ana: always approve #1 uses 1",
        "pause decided #1 approve by ana
         rule made     1 approves pay of Support
         refused       already_decided
         next          run 1.0",
    );
}

#[test]
fn an_unknown_pause_is_not_found() {
    check_after(
        HELD,
        "ana: approve #2
         ana: approve #0
         ana: approve other#1
         deadline #2
         deadline other#1",
        "refused not_found
         refused not_found
         refused not_found
         refused not_found
         refused not_found
         next    await #1",
    );
}

#[test]
fn a_stale_view_decides_nothing() {
    check_after(
        HELD,
        "ana: approve #1 seen other
         ana: deny #1 seen other
         ana: approve #1 seen it",
        "refused       stale_view
         refused       stale_view
         pause decided #1 approve by ana
         next          run 1.0",
    );
}

#[test]
fn a_decision_answers_its_own_kind_of_pause() {
    check_after(
        HELD,
        r#"ana: answer #1 {"Which?": ["a"]}
           ana: happened #1 "x"
           ana: run again #1
           ana: abandon #1"#,
        "refused decision_not_allowed
         refused decision_not_allowed
         refused decision_not_allowed
         refused decision_not_allowed
         next    await #1",
    );
    check_after(
        IN_DOUBT,
        r#"ana: approve #1
           ana: deny #1
           ana: respond #1 "x"
           ana: approve #1 edited {}"#,
        "refused decision_not_allowed
         refused decision_not_allowed
         refused decision_not_allowed
         refused decision_not_allowed
         next    await #1",
    );
}

#[test]
fn the_words_of_a_decision_are_bounded() {
    let long = "x".repeat(limits::TEXT_BYTES_MAX + 1);
    let wide = Limits { bytes_max: usize::MAX, ..Limits::default() };
    let arguments = CanonicalJson::parse_within(&format!(r#"{{"x":"{long}"}}"#), &wide).unwrap();
    let held = [
        Decision::deny(&long),
        Decision::Respond { content: long.clone() },
        Decision::ApproveEdited { arguments },
    ];
    let in_doubt = [Decision::Happened { result: long.clone().into() }];
    for (given, decisions) in [(HELD, &held[..]), (IN_DOUBT, &in_doubt[..])] {
        for decision in decisions {
            let mut world = play(given);
            let pause = PauseId { run: world.run.id(), number: 1 };
            let refusal = world.give(Input::Decision(DecisionInput::new(pause, decision.clone(), actor("ana"))));
            assert_eq!(refusal.map_err(|refusal| refusal.code()), Err("over_limit"), "{}", decision.name());
        }
    }
    let just_fits = Decision::deny("x".repeat(limits::TEXT_BYTES_MAX));
    let mut world = play(HELD);
    let pause = PauseId { run: world.run.id(), number: 1 };
    assert!(world.give(Input::Decision(DecisionInput::new(pause, just_fits, actor("ana")))).is_ok());
}

#[test]
fn a_call_whose_tool_changed_is_held_again_with_what_would_run() {
    check_after(
        HELD,
        r#"ana: approve #1 edited {"amount": 4}
           drift 1.0: "the tool changed" until +5m
           ana: approve #1 edited {"amount": 4}
           ana: approve #2 seen it
           tool 1.0: "paid""#,
        r#"pause decided #1 approve_edited {"amount":4} by ana
           pause opened  #2 approval 1.0 pay {"amount":4} until +5m because "the tool changed"
           pause decided #2 approve by ana
           call started  1.0
           call answered 1.0 result "paid"
           next          call model root"#,
    );
}

#[test]
fn only_what_is_allowed_and_has_not_started_is_held_again() {
    check(
        r#"user: go
           model: pay & sell & drop
           policy: hold & allow & allow
           start 1.2
           ---
           drift 1.0: "changed"
           drift 1.2: "changed"
           drift 1.1 1.1: "changed"
           drift 1.1 1.0: "changed""#,
        "refused out_of_turn
         refused out_of_turn
         refused out_of_turn
         refused out_of_turn
         next    run 1.1",
    );
}
