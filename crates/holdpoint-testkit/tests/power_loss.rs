//! The store that loses power: what was acknowledged is there after the restart, what was cut off is as planned.

use std::sync::Arc;
use std::time::Duration;

use holdpoint_runtime::ports::clock::Clock;
use holdpoint_runtime::ports::store::{AppendError, Store, StoreFaultKind};
use holdpoint_testkit::clock::TestClock;
use holdpoint_testkit::conformance::{Trial, UnderTest, sample};
use holdpoint_testkit::power_loss::{Cut, PowerLoss};

async fn empty(clock: Arc<dyn Clock>) -> UnderTest {
    UnderTest::new(PowerLoss::new(clock))
}

holdpoint_testkit::store_conformance!(empty);

/// A store in which a run begins at write 1, goes on at writes 2 to 4, and is cut off at the given write.
async fn scenario(write: u64, cut: Cut) -> (PowerLoss, Vec<Result<u64, StoreFaultKind>>) {
    let trial = Trial::new(empty).await;
    let store = PowerLoss::new(trial.clock.shared());
    store.cut_at(write, cut);
    let run = trial.run(1, "s");
    let mut answers = Vec::new();
    for expected in 0..4 {
        let answer = store.append(trial.append(&run, expected, [sample::said("x")])).await;
        answers.push(answer.map(|appended| appended.revision).map_err(|error| match error {
            AppendError::Fault(fault) => fault.kind,
            error => panic!("{error}"),
        }));
    }
    (store, answers)
}

async fn revision(store: &PowerLoss) -> Option<u64> {
    store.load(sample::run_id(1), 0).await.expect("the store works").map(|run| run.revision)
}

#[tokio::test]
async fn a_cut_before_a_write_leaves_what_came_before_it() {
    let (store, answers) = scenario(3, Cut::Before).await;
    let gone = Err(StoreFaultKind::Unavailable);
    assert_eq!(answers, [Ok(1), Ok(2), gone, gone]);
    assert_eq!((store.writes(), store.is_cut()), (3, true));
    assert_eq!(revision(&store.restart()).await, Some(2));
}

#[tokio::test]
async fn a_cut_after_a_write_leaves_the_write_that_nobody_heard_of() {
    let (store, answers) = scenario(3, Cut::After).await;
    assert_eq!(answers[2..], [Err(StoreFaultKind::Unknown), Err(StoreFaultKind::Unavailable)]);
    assert_eq!(revision(&store.restart()).await, Some(3));
}

#[tokio::test]
async fn a_torn_write_is_lost_whole() {
    let (store, answers) = scenario(3, Cut::Torn).await;
    assert_eq!(answers[2..], [Err(StoreFaultKind::Unknown), Err(StoreFaultKind::Unavailable)]);
    assert_eq!(revision(&store.restart()).await, Some(2));
}

#[tokio::test]
async fn reads_and_claims_fail_too_once_the_power_is_gone() {
    let (store, _) = scenario(1, Cut::Before).await;
    assert_eq!(store.load(sample::run_id(1), 0).await.unwrap_err().kind, StoreFaultKind::Unavailable);
    let claim = store.claim(sample::run_id(1), "ana", Duration::from_secs(1)).await;
    assert!(matches!(claim, Err(AppendError::Fault(fault)) if fault.kind == StoreFaultKind::Unavailable));
    assert_eq!(store.writes(), 1);
}

#[tokio::test]
async fn a_power_loss_takes_unacknowledged_neighbours_with_it() {
    for (cut, survivors) in [(Cut::Torn, 0), (Cut::Before, 7), (Cut::After, 8)] {
        let trial = Trial::new(empty).await;
        let store = Arc::new(PowerLoss::new(trial.clock.shared()));
        store.cut_at(8, cut);
        let writers: Vec<_> = (1..=8)
            .map(|number| {
                let (store, append) = (Arc::clone(&store), trial.first(&trial.run(number, &format!("s{number}"))));
                tokio::spawn(async move { store.append(append).await.is_ok() })
            })
            .collect();
        for writer in writers {
            assert!(!writer.await.unwrap(), "nobody had heard of it when the power went");
        }
        assert_eq!(store.restart().claimable(100).await.unwrap().len(), survivors, "{cut:?}");
    }
}

#[tokio::test]
async fn what_was_acknowledged_survives_every_cut_at_every_write() {
    for write in 1..=4 {
        for cut in Cut::ALL {
            let (store, answers) = scenario(write, cut).await;
            let acknowledged = answers.iter().filter_map(|answer| answer.as_ref().ok().copied()).max();
            let found = revision(&store.restart()).await;
            assert!(found >= acknowledged, "{cut:?} at write {write}: {found:?} of {acknowledged:?}");
        }
    }
}

#[tokio::test]
async fn a_restarted_store_can_be_cut_again() {
    let (store, _) = scenario(3, Cut::Before).await;
    let second = store.restart();
    second.cut_at(1, Cut::After);
    let trial = Trial::new(empty).await;
    let append = trial.append(&trial.run(1, "s"), 2, [sample::said("x")]);
    assert!(second.append(append).await.is_err());
    assert_eq!(revision(&second.restart()).await, Some(3));
    assert!(store.is_cut() && TestClock::default().now() == store.now());
}
