//! Sessions in which nothing has happened for long are removed whole, and no others.
#![expect(missing_docs, reason = "each case is named by the sentence that it checks")]
#![expect(clippy::unwrap_used, reason = "a case is a test")]

use std::sync::Arc;
use std::time::Duration;

use holdpoint_core::json::Digest;
use holdpoint_core::policy::Lifetime;
use holdpoint_core::time::Timestamp;
use holdpoint_runtime::ports::notifier::{Destination, NoticeKey, NoticeKind};
use holdpoint_runtime::ports::store::{
    Append, AppendError, NoticeFilter, PauseFilter, PauseRow, PauseStatus, RuleChange, RuleFilter, RunFilter,
    RunStatus, SessionFilter,
};

use super::trial::RunPen;
use super::{Trial, sample};

const DAY: Duration = Duration::from_secs(24 * 3600);

/// A run with everything that a run can leave behind: a pause that was decided, rules (one of them taken back), a notice,
/// a definition and an audit record. It is over.
async fn finished(trial: &Trial, number: u64, session: &str) -> RunPen {
    let run = trial.run(number, session);
    let pause = PauseRow { expires_at: Some(trial.clock.now().after(DAY)), ..trial.pause(&run, 1) };
    let destination = Destination::new("ops").unwrap();
    let notices = vec![NoticeKey { pause: pause.id, kind: NoticeKind::Opened, destination }];
    trial.ok(Append { notices, ..trial.opening(&run, vec![pause.clone()]) }).await;
    let rule = |number| sample::rule(run.id, number, None, Lifetime::Session);
    let bytes: Arc<[u8]> = format!("definition of {session}").into_bytes().into();
    trial
        .ok(Append {
            status: RunStatus::Finished,
            pauses: vec![PauseRow { status: PauseStatus::Decided, ..pause }],
            rules: vec![RuleChange::Made(rule(1)), RuleChange::Made(rule(2)), RuleChange::Revoked(rule(2).id)],
            definitions: vec![(Digest::of(&bytes), bytes)],
            audit: vec![sample::note(&run.session, run.id)],
            ..trial.append(&run, 1, [sample::decided(1), sample::finished()])
        })
        .await;
    run
}

fn now(trial: &Trial) -> Timestamp {
    trial.clock.now()
}

async fn names(trial: &Trial) -> Vec<String> {
    let rows = trial.store.list_sessions(&SessionFilter::default()).await.unwrap();
    rows.iter().map(|row| row.session.to_string()).collect()
}

pub async fn a_session_is_removed_whole(trial: &Trial) {
    let run = finished(trial, 1, "old").await;
    trial.clock.advance(DAY);
    let other = finished(trial, 2, "young").await;
    assert_eq!(trial.store.remove_old(now(trial), 10).await.unwrap(), 1);

    assert_eq!(names(trial).await, ["young"]);
    let store = &trial.store;
    assert!(store.session(&run.session).await.unwrap().is_none());
    assert!(store.load(run.id, 0).await.unwrap().is_none());
    assert!(store.session_runs(&run.session, 9).await.unwrap().is_empty());
    assert!(trial.entries("old").await.is_empty());
    assert!(store.session_rules(&run.session).await.unwrap().is_empty());
    let all = PauseFilter { status: None, ..PauseFilter::open() };
    let pauses = store.list_pauses(&all).await.unwrap();
    assert_eq!(pauses.iter().map(|row| row.id.run).collect::<Vec<_>>(), [other.id]);
    let in_old = PauseFilter { session: Some(run.session.clone()), ..all };
    assert!(store.list_pauses(&in_old).await.unwrap().is_empty());
    let runs = store.list_runs(&RunFilter::default()).await.unwrap();
    assert_eq!(runs.iter().map(|row| row.run).collect::<Vec<_>>(), [other.id]);
    let rules = store.list_rules(&RuleFilter::default()).await.unwrap();
    assert_eq!(rules.iter().map(|row| row.rule.id.run).collect::<Vec<_>>(), [other.id]);
    let notices = store.list_notices(&NoticeFilter::default()).await.unwrap();
    assert_eq!(notices.iter().map(|row| row.key.pause.run).collect::<Vec<_>>(), [other.id]);
    let ops = [Destination::new("ops").unwrap()];
    assert_eq!(store.claim_notices(&ops, 9, DAY).await.unwrap().len(), 1);
}

