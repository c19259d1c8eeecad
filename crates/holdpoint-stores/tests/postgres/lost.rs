//! Connections that are lost, and servers that do not answer: what was acknowledged stands, what is not known is said to
//! be, and the store goes on when the database does.

use std::sync::Arc;
use std::time::{Duration, Instant};

use holdpoint_runtime::ports::store::{
    Append, AppendError, Appended, LeaseChange, RunStatus, Store, StoreFault, StoreFaultKind,
};
use holdpoint_stores::postgres::{PostgresOptions, PostgresStore};
use holdpoint_testkit::clock::TestClock;
use holdpoint_testkit::conformance::{RunPen, Trial, UnderTest, sample};
use holdpoint_testkit::servers::{Proxy, When};

use crate::database::Database;

const COMMIT: &[u8] = b"COMMIT\0";

/// A store that can be cut off from its database.
struct Remote {
    // Before the database, which is dropped at the end.
    store: Arc<PostgresStore>,
    proxy: Proxy,
    database: Database,
    trial: Trial,
}

impl Remote {
    async fn new() -> Self {
        let database = Database::new().await;
        let proxy = Proxy::to(database.socket()).await;
        let mut options = PostgresOptions::default();
        options.patience = Duration::from_secs(2);
        let store = PostgresStore::open_with(&database.by_way_of(proxy.address), options).await.unwrap();
        let clock = TestClock::default();
        let store = Arc::new(store.going_by(clock.shared()));
        let trial = Trial::new(async |clock| UnderTest::new(holdpoint_runtime::memory::MemoryStore::new(clock)));
        Self { store, proxy, database, trial: trial.await }
    }

    /// A run that has begun.
    async fn begun(&self) -> RunPen {
        let run = self.trial.run(1, "s");
        self.store.append(self.trial.first(&run)).await.unwrap();
        run
    }

    fn second(&self, run: &RunPen) -> Append {
        let lease = LeaseChange::Take { owner: "w".to_owned(), duration: Duration::from_secs(60) };
        let pauses = vec![self.trial.pause(run, 1)];
        let append = self.trial.append(run, 1, [sample::said("second"), sample::opened(1, None)]);
        let audit = vec![sample::note(&run.session, run.id)];
        Append { lease, pauses, audit, status: RunStatus::Waiting, ..append }
    }
}

const SECOND: Appended = Appended { revision: 2, seq: 2, pause_group: Some(1), epoch: Some(1) };

fn kind<T: std::fmt::Debug>(answer: Result<T, AppendError>) -> StoreFaultKind {
    match answer {
        Err(AppendError::Fault(StoreFault { kind, .. })) => kind,
        other => panic!("{other:?}"),
    }
}

