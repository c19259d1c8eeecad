//! Each scenario is cut at every store write, those of the outbox included, restarted and driven to the end: what was
//! stored is told at least once and in order, and what was not stored is never told.
#![allow(clippy::unwrap_used)] // All of it is a test.

use std::sync::Arc;

use holdpoint_core::ids::RunId;
use holdpoint_runtime::ports::store::Append;
use holdpoint_testkit::clock::TestClock;
use holdpoint_testkit::crash::telling::{self, Outside};
use holdpoint_testkit::crash::{Acknowledged, Attempt, Cut, Scenario, World, scenarios};
use holdpoint_testkit::power_loss::PowerLoss;

fn run_id() -> RunId {
    "run_0198c0ffee007000800000000000beef".parse().unwrap()
}

/// What a faulty program does to its appends, and tells outside beside them.
type Fault = fn(&mut Append, &PowerLoss, &Outside);

fn no_fault(_: &mut Append, _: &PowerLoss, _: &Outside) {}

/// Plays a scenario, cuts the power as planned, once in each process, and checks; says how many writes there were.
async fn cut_at(scenario: &Scenario, cuts: &[(u64, Cut)], fault: Fault) -> u64 {
    let place = format!("{} cut at {cuts:?}", scenario.name);
    let (clock, world, mut acknowledged) = (TestClock::default(), World::in_memory(), Acknowledged::default());
    let outside = Outside::default();
    let mut power = Arc::new(PowerLoss::new(clock.shared()));
    for next in cuts.iter().map(Some).chain([None]) {
        next.into_iter().for_each(|(write, cut)| power.cut_at(*write, *cut));
        let told = outside.clone();
        power.before_each_append(move |append, power| fault(append, power, &told));
        let attempt = telling::play(scenario, run_id(), &power, &clock, &world, &mut acknowledged, &outside).await;
        match attempt {
            Attempt::Finished(run) => {
                telling::check(&place, &run, &*power, &outside, cuts.len()).await;
                return power.writes();
            }
            Attempt::CutOff => power = Arc::new(power.restart()),
        }
    }
    panic!("{place}: cut off after the last cut");
}

/// Cuts a scenario at each of its writes in each way; says how many cuts that were.
async fn cut_everywhere(scenario: &Scenario, fault: Fault) -> usize {
    let writes = cut_at(scenario, &[], fault).await;
    for write in 1..=writes {
        for cut in Cut::ALL {
            cut_at(scenario, &[(write, cut)], fault).await;
        }
    }
    usize::try_from(writes).unwrap() * Cut::ALL.len()
}

#[tokio::test]
async fn what_was_stored_is_told_wherever_the_process_dies_and_nothing_else_is() {
    let mut cells = 0;
    for scenario in scenarios() {
        cells += cut_everywhere(&scenario, no_fault).await;
    }
    assert!(cells > 100, "only {cells} cuts");
    println!("{cells} cells");
}

#[tokio::test]
async fn so_it_is_after_a_second_death_while_what_is_left_is_told() {
    for scenario in scenarios().iter().take(2) {
        let writes = cut_at(scenario, &[], no_fault).await;
        for write in 1..=writes {
            for second in 1..=4 {
                cut_at(scenario, &[(write, Cut::After), (second, Cut::After)], no_fault).await;
                cut_at(scenario, &[(write, Cut::Torn), (second, Cut::Before)], no_fault).await;
            }
        }
    }
}

/// A control that must fail: people are told, then it is stored.
#[tokio::test]
#[should_panic(expected = "was told before it was stored")]
async fn telling_before_storing_would_be_seen() {
    let tell_first: Fault = |append, power, outside| {
        append.notices.drain(..).for_each(|key| outside.tell(key, power));
    };
    cut_everywhere(&scenarios()[0], tell_first).await;
}

/// A control that must fail: what is to be told is not stored with the pause.
#[tokio::test]
#[should_panic(expected = "was never told")]
async fn a_notice_that_is_not_stored_with_its_pause_would_be_missed() {
    cut_everywhere(&scenarios()[0], |append, _, _| append.notices.clear()).await;
}
