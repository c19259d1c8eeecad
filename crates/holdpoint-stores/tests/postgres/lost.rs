//! Connections that the server ends, and locks that somebody else holds: whoever waits is told, and nobody else waits.

use std::sync::Arc;
use std::time::{Duration, Instant};

use holdpoint_runtime::ports::store::{AppendError, Store, StoreFaultKind};
use holdpoint_stores::postgres::PostgresStore;
use holdpoint_testkit::conformance::sample;

use crate::databases::remote::{Remote, SECOND, kind, revision};

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
