//! Somebody sends a new message instead of deciding.

use holdpoint_core::audit::AuditNote;
use holdpoint_core::decision::Manner;
use holdpoint_core::input::{Input, SupersedeInput};
use holdpoint_core::run::limits;

use super::common::{actor, check, play};

const HELD: &str = "user: go
    model: pay & sell
    policy: hold & hold for bo quorum 2
    bo: approve #2
    ---
";

#[test]
fn a_message_in_the_place_of_decisions_closes_what_waits_and_the_model_is_told_that_nothing_ran() {
    check(
        &format!("{HELD}\nana instead: forget it\nrestart\nlook: model"),
        r#"pause decided     #1 deny "This call did not run: the person sent a new message instead of deciding about it." by ana superseded
           call answered     1.0 denied "This call did not run: the person sent a new message instead of deciding about it."
           pause decided     #2 deny "This call did not run: the person sent a new message instead of deciding about it." by ana superseded
           call answered     1.1 denied "This call did not run: the person sent a new message instead of deciding about it."
           input staged      "forget it" by ana
           sees user         "go"
           sees assistant    pay#c1 sell#c2
           sees error result c1 "This call did not run: the person sent a new message instead of deciding about it."
           sees error result c2 "This call did not run: the person sent a new message instead of deciding about it."
           sees user         "forget it"
           next              call model root"#,
    );
}

#[test]
fn what_was_superseded_is_decided_for_good_and_audited_as_such() {
    check(
        &format!("{HELD}\nana instead: forget it\n---\nbo: approve #1\nana: approve #1 & approve #2"),
        "refused already_decided
         refused already_decided
         next    call model root",
    );
    let world = play(&format!("{HELD}\nana instead: forget it"));
    let notes = world.entries.last().unwrap().events.iter();
    let notes = notes.filter_map(|event| AuditNote::of(&world.run, event, world.now));
    let notes: Vec<_> = notes.map(|note| (note.outcome, note.by, note.manner)).collect();
    let superseded = (Some("deny".to_owned()), Some(actor("ana")), Some(Manner::Superseded));
    assert_eq!(notes, [superseded.clone(), superseded]);
}

#[test]
fn a_question_and_a_confirmation_are_superseded_in_their_own_words() {
    check(
        r#"given tool ask: question
           user: go
           model: ask {"questions": [{"question": "A?"}]}
           policy: hold
           ---
           ana instead: never mind"#,
        r#"pause decided #1 deny "The question was not answered: the person sent a new message instead." by ana superseded
           call answered 1.0 denied "The question was not answered: the person sent a new message instead."
           input staged  "never mind" by ana
           next          call model root"#,
    );
    check(
        "user: go
         model asks: sure?
         ---
         ana instead: never mind
         look: model",
        r#"pause decided  #1 deny "the person sent a new message instead, and nothing was done." by ana superseded
           input staged   "never mind" by ana
           sees user      "go"
           sees assistant "sure?"
           sees user      "Not confirmed: the person sent a new message instead, and nothing was done."
           sees user      "never mind"
           next           call model root"#,
    );
}

#[test]
fn of_what_may_have_run_it_is_never_said_that_it_did_not() {
    check(
        "user: go
         model: pay
         policy: allow
         start
         crash
         ---
         ana instead: what happened?",
        r#"pause decided #1 abandon by ana superseded
           call answered 1.0 abandoned
           input staged  "what happened?" by ana
           next          call model root"#,
    );
    check(
        r#"given tool pay: idempotent
           user: go
           model: pay
           policy: allow
           start
           crash
           drift 1.0: "changed"
           ---
           ana instead: leave it"#,
        r#"pause decided #1 deny "This call did not run again: the person sent a new message instead of deciding about it. Whether its first run took effect is not known." by ana superseded
           call answered 1.0 denied "This call did not run again: the person sent a new message instead of deciding about it. Whether its first run took effect is not known."
           input staged  "leave it" by ana
           next          call model root"#,
    );
}

#[test]
fn a_pause_whose_time_is_up_ends_as_its_terms_say() {
    check(
        "user: go
         model: pay & sell & buy
         policy: hold until +5m & hold until +5m then approve & hold until +50m
         clock +10m
         ---
         ana instead: forget it",
        r#"pause expired #1
           call answered 1.0 expired
           pause decided #2 approve by timeout
           pause decided #3 deny "This call did not run: the person sent a new message instead of deciding about it." by ana superseded
           call answered 1.2 denied "This call did not run: the person sent a new message instead of deciding about it."
           input staged  "forget it" by ana
           next          run 1.1"#,
    );
}

#[test]
fn what_runs_goes_on_and_what_waits_inside_an_agent_is_closed_too() {
    check(
        "given tool helper: agent
         user: go
         model: helper & pay
         policy: allow & allow
         model 1.0: sell
         policy: hold
         start 1.1
         ---
         ana instead: forget it
         tool 1.1: \"paid\"",
        r#"pause decided #1 deny "This call did not run: the person sent a new message instead of deciding about it." by ana superseded
           call answered 1.0/1.0 denied "This call did not run: the person sent a new message instead of deciding about it."
           input staged  "forget it" by ana
           call answered 1.1 result "paid"
           next          call model 1.0"#,
    );
}

#[test]
fn where_nobody_is_waited_for_the_message_is_only_staged() {
    check(
        "user: go
         ---
         ana instead: and quickly",
        r#"input staged "and quickly" by ana
           next         call model root"#,
    );
}

#[test]
fn a_message_that_nobody_would_hear_supersedes_nothing() {
    check(
        "given agent: turns 1
         user: go
         model: pay
         policy: hold
         ---
         ana instead: forget it
         cancel
         ana instead: forget it",
        "refused         out_of_turn
         pause withdrawn #1
         call answered   1.0 withdrawn
         run finished    cancelled by ana
         refused         run_finished
         next            finished cancelled by ana",
    );
    let mut world = play("user: go\nmodel: pay\npolicy: hold");
    let message = |content: String, request: Option<String>| {
        Input::Supersede(SupersedeInput { content: content.into(), by: actor("ana"), via: None, request })
    };
    let long = "x".repeat(limits::TEXT_BYTES_MAX + 1);
    let long_name = "x".repeat(limits::NAME_BYTES_MAX + 1);
    for input in [message(long, None), message("hi".to_owned(), Some(long_name))] {
        assert_eq!(world.give(input).map_err(|refusal| refusal.code()), Err("over_limit"));
    }
}
