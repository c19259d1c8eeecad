//! Terms of a pause: who may decide, how many must approve, and what waiting does.

use holdpoint_core::ids::{ActorId, PauseId};
use holdpoint_core::pause::PauseState;

use super::common::{World, check, play, play_on};

#[track_caller]
fn check_held(hold: &str, script: &str, expected: &str) {
    check(&format!("user: go\n model: pay\n policy: {hold}\n ---\n {script}"), expected);
}

fn first_pause(world: &World) -> PauseId {
    PauseId { run: world.run.id(), number: 1 }
}

#[test]
fn a_pause_says_on_what_terms_it_is_asked() {
    check(
        r#"user: go
           model: pay & sell
           policy: hold until +10m for finance for ana quorum 2 rule big then approve because "over 1000" & hold"#,
        r#"run started  Support
           model replied
           pause opened #1 approval 1.0 pay {} until +10m because "over 1000" for finance for ana rule big quorum 2 then approve
           pause opened #2 approval 1.1 sell {}
           next         await #1 #2"#,
    );
}

#[test]
fn terms_beyond_their_bounds_are_refused() {
    check_held("hold", "ana: deny #1 \"no\"\n model: pay\n policy: hold quorum 65", "pause decided #1 deny \"no\" by ana
        call answered 1.0 denied \"no\"\n model replied\n refused over_limit\n next screen 2.0");
}

#[test]
fn the_last_approval_needed_decides() {
    check_held(
        "hold quorum 3",
        "ana: approve #1
         bo: approve #1
         cy: approve #1",
        "pause voted   #1 by ana
         pause voted   #1 by bo
         pause decided #1 approve by cy
         next          run 1.0",
    );
}

#[test]
fn an_actor_has_one_vote_however_often_they_approve() {
    check_held(
        "hold quorum 2",
        "ana: approve #1
         ana: approve #1
         restart
         ana: approve #1 request again
         bo: approve #1
         ana: approve #1",
        "pause voted   #1 by ana
         pause decided #1 approve by bo
         next          run 1.0",
    );
}

#[test]
fn one_denial_decides_whoever_approved_before() {
    check_held(
        "hold quorum 3",
        r#"ana: approve #1
           bo: approve #1
           ana: deny #1 "I was wrong"
           cy: approve #1"#,
        r#"pause voted   #1 by ana
           pause voted   #1 by bo
           pause decided #1 deny "I was wrong" by ana
           call answered 1.0 denied "I was wrong"
           refused       already_decided
           next          call model root"#,
    );
}

#[test]
fn words_in_the_tools_place_need_no_company_since_nothing_runs() {
    check_held(
        "hold quorum 2",
        r#"ana: respond #1 "ask me tomorrow""#,
        r#"pause decided #1 respond "ask me tomorrow" by ana
           call answered 1.0 responded "ask me tomorrow"
           next          call model root"#,
    );
}

#[test]
fn what_several_must_approve_nobody_edits() {
    check_held(
        "hold quorum 2",
        r#"ana: approve #1
           bo: approve #1 edited {"amount": 1}
           bo: approve #1"#,
        "pause voted   #1 by ana
         refused       decision_not_allowed
         pause decided #1 approve by bo
         next          run 1.0",
    );
}

#[test]
fn a_vote_for_other_arguments_than_are_held_counts_for_nothing() {
    check_held(
        "hold quorum 2",
        "ana: approve #1 seen other
         ana: approve #1 seen it",
        "refused     stale_view
         pause voted #1 by ana
         next        await #1",
    );
}

#[test]
fn approvals_are_shown_with_the_one_that_decided() {
    let mut world = play("user: go\n model: pay\n policy: hold quorum 2\n ana: approve #1 request r1");
    let pause = world.run.pause(first_pause(&world)).unwrap().clone();
    assert_eq!((pause.approvals_needed(), pause.approvals_missing()), (2, 1));
    assert_eq!(pause.approvals[0].request.as_deref(), Some("r1"));
    play_on(&mut world, "bo: approve #1 request r2");
    let pause = world.run.pause(first_pause(&world)).unwrap();
    let by: Vec<&str> = pause.approvals.iter().map(|vote| vote.by.as_str()).collect();
    assert_eq!((by, pause.approvals_needed(), pause.approvals_missing()), (vec!["ana", "bo"], 2, 0));
    let PauseState::Decided(decided) = &pause.state else { panic!("{pause:?}") };
    assert_eq!(decided.request.as_deref(), Some("r2"));
}

