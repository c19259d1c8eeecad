//! Appends that come together share a transaction; each is answered by itself.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use holdpoint_runtime::memory::MemoryStore;
use holdpoint_runtime::ports::store::{Append, AppendError, LeaseChange, PAGE_MAX, Store};
use holdpoint_stores::postgres::PostgresStore;
use holdpoint_testkit::conformance::{RunPen, Trial, UnderTest, sample};

use crate::database::Database;

/// Runs that have begun, each in a session of its own.
struct Crowd {
    store: Arc<PostgresStore>,
    database: Database,
    trial: Trial,
    runs: Vec<RunPen>,
}

impl Crowd {
    async fn new(count: u64) -> Self {
        let database = Database::new().await;
        let store = Arc::new(PostgresStore::open(&database.address).await.unwrap());
        let trial = Trial::new(async |clock| UnderTest::new(MemoryStore::new(clock))).await;
        let runs: Vec<RunPen> = (1..=count).map(|number| trial.run(number, &format!("s{number}"))).collect();
        for run in &runs {
            store.append(trial.first(run)).await.unwrap();
        }
        Self { store, database, trial, runs }
    }

    /// An append with something for the audit.
    fn more(&self, run: &RunPen, expected: u64) -> Append {
        let audit = vec![sample::note(&run.session, run.id)];
        Append { audit, ..self.trial.append(run, expected, [sample::said("more")]) }
    }

    /// How many records the audit has, each of which follows the one before it.
    async fn audited(&self) -> usize {
        let (mut last, mut count) = (None, 0);
        loop {
            let page = self.store.audit(count as u64, PAGE_MAX).await.unwrap();
            if page.is_empty() {
                assert_eq!(self.store.audit_head().await.unwrap(), last);
                return count;
            }
            for record in page {
                assert!(record.follows(last), "record {} does not follow {last:?}", record.n);
                last = Some((record.n, record.hash));
                count += 1;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_of_those_that_come_together_is_answered_by_itself() {
    let crowd = Crowd::new(40).await;
    let stranger = crowd.trial.run(99, "s99");
    let appends = crowd.runs.iter().enumerate().map(|(index, run)| {
        let append = match index % 4 {
            0 | 1 => crowd.more(run, 1),
            2 => crowd.more(run, 7),
            _ if index % 8 == 3 => Append { lease: LeaseChange::Hold { epoch: 9 }, ..crowd.more(run, 1) },
            _ => Append { session: run.session.clone(), ..crowd.more(&stranger, 1) },
        };
        crowd.store.append(append)
    });
    for (index, answer) in join_all(appends).await.into_iter().enumerate() {
        match (index % 4, answer) {
            (0 | 1, Ok(appended)) => assert_eq!((appended.revision, appended.seq), (2, 2)),
            (2, Err(AppendError::Conflict { revision: 1, .. })) => {}
            (3, Err(AppendError::Fenced { .. })) if index % 8 == 3 => {}
            (3, Err(AppendError::NoRun(run))) if index % 8 == 7 => assert_eq!(run, stranger.id),
            (_, answer) => panic!("{index}: {answer:?}"),
        }
    }
    assert_eq!(crowd.audited().await, 20);
    let loaded = join_all(crowd.runs.iter().map(|run| crowd.store.load(run.id, 0))).await;
    for (index, loaded) in loaded.into_iter().enumerate() {
        let loaded = loaded.unwrap().unwrap();
        let revision = if index % 4 < 2 { 2 } else { 1 };
        assert_eq!((loaded.revision, loaded.entries.len() as u64), (revision, revision), "{index}");
    }
}

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
