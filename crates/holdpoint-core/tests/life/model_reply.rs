//! The model's reply, and the ids of its calls.

use holdpoint_core::event::RunEvent;
use holdpoint_core::input::{Input, ReplyInput};
use holdpoint_core::message::Usage;
use holdpoint_core::run::limits;

use super::common::{World, check, play};

#[test]
fn the_calls_of_a_reply_are_looked_at_before_anything_runs() {
    check(
        "user: go
         ---
         model: fetch & pay & sell",
        "model replied
         next          screen 1.0 1.1 1.2",
    );
}

#[test]
fn a_reply_to_an_earlier_call_of_the_model_is_refused() {
    check(
        r#"user: go
           model: pay
           policy: allow
           tool 1.0: "paid"
           ---
           model answers 1: pay
           model answers 1 says: done
           model answers 3 says: done
           model answers 2 says: done"#,
        r#"refused out_of_turn
           refused out_of_turn
           refused out_of_turn
           model replied
           run finished done "done"
           next finished done "done""#,
    );
}

#[test]
fn a_reply_that_was_not_awaited_is_refused() {
    check(
        "user: go
         model: pay
         ---
         model says: done
         model 1.0 says: done",
        "refused out_of_turn
         refused out_of_turn
         next    screen 1.0",
    );
}

#[test]
fn a_call_without_an_id_makes_the_reply_unusable() {
    check(
        "user: go
         ---
         model: pay# & fetch",
        "reply refused call_id_empty
         next          call model root",
    );
}

#[test]
fn a_call_that_comes_twice_in_a_reply_is_one_call() {
    check(
        r#"user: go
           ---
           model: pay#a {"amount": 1, "to": "bo"} & pay#a {"to": "bo", "amount": 1.0}"#,
        "model replied
         next          screen 1.0",
    );
}

#[test]
fn an_id_that_stands_for_two_calls_in_a_reply_makes_it_unusable() {
    check(
        r#"user: go
           ---
           model: pay#a {"amount": 1} & pay#a {"amount": 2}
           model: pay#a {"amount": 1} & sell#a {"amount": 1}"#,
        "reply refused call_id_reused
         reply refused call_id_reused
         next          call model root",
    );
}

#[test]
fn an_exact_repeat_of_a_settled_call_takes_its_outcome_and_runs_nothing() {
    check(
        r#"user: go
           model: pay#a {"amount": 1}
           policy: hold
           ana: approve #1
           tool 1.0: "paid"
           ---
           model: pay#a {"amount": 1}
           look: model"#,
        r#"model replied repeating 1.0
           sees user      "go"
           sees assistant pay#a
           sees result    a "paid"
           sees assistant pay#a
           sees result    a "paid"
           next           call model root"#,
    );
}

#[test]
fn a_repeat_is_known_though_another_agent_was_at_work_when_the_call_was_settled() {
    check(
        r#"user: go
           model: pay#a
           policy: allow
           set agent: Sales
           tool 1.0: "paid"
           set agent: Support
           ---
           model: pay#a"#,
        "model replied repeating 1.0
         next          call model root",
    );
}

#[test]
fn a_denied_call_that_is_repeated_stays_denied_and_nobody_is_asked() {
    check(
        r#"user: go
           model: pay#a {"amount": 1}
           policy: hold
           ana: deny #1 "no"
           ---
           model: pay#a {"amount": 1} & fetch#b"#,
        "model replied repeating 1.0
         next          screen 2.1",
    );
}

#[test]
fn a_settled_id_with_another_payload_makes_the_reply_unusable() {
    check(
        r#"user: go
           model: pay#a {"amount": 1}
           policy: allow
           tool 1.0: "paid"
           ---
           model: fetch#b & pay#a {"amount": 1000}"#,
        "reply refused call_id_reused
         next          call model root",
    );
}

#[test]
fn three_unusable_replies_in_a_row_fail_the_run() {
    check(
        r#"user: go
           ---
           model: pay#
           model: pay#
           model: pay#"#,
        "reply refused call_id_empty
         reply refused call_id_empty
         reply refused call_id_empty
         run finished  failed model_misbehaved
         next          finished failed model_misbehaved",
    );
}

