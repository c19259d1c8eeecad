//! The chain of audit records.
#![expect(missing_docs, reason = "each case is named by the sentence that it checks")]
#![expect(clippy::unwrap_used, reason = "a case is a test")]

use holdpoint_core::audit::{AuditNote, AuditRecord};
use holdpoint_runtime::ports::store::{Append, AppendError, PAGE_MAX};

use super::sample;
use super::trial::{RunPen, Trial};

fn note(trial: &Trial, run: &RunPen, outcome: &str) -> AuditNote {
    let via = Some("a door\n\"with\" \u{202e}odd letters".to_owned());
    AuditNote { at: trial.clock.now(), outcome: Some(outcome.to_owned()), via, ..sample::note(&run.session, run.id) }
}

fn noting(trial: &Trial, run: &RunPen, expected: u64, outcomes: &[&str]) -> Append {
    let audit = outcomes.iter().map(|outcome| note(trial, run, outcome)).collect();
    Append { audit, ..trial.append(run, expected, [sample::said("x")]) }
}

async fn all(trial: &Trial) -> Vec<AuditRecord> {
    trial.store.audit(0, PAGE_MAX).await.unwrap()
}

/// What the records say, after a check that each follows the one before it.
fn outcomes(records: &[AuditRecord]) -> Vec<String> {
    let mut last = None;
    let mut said = Vec::new();
    for record in records {
        assert!(record.follows(last), "record {} does not follow", record.n);
        last = Some((record.n, record.hash));
        said.push(record.note().unwrap().outcome.unwrap());
    }
    said
}

pub async fn a_note_comes_back_as_it_was_written(trial: &Trial) {
    let run = trial.run(1, "desk");
    trial.begin(&run).await;
    assert_eq!(all(trial).await, []);
    trial.ok(noting(trial, &run, 1, &["approve"])).await;
    let records = all(trial).await;
    assert_eq!(records.len(), 1);
    assert_eq!((records[0].n, records[0].note().unwrap()), (1, note(trial, &run, "approve")));
    assert!(records[0].follows(None));
}

pub async fn records_follow_one_another_over_all_sessions(trial: &Trial) {
    let (one, two) = (trial.run(1, "desk"), trial.run(2, "other"));
    trial.begin(&one).await;
    trial.begin(&two).await;
    trial.ok(noting(trial, &one, 1, &["a", "b"])).await;
    trial.ok(noting(trial, &two, 1, &["c"])).await;
    trial.ok(noting(trial, &one, 2, &[])).await;
    trial.ok(noting(trial, &one, 3, &["d"])).await;
    let records = all(trial).await;
    assert_eq!(outcomes(&records), ["a", "b", "c", "d"]);
    assert_eq!(records.iter().map(|record| record.n).collect::<Vec<_>>(), [1, 2, 3, 4]);
}

pub async fn a_refused_append_leaves_no_record(trial: &Trial) {
    let run = trial.run(1, "desk");
    trial.begin(&run).await;
    trial.refused(noting(trial, &run, 7, &["a"]), AppendError::Conflict { run: run.id, revision: 1 }).await;
    trial.ok(noting(trial, &run, 1, &["b"])).await;
    assert_eq!(outcomes(&all(trial).await), ["b"]);
}

pub async fn the_head_is_that_of_the_last_record(trial: &Trial) {
    let run = trial.run(1, "desk");
    trial.begin(&run).await;
    assert_eq!(trial.store.audit_head().await.unwrap(), None);
    for (expected, outcomes) in [(1, &["a", "b"][..]), (2, &[]), (3, &["c"])] {
        trial.ok(noting(trial, &run, expected, outcomes)).await;
        let last = all(trial).await.last().map(|record| (record.n, record.hash));
        assert_eq!(trial.store.audit_head().await.unwrap(), last);
    }
    trial.refused(noting(trial, &run, 9, &["d"]), AppendError::Conflict { run: run.id, revision: 4 }).await;
    assert_eq!(trial.store.audit_head().await.unwrap().map(|(n, _)| n), Some(3));
}

pub async fn records_are_read_in_pages(trial: &Trial) {
    let run = trial.run(1, "desk");
    trial.begin(&run).await;
    trial.ok(noting(trial, &run, 1, &["a", "b", "c", "d", "e"])).await;
    let whole = all(trial).await;
    let mut pages = Vec::new();
    loop {
        let page = trial.store.audit(pages.len() as u64, 2).await.unwrap();
        if page.is_empty() {
            break;
        }
        pages.extend(page);
    }
    assert_eq!(pages, whole);
    assert_eq!(trial.store.audit(5, 2).await.unwrap(), []);
    assert_eq!(trial.store.audit(u64::MAX, 2).await.unwrap(), []);
}

pub async fn the_chain_is_whole_when_many_write_at_once(trial: &Trial) {
    let runs: Vec<RunPen> = (1..=16).map(|number| trial.run(number, &format!("desk {number}"))).collect();
    for run in &runs {
        trial.begin(run).await;
    }
    let writes = runs.iter().map(|run| async move {
        for expected in 1..=8 {
            trial.ok(noting(trial, run, expected, &["x", "y"])).await;
        }
    });
    futures_util::future::join_all(writes).await;
    assert_eq!(outcomes(&all(trial).await).len(), 256);
}
