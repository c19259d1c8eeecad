//! Connections that are lost, and servers that do not answer: what was acknowledged stands, what is not known is said to
//! be, and the store goes on when the database does.

use std::sync::Arc;
use std::time::Duration;

use holdpoint_runtime::memory::MemoryStore;
use holdpoint_runtime::ports::store::{
    Append, AppendError, Appended, LeaseChange, RunStatus, Store, StoreFault, StoreFaultKind,
};
use holdpoint_stores::redis::RedisStore;
use holdpoint_testkit::clock::TestClock;
use holdpoint_testkit::conformance::{RunPen, Trial, UnderTest, sample};
use holdpoint_testkit::servers::{Proxy, When};

use crate::database::Database;

const SCRIPT: &[u8] = b"EVALSHA";
const DONE: &[u8] = b":1\r\n";

/// A store that can be cut off from its database.
struct Remote {
    // Before the database, which is dropped at the end.
    store: Arc<RedisStore>,
    proxy: Proxy,
    database: Database,
    trial: Trial,
}

impl Remote {
    async fn new() -> Self {
        let database = Database::new().await;
        let proxy = Proxy::to(database.socket()).await;
        let mut options = database.options();
        options.patience = Duration::from_secs(2);
        let store = RedisStore::open_with(&database.by_way_of(proxy.address), options).await.unwrap();
        let store = Arc::new(store.going_by(TestClock::default().shared()));
        let trial = Trial::new(async |clock| UnderTest::new(MemoryStore::new(clock))).await;
        Self { store, proxy, database, trial }
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_append_whose_answer_is_lost_is_found_again_and_written_once() {
    for when in [When::Before, When::After(DONE)] {
        let remote = Remote::new().await;
        let run = remote.begun().await;
        remote.proxy.cut_at(SCRIPT, 0, when, false);
        assert_eq!(remote.store.append(remote.second(&run)).await.unwrap(), SECOND, "{when:?}");
        assert_eq!(remote.proxy.cuts(), 1);
        let loaded = remote.store.load(run.id, 0).await.unwrap().unwrap();
        assert_eq!((loaded.revision, loaded.entries.len()), (2, 2), "{when:?}");
        assert_eq!(remote.store.audit(0, 9).await.unwrap().len(), 1, "{when:?}");
        let session = remote.store.session(&run.session).await.unwrap().unwrap();
        assert_eq!((session.runs, session.events), (1, 3), "{when:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_append_that_cannot_be_asked_for_is_told_as_unknown() {
    for (when, revision) in [(When::Before, 1), (When::After(DONE), 2)] {
        let remote = Remote::new().await;
        let run = remote.begun().await;
        remote.proxy.cut_at(SCRIPT, 0, when, true);
        assert_eq!(kind(remote.store.append(remote.second(&run)).await), StoreFaultKind::Unknown, "{when:?}");
        remote.proxy.mend();
        // What is told by another connection is what there is.
        let store = remote.database.store().await;
        assert_eq!(store.load(run.id, 0).await.unwrap().unwrap().revision, revision, "{when:?}");
        // The store itself goes on as soon as it is connected again.
        assert_eq!(remote.store.load(run.id, 0).await.unwrap().unwrap().revision, revision, "{when:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_whose_answer_is_lost_is_told_as_unknown() {
    let remote = Remote::new().await;
    let run = remote.begun().await;
    remote.proxy.cut_at(SCRIPT, 0, When::After(DONE), false);
    let claimed = remote.store.claim(run.id, "w", Duration::from_secs(60)).await;
    assert_eq!(kind(claimed), StoreFaultKind::Unknown);
    // The lease stands, and runs out like that of anybody who died.
    let lease = remote.store.load(run.id, 0).await.unwrap().unwrap().lease.unwrap();
    assert_eq!((lease.epoch, lease.owner.as_str()), (1, "w"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_is_gone_is_told_and_used_again_when_it_is_back() {
    let remote = Remote::new().await;
    let run = remote.begun().await;
    remote.proxy.cut();
    assert_eq!(kind(remote.store.append(remote.second(&run)).await), StoreFaultKind::Unavailable);
    assert_eq!(kind(remote.store.claim(run.id, "w", Duration::from_secs(1)).await), StoreFaultKind::Unavailable);
    assert_eq!(remote.store.load(run.id, 0).await.unwrap_err().kind, StoreFaultKind::Unavailable);
    remote.proxy.mend();
    assert_eq!(remote.store.append(remote.second(&run)).await.unwrap(), SECOND);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_forgot_the_script_is_told_again() {
    let remote = Remote::new().await;
    let run = remote.begun().await;
    redis::cmd("SCRIPT").arg("FLUSH").query::<()>(&mut remote.database.connect()).unwrap();
    assert_eq!(remote.store.append(remote.second(&run)).await.unwrap(), SECOND);
}
