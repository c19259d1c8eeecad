//! Appends that come together are written together; each is answered by itself.

use std::sync::Arc;

use futures_util::future::join_all;
use holdpoint_runtime::memory::MemoryStore;
use holdpoint_runtime::ports::store::{Append, AppendError, LeaseChange, PAGE_MAX, Store};
use holdpoint_testkit::conformance::{RunPen, Trial, UnderTest, sample};

use crate::database::{Database, TestedStore};

/// Runs that have begun, each in a session of its own.
pub struct Crowd {
    // Before the database, which is dropped at the end.
    pub store: Arc<TestedStore>,
    pub database: Database,
    pub trial: Trial,
    pub runs: Vec<RunPen>,
}

impl Crowd {
    pub async fn new(count: u64) -> Self {
        let database = Database::new().await;
        let store = Arc::new(database.store().await);
        let trial = Trial::new(async |clock| UnderTest::new(MemoryStore::new(clock))).await;
        let runs: Vec<RunPen> = (1..=count).map(|number| trial.run(number, &format!("s{number}"))).collect();
        // New runs are written together as well, where the store does that.
        for begun in join_all(runs.iter().map(|run| store.append(trial.first(run)))).await {
            assert_eq!(begun.unwrap().revision, 1);
        }
        Self { store, database, trial, runs }
    }

    /// An append with something for the audit.
    pub fn more(&self, run: &RunPen, expected: u64) -> Append {
        let audit = vec![sample::note(&run.session, run.id)];
        Append { audit, ..self.trial.append(run, expected, [sample::said("more")]) }
    }

    /// How many records the audit has, each of which follows the one before it.
    pub async fn audited(&self) -> usize {
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
async fn groups_of_several_instances_overtake_each_other_and_lose_nothing() {
    let crowd = Crowd::new(48).await;
    let mut instances = vec![Arc::clone(&crowd.store)];
    for _ in 0..2 {
        instances.push(Arc::new(crowd.database.store().await));
    }
    for expected in 1..=5 {
        let appends = crowd.runs.iter().enumerate().map(|(index, run)| {
            let store = Arc::clone(&instances[(index + expected as usize) % instances.len()]);
            let append = crowd.more(run, expected);
            tokio::spawn(async move { store.append(append).await })
        });
        for answer in join_all(appends.collect::<Vec<_>>()).await {
            assert_eq!(answer.unwrap().unwrap().revision, expected + 1);
        }
    }
    assert_eq!(crowd.audited().await, 48 * 5);
}
