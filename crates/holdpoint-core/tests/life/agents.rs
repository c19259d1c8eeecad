//! Agents inside agents, and agents that hand over.

use holdpoint_core::ids::CallPath;
use holdpoint_core::message::Item;
use holdpoint_core::run::answered_items;

use super::common::{check, play};

#[test]
fn an_inner_agent_runs_to_its_end_in_the_callers_journal() {
    check(
        r#"given tool helper: agent
           user: go
           ---
           model: helper {"input": "find it"}
           policy: allow
           look: model 1.0
           model 1.0: fetch
           policy: allow
           tool 1.0/1.0: "x"
           model 1.0 says: found"#,
        r#"model replied
           call allowed   1.0 by policy
           call started   1.0
           sees user      "find it"
           model replied  in 1.0
           call allowed   1.0/1.0 by policy
           call started   1.0/1.0
           call answered  1.0/1.0 result "x"
           model replied  in 1.0
           call answered  1.0 result "found"
           next           call model root"#,
    );
}

#[test]
fn an_inner_agent_that_needs_approval_starts_with_the_approval() {
    check(
        r#"given tool helper: agent
           user: go
           model: helper {"input": "find it"}
           policy: hold
           ---
           ana: approve #1 edited {"input": "find it quietly"}
           look: model 1.0"#,
        r#"pause decided #1 approve_edited {"input":"find it quietly"} by ana
           call started  1.0
           sees user     "find it quietly"
           next          call model 1.0"#,
    );
}

#[test]
fn pauses_of_agents_three_deep_surface_at_the_root() {
    check(
        r#"given tool helper: agent
           user: go
           model: helper & pay
           policy: allow & hold
           model 1.0: helper & pay
           policy: allow & hold
           model 1.0/1.0: helper & pay
           policy: allow & hold
           model 1.0/1.0/1.0: pay
           ---
           policy: hold
           look: pauses
           ana: approve #4
           tool 1.0/1.0/1.0/1.0: "deep"
           model 1.0/1.0/1.0 says: done
           ana: deny #3 "no""#,
        r#"pause opened  #4 approval 1.0/1.0/1.0/1.0 pay {}
           open          #1 approval of Support 1.1 pay {}
           open          #2 approval of Support/helper 1.0/1.1 pay {}
           open          #3 approval of Support/helper/helper 1.0/1.0/1.1 pay {}
           open          #4 approval of Support/helper/helper/helper 1.0/1.0/1.0/1.0 pay {}
           pause decided #4 approve by ana
           call started  1.0/1.0/1.0/1.0
           call answered 1.0/1.0/1.0/1.0 result "deep"
           model replied in 1.0/1.0/1.0
           call answered 1.0/1.0/1.0 result "done"
           pause decided #3 deny "no" by ana
           call answered 1.0/1.0/1.1 denied "no"
           next          call model 1.0/1.0"#,
    );
}

#[test]
fn parallel_inner_agents_with_equal_call_ids_are_decided_apart() {
    check(
        r#"given tool helper: agent
           user: go
           model: helper & helper
           policy: allow
           model 1.0: pay#same {"amount": 1}
           model 1.1: pay#same {"amount": 2}
           policy: hold
           ---
           ana: approve #2
           ana: deny #1 "no"
           look: call 1.1/1.0"#,
        r#"pause decided #2 approve by ana
           pause decided #1 deny "no" by ana
           call answered 1.0/1.0 denied "no"
           call          1.1/1.0 is allowed {"amount":2} after 0 starts
           next          call model 1.0; run 1.1/1.0"#,
    );
}

#[test]
fn an_inner_agent_goes_on_while_the_outer_waits() {
    check(
        r#"given tool helper: agent
           user: go
           model: pay & helper
           policy: hold & allow
           ---
           model 1.1 says: done
           ana: approve #1
           tool 1.0: "paid""#,
        r#"model replied in 1.1
           call answered 1.1 result "done"
           pause decided #1 approve by ana
           call started  1.0
           call answered 1.0 result "paid"
           next          call model root"#,
    );
}

#[test]
fn inner_agents_and_handoffs_are_not_for_the_runtime_to_start_or_end() {
    check(
        r#"given tool helper: agent
           given tool transfer: handoff
           user: go
           model: helper & transfer & pay
           policy: allow & allow & hold
           ---
           start 1.0
           start 1.1
           tool 1.0: "done"
           tool 1.1: "done""#,
        "refused out_of_turn
         refused out_of_turn
         refused out_of_turn
         refused out_of_turn
         refused out_of_turn
         next    call model 1.0",
    );
}

#[test]
fn calls_nest_as_deep_as_a_path_can_be_read() {
    let deep = CallPath::DEPTH_MAX;
    let mut script = "given tool helper: agent\n user: go\n".to_owned();
    let mut frame = String::new();
    for _ in 0..deep {
        script += &format!("model {frame}: helper\n policy: allow\n");
        frame += if frame.is_empty() { "1.0" } else { "/1.0" };
    }
    let world = play(&script);
    assert_eq!(
        world.report().iter().rev().take(2).collect::<Vec<_>>(),
        [
            &format!("next call model {}", ["1.0"; 15].join("/")),
            &format!("call answered {} failure \"calls nest at most 16 deep\"", ["1.0"; 16].join("/")),
        ]
    );
}

