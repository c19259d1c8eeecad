//! Each scenario is cut at every store write, restarted and driven to the end, over memory that loses power.
#![allow(clippy::unwrap_used)] // All of it is a test.

use std::sync::Arc;

use holdpoint_core::ids::RunId;
use holdpoint_core::time::Timestamp;
use holdpoint_runtime::ports::store::Store;
use holdpoint_testkit::clock::TestClock;
use holdpoint_testkit::crash::{Acknowledged, Attempt, Cut, Scenario, World, check, play, scenarios};
use holdpoint_testkit::power_loss::PowerLoss;

fn run_id() -> RunId {
    "run_0198c0ffee007000800000000000beef".parse().unwrap()
}

fn clock() -> TestClock {
    TestClock::at(Timestamp::from_millis(1_794_735_000_000))
}

/// Plays the scenario without a cut and says how many writes it took.
async fn count_writes(scenario: &Scenario) -> u64 {
    let (clock, world, mut acknowledged) = (clock(), World::in_memory(), Acknowledged::default());
    let power = Arc::new(PowerLoss::new(clock.shared()));
    let store: Arc<dyn Store> = power.clone();
    let attempt = play(scenario, run_id(), store.clone(), &clock, &world, &mut acknowledged).await;
    let Attempt::Finished(run) = attempt else { panic!("{}: cut off without a cut", scenario.name) };
    check(scenario, "uncut", &run, &store, &world, &acknowledged).await;
    power.writes()
}

/// Cuts the power as planned, once in each process; what is left goes on to the end.
async fn cut_at(scenario: &Scenario, cuts: &[(u64, Cut)]) {
    let place = format!("cut at {cuts:?}");
    let (clock, world, mut acknowledged) = (clock(), World::in_memory(), Acknowledged::default());
    let mut power = Arc::new(PowerLoss::new(clock.shared()));
    for next in cuts.iter().map(Some).chain([None]) {
        next.into_iter().for_each(|(write, cut)| power.cut_at(*write, *cut));
        let store: Arc<dyn Store> = power.clone();
        match play(scenario, run_id(), store.clone(), &clock, &world, &mut acknowledged).await {
            Attempt::Finished(run) => return check(scenario, &place, &run, &store, &world, &acknowledged).await,
            Attempt::CutOff => power = Arc::new(power.restart()),
        }
    }
    panic!("{place}: cut off after the last cut");
}

#[tokio::test]
async fn no_single_cut_loses_a_decision_or_repeats_an_effect() {
    let mut cells = 0;
    for scenario in scenarios() {
        let writes = count_writes(&scenario).await;
        assert!(writes >= 2, "{} writes only {writes} times", scenario.name);
        for write in 1..=writes {
            for cut in Cut::ALL {
                cut_at(&scenario, &[(write, cut)]).await;
                cells += 1;
            }
        }
    }
    println!("{cells} cells");
}

#[tokio::test]
async fn no_second_cut_during_recovery_does_either() {
    for scenario in scenarios() {
        let writes = count_writes(&scenario).await;
        for write in 1..=writes {
            for second in 1..=3 {
                for cut in Cut::ALL {
                    cut_at(&scenario, &[(write, Cut::After), (second, cut)]).await;
                    cut_at(&scenario, &[(write, Cut::Torn), (second, cut)]).await;
                }
            }
        }
    }
}

/// A control that must fail: tools that may be repeated are counted as if they might not.
#[tokio::test]
#[should_panic(expected = "took effect 2 times")]
async fn a_repeated_effect_would_be_seen() {
    for mut scenario in scenarios().into_iter().filter(|scenario| scenario.repeats) {
        let writes = count_writes(&scenario).await;
        scenario.repeats = false;
        for write in 1..=writes {
            cut_at(&scenario, &[(write, Cut::Before)]).await;
        }
    }
}

/// A control that must fail: a confirmed decision that is not in the store.
#[tokio::test]
#[should_panic(expected = "a confirmed decision")]
async fn a_lost_decision_would_be_seen() {
    let scenario = &scenarios()[0];
    let (clock, world, mut acknowledged) = (clock(), World::in_memory(), Acknowledged::default());
    let store: Arc<dyn Store> = Arc::new(PowerLoss::new(clock.shared()));
    let Attempt::Finished(run) = play(scenario, run_id(), store.clone(), &clock, &world, &mut acknowledged).await
    else {
        panic!("cut off without a cut")
    };
    for decision in acknowledged.decisions.values_mut() {
        *decision = holdpoint_core::decision::Decision::Abandon;
    }
    check(scenario, "control", &run, &store, &world, &acknowledged).await;
}
