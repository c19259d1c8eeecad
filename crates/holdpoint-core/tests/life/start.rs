//! A message begins a run.

use super::common::check;

#[test]
fn a_message_begins_a_run_and_the_model_is_called() {
    check(
        "user: hello",
        "run started Support
         next        call model root",
    );
}

#[test]
fn a_reply_without_calls_is_the_output() {
    check(
        "user: hello
         ---
         model says: good morning",
        r#"model replied
           run finished  done "good morning"
           next          finished done "good morning""#,
    );
}

#[test]
fn a_run_begins_once() {
    check(
        "user: hello
         ---
         user: hello",
        "refused out_of_turn
         next    call model root",
    );
}

#[test]
fn nothing_reaches_a_run_before_its_beginning() {
    check(
        "model says: hello
         ana: approve #1
         cancel",
        "refused out_of_turn
         refused out_of_turn
         refused out_of_turn
         next    await",
    );
}

#[test]
fn a_finished_run_takes_no_message() {
    check(
        "user: hello
         model says: done
         ---
         user: hello
         ana adds: and this
         model says: more
         cancel",
        r#"refused run_finished
           refused run_finished
           refused run_finished
           refused run_finished
           next    finished done "done""#,
    );
}

#[test]
fn a_context_can_be_replaced_on_the_way() {
    check(
        r#"user: hello
           ---
           context: {"tenant": "blue"}
           context: nothing"#,
        r#"context set {"tenant":"blue"}
           context set nothing
           next        call model root"#,
    );
}

#[test]
fn another_agent_can_go_on() {
    check(
        "user: hello
         ---
         set agent: Sales
         set agent: Sales
         set agent 1.0: Sales",
        "agent set Sales
         refused   out_of_turn
         next      call model root",
    );
}

#[test]
fn calls_stay_those_of_the_agent_that_asked_for_them() {
    check(
        r#"user: hello
           model: pay {"amount": 1}
           policy: hold
           ---
           set agent: Sales
           look: pauses
           ana: always approve #1"#,
        r#"agent set      Sales
           open           #1 approval of Support 1.0 pay {"amount":1}
           pause decided  #1 approve by ana
           rule made      1 approves pay of Support
           next           run 1.0"#,
    );
}
