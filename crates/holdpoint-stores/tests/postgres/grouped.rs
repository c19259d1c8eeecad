//! Appends that come together share a transaction, and one that cannot be written leaves the others alone.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use holdpoint_runtime::ports::store::{AppendError, Store};

use crate::databases::crowd::Crowd;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn those_that_come_together_share_a_transaction() {
    let crowd = Crowd::new(64).await;
    let appends = crowd.runs.iter().map(|run| crowd.store.append(crowd.more(run, 1)));
    assert!(join_all(appends).await.iter().all(Result::is_ok));
    let sql = "SELECT count(DISTINCT xmin::text), count(*) FROM entry WHERE revision = 2";
    let row = crowd.database.connect().await.query_one(sql, &[]).await.unwrap();
    let (transactions, entries): (i64, i64) = (row.get(0), row.get(1));
    assert_eq!(entries, 64);
    assert!(transactions < 32, "{transactions} transactions");
    assert_eq!(crowd.audited().await, 64);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_the_server_does_not_take_leaves_the_others_alone() {
    let crowd = Crowd::new(24).await;
    let sql = format!(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'not this one'; END $$;
         CREATE TRIGGER refuse BEFORE INSERT ON entry FOR EACH ROW WHEN (NEW.run = '{}') EXECUTE FUNCTION refuse()",
        crowd.runs[5].id.uuid()
    );
    crowd.database.connect().await.batch_execute(&sql).await.unwrap();
    let appends = crowd.runs.iter().map(|run| crowd.store.append(crowd.more(run, 1)));
    for (index, answer) in join_all(appends).await.into_iter().enumerate() {
        match (index, answer) {
            (5, Err(AppendError::Fault(_))) => {}
            (5, answer) => panic!("{answer:?}"),
            (_, answer) => assert_eq!(answer.unwrap().revision, 2, "{index}"),
        }
    }
    assert_eq!(crowd.audited().await, 23);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_somebody_holds_keeps_nobody_else_waiting() {
    let crowd = Crowd::new(16).await;
    let mut client = crowd.database.connect().await;
    let held = client.transaction().await.unwrap();
    held.execute("SELECT 1 FROM session WHERE name = 's1' FOR UPDATE", &[]).await.unwrap();
    let (store, first) = (Arc::clone(&crowd.store), crowd.more(&crowd.runs[0], 1));
    let waits = tokio::spawn(async move { store.append(first).await });
    let others = crowd.runs[1..].iter().map(|run| crowd.store.append(crowd.more(run, 1)));
    let others = tokio::time::timeout(Duration::from_secs(60), join_all(others)).await.unwrap();
    assert!(others.iter().all(Result::is_ok), "{others:?}");
    held.rollback().await.unwrap();
    match waits.await.unwrap() {
        Ok(appended) => assert_eq!(appended.revision, 2),
        // Where the machine is so slow that its patience was over before the others were done.
        Err(AppendError::Fault(_)) => {
            assert_eq!(crowd.store.append(crowd.more(&crowd.runs[0], 1)).await.unwrap().seq, 2)
        }
        Err(other) => panic!("{other}"),
    }
    assert_eq!(crowd.audited().await, 16);
}
