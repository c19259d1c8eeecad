//! Pauses that wait until a time.

use super::common::check;

const HELD: &str = "user: go
    model: pay & sell
    policy: hold until +10m & hold
    ---
";

#[track_caller]
fn check_held(script: &str, expected: &str) {
    check(&format!("{HELD}\n{script}"), expected);
}

#[test]
fn a_deadline_never_fires_early() {
    check_held(
        "deadline #1
         clock +599s
         deadline #1",
        "refused out_of_turn
         refused out_of_turn
         next    await #1 #2",
    );
}

#[test]
fn a_deadline_fires_at_its_time_and_once() {
    check_held(
        "clock +10m
         deadline #1
         deadline #1",
        "pause expired #1
         call answered 1.0 expired
         refused       expired
         next          await #2",
    );
}

#[test]
fn a_deadline_that_is_seen_late_still_fires() {
    check_held(
        "clock +48h
         restart
         deadline #1",
        "pause expired #1
         call answered 1.0 expired
         next          await #2",
    );
}

#[test]
fn a_pause_without_a_deadline_never_expires() {
    check_held("clock +9000h\n deadline #2", "refused out_of_turn\n next await #1 #2");
}

#[test]
fn a_decision_before_the_deadline_wins() {
    check_held(
        "clock +599s
         ana: approve #1
         clock +1s
         deadline #1",
        "pause decided #1 approve by ana
         refused       already_decided
         next          run 1.0",
    );
}

#[test]
fn a_decision_at_or_after_the_deadline_is_refused_though_nobody_has_fired_it_yet() {
    check_held(
        r#"clock +10m
           ana: approve #1
           clock +1m
           ana: deny #1 "no"
           deadline #1
           ana: approve #1"#,
        "refused       expired
         refused       expired
         pause expired #1
         call answered 1.0 expired
         refused       expired
         next          await #2",
    );
}

#[test]
fn the_model_is_told_that_nobody_answered() {
    check(
        "user: go
         model: pay
         policy: hold until +10m
         clock +10m
         ---
         deadline #1
         look: model",
        r#"pause expired     #1
           call answered     1.0 expired
           sees user         "go"
           sees assistant    pay#c1
           sees error result c1 "Nobody approved the call in time; it did not run."
           next              call model root"#,
    );
}

#[test]
fn an_expired_call_never_starts() {
    check_held(
        "clock +10m
         deadline #1
         start 1.0
         drift 1.0: \"again\"",
        "pause expired #1
         call answered 1.0 expired
         refused       out_of_turn
         refused       out_of_turn
         next          await #2",
    );
}