async fn revision(store: &dyn Store, run: &RunPen) -> u64 {
    store.load(run.id, 0).await.unwrap().unwrap().revision
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_whose_answer_is_lost_is_found_again_and_acknowledged() {
    let remote = Remote::new().await;
    let run = remote.begun().await;
    remote.proxy.cut_at(COMMIT, 0, When::After(COMMIT), false);
    assert_eq!(remote.store.append(remote.second(&run)).await.unwrap(), SECOND);
    assert_eq!(remote.proxy.cuts(), 1);
    let loaded = remote.store.load(run.id, 0).await.unwrap().unwrap();
    assert_eq!((loaded.revision, loaded.entries.len()), (2, 2));
    assert_eq!(remote.store.audit(0, 9).await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_that_never_arrived_is_written_once_after_all() {
    let remote = Remote::new().await;
    let run = remote.begun().await;
    remote.proxy.cut_at(COMMIT, 0, When::Before, false);
    assert_eq!(remote.store.append(remote.second(&run)).await.unwrap(), SECOND);
    assert_eq!(remote.proxy.cuts(), 1);
    assert_eq!(revision(&*remote.store, &run).await, 2);
    assert_eq!(remote.store.audit(0, 9).await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_first_run_whose_commit_is_lost_begins_its_session_once() {
    for when in [When::Before, When::After(COMMIT)] {
        let remote = Remote::new().await;
        let run = remote.trial.run(1, "s");
        remote.proxy.cut_at(COMMIT, 0, when, false);
        assert_eq!(remote.store.append(remote.trial.first(&run)).await.unwrap().seq, 1, "{when:?}");
        assert_eq!(remote.proxy.cuts(), 1);
        let session = remote.store.session(&run.session).await.unwrap().unwrap();
        assert_eq!((session.runs, session.events), (1, 1), "{when:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_that_cannot_be_asked_for_is_told_as_unknown() {
    for (when, revision_after) in [(When::Before, 1), (When::After(COMMIT), 2)] {
        let remote = Remote::new().await;
        let run = remote.begun().await;
        remote.proxy.cut_at(COMMIT, 0, when, true);
        let answer = remote.store.append(remote.second(&run)).await;
        assert_eq!(kind(answer), StoreFaultKind::Unknown, "{when:?}");
        remote.proxy.mend();
        assert_eq!(revision(&*remote.store, &run).await, revision_after, "{when:?}");
        let claimed = remote.store.claim(run.id, "w", Duration::from_secs(1)).await;
        assert_eq!(claimed.is_ok(), revision_after == 1, "{when:?}: {claimed:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_whose_commit_is_lost_is_told_as_unknown() {
    let remote = Remote::new().await;
    let run = remote.begun().await;
    remote.proxy.cut_at(COMMIT, 0, When::After(COMMIT), false);
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_the_server_ends_are_replaced() {
    let remote = Remote::new().await;
    let run = remote.begun().await;
    let name = format!("ended-{}", uuid::Uuid::now_v7().simple());
    let address = format!("{}&application_name={name}", remote.database.address);
    let store = PostgresStore::open(&address).await.unwrap();
    let client = remote.database.connect().await;
    for round in 1..=5 {
        let append = remote.trial.append(&run, round, [sample::said("more")]);
        assert_eq!(store.append(append).await.unwrap().revision, round + 1);
        assert_eq!(revision(&store, &run).await, round + 1);
        let sql = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1";
        assert!(client.query(sql, &[&name]).await.unwrap().len() >= 2);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_waits_too_long_for_a_session_is_told_and_readers_are_not_kept_waiting() {
    let remote = Remote::new().await;
    let run = remote.begun().await;
    let mut client = remote.database.connect().await;
    let held = client.transaction().await.unwrap();
    held.execute("SELECT 1 FROM session FOR UPDATE", &[]).await.unwrap();
    let store = Arc::clone(&remote.store);
    let waiting: Vec<_> = (0..16)
        .map(|_| {
            let (store, append) = (Arc::clone(&store), remote.second(&run));
            tokio::spawn(async move { store.append(append).await })
        })
        .collect();
    assert_eq!(revision(&*store, &run).await, 1);
    // In another session nobody notices.
    let other = remote.trial.run(2, "other");
    store.append(remote.trial.first(&other)).await.unwrap();
    held.rollback().await.unwrap();
    let mut written = 0;
    for waiting in waiting {
        match waiting.await.unwrap() {
            Ok(_) => written += 1,
            Err(AppendError::Conflict { revision: 2, .. }) => {}
            Err(AppendError::Fault(fault)) => assert_eq!(fault.kind, StoreFaultKind::Unavailable),
            Err(other) => panic!("{other}"),
        }
    }
    assert_eq!((written, revision(&*store, &run).await), (1, 2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn those_behind_somebody_who_waits_too_long_do_not_wait_for_each_other_as_well() {
    let remote = Remote::new().await;
    let run = remote.begun().await;
    let mut client = remote.database.connect().await;
    let held = client.transaction().await.unwrap();
    held.execute("SELECT 1 FROM session FOR UPDATE", &[]).await.unwrap();
    let begin = Instant::now();
    let appends = (0..32).map(|_| remote.store.append(remote.second(&run)));
    for answer in futures_util::future::join_all(appends).await {
        assert_eq!(kind(answer), StoreFaultKind::Unavailable);
    }
    // One after the other they would have waited for a minute.
    assert!(begin.elapsed() < Duration::from_secs(30), "{:?}", begin.elapsed());
    held.rollback().await.unwrap();
    assert_eq!(remote.store.append(remote.second(&run)).await.unwrap(), SECOND);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_append_that_nobody_waits_for_any_more_leaves_nothing_half_done() {
    let remote = Remote::new().await;
    let run = remote.begun().await;
    let mut client = remote.database.connect().await;
    let held = client.transaction().await.unwrap();
    held.execute("SELECT 1 FROM session FOR UPDATE", &[]).await.unwrap();
    for _ in 0..20 {
        let append = remote.store.append(remote.second(&run));
        let given_up = tokio::time::timeout(Duration::from_millis(5), append).await;
        assert!(given_up.is_err(), "{given_up:?}");
    }
    held.rollback().await.unwrap();
    // None of them holds a lock or a connection.
    assert_eq!(remote.store.append(remote.second(&run)).await.unwrap(), SECOND);
}
