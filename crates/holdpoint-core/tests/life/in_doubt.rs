//! A start without an outcome: it is shown, never guessed.

use holdpoint_core::event::{PauseOpened, RunEvent};
use holdpoint_core::ids::PauseId;
use holdpoint_core::input::Input;
use holdpoint_core::pause::PauseKind;
use holdpoint_core::tool::{Allowance, CallState, Outcome};

use super::common::{check, play};

const IN_DOUBT: &str = r#"user: go
    model: pay {"amount": 5}
    policy: hold
    ana: approve #1
    start
    crash
    ---
"#;

#[track_caller]
fn check_doubt(script: &str, expected: &str) {
    check(&format!("{IN_DOUBT}\n{script}"), expected);
}

#[test]
fn a_call_that_was_under_way_in_a_crash_is_asked_about() {
    check(
        r#"user: go
           model: pay {"amount": 5}
           policy: allow
           start
           ---
           crash
           crash"#,
        r#"pause opened #1 in_doubt 1.0 pay {"amount":5}
           next         await #1"#,
    );
}

#[test]
fn what_may_be_repeated_runs_again_unasked() {
    for effect in ["read_only", "idempotent"] {
        check(
            &format!(
                r#"given tool fetch: {effect}
                   user: go
                   model: fetch
                   policy: allow
                   start
                   ---
                   crash
                   look: call 1.0
                   start
                   crash
                   tool 1.0: "fetched""#
            ),
            r#"call released 1.0
               call          1.0 is allowed {} after 1 starts
               call started  1.0
               call released 1.0
               call started  1.0
               call answered 1.0 result "fetched"
               next          call model root"#,
        );
    }
}

#[test]
fn a_crash_before_the_start_starts_the_call_as_if_nothing_was() {
    check(
        r#"user: go
           model: pay
           policy: hold
           ana: approve #1
           ---
           crash
           tool 1.0: "paid""#,
        r#"call started  1.0
           call answered 1.0 result "paid"
           next          call model root"#,
    );
}

#[test]
fn a_crash_after_the_outcome_runs_nothing_again() {
    check(
        r#"user: go
           model: pay
           policy: allow
           tool 1.0: "paid"
           ---
           crash"#,
        "next call model root",
    );
}

#[test]
fn it_happened_and_this_came_of_it() {
    check_doubt(
        r#"ana: happened #2 "receipt 7""#,
        r#"pause decided #2 happened "receipt 7" by ana
           call answered 1.0 result "receipt 7"
           next          call model root"#,
    );
}

#[test]
fn it_may_run_again() {
    check_doubt(
        r#"ana: run again #2
           tool 1.0: "paid""#,
        r#"pause decided #2 run_again by ana
           call released 1.0
           call started  1.0
           call answered 1.0 result "paid"
           next          call model root"#,
    );
}

#[test]
fn it_may_run_again_and_be_in_doubt_again() {
    check_doubt(
        "ana: run again #2
         start
         crash",
        r#"pause decided #2 run_again by ana
           call released 1.0
           call started  1.0
           pause opened  #3 in_doubt 1.0 pay {"amount":5}
           next          await #3"#,
    );
}

#[test]
fn it_can_be_left_open() {
    check_doubt(
        "ana: abandon #2
         look: model",
        r#"pause decided     #2 abandon by ana
           call answered     1.0 abandoned
           sees user         "go"
           sees assistant    pay#c1
           sees error result c1 "The call was interrupted; whether it took effect is not known."
           next              call model root"#,
    );
}

#[test]
fn doubt_that_nobody_resolves_never_says_that_it_did_not_run() {
    let mut world = play("user: go\n model: pay\n policy: allow\n start\n ---");
    // Drivers ask without a deadline; a record may hold one.
    let call = "1.0".parse().unwrap();
    let digest = world.run.call(&call).unwrap().digest();
    let expires_at = Some(world.now.after(std::time::Duration::from_secs(60)));
    let opened = PauseOpened { expires_at, ..PauseOpened::new(1, PauseKind::InDoubt, call, Some(digest)) };
    world.record(RunEvent::PauseOpened(opened));
    super::common::play_on(&mut world, "clock +1m\n deadline #1");
    assert_eq!(world.report(), ["pause expired #1", "call answered 1.0 abandoned", "next call model root"]);
}

#[test]
fn a_call_in_doubt_does_not_start_and_gives_no_outcome() {
    check_doubt(
        r#"start 1.0
           tool 1.0: "paid""#,
        "refused out_of_turn
         refused out_of_turn
         next    await #2",
    );
}

#[test]
fn only_calls_that_were_started_can_be_orphaned() {
    let mut world = play(
        r#"given tool helper: agent
           user: go
           model: pay & helper & sell
           policy: hold & allow & allow
           start 1.2
           ---"#,
    );
    for calls in [vec!["1.0"], vec!["1.1"], vec!["3.0"], vec!["1.2", "1.2"]] {
        let orphaned = Input::Orphaned(calls.iter().map(|at| at.parse().unwrap()).collect());
        assert_eq!(world.give(orphaned).map_err(|refusal| refusal.code()), Err("out_of_turn"), "{calls:?}");
    }
}

#[test]
fn a_call_that_was_started_once_is_never_said_not_to_have_run() {
    for (script, ended) in [
        ("ana: run again #2\n cancel", "abandoned"),
        ("ana: run again #2\n drift 1.0: \"changed\" until +1m\n clock +1m\n deadline #3", "abandoned"),
        ("ana: run again #2\n drift 1.0: \"changed\"\n cancel", "abandoned"),
        ("cancel", "abandoned"),
    ] {
        let world = play(&format!("{IN_DOUBT}\n{script}"));
        let told = format!("call answered 1.0 {ended}");
        assert!(world.report().contains(&told), "{script}: {:?}", world.report());
    }
}

#[test]
fn a_released_call_still_says_who_let_it_run() {
    let world = play(
        r#"given tool pay: idempotent
           user: go
           model: pay & pay
           policy: hold & allow
           ana: approve #1
           start
           crash"#,
    );
    let state = |at: &str| world.run.call(&at.parse().unwrap()).unwrap().state.clone();
    assert_eq!(state("1.0"), CallState::Allowed { by: Allowance::Pause(1) });
    assert_eq!(state("1.1"), CallState::Allowed { by: Allowance::Policy });
}

#[test]
fn doubt_of_several_calls_is_asked_about_one_by_one() {
    check(
        r#"given tool fetch: read_only
           user: go
           model: pay & fetch & sell & wait
           policy: allow & allow & allow & hold
           start
           ---
           crash
           ana: happened #3 "sold"
           ana: abandon #2"#,
        r#"pause opened  #2 in_doubt 1.0 pay {}
           call released 1.1
           pause opened  #3 in_doubt 1.2 sell {}
           pause decided #3 happened "sold" by ana
           call answered 1.2 result "sold"
           pause decided #2 abandon by ana
           call answered 1.0 abandoned
           next          run 1.1"#,
    );
}

#[test]
fn a_pause_about_doubt_binds_to_what_was_started() {
    let world = play(IN_DOUBT);
    let view = world.run.pause_view(PauseId { run: world.run.id(), number: 2 }).unwrap();
    let call = view.call.unwrap();
    assert_eq!(call.arguments.as_str(), r#"{"amount":5}"#);
    assert_eq!(call.digest, call.arguments.digest());
    assert_eq!(view.pause.kind, PauseKind::InDoubt);
    assert!(matches!(world.run.call(&call.path).unwrap().state, CallState::InDoubt { pause: 2 }));
    assert!(Outcome::Abandoned.is_error());
}
