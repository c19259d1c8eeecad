//! Pauses that were decided are in no list of their own: they are found among all others, however many these are.

use std::time::Duration;

use holdpoint_core::ids::RunId;
use holdpoint_runtime::ports::store::{Append, PauseFilter, PauseRow, PauseStatus};
use holdpoint_testkit::conformance::{RunPen, Trial, UnderTest, sample};

use crate::database::Database;

async fn settle(trial: &Trial, run: &RunPen, status: PauseStatus) {
    let event = if status == PauseStatus::Expired { sample::expired(1) } else { sample::decided(1) };
    let row = PauseRow { status, ..trial.pause(run, 1) };
    trial.ok(Append { pauses: vec![row], ..trial.append(run, 1, [event]) }).await;
}

/// All pages of so many pauses each.
async fn pages(trial: &Trial, limit: usize, status: PauseStatus) -> Vec<RunId> {
    let mut filter = PauseFilter { status: Some(status), limit, ..PauseFilter::open() };
    let mut found = Vec::new();
    loop {
        let page = trial.store.list_pauses(&filter).await.unwrap();
        assert!(page.len() <= limit && page.iter().all(|row| row.status == status));
        let Some(last) = page.last() else { return found };
        filter.after = Some(last.cursor());
        found.extend(page.iter().map(|row| row.id.run));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn those_that_were_decided_are_found_among_many_that_were_not() {
    let database = Database::new().await;
    let trial = Trial::new(async |clock| UnderTest::new(database.open(clock).await)).await;
    assert_eq!(pages(&trial, 9, PauseStatus::Decided).await, []);
    // Many of one moment, then one at a time.
    let runs: Vec<RunPen> = (1..=700).map(|number| trial.run(number, &format!("s{number}"))).collect();
    for (number, run) in runs.iter().enumerate() {
        if number > 250 {
            trial.clock.advance(Duration::from_millis(1 + number as u64 % 3 * 100_000));
        }
        trial.begin_paused(run, 1).await;
    }
    assert_eq!(pages(&trial, 9, PauseStatus::Decided).await, []);
    let (decided, expired, withdrawn) = ([3, 240, 249, 420, 421, 699], [0, 260, 422, 698], [1, 419, 423]);
    for (status, numbers) in [
        (PauseStatus::Decided, &decided[..]),
        (PauseStatus::Expired, &expired[..]),
        (PauseStatus::Withdrawn, &withdrawn[..]),
    ] {
        for number in numbers {
            settle(&trial, &runs[*number], status).await;
        }
    }
    for (status, numbers) in [
        (PauseStatus::Decided, &decided[..]),
        (PauseStatus::Expired, &expired[..]),
        (PauseStatus::Withdrawn, &withdrawn[..]),
    ] {
        let expected: Vec<RunId> = numbers.iter().map(|number| runs[*number].id).collect();
        for limit in [1, 2, 100] {
            assert_eq!(pages(&trial, limit, status).await, expected, "{status:?}, {limit} on a page");
        }
    }
    assert_eq!(pages(&trial, 100, PauseStatus::Open).await.len(), 700 - 13);
    let nobody =
        PauseFilter { status: Some(PauseStatus::Decided), agent: Some(sample::agent("Nobody")), ..PauseFilter::open() };
    assert_eq!(trial.store.list_pauses(&nobody).await.unwrap(), []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_walk_through_the_inbox_misses_none_that_is_open_all_the_time() {
    let database = Database::new().await;
    let trial = Trial::new(async |clock| UnderTest::new(database.open(clock).await)).await;
    let runs: Vec<RunPen> = (1..=600).map(|number| trial.run(number, &format!("s{number}"))).collect();
    for (number, run) in runs.iter().enumerate() {
        // Several of one moment.
        trial.clock.advance(Duration::from_millis(u64::from(number % 7 == 0)));
        trial.begin_paused(run, 1).await;
    }
    let is_decided = |number: usize| number % 3 == 1;
    let deciding = async {
        for (_, run) in runs.iter().enumerate().filter(|(number, _)| is_decided(*number)) {
            settle(&trial, run, PauseStatus::Decided).await;
        }
    };
    let walking = async {
        for limit in [7, 50, 50, 50, 50, 100, 100, 600] {
            let mut filter = PauseFilter { limit, ..PauseFilter::open() };
            let mut seen = std::collections::BTreeSet::new();
            loop {
                let page = trial.store.list_pauses(&filter).await.unwrap();
                let Some(last) = page.last() else { break };
                filter.after = Some(last.cursor());
                assert!(page.iter().all(|row| seen.insert(row.id.run)), "one came twice");
            }
            let missed =
                runs.iter().enumerate().filter(|(number, run)| !is_decided(*number) && !seen.contains(&run.id));
            assert_eq!(missed.count(), 0, "with {limit} on a page");
        }
    };
    tokio::join!(deciding, walking);
    assert_eq!(pages(&trial, 100, PauseStatus::Decided).await.len(), 200);
}
