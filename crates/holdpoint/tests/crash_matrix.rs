//! Crash at every commit, for real: a child process over an SQLite file is killed with -9 at each of its writes, and
//! this process goes on with what it left behind.
#![cfg(feature = "sqlite")]
#![allow(clippy::unwrap_used)] // All of it is a test.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use holdpoint::{Clock, RunId, SqliteStore, Store, Timestamp};
use holdpoint_testkit::clock::TestClock;
use holdpoint_testkit::crash::{Acknowledged, Attempt, Cut, CutStore, Scenario, World, check, play, scenarios};

/// Tells a test binary that it is the child; holds the folder, the scenario, the write and the cut.
const CHILD: &str = "HOLDPOINT_CRASH_CHILD";

/// What the child says when the cut is reached.
const REACHED: &str = "holdpoint: the cut is reached";

/// What the child says when it came to its end first.
const FINISHED: &str = "holdpoint: the run is over";

fn run_id() -> RunId {
    "run_0198c0ffee007000800000000000beef".parse().unwrap()
}

fn clock_at(hours: u64) -> TestClock {
    let clock = TestClock::at(Timestamp::from_millis(1_794_735_000_000));
    clock.advance(Duration::from_secs(3_600 * hours));
    clock
}

fn open(folder: &Path, clock: &TestClock) -> Arc<dyn Store> {
    let clock: Arc<dyn Clock> = clock.shared();
    Arc::new(SqliteStore::open(folder.join("holdpoint.db"), clock).unwrap())
}

/// Not a test of its own: the process that is killed.
#[test]
fn the_process_that_is_killed() {
    let Ok(order) = std::env::var(CHILD) else { return };
    let fields: Vec<&str> = order.split('|').collect();
    let [folder, name, write, cut] = fields[..] else { panic!("{order}") };
    let (folder, write) = (PathBuf::from(folder), write.parse().unwrap());
    let cut = Cut::ALL.into_iter().find(|known| format!("{known:?}") == cut).unwrap();
    let scenario = scenarios().into_iter().find(|scenario| scenario.name == name).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(async move {
        let clock = clock_at(0);
        let reached = Arc::new(|cut| {
            println!("\n{REACHED}");
            std::io::stdout().flush().unwrap();
            // Torn: the write goes its way while the signal comes. Otherwise this is where it ends.
            if cut != Cut::Torn {
                stand_still();
            }
        });
        let store = CutStore::cutting(open(&folder, &clock), write, cut, reached);
        let world = World::in_file(&folder.join("world"));
        let mut acknowledged = Acknowledged::in_file(&folder.join("acknowledged"));
        match play(&scenario, run_id(), store, &clock, &world, &mut acknowledged).await {
            Attempt::CutOff => stand_still(),
            // Outcomes that come together are written together: now and then a run has fewer writes than were counted.
            Attempt::Finished(_) => println!("\n{FINISHED}"),
        }
    });
}

fn stand_still() -> ! {
    loop {
        std::thread::park();
    }
}

fn spawn(folder: &Path, scenario: &Scenario, write: u32, cut: Cut) -> Child {
    let order = format!("{}|{}|{write}|{cut:?}", folder.display(), scenario.name);
    Command::new(std::env::current_exe().unwrap())
        .args(["the_process_that_is_killed", "--exact", "--nocapture"])
        .env(CHILD, order)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Waits for the cut, then kills with -9; says whether the cut came.
fn kill_at_cut(mut child: Child, place: &str) -> bool {
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let said = lines.find(|line| line == REACHED || line == FINISHED);
    let is_cut = said.unwrap_or_else(|| panic!("{place}: the child ended before the cut")) == REACHED;
    child.kill().unwrap();
    child.wait().unwrap();
    is_cut
}

/// One cell of the matrix; says whether the cut came.
async fn cut_at(scenario: &Scenario, write: u32, cut: Cut) -> bool {
    let place = format!("killed {cut:?} write {write}");
    let folder = tempfile::tempdir().unwrap();
    let is_cut = kill_at_cut(spawn(folder.path(), scenario, write, cut), &place);
    go_on(scenario, &place, folder.path(), |_| {}).await;
    is_cut
}

/// Goes on with what a killed process left behind, to the end, and checks all of it.
async fn go_on(scenario: &Scenario, place: &str, folder: &Path, meddle: impl FnOnce(&mut Acknowledged)) {
    let clock = clock_at(24);
    let store = open(folder, &clock);
    let world = World::in_file(&folder.join("world"));
    let mut acknowledged = Acknowledged::in_file(&folder.join("acknowledged"));
    let attempt = play(scenario, run_id(), store.clone(), &clock, &world, &mut acknowledged).await;
    let Attempt::Finished(run) = attempt else { panic!("{place}: the store vanished after the restart") };
    meddle(&mut acknowledged);
    check(scenario, place, &run, &store, &world, &acknowledged).await;
}

async fn count_writes(scenario: &Scenario) -> u32 {
    let folder = tempfile::tempdir().unwrap();
    let (clock, world, mut acknowledged) = (clock_at(0), World::in_memory(), Acknowledged::default());
    let store = open(folder.path(), &clock);
    let counting = CutStore::counting(store.clone());
    let attempt = play(scenario, run_id(), counting.clone(), &clock, &world, &mut acknowledged).await;
    let Attempt::Finished(run) = attempt else { panic!("{}: cut off without a cut", scenario.name) };
    check(scenario, "uncut", &run, &store, &world, &acknowledged).await;
    counting.writes()
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
                let scenario = scenarios().into_iter().find(|scenario| scenario.name == $scenario).unwrap();
                every_write_of(scenario, 1).await;
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
        kill_at_cut(spawn(folder.path(), scenario, write, Cut::After), "control");
        let told = Acknowledged::in_file(&folder.path().join("acknowledged")).decisions;
        go_on(scenario, "control", folder.path(), |acknowledged| {
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
