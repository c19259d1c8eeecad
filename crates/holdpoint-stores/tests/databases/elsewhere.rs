//! What another instance wrote meanwhile.

use holdpoint_core::time::Timestamp;
use holdpoint_runtime::memory::MemoryStore;
use holdpoint_runtime::ports::store::{Append, PauseRow, PauseStatus, RunStatus, Store};
use holdpoint_testkit::clock::TestClock;
use holdpoint_testkit::conformance::{Trial, UnderTest, sample};

use crate::database::Database;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pause_that_another_instance_changed_is_not_taken_for_what_it_was_here() {
    let (database, clock) = (Database::new().await, TestClock::default());
    let (here, there) = (database.open(clock.shared()).await, database.open(clock.shared()).await);
    let trial = Trial::new(async |clock| UnderTest::new(MemoryStore::new(clock))).await;
    let run = trial.run(1, "s");
    here.append(trial.first(&run)).await.unwrap();
    let pause = |status, expires_at| PauseRow { status, expires_at, ..trial.pause(&run, 1) };
    let append = |revision, pauses| {
        let events = match revision {
            1 => vec![sample::opened(1, None)],
            _ => vec![sample::said("more")],
        };
        Append { pauses, status: RunStatus::Waiting, ..trial.append(&run, revision, events) }
    };
    here.append(append(1, vec![pause(PauseStatus::Open, None)])).await.unwrap();
    let deadline = Some(Timestamp::from_millis(9_000_000_000_000));
    there.append(append(2, vec![pause(PauseStatus::Open, deadline)])).await.unwrap();
    // About the run this instance learns here, and not about the pause.
    here.append(append(3, Vec::new())).await.unwrap();
    assert_eq!(here.next_deadline().await.unwrap(), deadline);
    here.append(append(4, vec![pause(PauseStatus::Decided, deadline)])).await.unwrap();
    assert_eq!(here.next_deadline().await.unwrap(), None);
}