#[test]
fn a_name_of_a_request_has_a_bound() {
    let long = "x".repeat(257);
    check_held("hold", &format!("ana: approve #1 request {long}"), "refused over_limit\n next await #1");
}

#[test]
fn only_approvers_decide_by_their_own_name_or_a_groups() {
    check_held(
        "hold for finance for ana",
        r#"bo: approve #1
           bo: deny #1 "no"
           bo: respond #1 "no"
           bo: approve #1 as sales as finance
           eve: approve #1"#,
        "refused       not_an_approver
         refused       not_an_approver
         refused       not_an_approver
         pause decided #1 approve by bo
         refused       not_an_approver
         next          run 1.0",
    );
}

#[test]
fn a_question_can_be_for_somebody_and_one_answers_it() {
    check(
        r#"given tool ask: question
           user: go
           model: ask {"questions": [{"question": "A?"}]}
           policy: hold for ana quorum 2 until +10m then approve
           ---
           bo: answer #1 {"A?": ["x"]}
           ana: answer #1 {"A?": ["y"]}"#,
        r#"refused       not_an_approver
           pause decided #1 answer by ana
           call answered 1.0 result {"answers":{"A?":"y"}}
           next          call model root"#,
    );
}

#[test]
fn waiting_approves_where_the_terms_say_so_and_that_is_recorded_as_a_decision() {
    check_held(
        "hold until +10m then approve",
        "clock +599s
         deadline #1
         clock +1s
         ana: deny #1 \"late\"
         deadline #1
         deadline #1",
        "refused       out_of_turn
         refused       expired
         pause decided #1 approve by timeout
         refused       already_decided
         next          run 1.0",
    );
}

#[test]
fn waiting_approves_whatever_the_votes_say_and_is_no_vote() {
    let world = play("user: go\n model: pay\n policy: hold quorum 3 until +10m then approve\n ana: approve #1
         clock +10m\n deadline #1");
    let pause = world.run.pause(first_pause(&world)).unwrap();
    let by: Vec<&str> = pause.approvals.iter().map(|vote| vote.by.as_str()).collect();
    assert_eq!(by, ["ana"]);
    assert!(matches!(&pause.state, PauseState::Decided(decided) if decided.by == ActorId::timeout()));
}

#[test]
fn nobody_decides_under_the_name_of_a_deadline() {
    check_held("hold until +10m", "timeout: approve #1", "refused not_an_approver\n next await #1");
}

#[test]
fn a_call_that_is_asked_about_again_is_asked_on_its_own_terms_and_waiting_no_longer_approves_it() {
    check_held(
        "hold until +10m for ana for bo quorum 2 rule big then approve",
        r#"ana: approve #1
           bo: approve #1
           drift 1.0: "changed" until +10m
           cy: approve #2
           ana: approve #2
           clock +10m
           deadline #2"#,
        r#"pause voted   #1 by ana
           pause decided #1 approve by bo
           pause opened  #2 approval 1.0 pay {} until +10m because "changed" for ana for bo rule big quorum 2
           refused       not_an_approver
           pause voted   #2 by ana
           pause expired #2
           call answered 1.0 expired
           next          call model root"#,
    );
}

#[test]
fn what_several_must_approve_nobody_approves_for_later_calls() {
    check_held(
        "hold quorum 2",
        r#"ana: approve #1
           bo: always approve #1
           bo: always deny #1 "never""#,
        r#"pause voted   #1 by ana
           refused       invalid_rule
           pause decided #1 deny "never" by bo
           call answered 1.0 denied "never"
           rule made     1 denies pay of Support
           next          call model root"#,
    );
}

#[test]
fn a_rule_for_open_pauses_passes_over_those_that_its_maker_may_not_decide_alone() {
    check(
        "user: go
         model: pay & pay & pay & pay
         policy: hold & hold for bo & hold quorum 2 & hold for ana
         ---
         ana: always approve #1 open too",
        "pause decided #1 approve by ana
         rule made     1 approves pay of Support
         pause decided #4 approve by ana rule 1
         next          run 1.0 1.3",
    );
}
