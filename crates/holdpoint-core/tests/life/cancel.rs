//! Somebody ends a run, wherever it is.

use holdpoint_core::input::Input;
use holdpoint_core::run::{answered_items, limits};

use super::common::{World, actor, check, item_line, play, play_on};

#[test]
fn a_cancelled_run_withdraws_what_waits_and_what_has_not_started() {
    check(
        r#"user: go
           model: pay & sell & drop & look & fetch
           policy: hold & allow & deny & skip & allow
           start 1.4
           ---
           ana: cancel "changed my mind"
           ana: approve #1
           ana: deny #1
           deadline #1
           start 1.1"#,
        "pause withdrawn #1
         call answered   1.0 withdrawn
         call answered   1.1 withdrawn
         call answered   1.2 withdrawn
         call answered   1.3 withdrawn
         run finished    cancelled by ana
         refused         withdrawn
         refused         withdrawn
         refused         withdrawn
         refused         run_finished
         next            finished cancelled by ana",
    );
}

#[test]
fn a_call_under_way_is_still_recorded_after_the_end() {
    check(
        r#"user: go
           model: pay & sell
           policy: allow & hold
           start
           cancel
           ---
           restart
           tool 1.0: "paid"
           tool 1.0: "paid twice""#,
        r#"call answered 1.0 result "paid"
           refused       out_of_turn
           next          finished cancelled by ana"#,
    );
}

#[test]
fn a_later_run_is_told_of_a_call_that_was_under_way_at_the_end() {
    let mut world = play(
        r#"user: go
           model: pay & sell
           policy: allow & hold
           start
           cancel"#,
    );
    let shown = |world: &World| -> Vec<String> {
        answered_items(&world.run.items()).iter().map(|item| item_line(item)).collect()
    };
    let withdrawn = r#"error result c2 "The call was withdrawn; it did not run.""#;
    let in_doubt = r#"error result c1 "The call was interrupted; whether it took effect is not known.""#;
    assert_eq!(shown(&world), [r#"user "go""#, "assistant pay#c1 sell#c2", in_doubt, withdrawn]);
    play_on(&mut world, r#"tool 1.0: "paid""#);
    assert_eq!(shown(&world), [r#"user "go""#, "assistant pay#c1 sell#c2", r#"result c1 "paid""#, withdrawn]);
}

#[test]
fn a_call_under_way_in_an_inner_agent_is_still_recorded_after_the_end() {
    check(
        r#"given tool helper: agent
           user: go
           model: helper
           policy: allow
           model 1.0: helper & pay
           policy: allow
           model 1.0/1.0: sell & drop
           policy: allow & hold
           start
           ---
           cancel
           tool 1.0/1.0/1.0: "sold"
           restart
           tool 1.0/1.1 fails: "no funds""#,
        r#"pause withdrawn #1
           call answered   1.0/1.0/1.1 withdrawn
           call answered   1.0/1.0 abandoned
           call answered   1.0 abandoned
           run finished    cancelled by ana
           call answered   1.0/1.0/1.0 result "sold"
           call answered   1.0/1.1 failure "no funds"
           next            finished cancelled by ana"#,
    );
}

#[test]
fn a_run_can_be_cancelled_in_every_phase() {
    for given in [
        "user: go",
        "given agent: checks input\n user: go",
        "given agent: checks output\n user: go\n model says: done",
        "user: go\n model asks: sure?",
        "user: go\n model: pay",
        "user: go\n model: pay\n policy: hold",
        "user: go\n model: pay\n policy: allow",
        "user: go\n model: pay\n policy: deny",
        "user: go\n model: pay\n policy: allow\n start",
        "user: go\n model: pay\n policy: allow\n start\n crash",
        "given tool helper: agent\n user: go\n model: helper\n policy: allow",
        "given tool helper: agent, checks input\n user: go\n model: helper\n policy: allow",
        "given tool helper: agent\n user: go\n model: helper\n policy: allow\n model 1.0: pay\n policy: hold",
        "given tool helper: agent\n user: go\n model: helper\n policy: allow\n model 1.0 asks: sure?",
        "given tool to: handoff\n user: go\n model: to & pay\n policy: allow & hold",
        "user: go\n ana adds: more",
    ] {
        let world = play(&format!("{given}\n cancel"));
        assert_eq!(world.report().last().unwrap(), "next finished cancelled by ana", "{given}");
        assert!(world.run.open_pauses().is_empty(), "{given}");
        let again = play(&format!("{given}\n cancel\n ---\n cancel"));
        assert_eq!(again.report()[0], "refused run_finished", "{given}");
    }
}

#[test]
fn a_cancelled_agent_is_not_said_not_to_have_run() {
    check(
        r#"given tool helper: agent
           user: go
           model: helper & helper
           policy: allow & hold
           ---
           cancel"#,
        "pause withdrawn #1
         call answered   1.0 abandoned
         call answered   1.1 withdrawn
         run finished    cancelled by ana
         next            finished cancelled by ana",
    );
}

#[test]
fn the_reason_of_a_cancellation_is_bounded() {
    let mut world = play("user: go");
    let cancel = |length: usize| Input::Cancel { by: actor("ana"), reason: "x".repeat(length), request: None };
    let refusal = world.give(cancel(limits::TEXT_BYTES_MAX + 1)).map_err(|refusal| refusal.code());
    assert_eq!(refusal, Err("over_limit"));
    assert!(world.give(cancel(limits::TEXT_BYTES_MAX)).is_ok());
}
