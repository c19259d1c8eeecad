//! A write whose answer is lost, wherever in a run's life: nobody is told anything that is not so, and whoever asked gets
//! the truth where it can be had.
#![allow(clippy::unwrap_used)] // All of it is a test.

use std::sync::Arc;

use holdpoint_core::decision::{Decision, DecisionInput};
use holdpoint_core::ids::{ActorId, PauseId, RunId};
use holdpoint_core::message::Content;
use holdpoint_core::pause::PauseKind;
use holdpoint_core::time::Timestamp;
use holdpoint_runtime::memory::MemoryStore;
use holdpoint_runtime::ports::store::Store;
use holdpoint_runtime::settings::Settings;
use holdpoint_runtime::use_cases::StartRun;
use holdpoint_runtime::{DriveOptions, Runtime};
use holdpoint_testkit::clock::TestClock;
use holdpoint_testkit::crash::{Acknowledged, Attempt, Cut, CutStore, Scenario, World, check, play, scenarios};
use holdpoint_testkit::power_loss::PowerLoss;

fn run_id() -> RunId {
    "run_0198c0ffee007000800000000000beef".parse().unwrap()
}

fn clock() -> TestClock {
    TestClock::at(Timestamp::from_millis(1_794_735_000_000))
}

/// Plays a scenario to its end in one process; gives back how many writes it took.
async fn played(scenario: &Scenario, place: &str, make: impl FnOnce(Arc<dyn Store>) -> Arc<CutStore>) -> u32 {
    let (clock, world, mut acknowledged) = (clock(), World::in_memory(), Acknowledged::default());
    let kept: Arc<dyn Store> = Arc::new(MemoryStore::new(clock.shared()));
    let cut = make(Arc::clone(&kept));
    let store: Arc<dyn Store> = cut.clone();
    match play(scenario, run_id(), store, &clock, &world, &mut acknowledged).await {
        Attempt::Finished(run) => {
            check(scenario, place, &run, &kept, &world, &acknowledged).await;
            // What is known to the store is known to the runtime: no call had to be shown to a person as in doubt.
            let doubtful = run.pauses().iter().filter(|pause| pause.kind == PauseKind::InDoubt).count();
            assert_eq!(doubtful, 0, "{}: {place}", scenario.name);
        }
        Attempt::CutOff => panic!("{}: {place}: somebody was told of a fault", scenario.name),
    }
    cut.writes()
}

#[tokio::test]
async fn wherever_one_answer_is_lost_the_run_goes_on_as_if_it_had_come() {
    let mut cells = 0;
    for scenario in scenarios() {
        let writes = played(&scenario, "with every answer", CutStore::counting).await;
        for write in 1..=writes {
            for is_written in [true, false] {
                let place = format!("without the answer to write {write} (written: {is_written})");
                played(&scenario, &place, |store| CutStore::doubting(store, write, is_written)).await;
                cells += 1;
            }
        }
    }
    println!("{cells} cells");
}

fn approve() -> Scenario {
    scenarios().into_iter().find(|scenario| scenario.name == "approve").unwrap()
}

fn runtime(store: Arc<dyn Store>, scenario: &Scenario) -> Runtime {
    let settings = Settings { doubt_patience: std::time::Duration::ZERO, ..Settings::default() };
    Runtime::builder(store).model(scenario.model()).settings(settings).build()
}

async fn paused(runtime: &Runtime, scenario: &Scenario) -> PauseId {
    let start = StartRun {
        graph: scenario.agent(&World::in_memory()).graph().unwrap(),
        content: Content::Text(scenario.input.to_owned()),
        session: Some(scenario.session()),
        turns_max: Some(10),
        by: ActorId::local(),
        options: DriveOptions::default(),
        only_owner: false,
        run: Some(run_id()),
    };
    let run = runtime.start_run(start).await.unwrap();
    run.open_pauses()[0].id()
}

fn approval(pause: PauseId) -> DecisionInput {
    DecisionInput::new(pause, Decision::Approve, ActorId::local())
}

#[tokio::test]
async fn a_decision_that_nobody_can_be_asked_about_is_told_as_unknown_and_can_be_sent_again() {
    let scenario = approve();
    for (cut, is_repeat) in [(Cut::Torn, false), (Cut::After, true)] {
        let power = Arc::new(PowerLoss::new(clock().shared()));
        let before = runtime(power.clone(), &scenario);
        let pause = paused(&before, &scenario).await;
        power.cut_at(power.writes() + 1, cut);
        let told = before.decide_pause(approval(pause)).await.unwrap_err();
        assert_eq!(told.code(), "store_unknown", "{cut:?}: {told}");

        let after = runtime(Arc::new(power.restart()), &scenario);
        let decided = after.decide_pause(approval(pause)).await.unwrap();
        assert_eq!(decided.is_repeat, is_repeat, "{cut:?}");
    }
}

#[tokio::test]
async fn a_decision_whose_answer_is_lost_is_recorded_once_and_confirmed() {
    let scenario = approve();
    for is_written in [true, false] {
        let kept: Arc<dyn Store> = Arc::new(MemoryStore::new(clock().shared()));
        let pause = paused(&runtime(Arc::clone(&kept), &scenario), &scenario).await;
        let doubting = CutStore::doubting(Arc::clone(&kept), 1, is_written);
        let decided = runtime(doubting, &scenario).decide_pause(approval(pause)).await.unwrap();
        assert!(!decided.is_repeat, "it was recorded now (written: {is_written})");
        assert_eq!(kept.audit(0, 9).await.unwrap().len(), 1, "written: {is_written}");
    }
}

#[tokio::test]
async fn whoever_was_overtaken_while_the_answer_was_lost_is_told_who_won() {
    let scenario = approve();
    let count = CutStore::counting(Arc::new(MemoryStore::new(clock().shared())));
    paused(&runtime(count.clone(), &scenario), &scenario).await;
    let kept: Arc<dyn Store> = Arc::new(MemoryStore::new(clock().shared()));
    // It knows the run as it was paused, and sends its decision without reading it again: that is the write in doubt.
    let late = runtime(CutStore::doubting(Arc::clone(&kept), count.writes() + 1, false), &scenario);
    let pause = paused(&late, &scenario).await;
    let bob = ActorId::new("bob").unwrap();
    let deny = DecisionInput::new(pause, Decision::Deny { message: None }, bob);
    runtime(Arc::clone(&kept), &scenario).decide_pause(deny).await.unwrap();
    let told = late.decide_pause(approval(pause)).await.unwrap_err();
    assert_eq!(told.code(), "already_decided", "{told}");
    assert!(told.to_string().contains("bob"), "{told}");
    assert_eq!(kept.audit(0, 9).await.unwrap().len(), 1);
}