#[test]
fn a_usable_reply_between_unusable_ones_starts_the_count_again() {
    check(
        r#"user: go
           model: pay#
           model: pay#
           model: fetch
           policy: allow
           tool 3.0: "x"
           ---
           model: pay#
           model: pay#"#,
        "reply refused call_id_empty
         reply refused call_id_empty
         next          call model root",
    );
}

#[test]
fn an_inner_agent_that_misbehaves_fails_its_call_only() {
    check(
        r#"given tool helper: agent
           user: go
           model: helper {"input": "do"}
           policy: allow
           ---
           model 1.0: pay#
           model 1.0: pay#
           model 1.0: pay#"#,
        r#"reply refused  in 1.0 call_id_empty
           reply refused  in 1.0 call_id_empty
           reply refused  in 1.0 call_id_empty
           call answered  1.0 failure "model_misbehaved: 3 replies in a row could not be used"
           next           call model root"#,
    );
}

#[test]
fn a_call_that_cannot_run_is_told_to_the_model_and_nobody_is_asked() {
    check(
        r#"user: go
           ---
           model: pay !"{amount:"
           look: model"#,
        r#"model replied
           sees user         "go"
           sees assistant    pay#c1
           sees error result c1 "the arguments are not JSON"
           next              call model root"#,
    );
}

#[test]
fn a_call_that_cannot_run_does_not_keep_its_siblings_from_running() {
    check(
        r#"user: go
           ---
           model: pay !"{amount:" & fetch"#,
        "model replied
         next          screen 1.1",
    );
}

#[test]
fn a_reply_has_a_bounded_number_of_calls() {
    let calls = |count: usize| (0..count).map(|n| format!("fetch#{n}")).collect::<Vec<_>>().join(" & ");
    let reply = |count: usize| format!("user: go\n---\nmodel: {}", calls(count));
    check(&reply(limits::CALLS_PER_REPLY_MAX + 1), "reply refused too_many_calls\n next call model root");
    let world = play(&reply(limits::CALLS_PER_REPLY_MAX));
    assert_eq!(world.report()[0], "model replied");
}

#[test]
fn a_reply_has_a_bounded_size() {
    let reply = |bytes: usize| ReplyInput {
        frame: Default::default(),
        turn: 1,
        admitted: 0,
        thinking: None,
        text: Some("x".repeat(bytes)),
        calls: Vec::new(),
        asks_confirmation: None,
        usage: Usage::request(1, 1),
    };
    let after = |bytes: usize| {
        let mut world: World = play("user: go\n---");
        world.give(Input::ModelReply(reply(bytes))).unwrap();
        world.report()[0].clone()
    };
    assert_eq!(after(limits::REPLY_BYTES_MAX), "model replied");
    assert_eq!(after(limits::REPLY_BYTES_MAX + 1), "reply refused reply_too_large");
}

#[test]
fn what_the_model_thought_is_recorded_within_bounds_and_never_shown_to_it_again() {
    let after = |thinking: &str| {
        let mut world: World = play("user: go");
        let reply = ReplyInput {
            frame: Default::default(),
            turn: 1,
            admitted: 0,
            thinking: Some(thinking.to_owned()),
            text: Some("done".to_owned()),
            calls: Vec::new(),
            asks_confirmation: None,
            usage: Usage::request(1, 1),
        };
        let events = world.give(Input::ModelReply(reply)).unwrap();
        assert!(!format!("{:?}", world.run.items()).contains("hm"));
        events.into_iter().find_map(|event| match event {
            RunEvent::ModelReplied(replied) => replied.thinking,
            _ => None,
        })
    };
    assert_eq!(after("hm, so"), Some("hm, so".to_owned()));
    assert_eq!(after(""), None);
    let all = "hm".repeat(limits::THINKING_BYTES_MAX / 2);
    assert_eq!(after(&all), Some(all.clone()));
    let cut = &all[..all.len() - 1];
    assert_eq!(after(&format!("{cut}日")), Some(cut.to_owned()));
}

#[test]
fn a_call_id_has_a_bounded_length() {
    let reply = |bytes: usize| format!("user: go\n---\nmodel: pay#{}", "i".repeat(bytes));
    check(&reply(limits::CALL_ID_BYTES_MAX), "model replied\n next screen 1.0");
    check(&reply(limits::CALL_ID_BYTES_MAX + 1), "reply refused call_id_empty\n next call model root");
}
