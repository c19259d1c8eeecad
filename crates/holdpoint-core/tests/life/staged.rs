//! Input given on the way.

use holdpoint_core::input::Input;
use holdpoint_core::run::limits;

use super::common::{actor, check, play};

#[test]
fn input_given_while_paused_reaches_the_model_after_the_results() {
    check(
        r#"user: go
           model: pay & sell
           policy: hold
           ---
           ana adds: be quick
           bo adds: and careful
           ana: approve #1
           restart
           tool 1.0: "paid"
           ana: deny #2 "no"
           look: model"#,
        r#"input staged      "be quick" by ana
           input staged      "and careful" by bo
           pause decided     #1 approve by ana
           call started      1.0
           call answered     1.0 result "paid"
           pause decided     #2 deny "no" by ana
           call answered     1.1 denied "no"
           sees user         "go"
           sees assistant    pay#c1 sell#c2
           sees result       c1 "paid"
           sees error result c2 "no"
           sees user         "be quick"
           sees user         "and careful"
           next              call model root"#,
    );
}

#[test]
fn staged_input_is_admitted_once() {
    check(
        r#"user: go
           ana adds: one
           ---
           model: pay
           policy: allow
           tool 1.0: "paid"
           look: model
           model says: done"#,
        r#"model replied  having seen 1
           call allowed   1.0 by policy
           call started   1.0
           call answered  1.0 result "paid"
           sees user      "go"
           sees user      "one"
           sees assistant pay#c1
           sees result    c1 "paid"
           model replied
           run finished   done "done"
           next           finished done "done""#,
    );
}

#[test]
fn input_given_while_the_model_speaks_is_heard_before_the_run_ends() {
    check(
        "user: go
         ana adds: wait
         ---
         model saw 0 says: done
         look: model
         model says: stopped",
        r#"model replied
           sees user      "go"
           sees assistant "done"
           sees user      "wait"
           model replied  having seen 1
           run finished   done "stopped"
           next           finished done "stopped""#,
    );
}

#[test]
fn input_given_while_the_output_is_checked_is_heard_before_the_run_ends() {
    check(
        "given agent: checks output
         user: go
         model says: done
         ---
         ana adds: wait
         output check: pass
         model says: stopped
         output check: pass",
        r#"input staged   "wait" by ana
           refused        out_of_turn
           model replied  having seen 1
           guardrails ran root g passed
           run finished   done "stopped"
           next           finished done "stopped""#,
    );
}

#[test]
fn a_reply_cannot_have_seen_more_than_was_said() {
    check(
        r#"given tool helper: agent
           user: go
           ana adds: one
           ---
           model saw 2 says: done
           model saw 0: helper
           policy: allow
           model 1.0 saw 1 says: done"#,
        "refused       out_of_turn
         model replied
         call allowed  1.0 by policy
         call started  1.0
         refused       out_of_turn
         next          call model 1.0",
    );
}

#[test]
fn an_unusable_reply_admits_nothing() {
    check(
        "user: go
         ana adds: one
         ---
         model: pay#
         model says: done",
        r#"reply refused call_id_empty
           model replied having seen 1
           run finished  done "done"
           next          finished done "done""#,
    );
}

#[test]
fn nothing_is_staged_for_an_agent_that_may_speak_no_more() {
    check(
        "given agent: turns 1
         user: go
         model: pay
         policy: hold
         ---
         ana adds: more",
        "refused out_of_turn
         next    await #1",
    );
}

#[test]
fn staged_input_does_not_give_an_exhausted_agent_another_turn() {
    check(
        "given agent: turns 1
         user: go
         ana adds: wait
         ---
         model saw 0 says: done",
        r#"model replied
           run finished done "done"
           next         finished done "done""#,
    );
}

#[test]
fn so_much_is_staged_and_no_more() {
    let mut world = play("user: go");
    let stage = |text: String| Input::Stage { content: text.into(), by: actor("ana"), request: None };
    let too_long = stage("x".repeat(limits::TEXT_BYTES_MAX + 1));
    assert_eq!(world.give(too_long).map_err(|refusal| refusal.code()), Err("over_limit"));
    for number in 0..limits::STAGED_MAX {
        world.give(stage(number.to_string())).unwrap();
    }
    assert_eq!(world.give(stage("more".to_owned())).map_err(|refusal| refusal.code()), Err("over_limit"));
}
