//! Several instances over one database.

use std::sync::Arc;
use std::time::Duration;

use holdpoint_runtime::memory::MemoryStore;
use holdpoint_runtime::ports::store::{Append, AppendError, PAGE_MAX, Store};
use holdpoint_testkit::conformance::{Trial, UnderTest, sample};

use crate::database::{Database, TestedStore};

const INSTANCES: usize = 3;

struct Cluster {
    instances: Vec<Arc<TestedStore>>,
    trial: Trial,
    _database: Database,
}

impl Cluster {
    /// Instances that go by the database's clock.
    async fn new() -> Self {
        let database = Database::new().await;
        let mut instances = Vec::new();
        for _ in 0..INSTANCES {
            instances.push(Arc::new(database.store().await));
        }
        let trial = Trial::new(async |clock| UnderTest::new(MemoryStore::new(clock))).await;
        Self { instances, trial, _database: database }
    }

    fn instance(&self, number: u64) -> Arc<TestedStore> {
        Arc::clone(&self.instances[number as usize % INSTANCES])
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_writers_on_one_revision_over_all_instances_one_wins() {
    let cluster = Cluster::new().await;
    let run = cluster.trial.run(1, "s");
    cluster.instance(0).append(cluster.trial.first(&run)).await.unwrap();
    for expected in 1..=10 {
        let writers: Vec<_> = (0..24)
            .map(|writer| {
                let append = cluster.trial.append(&run, expected, [sample::said(&format!("writer {writer}"))]);
                let store = cluster.instance(writer);
                tokio::spawn(async move { store.append(append).await })
            })
            .collect();
        let mut wins = 0;
        for writer in writers {
            match writer.await.unwrap() {
                Ok(_) => wins += 1,
                Err(AppendError::Conflict { revision, .. }) => assert_eq!(revision, expected + 1),
                Err(other) => panic!("a loser was told something else: {other}"),
            }
        }
        assert_eq!(wins, 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn numbers_are_dense_and_the_audit_is_one_chain_over_all_instances() {
    let cluster = Cluster::new().await;
    let writers: Vec<_> = (1..=12)
        .map(|number| {
            let run = cluster.trial.run_of(number, &format!("s{}", number % 2), &format!("Agent {number}"));
            let store = cluster.instance(number);
            let appends: Vec<Append> = (0..8)
                .map(|expected| {
                    let audit = vec![sample::note(&run.session, run.id)];
                    Append { audit, ..cluster.trial.append(&run, expected, [sample::said("x"), sample::said("y")]) }
                })
                .collect();
            tokio::spawn(async move {
                for append in appends {
                    store.append(append).await.unwrap();
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
    let store = cluster.instance(0);
    for session in ["s0", "s1"] {
        let entries = store.session_entries(&sample::session(session), 1, 1_000).await.unwrap();
        let numbers: Vec<u64> = entries.iter().map(|(_, entry)| entry.seq).collect();
        assert_eq!(numbers, (0..48).map(|number| number * 2 + 1).collect::<Vec<_>>());
    }
    let records = store.audit(0, PAGE_MAX).await.unwrap();
    let last = records.iter().fold(None, |last, record| {
        assert!(record.follows(last), "record {} does not follow", record.n);
        Some((record.n, record.hash))
    });
    assert_eq!((records.len(), store.audit_head().await.unwrap()), (96, last));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_begins_on_all_instances_at_once_begins_once_wherever_it_is_said_to_belong() {
    let cluster = Cluster::new().await;
    for number in 1..=10 {
        // The same id in different sessions: no session's lock stands between them.
        let writers: Vec<_> = (0..9)
            .map(|writer| {
                let run = cluster.trial.run(number, &format!("s{number} {}", writer % 3));
                let (store, append) = (cluster.instance(writer), cluster.trial.first(&run));
                tokio::spawn(async move { store.append(append).await })
            })
            .collect();
        let mut wins = 0;
        for writer in writers {
            match writer.await.unwrap() {
                Ok(_) => wins += 1,
                Err(AppendError::NoRun(_) | AppendError::Conflict { .. }) => {}
                Err(other) => panic!("a loser was told something else: {other}"),
            }
        }
        assert_eq!(wins, 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_instance_moves_a_run_and_another_takes_over_when_its_time_is_up_by_the_databases_clock() {
    let cluster = Cluster::new().await;
    let run = cluster.trial.run(1, "s");
    let (one, two) = (cluster.instance(0), cluster.instance(1));
    one.append(cluster.trial.first(&run)).await.unwrap();
    // The clock that an instance goes by is never ahead of the database's, and may be a moment behind it.
    let claimable = loop {
        let found = two.claimable(9).await.unwrap();
        if !found.is_empty() {
            break found;
        }
    };
    assert_eq!(claimable, [run.id]);
    let lease = one.claim(run.id, "one", Duration::from_millis(300)).await.unwrap();
    assert!(matches!(two.claim(run.id, "two", Duration::from_secs(9)).await, Err(AppendError::Leased { .. })));
    // Claimed as soon as it can be, and not before.
    let taken = loop {
        match two.claim(run.id, "two", Duration::from_secs(60)).await {
            Ok(taken) => break taken,
            Err(AppendError::Leased { until, .. }) => assert_eq!(until, lease.until),
            Err(other) => panic!("{other}"),
        }
    };
    assert!(two.now() >= lease.until, "{} is not yet {}", two.now(), lease.until);
    assert_eq!(taken.epoch, 2);
    assert!(matches!(one.renew(&lease, Duration::from_secs(9)).await, Err(AppendError::Fenced { .. })));
    one.release(&lease).await.unwrap();
    assert_eq!(two.load(run.id, 0).await.unwrap().unwrap().lease, Some(taken));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_definitions_in_any_order_never_stand_in_each_others_way() {
    let cluster = Cluster::new().await;
    let definitions: Vec<(holdpoint_core::json::Digest, Arc<[u8]>)> = (0..20u8)
        .map(|number| {
            let bytes: Arc<[u8]> = vec![number; 1_000].into();
            (holdpoint_core::json::Digest::of(&bytes), bytes)
        })
        .collect();
    let writers: Vec<_> = (1..=30)
        .map(|number| {
            let mut definitions = definitions.clone();
            definitions.rotate_left(number as usize % 20);
            if number % 2 == 0 {
                definitions.reverse();
            }
            let run = cluster.trial.run(number, &format!("s{number}"));
            let append = Append { definitions, ..cluster.trial.first(&run) };
            let store = cluster.instance(number);
            tokio::spawn(async move { store.append(append).await.map(drop) })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap().unwrap();
    }
    for (digest, bytes) in &definitions {
        assert_eq!(cluster.instance(1).definition(digest).await.unwrap().as_ref(), Some(bytes));
    }
}