pub async fn the_audit_and_the_definitions_stay(trial: &Trial) {
    finished(trial, 1, "old").await;
    let (records, head) = (trial.store.audit(0, 9).await.unwrap(), trial.store.audit_head().await.unwrap());
    trial.clock.advance(DAY);
    assert_eq!(trial.store.remove_old(now(trial), 10).await.unwrap(), 1);
    assert_eq!(trial.store.audit(0, 9).await.unwrap(), records);
    assert_eq!(trial.store.audit_head().await.unwrap(), head);
    // Processes that wrote a definition once count on it.
    assert!(trial.store.definition(&Digest::of(b"definition of old")).await.unwrap().is_some());
}

pub async fn what_is_removed_must_be_older_to_the_millisecond(trial: &Trial) {
    finished(trial, 1, "s").await;
    assert_eq!(trial.store.remove_old(now(trial), 10).await.unwrap(), 0);
    trial.clock.advance(Duration::from_millis(1));
    assert_eq!(trial.store.remove_old(now(trial), 10).await.unwrap(), 1);
    assert_eq!(trial.store.remove_old(now(trial), 10).await.unwrap(), 0);
}

pub async fn a_session_with_an_unfinished_run_is_kept(trial: &Trial) {
    finished(trial, 1, "works").await;
    finished(trial, 2, "waits").await;
    finished(trial, 3, "over").await;
    trial.begin(&trial.run(4, "works")).await;
    trial.begin_paused(&trial.run(5, "waits"), 1).await;
    trial.clock.advance(DAY * 365);
    assert_eq!(trial.store.remove_old(now(trial), 10).await.unwrap(), 1);
    let mut left = names(trial).await;
    left.sort();
    assert_eq!(left, ["waits", "works"]);
    assert_eq!(trial.store.list_pauses(&PauseFilter::open()).await.unwrap().len(), 1);
    assert_eq!(trial.load(sample::run_id(1)).await.revision, 2);
    assert_eq!(trial.store.claimable(9).await.unwrap(), [sample::run_id(4)]);
}

pub async fn a_word_in_an_old_session_keeps_it(trial: &Trial) {
    let run = finished(trial, 1, "s").await;
    trial.clock.advance(DAY);
    let before = now(trial);
    let word = trial.append(&run, 2, [sample::said("thanks")]);
    trial.ok(Append { status: RunStatus::Finished, ..word }).await;
    assert_eq!(trial.store.remove_old(before, 10).await.unwrap(), 0);
    assert_eq!(trial.load(run.id).await.revision, 3);
}

pub async fn no_more_are_removed_than_asked_for(trial: &Trial) {
    for number in 1..=5 {
        finished(trial, number, &format!("s{number}")).await;
        trial.clock.advance(DAY);
    }
    assert_eq!(trial.store.remove_old(now(trial), 0).await.unwrap(), 0);
    assert_eq!(trial.store.remove_old(now(trial), 2).await.unwrap(), 2);
    assert_eq!(names(trial).await, ["s5", "s4", "s3"]);
    assert_eq!(trial.store.remove_old(now(trial), 10).await.unwrap(), 3);
}

pub async fn a_session_of_a_removed_name_begins_anew(trial: &Trial) {
    let old = finished(trial, 1, "s").await;
    trial.clock.advance(DAY);
    assert_eq!(trial.store.remove_old(now(trial), 10).await.unwrap(), 1);
    let word = Append { status: RunStatus::Finished, ..trial.append(&old, 2, [sample::said("still there?")]) };
    trial.refused(word, AppendError::NoRun(old.id)).await;
    let run = trial.run(2, "s");
    assert_eq!(trial.begin(&run).await.seq, 1);
    let row = trial.store.session(&run.session).await.unwrap().unwrap();
    assert_eq!((row.runs, row.events, row.created_at), (1, 1, now(trial)));
}

