//! How runs end, and how many model calls they may make.

use super::common::check;

#[test]
fn the_first_tool_result_can_be_the_output() {
    check(
        r#"given agent: first
           user: go
           model: fetch & pay
           policy: allow & hold
           ---
           tool 1.0: "x"
           ana: approve #1
           tool 1.1: "paid""#,
        r#"call started  1.0
           call answered 1.0 result "x"
           pause decided #1 approve by ana
           call started  1.1
           call answered 1.1 result "paid"
           run finished  done "x"
           next          finished done "x""#,
    );
}

#[test]
fn with_the_first_tool_result_a_denial_is_the_output() {
    check(
        r#"given agent: first
           given tool sh: shell
           user: go
           model: sh
           policy: hold
           ---
           ana: deny #1 "not allowed""#,
        r#"pause decided #1 deny "not allowed" by ana
           call answered 1.0 denied "not allowed"
           run finished  done "not allowed"
           next          finished done "not allowed""#,
    );
}

#[test]
fn a_run_can_end_after_certain_tools() {
    let script = |tools: &str| {
        format!(
            r#"given agent: after submit close
               user: go
               model: {tools}
               policy: allow
               start
               ---
               tool 1.0: "one"
               tool 1.1: "two""#
        )
    };
    let answered = "call answered 1.0 result \"one\"\n call answered 1.1 result \"two\"";
    check(&script("fetch & submit"), &format!("{answered}\n run finished done \"two\"\n next finished done \"two\""));
    check(&script("close & submit"), &format!("{answered}\n run finished done \"one\"\n next finished done \"one\""));
    check(&script("fetch & pay"), &format!("{answered}\n next call model root"));
}

#[test]
fn a_call_that_could_not_run_ends_nothing() {
    check(
        r#"given agent: after submit
           user: go
           ---
           model: submit !"{"
           model: submit !"{" & submit
           policy: allow
           tool 2.1: "filed""#,
        r#"model replied
           model replied
           call allowed  2.1 by policy
           call started  2.1
           call answered 2.1 result "filed"
           run finished  done "filed"
           next          finished done "filed""#,
    );
}

#[test]
fn a_handoff_goes_on_whatever_ends_the_first_agents_turns() {
    check(
        r#"given agent: first
           given tool transfer: handoff
           user: go
           model: fetch & transfer
           policy: allow
           ---
           tool 1.0: "x""#,
        r#"call started  1.0
           call answered 1.0 result "x"
           handed off    1.1
           next          call model root"#,
    );
}

#[test]
fn an_output_of_a_tool_is_looked_at_by_guardrails_too() {
    check(
        r#"given agent: first, checks output
           user: go
           model: fetch
           policy: allow
           ---
           tool 1.0: "x"
           output check: pass"#,
        r#"call started   1.0
           call answered  1.0 result "x"
           guardrails ran root g passed
           run finished   done "x"
           next           finished done "x""#,
    );
}

#[test]
fn an_agent_makes_so_many_model_calls_and_no_more() {
    check(
        r#"given agent: turns 2
           user: go
           model: fetch
           policy: allow
           tool 1.0: "x"
           model: fetch
           policy: allow
           ---
           tool 2.0: "x""#,
        r#"call started  2.0
           call answered 2.0 result "x"
           run finished  failed turns_exhausted
           next          finished failed turns_exhausted"#,
    );
}

#[test]
fn a_pause_costs_no_model_call() {
    check(
        r#"given agent: turns 2
           user: go
           model: pay & sell
           policy: hold
           ---
           restart
           ana: approve #1
           tool 1.0: "paid"
           restart
           ana: deny #2 "no"
           model says: done"#,
        r#"pause decided #1 approve by ana
           call started  1.0
           call answered 1.0 result "paid"
           pause decided #2 deny "no" by ana
           call answered 1.1 denied "no"
           model replied
           run finished  done "done"
           next          finished done "done""#,
    );
}

#[test]
fn an_unusable_reply_costs_a_model_call() {
    check(
        "given agent: turns 1
         user: go
         ---
         model: pay#",
        "reply refused call_id_empty
         run finished  failed turns_exhausted
         next          finished failed turns_exhausted",
    );
}

#[test]
fn an_inner_agent_has_a_budget_of_its_own() {
    check(
        r#"given agent: turns 2
           given tool helper: agent, turns 1
           user: go
           model: helper
           policy: allow
           model 1.0: fetch
           policy: allow
           ---
           tool 1.0/1.0: "x"
           model says: done"#,
        r#"call started  1.0/1.0
           call answered 1.0/1.0 result "x"
           call answered 1.0 failure "turns_exhausted: the agent made 1 model call, and may make no more"
           model replied
           run finished  done "done"
           next          finished done "done""#,
    );
}

#[test]
fn a_budget_of_nothing_ends_the_run_at_once() {
    check(
        "given agent: turns 0
         user: go",
        "run started  Support
         run finished failed turns_exhausted
         next         finished failed turns_exhausted",
    );
}

#[test]
fn a_runtime_that_cannot_go_on_ends_the_run_and_its_pauses() {
    check(
        r#"user: go
           model: pay & sell
           policy: hold & allow
           ---
           fail: "no such model"
           ana: approve #1
           start 1.1"#,
        "pause withdrawn #1
         call answered   1.0 withdrawn
         call answered   1.1 withdrawn
         run finished    failed model_gone
         refused         withdrawn
         refused         run_finished
         next            finished failed model_gone",
    );
}
