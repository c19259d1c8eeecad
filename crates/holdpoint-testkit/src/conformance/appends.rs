//! Writing and reading runs: all or nothing, on top of the revision that the writer saw.
#![expect(missing_docs, reason = "each case is named by the sentence that it checks")]
#![expect(clippy::unwrap_used, reason = "a case is a test")]

use std::sync::Arc;
use std::time::Duration;

use holdpoint_core::ids::RuleId;
use holdpoint_core::json::Digest;
use holdpoint_core::record::Entry;
use holdpoint_runtime::ports::store::{
    Append, AppendError, Appended, LeaseChange, PauseFilter, RuleChange, RunStatus, Store,
};

use super::{Trial, sample};

pub async fn a_run_begins_at_revision_one(trial: &Trial) {
    let run = trial.run(1, "s");
    let appended = trial.begin(&run).await;
    assert_eq!(appended, Appended { revision: 1, seq: 1, pause_group: None, epoch: None });
    let loaded = trial.load(run.id).await;
    assert_eq!((loaded.revision, loaded.session, loaded.agent), (1, run.session, run.agent));
    assert_eq!(loaded.lease, None);
}

pub async fn each_append_moves_the_revision_on_by_one(trial: &Trial) {
    let run = trial.run(1, "s");
    trial.begin(&run).await;
    for expected in 1..10 {
        let appended = trial.ok(trial.append(&run, expected, [sample::said("more")])).await;
        assert_eq!((appended.revision, appended.seq), (expected + 1, expected + 1));
    }
    assert_eq!(trial.load(run.id).await.revision, 10);
}