/// A removal that is cut off leaves its session as it was or nothing of it; the next one does what is left. For stores
/// that can be cut off.
pub async fn is_whole_or_gone(trial: &Trial, cut_off: impl FnOnce()) {
    let run = finished(trial, 1, "s").await;
    trial.clock.advance(DAY);
    cut_off();
    // Whoever asked may be told anything but a number that is not so.
    let told = trial.store.remove_old(now(trial), 10).await.ok();
    let left = trial.store.load(run.id, 0).await.unwrap().map(|loaded| loaded.entries.len());
    assert!(matches!((told, left), (None | Some(0), Some(2)) | (None | Some(1), None)), "{told:?} {left:?}");
    let rows = trial.store.list_sessions(&SessionFilter::default()).await.unwrap();
    assert_eq!(rows.len(), usize::from(left.is_some()));
    let all = PauseFilter { status: None, ..PauseFilter::open() };
    assert_eq!(trial.store.list_pauses(&all).await.unwrap().len(), usize::from(left.is_some()));
    let again = trial.store.remove_old(now(trial), 10).await.unwrap();
    assert_eq!(again, u64::from(left.is_some()));
    assert!(trial.store.load(run.id, 0).await.unwrap().is_none());
}

/// Runs begin in old sessions while these are removed, by two at once: every run that began is there.
pub async fn a_run_that_begins_while_its_session_is_removed_is_kept(trial: &Trial) {
    const SESSIONS: u64 = 40;
    for number in 1..=SESSIONS {
        finished(trial, number, &format!("s{number}")).await;
    }
    trial.clock.advance(DAY);
    let before = now(trial);
    let sweepers: Vec<_> = (0..2)
        .map(|_| {
            let store = Arc::clone(&trial.store);
            tokio::spawn(async move {
                let mut removed = 0;
                loop {
                    match store.remove_old(before, 7).await.unwrap() {
                        0 => return removed,
                        some => removed += some,
                    }
                }
            })
        })
        .collect();
    let writers: Vec<_> = (1..=SESSIONS)
        .rev()
        .map(|number| {
            let run = trial.run(1_000 + number, &format!("s{number}"));
            let (store, append) = (Arc::clone(&trial.store), trial.opening(&run, vec![trial.pause(&run, 1)]));
            tokio::spawn(async move {
                store.append(append).await.unwrap_or_else(|error| panic!("a run could not begin: {error} ({error:?})"));
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
    let mut removed = 0;
    for sweeper in sweepers {
        removed += sweeper.await.unwrap();
    }
    assert!(removed <= SESSIONS, "{removed}");
    for number in 1..=SESSIONS {
        let loaded = trial.load(sample::run_id(1_000 + number)).await;
        assert_eq!((loaded.revision, loaded.entries.len()), (1, 1), "s{number}");
        // The session is the old one with the run in it, or a new one with the run alone: never something in between.
        let session = sample::session(&format!("s{number}"));
        let is_kept = trial.store.load(sample::run_id(number), 0).await.unwrap().is_some();
        let row = trial.store.session(&session).await.unwrap().unwrap();
        let (runs, events) = if is_kept { (2, 6) } else { (1, 2) };
        assert_eq!((row.runs, row.events), (runs, events), "s{number}");
        let entries = trial.store.session_entries(&session, 1, 99).await.unwrap();
        let mut next = 1;
        for (_, entry) in entries {
            assert_eq!(entry.seq, next, "s{number}");
            next += entry.events.len() as u64;
        }
        assert_eq!(next, events + 1, "s{number}");
    }
    assert_eq!(trial.store.list_pauses(&PauseFilter::open()).await.unwrap().len() as u64, SESSIONS);
}
