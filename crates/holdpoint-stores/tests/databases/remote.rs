//! Connections that are lost, and servers that do not answer: what was acknowledged stands, what is not known is said to
//! be, and the store goes on when the database does.

use std::sync::Arc;
use std::time::{Duration, Instant};

use holdpoint_runtime::ports::store::{
    Append, AppendError, Appended, LeaseChange, RunStatus, Store, StoreFault, StoreFaultKind,
};
use holdpoint_testkit::clock::TestClock;
use holdpoint_testkit::conformance::{RunPen, Trial, UnderTest, sample};
use holdpoint_testkit::servers::{Proxy, When};

use crate::database::{Database, TestedStore, WRITE, WRITTEN};

/// A store that can be cut off from its database.
pub struct Remote {
    // Before the database, which is dropped at the end.
    pub store: Arc<TestedStore>,
    pub proxy: Proxy,
    pub database: Database,
    pub trial: Trial,
}

impl Remote {
    pub async fn new() -> Self {
        let database = Database::new().await;
        let proxy = Proxy::to(database.socket()).await;
        let store = database.open_by_way_of(proxy.address, Duration::from_secs(2)).await;
        let clock = TestClock::default();
        let store = Arc::new(store.going_by(clock.shared()));
        let trial = Trial::new(async |clock| UnderTest::new(holdpoint_runtime::memory::MemoryStore::new(clock)));
        Self { store, proxy, database, trial: trial.await }
    }

    /// A run that has begun.
    pub async fn begun(&self) -> RunPen {
        let run = self.trial.run(1, "s");
        self.store.append(self.trial.first(&run)).await.unwrap();
        run
    }

    pub fn second(&self, run: &RunPen) -> Append {
        let lease = LeaseChange::Take { owner: "w".to_owned(), duration: Duration::from_secs(60) };
        let pauses = vec![self.trial.pause(run, 1)];
        let append = self.trial.append(run, 1, [sample::said("second"), sample::opened(1, None)]);
        let audit = vec![sample::note(&run.session, run.id)];
        Append { lease, pauses, audit, status: RunStatus::Waiting, ..append }
    }
}

pub const SECOND: Appended = Appended { revision: 2, seq: 2, pause_group: Some(1), epoch: Some(1) };

pub fn kind<T: std::fmt::Debug>(answer: Result<T, AppendError>) -> StoreFaultKind {
    match answer {
        Err(AppendError::Fault(StoreFault { kind, .. })) => kind,
        other => panic!("{other:?}"),
    }
}

pub async fn revision(store: &dyn Store, run: &RunPen) -> u64 {
    store.load(run.id, 0).await.unwrap().unwrap().revision
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_whose_answer_is_lost_is_found_again_and_acknowledged() {
    let remote = Remote::new().await;
    let run = remote.begun().await;
    remote.proxy.cut_at(WRITE, 0, When::After(WRITTEN), false);
    assert_eq!(remote.store.append(remote.second(&run)).await.unwrap(), SECOND);
    assert_eq!(remote.proxy.cuts(), 1);
    let loaded = remote.store.load(run.id, 0).await.unwrap().unwrap();
    assert_eq!((loaded.revision, loaded.entries.len()), (2, 2));
    assert_eq!(remote.store.audit(0, 9).await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_that_never_arrived_is_written_once_after_all() {
    let remote = Remote::new().await;
    let run = remote.begun().await;
    remote.proxy.cut_at(WRITE, 0, When::Before, false);
    assert_eq!(remote.store.append(remote.second(&run)).await.unwrap(), SECOND);
    assert_eq!(remote.proxy.cuts(), 1);
    assert_eq!(revision(&*remote.store, &run).await, 2);
    assert_eq!(remote.store.audit(0, 9).await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_first_run_whose_write_is_lost_begins_its_session_once() {
    for when in [When::Before, When::After(WRITTEN)] {
        let remote = Remote::new().await;
        let run = remote.trial.run(1, "s");
        remote.proxy.cut_at(WRITE, 0, when, false);
        assert_eq!(remote.store.append(remote.trial.first(&run)).await.unwrap().seq, 1, "{when:?}");
        assert_eq!(remote.proxy.cuts(), 1);
        let session = remote.store.session(&run.session).await.unwrap().unwrap();
        assert_eq!((session.runs, session.events), (1, 1), "{when:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_that_cannot_be_asked_for_is_told_as_unknown() {
    for (when, revision_after) in [(When::Before, 1), (When::After(WRITTEN), 2)] {
        let remote = Remote::new().await;
        let run = remote.begun().await;
        remote.proxy.cut_at(WRITE, 0, when, true);
        let answer = remote.store.append(remote.second(&run)).await;
        assert_eq!(kind(answer), StoreFaultKind::Unknown, "{when:?}");
        remote.proxy.mend();
        assert_eq!(revision(&*remote.store, &run).await, revision_after, "{when:?}");
        let claimed = remote.store.claim(run.id, "w", Duration::from_secs(1)).await;
        assert_eq!(claimed.is_ok(), revision_after == 1, "{when:?}: {claimed:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_whose_answer_is_lost_is_told_as_unknown() {
    let remote = Remote::new().await;
    let run = remote.begun().await;
    remote.proxy.cut_at(WRITE, 0, When::After(WRITTEN), false);
    let claimed = remote.store.claim(run.id, "w", Duration::from_secs(60)).await;
    assert_eq!(kind(claimed), StoreFaultKind::Unknown);
    // The lease stands, and runs out like that of anybody who died.
    let lease = remote.store.load(run.id, 0).await.unwrap().unwrap().lease.unwrap();
    assert_eq!((lease.epoch, lease.owner.as_str()), (1, "w"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_is_gone_is_told_at_once_and_used_again_when_it_is_back() {
    let remote = Remote::new().await;
    let run = remote.begun().await;
    remote.proxy.cut();
    let begin = Instant::now();
    assert_eq!(kind(remote.store.append(remote.second(&run)).await), StoreFaultKind::Unavailable);
    assert_eq!(kind(remote.store.claim(run.id, "w", Duration::from_secs(1)).await), StoreFaultKind::Unavailable);
    assert_eq!(remote.store.load(run.id, 0).await.unwrap_err().kind, StoreFaultKind::Unavailable);
    assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", begin.elapsed());
    remote.proxy.mend();
    assert_eq!(remote.store.append(remote.second(&run)).await.unwrap(), SECOND);
}