pub async fn what_was_written_is_read_back_entry_by_entry(trial: &Trial) {
    let run = trial.run(1, "s");
    let first = trial.first(&run);
    trial.ok(first.clone()).await;
    trial.clock.advance(Duration::from_millis(1_234));
    let arguments = sample::json(r#"{"to":"ana@example.com"}"#);
    let pauses = vec![trial.pause(&run, 1)];
    let second = Append {
        pauses,
        status: RunStatus::Waiting,
        ..trial.append(&run, 1, [sample::replied(arguments), sample::opened(1, None)])
    };
    trial.ok(second.clone()).await;
    let expected = vec![
        Entry { revision: 1, seq: 1, pause_group: None, at: first.at, events: first.events },
        Entry { revision: 2, seq: 2, pause_group: Some(1), at: second.at, events: second.events },
    ];
    assert_eq!(trial.load(run.id).await.entries, expected);
}

pub async fn an_append_of_many_events_is_one_entry(trial: &Trial) {
    let run = trial.run(1, "s");
    trial.begin(&run).await;
    let events = (0..500).map(|number| sample::said(&format!("line {number}")));
    let append = trial.append(&run, 1, events);
    let appended = trial.ok(append.clone()).await;
    assert_eq!((appended.revision, appended.seq), (2, 2));
    let entries = trial.load(run.id).await.entries;
    assert_eq!((entries.len(), &entries[1].events), (2, &append.events));
}

pub async fn an_append_without_events_is_a_fault(trial: &Trial) {
    let run = trial.run(1, "s");
    let begins = trial.store.append(trial.append(&run, 0, [])).await;
    assert!(matches!(begins, Err(AppendError::Fault(_))), "{begins:?}");
    trial.begin(&run).await;
    let goes_on = trial.store.append(trial.append(&run, 1, [])).await;
    assert!(matches!(goes_on, Err(AppendError::Fault(_))), "{goes_on:?}");
    assert_eq!((trial.load(run.id).await.revision, trial.entries("s").await.len()), (1, 1));
}

pub async fn loading_after_a_revision_gives_only_what_is_new(trial: &Trial) {
    let run = trial.run(1, "s");
    trial.begin(&run).await;
    for expected in 1..5 {
        trial.ok(trial.append(&run, expected, [sample::said("more")])).await;
    }
    for (after, revisions) in [(0, vec![1, 2, 3, 4, 5]), (3, vec![4, 5]), (5, vec![]), (99, vec![])] {
        let loaded = trial.store.load(run.id, after).await.unwrap().unwrap();
        let found: Vec<u64> = loaded.entries.iter().map(|entry| entry.revision).collect();
        assert_eq!((loaded.revision, found), (5, revisions), "after {after}");
    }
}

pub async fn a_run_that_nobody_began_is_not_there(trial: &Trial) {
    assert!(trial.store.load(sample::run_id(7), 0).await.unwrap().is_none());
}

pub async fn a_run_that_never_began_cannot_go_on(trial: &Trial) {
    let run = trial.run(1, "s");
    trial.refused(trial.append(&run, 3, [sample::said("more")]), AppendError::NoRun(run.id)).await;
    assert!(trial.store.load(run.id, 0).await.unwrap().is_none());
}

pub async fn a_run_cannot_begin_twice(trial: &Trial) {
    let run = trial.run(1, "s");
    trial.begin(&run).await;
    trial.refused(trial.first(&run), AppendError::Conflict { run: run.id, revision: 1 }).await;
    assert_eq!(trial.load(run.id).await.revision, 1);
}

pub async fn a_stale_writer_is_told_where_the_run_stands(trial: &Trial) {
    let run = trial.run(1, "s");
    trial.begin(&run).await;
    for expected in 1..4 {
        trial.ok(trial.append(&run, expected, [sample::said("more")])).await;
    }
    trial
        .refused(trial.append(&run, 2, [sample::said("late")]), AppendError::Conflict { run: run.id, revision: 4 })
        .await;
}

pub async fn a_revision_ahead_of_the_run_is_a_conflict(trial: &Trial) {
    let run = trial.run(1, "s");
    trial.begin(&run).await;
    for expected in [2, u64::MAX] {
        let append = trial.append(&run, expected, [sample::said("early")]);
        trial.refused(append, AppendError::Conflict { run: run.id, revision: 1 }).await;
    }
}

pub async fn a_run_is_known_only_in_its_session(trial: &Trial) {
    let run = trial.run(1, "s");
    trial.begin(&run).await;
    let elsewhere = trial.run(1, "another");
    for expected in [0, 1] {
        trial.refused(trial.append(&elsewhere, expected, [sample::said("x")]), AppendError::NoRun(run.id)).await;
    }
    assert!(trial.entries("another").await.is_empty());
}

pub async fn a_refused_append_writes_nothing(trial: &Trial) {
    let run = trial.run(1, "s");
    trial.begin(&run).await;
    let bytes: Arc<[u8]> = b"definition".as_slice().into();
    let refused = Append {
        pauses: vec![trial.pause(&run, 1)],
        rules: vec![
            RuleChange::Made(sample::rule(run.id, 1, None, holdpoint_core::policy::Lifetime::Session)),
            RuleChange::Used(RuleId { run: run.id, number: 2 }),
        ],
        definitions: vec![(Digest::of(&bytes), Arc::clone(&bytes))],
        lease: LeaseChange::Take { owner: "w".to_owned(), duration: Duration::from_secs(60) },
        status: RunStatus::Finished,
        ..trial.append(&run, 1, [sample::opened(1, None), sample::said("never")])
    };
    trial.refused(refused, AppendError::RuleSpent(RuleId { run: run.id, number: 2 })).await;
    let loaded = trial.load(run.id).await;
    assert_eq!((loaded.revision, loaded.entries.len(), loaded.lease), (1, 1, None));
    assert_eq!(trial.entries("s").await.len(), 1);
    assert_eq!(trial.store.list_pauses(&PauseFilter::open()).await.unwrap(), []);
    assert_eq!(trial.store.session_rules(&run.session).await.unwrap(), []);
    assert_eq!(trial.store.definition(&Digest::of(&bytes)).await.unwrap(), None);
    assert_eq!(trial.store.session_runs(&run.session, 9).await.unwrap()[0].status, RunStatus::Working);
    // No number was used up either.
    let pauses = vec![trial.pause(&run, 1)];
    let appended = trial.ok(Append { pauses, ..trial.append(&run, 1, [sample::opened(1, None)]) }).await;
    assert_eq!((appended.seq, appended.pause_group), (2, Some(1)));
}

pub async fn the_checks_come_in_their_order(trial: &Trial) {
    let run = trial.run(1, "s");
    let owner = || "w".to_owned();
    let hour = Duration::from_secs(3_600);
    trial.ok(Append { lease: LeaseChange::Take { owner: owner(), duration: hour }, ..trial.first(&run) }).await;
    let spent = RuleId { run: run.id, number: 9 };
    let all_wrong = |run, expected| Append {
        lease: LeaseChange::Hold { epoch: 7 },
        rules: vec![RuleChange::Used(spent)],
        ..trial.append(run, expected, [sample::said("x")])
    };
    let other = trial.run(2, "s");
    trial.refused(all_wrong(&other, 5), AppendError::NoRun(other.id)).await;
    trial.refused(all_wrong(&other, 0), AppendError::SessionBusy { run: run.id }).await;
    trial.refused(all_wrong(&run, 5), AppendError::Conflict { run: run.id, revision: 1 }).await;
    trial.refused(all_wrong(&run, 1), AppendError::Fenced { run: run.id }).await;
    let take = LeaseChange::Take { owner: owner(), duration: hour };
    let until = trial.clock.now().after(hour);
    let leased = AppendError::Leased { run: run.id, owner: owner(), until };
    trial.refused(Append { lease: take, ..all_wrong(&run, 1) }, leased).await;
    let held = Append { lease: LeaseChange::Hold { epoch: 1 }, ..all_wrong(&run, 1) };
    trial.refused(held, AppendError::RuleSpent(spent)).await;
}

pub async fn of_sixty_four_writers_on_one_revision_one_wins(trial: &Trial) {
    let run = trial.run(1, "s");
    trial.begin(&run).await;
    let writers: Vec<_> = (0..64)
        .map(|writer| {
            let (store, append) =
                (Arc::clone(&trial.store), trial.append(&run, 1, [sample::said(&format!("writer {writer}"))]));
            tokio::spawn(async move { (append.events.clone(), store.append(append).await) })
        })
        .collect();
    let mut winners = Vec::new();
    for writer in writers {
        match writer.await.unwrap() {
            (events, Ok(appended)) => winners.push((events, appended.seq)),
            (_, Err(AppendError::Conflict { revision: 2, .. })) => {}
            (_, Err(error)) => panic!("a loser was told something else: {error}"),
        }
    }
    let entries = trial.load(run.id).await.entries;
    assert_eq!((winners.len(), entries.len()), (1, 2));
    assert_eq!((&winners[0].0, winners[0].1), (&entries[1].events, entries[1].seq));
}

pub async fn writers_that_read_again_all_get_their_turn(trial: &Trial) {
    let run = trial.run(1, "s");
    trial.begin(&run).await;
    let writers: Vec<_> = (0..16)
        .map(|writer| {
            let (store, append) =
                (Arc::clone(&trial.store), trial.append(&run, 1, [sample::said(&format!("writer {writer}"))]));
            tokio::spawn(insist(store, append))
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
    let loaded = trial.load(run.id).await;
    assert_eq!((loaded.revision, loaded.entries.len()), (17, 17));
    let mut said: Vec<String> = loaded.entries[1..].iter().map(|entry| format!("{:?}", entry.events[0])).collect();
    said.sort();
    said.dedup();
    assert_eq!(said.len(), 16);
}

async fn insist(store: Arc<dyn Store>, mut append: Append) {
    loop {
        match store.append(append.clone()).await {
            Ok(_) => return,
            Err(AppendError::Conflict { revision, .. }) => append.expected = revision,
            Err(error) => panic!("a writer was refused: {error}"),
        }
    }
}

pub async fn the_same_run_under_sixty_four_beginnings_begins_once(trial: &Trial) {
    let run = trial.run(1, "s");
    let writers: Vec<_> = (0..64)
        .map(|_| {
            let (store, append) = (Arc::clone(&trial.store), trial.first(&run));
            tokio::spawn(async move { store.append(append).await.is_ok() })
        })
        .collect();
    let mut wins = 0;
    for writer in writers {
        wins += usize::from(writer.await.unwrap());
    }
    assert_eq!((wins, trial.load(run.id).await.revision), (1, 1));
}
