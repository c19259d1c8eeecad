//! Crash at every write: a child process is killed with -9 at each of them, or its connection is cut while a write is on
//! its way, and what is left goes on to the end.

use std::sync::Arc;
use std::time::Duration;

use holdpoint_runtime::ports::store::Store;
use holdpoint_testkit::crash::killed::{self, clock_at, go_on, run_id, scenario};
use holdpoint_testkit::crash::{Acknowledged, Attempt, Cut, Scenario, World, check, play, scenarios};
use holdpoint_testkit::servers::{Proxy, When};

use crate::database::{Database, WRITE, WRITTEN};

/// Tells the child which database is meant.
const PLACE: &str = "HOLDPOINT_CRASH_PLACE";

/// Not a test of its own: the process that is killed.
#[test]
fn the_process_that_is_killed() {
    killed::be_the_child(|_, clock| async move {
        let place = std::env::var(PLACE).unwrap();
        let store: Arc<dyn Store> = Arc::new(Database::open_at(&place).await.going_by(clock.shared()));
        store
    });
}

/// One cell of the matrix; says whether the cut came.
async fn kill_at(scenario: &Scenario, write: u32, cut: Cut) -> bool {
    let place = format!("killed {cut:?} write {write}");
    let (folder, database) = (tempfile::tempdir().unwrap(), Database::new().await);
    let (child, environment) = ("databases::crash::the_process_that_is_killed", [(PLACE, database.place())]);
    let is_cut = killed::kill_child(child, &environment, folder.path(), scenario, (write, cut));
    let clock = clock_at(24);
    let store: Arc<dyn Store> = Arc::new(database.open(clock.shared()).await);
    let (run, world, acknowledged) = go_on(scenario, &place, folder.path(), &store, &clock).await;
    check(scenario, &place, &run, &store, &world, &acknowledged).await;
    is_cut
}

async fn count_writes(scenario: &Scenario) -> u32 {
    let (database, clock) = (Database::new().await, clock_at(0));
    killed::count_writes(scenario, Arc::new(database.open(clock.shared()).await), &clock).await
}

async fn killed_at_every_write_of(name: &str) {
    let scenario = scenario(name);
    let (mut cells, mut cuts) = (0, 0);
    for write in 1..=count_writes(&scenario).await {
        for cut in Cut::ALL {
            cells += 1;
            cuts += u32::from(kill_at(&scenario, write, cut).await);
        }
    }
    println!("{name}: {cuts} of {cells} cells were cut");
    assert!(cuts * 2 >= cells, "{name}: only {cuts} of {cells} cells were cut");
}

/// Cuts the connection at one write. Where the database can be reached again at once nobody notices; where it cannot,
/// the process counts as dead, and another one goes on when it is back. Says whether the cut came.
async fn disconnect_at(scenario: &Scenario, write: u32, when: When, stays_closed: bool) -> bool {
    let place = format!("disconnected {when:?} write {write}, stays closed: {stays_closed}");
    let database = Database::new().await;
    let proxy = Proxy::to(database.socket()).await;
    let (clock, world, mut acknowledged) = (clock_at(0), World::in_memory(), Acknowledged::default());
    let store = database.open_by_way_of(proxy.address, Duration::from_secs(5)).await;
    let store: Arc<dyn Store> = Arc::new(store.going_by(clock.shared()));
    proxy.cut_at(WRITE, write, when, stays_closed);
    let attempt = play(scenario, run_id(), store.clone(), &clock, &world, &mut acknowledged).await;
    let is_cut = proxy.cuts() > 0;
    let (run, store) = match attempt {
        Attempt::Finished(run) => (run, store),
        Attempt::CutOff => {
            assert!(is_cut && stays_closed, "{place}: the store was lost although it could be reached");
            proxy.mend();
            clock.advance(Duration::from_secs(3_600));
            let store: Arc<dyn Store> = Arc::new(database.open(clock.shared()).await);
            let attempt = play(scenario, run_id(), store.clone(), &clock, &world, &mut acknowledged).await;
            let Attempt::Finished(run) = attempt else { panic!("{place}: the store vanished after it was back") };
            (run, store)
        }
    };
    check(scenario, &place, &run, &store, &world, &acknowledged).await;
    is_cut
}

async fn disconnected_at_every_write_of(name: &str) {
    let scenario = scenario(name);
    let each = async |when, stays_closed| {
        let mut write = 0;
        while disconnect_at(&scenario, write, when, stays_closed).await {
            write += 1;
        }
        println!("{name}: disconnected {when:?} each of {write} writes, stays closed: {stays_closed}");
        assert!(write >= 2, "{name} writes only {write} times");
    };
    // Most of their time they wait for a database that is gone.
    let after = When::After(WRITTEN);
    futures_util::join!(each(When::Before, false), each(When::Before, true), each(after, false), each(after, true));
}

macro_rules! at_every_write {
    ($($killed:ident, $disconnected:ident => $scenario:literal),* $(,)?) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
            async fn $killed() {
                killed_at_every_write_of($scenario).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $disconnected() {
                disconnected_at_every_write_of($scenario).await;
            }
        )*

        #[test]
        fn every_scenario_is_killed_and_disconnected_at_every_write() {
            let names: Vec<&str> = scenarios().iter().map(|scenario| scenario.name).collect();
            assert_eq!(names, [$($scenario),*]);
        }
    };
}

at_every_write! {
    an_approval_survives_kill_9, an_approval_survives_a_lost_connection => "approve",
    a_denial_survives_kill_9, a_denial_survives_a_lost_connection => "deny",
    an_edit_survives_kill_9, an_edit_survives_a_lost_connection => "edit",
    parallel_calls_survive_kill_9, parallel_calls_survive_a_lost_connection => "parallel",
    a_deadline_survives_kill_9, a_deadline_survives_a_lost_connection => "expire",
    nested_agents_survive_kill_9, nested_agents_survive_a_lost_connection => "nested agents",
    a_hand_off_survives_kill_9, a_hand_off_survives_a_lost_connection => "hand-off",
    repeatable_tools_survive_kill_9, repeatable_tools_survive_a_lost_connection => "repeatable tools",
    two_rounds_survive_kill_9, two_rounds_survive_a_lost_connection => "two rounds",
    an_answer_in_place_survives_kill_9, an_answer_in_place_survives_a_lost_connection => "respond",
    decisions_at_once_survive_kill_9, decisions_at_once_survive_a_lost_connection => "together",
    a_message_in_their_place_survives_kill_9, a_message_in_their_place_survives_a_lost_connection => "instead",
}

/// A control that must fail: tools that may be repeated are counted as if they might not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[should_panic(expected = "took effect 2 times")]
async fn an_effect_repeated_after_a_lost_connection_would_be_seen() {
    let mut scenario = scenario("repeatable tools");
    scenario.repeats = false;
    let mut write = 0;
    while disconnect_at(&scenario, write, When::Before, true).await {
        write += 1;
    }
}
