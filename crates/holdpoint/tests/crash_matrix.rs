//! Crash at every commit, for real: a child process over an SQLite file is killed with -9 at each of its writes, and
//! this process goes on with what it left behind.
#![cfg(feature = "sqlite")]
#![allow(clippy::unwrap_used)] // All of it is a test.

use std::path::Path;
use std::sync::Arc;

use holdpoint::{Clock, SqliteStore, Store};
use holdpoint_testkit::clock::TestClock;
use holdpoint_testkit::crash::killed::{self, clock_at, go_on};
use holdpoint_testkit::crash::{Acknowledged, Cut, Scenario, check, scenarios};

fn open(folder: &Path, clock: &TestClock) -> Arc<dyn Store> {
    let clock: Arc<dyn Clock> = clock.shared();
    Arc::new(SqliteStore::open(folder.join("holdpoint.db"), clock).unwrap())
}

/// Not a test of its own: the process that is killed.
#[test]
fn the_process_that_is_killed() {
    killed::be_the_child(|folder, clock| async move { open(&folder, &clock) });
}

fn kill_at(folder: &Path, scenario: &Scenario, write: u32, cut: Cut) -> bool {
    killed::kill_child("the_process_that_is_killed", &[], folder, scenario, (write, cut))
}

/// One cell of the matrix; says whether the cut came.
async fn cut_at(scenario: &Scenario, write: u32, cut: Cut) -> bool {
    let folder = tempfile::tempdir().unwrap();
    let is_cut = kill_at(folder.path(), scenario, write, cut);
    go_on_and_check(scenario, &format!("killed {cut:?} write {write}"), folder.path(), |_| {}).await;
    is_cut
}

/// Goes on with what a killed process left behind, to the end, and checks all of it.
async fn go_on_and_check(scenario: &Scenario, place: &str, folder: &Path, meddle: impl FnOnce(&mut Acknowledged)) {
    let clock = clock_at(24);
    let store = open(folder, &clock);
    let (run, world, mut acknowledged) = go_on(scenario, place, folder, &store, &clock).await;
    meddle(&mut acknowledged);
    check(scenario, place, &run, &store, &world, &acknowledged).await;
}

async fn count_writes(scenario: &Scenario) -> u32 {
    let (folder, clock) = (tempfile::tempdir().unwrap(), clock_at(0));
    killed::count_writes(scenario, open(folder.path(), &clock), &clock).await
}

async fn every_write_of(scenario: Scenario, torn_rounds: u32) {
    let (mut cells, mut cuts) = (0, 0);
    for write in 1..=count_writes(&scenario).await {
        let torn = std::iter::repeat_n(Cut::Torn, torn_rounds as usize);
        for cut in [Cut::Before, Cut::After].into_iter().chain(torn) {
            cells += 1;
            cuts += u32::from(cut_at(&scenario, write, cut).await);
        }
    }
    println!("{}: {cuts} of {cells} cells were cut", scenario.name);
    assert!(cuts * 2 >= cells, "{}: only {cuts} of {cells} cells were cut", scenario.name);
}

macro_rules! killed_at_every_write {
    ($($test:ident => $scenario:literal),* $(,)?) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
            async fn $test() {
                every_write_of(killed::scenario($scenario), 1).await;
            }
        )*

        #[test]
        fn every_scenario_is_killed_at_every_write() {
            let names: Vec<&str> = scenarios().iter().map(|scenario| scenario.name).collect();
            assert_eq!(names, [$($scenario),*]);
        }
    };
}

killed_at_every_write! {
    an_approval_survives_kill_9_at_every_write => "approve",
    a_denial_survives_kill_9_at_every_write => "deny",
    an_edit_survives_kill_9_at_every_write => "edit",
    parallel_calls_survive_kill_9_at_every_write => "parallel",
    a_deadline_survives_kill_9_at_every_write => "expire",
    nested_agents_survive_kill_9_at_every_write => "nested agents",
    a_hand_off_survives_kill_9_at_every_write => "hand-off",
    repeatable_tools_survive_kill_9_at_every_write => "repeatable tools",
    two_rounds_survive_kill_9_at_every_write => "two rounds",
    an_answer_in_place_survives_kill_9_at_every_write => "respond",
    decisions_at_once_survive_kill_9_at_every_write => "together",
    a_message_in_their_place_survives_kill_9_at_every_write => "instead",
}

/// A control that must fail: tools that may be repeated are counted as if they might not.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
#[should_panic(expected = "took effect 2 times")]
async fn an_effect_repeated_after_kill_9_would_be_seen() {
    for mut scenario in scenarios().into_iter().filter(|scenario| scenario.repeats) {
        let writes = count_writes(&scenario).await;
        scenario.repeats = false;
        for write in 1..=writes {
            cut_at(&scenario, write, Cut::Before).await;
        }
    }
}

/// A control that must fail: what the killed process was told is recorded is not what is found.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
#[should_panic(expected = "a confirmed decision")]
async fn a_decision_lost_by_kill_9_would_be_seen() {
    let scenario = &scenarios()[0];
    for write in 1..=count_writes(scenario).await {
        let folder = tempfile::tempdir().unwrap();
        kill_at(folder.path(), scenario, write, Cut::After);
        let told = Acknowledged::in_file(&folder.path().join("acknowledged")).decisions;
        go_on_and_check(scenario, "control", folder.path(), |acknowledged| {
            for pause in told.keys() {
                acknowledged.decisions.insert(*pause, holdpoint::Decision::Abandon);
            }
        })
        .await;
    }
}

/// The long version: `cargo xtask crash`.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
#[ignore = "takes minutes: cargo xtask crash"]
async fn torn_writes_survive_kill_9_many_times() {
    for scenario in scenarios() {
        every_write_of(scenario, 20).await;
    }
}
