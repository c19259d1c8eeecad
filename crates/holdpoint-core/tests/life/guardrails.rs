//! Guardrails at the input, before a pause, right before a call, and at the output.

use super::common::check;

#[test]
fn guardrails_look_at_the_input_before_the_model_is_called() {
    check(
        "given agent: checks input
         user: go
         ---
         model says: early
         input check: pass
         input check: pass",
        "refused        out_of_turn
         guardrails ran root g passed
         refused        out_of_turn
         next           call model root",
    );
}

#[test]
fn an_objection_to_the_input_ends_the_run() {
    check(
        r#"given agent: checks input
           user: go
           ---
           input check: objects "not a subject here""#,
        r#"guardrails ran root g objected "not a subject here"
           run finished   failed guardrail_tripped
           next           finished failed guardrail_tripped"#,
    );
}

#[test]
fn guardrails_look_at_the_output_before_it_is_given_out() {
    check(
        "given agent: checks output
         user: go
         ---
         model says: done
         output check: pass",
        r#"model replied
           guardrails ran root g passed
           run finished   done "done"
           next           finished done "done""#,
    );
}

#[test]
fn an_objection_to_the_output_keeps_it_in() {
    check(
        r#"given agent: checks output
           user: go
           model says: the password is x
           ---
           output check: objects "a secret""#,
        r#"guardrails ran root g objected "a secret"
           run finished   failed guardrail_tripped
           next           finished failed guardrail_tripped"#,
    );
}

#[test]
fn guardrails_do_not_look_at_the_output_of_a_paused_turn() {
    check(
        "given agent: checks output
         user: go
         model: pay
         policy: hold
         ---
         output check: pass",
        "refused out_of_turn
         next    await #1",
    );
}

#[test]
fn a_guardrail_before_the_pause_is_heard_and_the_person_is_asked() {
    check(
        "user: go
         model: pay
         ---
         policy: hold guarded",
        "guardrails ran 1.0 g passed
         pause opened   #1 approval 1.0 pay {}
         next           await #1",
    );
}

#[test]
fn a_guardrail_that_denies_before_the_pause_keeps_the_person_out_of_it() {
    check(
        r#"user: go
           model: pay
           ---
           policy: deny "blocked account" guarded"#,
        r#"guardrails ran 1.0 g passed
           call denied    1.0 by guard
           call answered  1.0 denied "blocked account"
           next           call model root"#,
    );
}

#[test]
fn a_guardrail_that_halts_ends_the_run_and_is_heard() {
    check(
        r#"user: go
           model: fetch & pay & sell
           policy: allow & skip & hold
           start
           ---
           policy: halt "fraud" guarded"#,
        r#"guardrails ran  1.1 g objected "fraud"
           pause withdrawn #1
           call answered   1.1 withdrawn
           call answered   1.2 withdrawn
           run finished    failed guardrail_tripped
           next            finished failed guardrail_tripped"#,
    );
}

#[test]
fn a_guardrail_that_halts_an_inner_agent_leaves_the_others_their_verdicts() {
    check(
        r#"given tool helper: agent
           user: go
           model: helper & helper & pay
           policy: allow & allow & skip
           model 1.0: pay & sell
           model 1.1: sell
           ---
           policy: hold & halt "fraud" guarded & hold & allow"#,
        r#"pause opened   #1 approval 1.2 pay {}
           guardrails ran 1.0/1.0 g objected "fraud"
           call allowed   1.1/1.0 by policy
           call answered  1.0/1.0 withdrawn
           call answered  1.0/1.1 withdrawn
           call answered  1.0 failure "guardrail_tripped: g: fraud"
           next           run 1.1/1.0"#,
    );
}

#[test]
fn a_guardrail_that_halts_an_outer_agent_ends_the_inner_ones_with_it() {
    check(
        r#"given tool helper: agent
           user: go
           model: helper & pay
           policy: allow & skip
           model 1.0: sell
           ---
           policy: halt "fraud" & halt "fraud too" guarded"#,
        r#"guardrails ran 1.0/1.0 g objected "fraud too"
           call answered  1.0/1.0 withdrawn
           call answered  1.0 abandoned
           call answered  1.1 withdrawn
           run finished   failed guardrail_tripped
           next           finished failed guardrail_tripped"#,
    );
}

#[test]
fn an_inner_agents_guardrails_fail_its_call_only() {
    check(
        r#"given tool helper: agent, checks input, checks output
           user: go
           model: helper & helper
           policy: allow
           ---
           input check 1.0: objects "no"
           input check 1.1: pass
           model 1.1 says: done
           output check 1.1: objects "no"
           look: model"#,
        r#"guardrails ran 1.0 g objected "no"
           call answered  1.0 failure "guardrail_tripped: g: no"
           guardrails ran 1.1 g passed
           model replied  in 1.1
           guardrails ran 1.1 g objected "no"
           call answered  1.1 failure "guardrail_tripped: g: no"
           sees user      "go"
           sees assistant helper#c1 helper#c2
           sees error result c1 "guardrail_tripped: g: no"
           sees error result c2 "guardrail_tripped: g: no"
           next           call model root"#,
    );
}

#[test]
fn the_outcome_of_a_call_outlives_the_inner_agent_that_was_halted() {
    check(
        r#"given tool helper: agent
           user: go
           model: helper & pay
           policy: allow & hold
           model 1.0: sell & drop
           policy: allow & skip
           start
           ---
           policy: halt "fraud"
           tool 1.0/1.0: "sold"
           tool 1.0/1.0: "sold again"
           ana: approve #1"#,
        r#"call answered 1.0/1.1 withdrawn
           call answered 1.0 failure "guardrail_tripped: g: fraud"
           call answered 1.0/1.0 result "sold"
           refused       out_of_turn
           pause decided #1 approve by ana
           next          run 1.1"#,
    );
}

#[test]
fn a_call_that_outlives_its_agent_is_given_up_in_a_crash_and_nobody_is_asked() {
    check(
        r#"given tool helper: agent
           given tool fetch: read_only
           user: go
           model: helper & pay
           policy: allow & hold
           model 1.0: sell & fetch & drop
           policy: allow & allow & skip
           start
           policy: halt "fraud"
           ---
           set agent 1.0: Sales
           crash"#,
        "call answered 1.0/1.0 abandoned
         call answered 1.0/1.1 abandoned
         next          await #1",
    );
}
