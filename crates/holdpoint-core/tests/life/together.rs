//! Several pauses are answered at once: all of the answers count, or none.

use holdpoint_core::audit::AuditNote;
use holdpoint_core::decision::{Decision, DecisionInput, Manner};
use holdpoint_core::ids::PauseId;
use holdpoint_core::input::Input;
use holdpoint_core::pause::PauseState;
use holdpoint_core::run::limits;

use super::common::{actor, check, play};

const TWO_HELD: &str = r#"user: go
    model: pay {"amount": 5} & sell
    policy: hold
    ---
"#;

#[track_caller]
fn check_after(given: &str, script: &str, expected: &str) {
    check(&format!("{given}\n{script}"), expected);
}

#[test]
fn several_answers_are_recorded_in_their_order_and_each_decides_its_own() {
    check_after(
        TWO_HELD,
        r#"ana: deny #2 "no" & approve #1 edited {"amount": 4}"#,
        r#"pause decided #2 deny "no" by ana
           call answered 1.1 denied "no"
           pause decided #1 approve_edited {"amount":4} by ana
           next          run 1.0"#,
    );
}

#[test]
fn one_answer_that_is_refused_refuses_them_all() {
    for (second, code) in [
        ("answer #2 {}", "decision_not_allowed"),
        ("approve #2 seen other", "stale_view"),
        ("approve #3", "not_found"),
        ("approve other#2", "not_found"),
        ("approve #2 edited {\"a\": 1} & approve #2", "over_limit"),
        ("approve #1", "over_limit"),
        ("always respond #2 \"x\"", "invalid_rule"),
    ] {
        let expected = format!("refused {code}\nnext await #1 #2");
        check_after(TWO_HELD, &format!("ana: approve #1 & {second}"), &expected);
    }
}

#[test]
fn the_refusal_names_the_pause() {
    let world = play(TWO_HELD);
    let id = |number| PauseId { run: world.run.id(), number };
    let by_ana = |number, decision| DecisionInput::new(id(number), decision, actor("ana"));
    let inputs = vec![by_ana(1, Decision::Approve), by_ana(2, Decision::Abandon)];
    let refusal = world.run.handle(Input::Decisions(inputs), world.now).unwrap_err();
    assert_eq!((refusal.code(), refusal.pause()), ("decision_not_allowed", Some(id(2))));
}

#[test]
fn an_answer_to_what_was_decided_meanwhile_counts_where_it_says_the_same() {
    check_after(
        TWO_HELD,
        "bo: approve #1
         ana: approve #1 & deny #2 \"no\"
         ana: approve #1 & deny #2 \"no\"",
        r#"pause decided #1 approve by bo
           pause decided #2 deny "no" by ana
           call answered 1.1 denied "no"
           next          run 1.0"#,
    );
    check_after(
        TWO_HELD,
        "bo: deny #1 \"never\"
         ana: approve #2 & approve #1",
        r#"pause decided #1 deny "never" by bo
           call answered 1.0 denied "never"
           refused       already_decided
           next          await #2"#,
    );
}

#[test]
fn of_several_answers_one_may_come_too_late_for_all() {
    check(
        "user: go
         model: pay & sell
         policy: hold & hold until +10m
         clock +10m
         ---
         ana: approve #1 & approve #2
         deadline #2
         ana: approve #1",
        "refused       expired
         pause expired #2
         call answered 1.1 expired
         pause decided #1 approve by ana
         next          run 1.0",
    );
}

#[test]
fn approvals_within_a_batch_are_votes_where_several_must_approve() {
    check(
        "user: go
         model: pay & sell
         policy: hold quorum 2 & hold
         ---
         ana: approve #1 & approve #2
         ana: approve #1 & approve #2
         bo: approve #1 & approve #2",
        "pause voted   #1 by ana
         pause decided #2 approve by ana
         pause decided #1 approve by bo
         next          run 1.0 1.1",
    );
    check(
        "user: go
         model: pay & sell
         policy: hold & hold for bo
         ---
         ana: approve #1 & approve #2
         cy: approve #1 & approve #2 as bo",
        "refused       not_an_approver
         pause decided #1 approve by cy
         pause decided #2 approve by cy
         next          run 1.0 1.1",
    );
}

#[test]
fn rules_of_one_batch_are_counted_one_after_the_other() {
    check_after(
        TWO_HELD,
        "ana: always approve #1 & always deny #2 \"no\"",
        r#"pause decided #1 approve by ana
           rule made     1 approves pay of Support
           pause decided #2 deny "no" by ana
           call answered 1.1 denied "no"
           rule made     2 denies sell of Support
           next          run 1.0"#,
    );
}

#[test]
fn what_follows_from_several_answers_follows_from_them_together() {
    check(
        r#"given tool helper: agent
           given tool to: handoff
           user: go
           model: helper & to
           policy: hold
           ---
           ana: deny #1 "no" & approve #2"#,
        r#"pause decided #1 deny "no" by ana
           call answered 1.0 denied "no"
           pause decided #2 approve by ana
           handed off    1.1
           next          call model root"#,
    );
}