#[test]
fn an_agents_path_that_could_not_be_read_back_is_refused() {
    let long = "x".repeat(128);
    let mut script = format!("given tool {long}: agent\n user: go\n");
    let mut frame = String::new();
    for _ in 0..8 {
        script += &format!("model {frame}: {long}\n policy: allow\n");
        frame += if frame.is_empty() { "1.0" } else { "/1.0" };
    }
    let report = play(&script).report();
    assert_eq!(report.iter().filter(|line| *line == "refused over_limit").count(), 1, "{report:?}");
}

#[test]
fn a_handoff_gives_the_conversation_to_another_agent() {
    check(
        r#"given tool transfer: handoff
           user: go
           ---
           model: transfer
           policy: allow
           look: model
           model: pay
           policy: hold
           look: pauses"#,
        r#"model replied
           call allowed   1.0 by policy
           handed off     1.0
           sees user      "go"
           sees assistant transfer#c1
           sees result    c1 "The conversation was handed over to Support/transfer."
           model replied
           pause opened   #1 approval 2.0 pay {}
           open           #1 approval of Support/transfer 2.0 pay {}
           next           await #1"#,
    );
}

#[test]
fn a_held_call_beside_a_handoff_is_settled_first() {
    check(
        r#"given tool transfer: handoff
           user: go
           model: transfer & pay
           policy: allow & hold
           ---
           model says: early
           ana: approve #1
           tool 1.1: "paid""#,
        r#"refused       out_of_turn
           pause decided #1 approve by ana
           call started  1.1
           call answered 1.1 result "paid"
           handed off    1.0
           next          call model root"#,
    );
}

#[test]
fn of_two_handoffs_in_a_reply_the_first_is_made() {
    check(
        r#"given tool sales: handoff
           given tool billing: handoff
           given tool legal: handoff
           user: go
           model: sales & billing & legal
           ---
           policy: allow"#,
        r#"call allowed  1.0 by policy
           call allowed  1.1 by policy
           call allowed  1.2 by policy
           call answered 1.1 invalid "only one hand-off can be made in a turn"
           call answered 1.2 invalid "only one hand-off can be made in a turn"
           handed off    1.0
           next          call model root"#,
    );
}

#[test]
fn a_denied_handoff_leaves_the_conversation_where_it_is() {
    check(
        r#"given tool sales: handoff
           given tool billing: handoff
           user: go
           model: sales & billing
           policy: hold & allow
           ---
           ana: deny #1 "not to them"
           model: pay
           policy: hold
           look: pauses"#,
        r#"pause decided #1 deny "not to them" by ana
           call answered 1.0 denied "not to them"
           handed off    1.1
           model replied
           pause opened  #2 approval 2.0 pay {}
           open          #2 approval of Support/billing 2.0 pay {}
           next          await #2"#,
    );
}

#[test]
fn an_agent_reached_by_handoff_has_call_ids_of_its_own() {
    check(
        r#"given tool transfer: handoff
           given tool back: handoff Support
           user: go
           model: pay#a {"amount": 1} & transfer#t
           policy: allow
           tool 1.0: "paid"
           ---
           model: pay#a {"amount": 2} & back#b
           policy: allow
           tool 2.0: "paid"
           model: pay#a {"amount": 1}
           model: pay#a {"amount": 2}"#,
        r#"model replied
           call allowed  2.0 by policy
           call allowed  2.1 by policy
           call started  2.0
           call answered 2.0 result "paid"
           handed off    2.1
           model replied repeating 1.0
           reply refused call_id_reused
           next          call model root"#,
    );
}

#[test]
fn an_inner_agent_can_hand_over_inside_its_frame() {
    check(
        r#"given tool helper: agent
           given tool transfer: handoff
           user: go
           model: helper
           policy: allow
           model 1.0: transfer
           ---
           policy: allow
           model 1.0: pay
           policy: hold
           look: pauses
           ana: deny #1 "no"
           model 1.0 says: sorry"#,
        r#"call allowed  1.0/1.0 by policy
           handed off    1.0/1.0
           model replied in 1.0
           pause opened  #1 approval 1.0/2.0 pay {}
           open          #1 approval of Support/helper/transfer 1.0/2.0 pay {}
           pause decided #1 deny "no" by ana
           call answered 1.0/2.0 denied "no"
           model replied in 1.0
           call answered 1.0 result "sorry"
           next          call model root"#,
    );
}

#[test]
fn what_a_later_run_is_shown_has_no_call_without_an_outcome() {
    // The second agent's call has the id of a settled call of the first.
    let world = play(
        r#"given tool transfer: handoff
           user: go
           model: pay#a & transfer#t
           policy: allow
           tool 1.0: "paid"
           model: pay#a {"more": true} & sell#b
           policy: hold & allow
           tool 2.1: "sold"
           cancel"#,
    );
    let items = world.run.items();
    let kept: Vec<String> = answered_items(&items[..items.len() - 2]).iter().map(|item| line(item)).collect();
    assert_eq!(
        kept,
        [
            r#"user "go""#,
            "assistant pay#a transfer#t",
            r#"result a "paid""#,
            r#"result t "The conversation was handed over to Support/transfer.""#,
        ]
    );
}

fn line(item: &Item) -> String {
    super::common::item_line(item)
}
