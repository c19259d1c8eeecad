//! Policy looks at the calls.

use super::common::{check, play};

#[test]
fn each_call_of_a_reply_gets_its_own_verdict() {
    check(
        r#"user: go
           model: fetch & pay {"amount": 5} & drop & sell
           ---
           policy: allow & hold until +10m because "money" & deny "not here" & invalid "sell needs a price""#,
        r#"call allowed   1.0 by policy
           pause opened   #1 approval 1.1 pay {"amount":5} until +10m because "money"
           call denied    1.2 by guard
           call answered  1.2 denied "not here"
           call answered  1.3 invalid "sell needs a price"
           next           run 1.0"#,
    );
}

#[test]
fn allowed_siblings_run_while_others_wait() {
    check(
        r#"user: go
           model: fetch & pay
           policy: allow & hold
           ---
           start
           tool 1.0: "fetched""#,
        r#"call started  1.0
           call answered 1.0 result "fetched"
           next          await #1"#,
    );
}

#[test]
fn the_model_is_not_called_until_every_call_is_answered() {
    check(
        r#"user: go
           model: fetch & pay & sell
           policy: allow & hold & hold
           ---
           tool 1.0: "fetched"
           model says: done
           ana: approve #1
           model says: done
           tool 1.1: "paid"
           model says: done
           ana: deny #2 "no"
           look: model"#,
        r#"call started   1.0
           call answered  1.0 result "fetched"
           refused        out_of_turn
           pause decided  #1 approve by ana
           refused        out_of_turn
           call started   1.1
           call answered  1.1 result "paid"
           refused        out_of_turn
           pause decided  #2 deny "no" by ana
           call answered  1.2 denied "no"
           sees user         "go"
           sees assistant    fetch#c1 pay#c2 sell#c3
           sees result       c1 "fetched"
           sees result       c2 "paid"
           sees error result c3 "no"
           next           call model root"#,
    );
}

#[test]
fn a_decider_in_code_lets_a_call_run_under_its_name() {
    check(
        "user: go
         model: pay
         ---
         policy: approve by small-payments",
        "call allowed 1.0 by small-payments
         next         run 1.0",
    );
}

#[test]
fn a_verdict_is_given_once() {
    check(
        "user: go
         model: pay & fetch
         policy: hold & allow
         ---
         policy 1.0: allow
         policy 1.1: hold",
        "refused out_of_turn
         refused out_of_turn
         next    run 1.1",
    );
}

#[test]
fn a_call_is_looked_at_once_in_a_batch() {
    check(
        "user: go
         model: pay
         ---
         policy 1.0 1.0: hold & hold",
        "refused out_of_turn
         next    screen 1.0",
    );
}

#[test]
fn one_bad_verdict_refuses_the_whole_batch() {
    check(
        "user: go
         model: pay & fetch
         ---
         policy 1.0 1.7: allow & allow",
        "refused out_of_turn
         next    screen 1.0 1.1",
    );
}

#[test]
fn only_what_was_looked_at_changes() {
    check(
        "user: go
         model: pay & fetch
         ---
         policy: skip & allow",
        "call allowed 1.1 by policy
         next         screen 1.0; run 1.1",
    );
}

#[test]
fn a_denial_without_words_waits_for_them() {
    check(
        r#"user: go
           model: pay
           ---
           policy: deny
           model says: done
           words: "Ask your manager.""#,
        r#"call denied   1.0 by guard
           refused       out_of_turn
           call answered 1.0 denied "Ask your manager."
           next          call model root"#,
    );
}

#[test]
fn the_words_of_a_denial_are_given_once_and_to_a_denial() {
    check(
        r#"user: go
           model: pay & fetch
           policy: deny & allow
           ---
           words: "no"
           blocked 1.0: "no""#,
        r#"call answered 1.0 denied "no"
           refused       out_of_turn
           next          run 1.1"#,
    );
}

#[test]
fn so_many_questions_may_be_open_and_no_more() {
    // Two rounds of 128 fill the table; the inner agent's 129th call finds no room.
    let many = |count: usize| (0..count).map(|n| format!("pay#{n}")).collect::<Vec<_>>().join(" & ");
    let script = format!(
        "given tool helper: agent
         user: go
         model: helper#h & helper#i & {}
         policy: {}
         model 1.0: {}
         policy: hold
         model 1.1: {}
         policy: hold
         ---
         look: call 1.1/1.2",
        many(126),
        ["allow & allow"].into_iter().chain(vec!["hold"; 126]).collect::<Vec<_>>().join(" & "),
        many(127),
        many(4),
    );
    let world = play(&script);
    assert_eq!(world.run.open_pauses().len(), 256);
    assert_eq!(world.run.pauses().len(), 256);
    let report = world.report();
    assert_eq!(report[0], "call 1.1/1.2 is held {} after 0 starts");
    let refused = "1.1/1.3".parse().unwrap();
    let call = world.run.call(&refused).unwrap();
    assert_eq!(
        super::common::outcome(call.outcome().unwrap()),
        r#"invalid "256 calls already wait for a person; ask again later""#
    );
}