#[test]
fn an_answer_that_was_filled_in_is_recorded_and_audited_as_implied() {
    check_after(
        TWO_HELD,
        "ana: approve #1 & approve #2 implied",
        "pause decided #1 approve by ana
         pause decided #2 approve by ana implied
         next          run 1.0 1.1",
    );
    let world = play(&format!("{TWO_HELD}\nana: approve #1 & approve #2 implied"));
    let manners = world.run.pauses().iter().map(|pause| match &pause.state {
        PauseState::Decided(decided) => decided.manner,
        state => panic!("{state:?}"),
    });
    assert_eq!(manners.collect::<Vec<_>>(), [Manner::Given, Manner::Implied]);
    let notes = world.entries.last().unwrap().events.iter();
    let notes = notes.filter_map(|event| AuditNote::of(&world.run, event, world.now));
    assert_eq!(notes.map(|note| note.manner).collect::<Vec<_>>(), [None, Some(Manner::Implied)]);
}

#[test]
fn so_many_answers_are_taken_at_once_and_no_more() {
    let mut world = play(TWO_HELD);
    let id = |number| PauseId { run: world.run.id(), number };
    let answer = |number| DecisionInput::new(id(number), Decision::Approve, actor("ana"));
    let too_many = (1..=limits::DECISIONS_MAX as u32 + 1).map(answer).collect();
    assert_eq!(world.give(Input::Decisions(too_many)).map_err(|refusal| refusal.code()), Err("over_limit"));
    assert_eq!(world.give(Input::Decisions(Vec::new())), Ok(Vec::new()));
}

#[test]
fn words_beside_a_decision_reach_the_model_after_the_result_and_change_no_argument() {
    check_after(
        TWO_HELD,
        r#"ana: approve #1 note hurry & deny #2 "no" note sorry
           restart
           look: call 1.0
           tool 1.0: "paid"
           look: model
           model says: done"#,
        r#"pause decided     #1 approve by ana
           input staged      "hurry" by ana
           pause decided     #2 deny "no" by ana
           call answered     1.1 denied "no"
           input staged      "sorry" by ana
           call 1.0 is allowed {"amount":5} after 0 starts
           call started      1.0
           call answered     1.0 result "paid"
           sees user         "go"
           sees assistant    pay#c1 sell#c2
           sees result       c1 "paid"
           sees error result c2 "no"
           sees user         "hurry"
           sees user         "sorry"
           model replied     having seen 2
           run finished      done "done"
           next              finished done "done""#,
    );
}

#[test]
fn words_beside_a_decision_are_said_once() {
    check_after(
        TWO_HELD,
        "ana: approve #1 note hurry
         ana: approve #1 note hurry
         bo: deny #1 note never",
        r#"pause decided #1 approve by ana
           input staged  "hurry" by ana
           refused       already_decided
           next          run 1.0"#,
    );
    check(
        "user: go
         model: pay
         policy: hold quorum 2
         ---
         ana: approve #1 note one
         ana: approve #1 note one
         bo: approve #1 note two",
        r#"pause voted   #1 by ana
           input staged  "one" by ana
           pause decided #1 approve by bo
           input staged  "two" by bo
           next          run 1.0"#,
    );
}

#[test]
fn words_that_no_model_will_hear_are_kept_with_the_decision_they_came_with() {
    check(
        r#"given agent: turns 1
           user: go
           model: pay
           policy: hold
           ---
           ana: approve #1 note hurry
           restart
           tool 1.0: "paid""#,
        r#"pause decided #1 approve by ana
           input staged  "hurry" by ana
           call started  1.0
           call answered 1.0 result "paid"
           run finished  failed turns_exhausted
           next          finished failed turns_exhausted"#,
    );
}

#[test]
fn words_beside_a_decision_are_heard_by_the_agent_that_asked() {
    check(
        r#"given tool helper: agent
           user: go
           model: helper
           policy: allow
           model 1.0: pay
           policy: hold
           ---
           ana: approve #1 note hurry
           restart
           tool 1.0/1.0: "paid"
           look: model 1.0
           model 1.0 says: all paid
           look: model"#,
        r#"pause decided  #1 approve by ana
           input staged   "hurry" by ana in 1.0
           call started   1.0/1.0
           call answered  1.0/1.0 result "paid"
           sees user      {}
           sees assistant pay#c2
           sees result    c2 "paid"
           sees user      "hurry"
           model replied  in 1.0 having seen 1
           call answered  1.0 result "all paid"
           sees user      "go"
           sees assistant helper#c1
           sees result    c1 "all paid"
           next           call model root"#,
    );
}

#[test]
fn words_for_an_agent_that_may_speak_no_more_are_heard_by_the_one_that_called_it() {
    check(
        r#"given tool helper: agent, turns 1
           user: go
           model: helper
           policy: allow
           model 1.0: pay
           policy: hold
           ---
           ana: deny #1 "no" note later"#,
        r#"pause decided #1 deny "no" by ana
           call answered 1.0/1.0 denied "no"
           input staged  "later" by ana
           call answered 1.0 failure "turns_exhausted: the agent made 1 model call, and may make no more"
           next          call model root"#,
    );
}

#[test]
fn words_that_are_too_many_refuse_the_decision_they_came_with() {
    let mut world = play(TWO_HELD);
    let pause = PauseId { run: world.run.id(), number: 1 };
    let note = Some("x".repeat(limits::TEXT_BYTES_MAX + 1));
    let input = DecisionInput { note, ..DecisionInput::new(pause, Decision::Approve, actor("ana")) };
    assert_eq!(world.give(Input::Decision(input)).map_err(|refusal| refusal.code()), Err("over_limit"));
}
