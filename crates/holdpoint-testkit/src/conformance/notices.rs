//! The outbox: what is to be told is written with the append, claimed for a while, and settled once.
#![expect(missing_docs, reason = "each case is named by the sentence that it checks")]
#![expect(clippy::unwrap_used, reason = "a case is a test")]

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use holdpoint_core::ids::PauseId;
use holdpoint_runtime::ports::notifier::{Destination, NoticeKey, NoticeKind, RECEIPT_BYTES_MAX};
use holdpoint_runtime::ports::store::{
    Append, AppendError, NOTICE_WHY_BYTES_MAX, NoticeFilter, NoticeOutcome, NoticeRow, NoticeState, NoticeStatus,
    PAGE_MAX,
};

use super::{RunPen, Trial, sample};

const MINUTE: Duration = Duration::from_secs(60);
const MILLISECOND: Duration = Duration::from_millis(1);

fn to(name: &str) -> Destination {
    Destination::new(name).unwrap()
}

fn opened(run: &RunPen, number: u32, destination: &str) -> NoticeKey {
    NoticeKey { pause: PauseId { run: run.id, number }, kind: NoticeKind::Opened, destination: to(destination) }
}

fn settled(run: &RunPen, number: u32, destination: &str) -> NoticeKey {
    NoticeKey { kind: NoticeKind::Settled, ..opened(run, number, destination) }
}

fn delivered(receipt: &str) -> NoticeOutcome {
    NoticeOutcome::Delivered { receipt: Some(receipt.to_owned()) }
}

/// Begins a run that opens one pause, of which these are told.
async fn begin_telling(trial: &Trial, number: u64, destinations: &[&str]) -> RunPen {
    let run = trial.run(number, &format!("s{number}"));
    let notices = destinations.iter().map(|destination| opened(&run, 1, destination)).collect();
    trial.ok(Append { notices, ..trial.opening(&run, vec![trial.pause(&run, 1)]) }).await;
    run
}

/// Settles the run's pause, of which these are told.
async fn settle_telling(trial: &Trial, run: &RunPen, destinations: &[&str]) {
    let notices = destinations.iter().map(|destination| settled(run, 1, destination)).collect();
    trial.ok(Append { notices, ..trial.append(run, 1, [sample::decided(1)]) }).await;
}

async fn claim(trial: &Trial, destinations: &[&str]) -> Vec<NoticeRow> {
    let destinations: Vec<Destination> = destinations.iter().map(|name| to(name)).collect();
    trial.store.claim_notices(&destinations, 100, MINUTE).await.unwrap()
}

fn keys(rows: &[NoticeRow]) -> Vec<NoticeKey> {
    rows.iter().map(|row| row.key.clone()).collect()
}

async fn settle(trial: &Trial, key: &NoticeKey, attempt: u32, outcome: NoticeOutcome) -> bool {
    trial.store.settle_notice(key, attempt, outcome).await.unwrap()
}

async fn notice(trial: &Trial, key: &NoticeKey) -> NoticeRow {
    trial.store.notice(key).await.unwrap().expect("the notice is there")
}

async fn list(trial: &Trial, filter: NoticeFilter) -> Vec<NoticeRow> {
    trial.store.list_notices(&filter).await.unwrap()
}

pub async fn a_notice_waits_from_its_append_on(trial: &Trial) {
    let run = begin_telling(trial, 1, &["ops"]).await;
    let key = opened(&run, 1, "ops");
    let waiting = NoticeRow { key: key.clone(), state: NoticeState::Waiting, attempts: 0, at: trial.clock.now() };
    assert_eq!(notice(trial, &key).await, waiting);
    let begun = NoticeRow { attempts: 1, at: trial.clock.now().after(MINUTE), ..waiting };
    assert_eq!(claim(trial, &["ops"]).await, std::slice::from_ref(&begun));
    assert_eq!(notice(trial, &key).await, begun);
}

pub async fn a_notice_is_never_due_early(trial: &Trial) {
    let run = trial.run(1, "s");
    let notices = vec![opened(&run, 1, "ops")];
    let at = trial.clock.now().after(MINUTE);
    trial.ok(Append { at, notices, ..trial.opening(&run, vec![trial.pause(&run, 1)]) }).await;
    trial.clock.advance(MINUTE - MILLISECOND);
    assert_eq!(claim(trial, &["ops"]).await, []);
    trial.clock.advance(MILLISECOND);
    assert_eq!(claim(trial, &["ops"]).await.len(), 1);
}

pub async fn a_refused_append_leaves_no_notice(trial: &Trial) {
    let run = trial.run(1, "s");
    trial.begin(&run).await;
    let append = Append { notices: vec![opened(&run, 1, "ops")], ..trial.append(&run, 7, [sample::said("x")]) };
    trial.refused(append, AppendError::Conflict { run: run.id, revision: 1 }).await;
    assert_eq!(list(trial, NoticeFilter::default()).await, []);
    assert_eq!(claim(trial, &["ops"]).await, []);
}

pub async fn a_notice_that_is_there_is_left_as_it_is(trial: &Trial) {
    let run = begin_telling(trial, 1, &["ops"]).await;
    let key = opened(&run, 1, "ops");
    claim(trial, &["ops"]).await;
    assert!(settle(trial, &key, 1, delivered("here")).await);
    let before = notice(trial, &key).await;
    trial.clock.advance(MINUTE);
    let twice = vec![key.clone(), key.clone()];
    trial.ok(Append { notices: twice, ..trial.append(&run, 1, [sample::said("x")]) }).await;
    assert_eq!(notice(trial, &key).await, before);
    assert_eq!(claim(trial, &["ops"]).await, []);
}

pub async fn who_is_told_twice_in_an_append_has_one_notice(trial: &Trial) {
    let run = trial.run(1, "s");
    let key = opened(&run, 1, "ops");
    let notices = vec![key.clone(), key.clone()];
    trial.ok(Append { notices, ..trial.opening(&run, vec![trial.pause(&run, 1)]) }).await;
    assert_eq!(keys(&list(trial, NoticeFilter::default()).await), std::slice::from_ref(&key));
    assert_eq!(keys(&claim(trial, &["ops"]).await), [key]);
}

pub async fn a_claimed_notice_is_left_alone_until_its_hold_is_over(trial: &Trial) {
    begin_telling(trial, 1, &["ops"]).await;
    assert_eq!(claim(trial, &["ops"]).await[0].attempts, 1);
    assert_eq!(claim(trial, &["ops"]).await, []);
    trial.clock.advance(MINUTE - MILLISECOND);
    assert_eq!(claim(trial, &["ops"]).await, []);
    trial.clock.advance(MILLISECOND);
    assert_eq!(claim(trial, &["ops"]).await[0].attempts, 2);
}

pub async fn what_came_of_an_attempt_is_kept(trial: &Trial) {
    let run = begin_telling(trial, 1, &["a", "b", "c"]).await;
    claim(trial, &["a", "b", "c"]).await;
    trial.clock.advance(MILLISECOND);
    let now = trial.clock.now();
    let receipt = "C024/1699.5 \u{202e}ä\n\"'\\%$";
    let why = "the server said 500: nö";
    assert!(settle(trial, &opened(&run, 1, "a"), 1, delivered(receipt)).await);
    assert!(settle(trial, &opened(&run, 1, "b"), 1, NoticeOutcome::Failed { why: why.to_owned() }).await);
    assert!(settle(trial, &opened(&run, 1, "c"), 1, NoticeOutcome::Delivered { receipt: None }).await);
    for (destination, state) in [
        ("a", NoticeState::Delivered { receipt: Some(receipt.to_owned()) }),
        ("b", NoticeState::Failed { why: why.to_owned() }),
        ("c", NoticeState::Delivered { receipt: None }),
    ] {
        let key = opened(&run, 1, destination);
        assert_eq!(notice(trial, &key).await, NoticeRow { key, state, attempts: 1, at: now });
    }
    trial.clock.advance(MINUTE * 10_000);
    assert_eq!(claim(trial, &["a", "b", "c"]).await, []);
}

pub async fn a_notice_that_is_tried_again_is_due_at_its_time(trial: &Trial) {
    let run = begin_telling(trial, 1, &["ops"]).await;
    let key = opened(&run, 1, "ops");
    claim(trial, &["ops"]).await;
    let due = trial.clock.now().after(MINUTE / 2);
    assert!(settle(trial, &key, 1, NoticeOutcome::Retry(due)).await);
    assert_eq!(
        notice(trial, &key).await,
        NoticeRow { key: key.clone(), state: NoticeState::Waiting, attempts: 1, at: due }
    );
    trial.clock.advance(MINUTE / 2 - MILLISECOND);
    assert_eq!(claim(trial, &["ops"]).await, []);
    trial.clock.advance(MILLISECOND);
    assert_eq!(claim(trial, &["ops"]).await[0].attempts, 2);
}

pub async fn a_late_answer_changes_nothing(trial: &Trial) {
    let run = begin_telling(trial, 1, &["ops"]).await;
    let key = opened(&run, 1, "ops");
    claim(trial, &["ops"]).await;
    trial.clock.advance(MINUTE);
    let second = claim(trial, &["ops"]).await;
    for late in [
        delivered("late"),
        NoticeOutcome::Failed { why: "late".to_owned() },
        NoticeOutcome::Retry(trial.clock.now().after(MINUTE * 9)),
    ] {
        assert!(!settle(trial, &key, 1, late).await);
        assert_eq!(notice(trial, &key).await, second[0]);
    }
    // An attempt that was never begun neither.
    assert!(!settle(trial, &key, 3, delivered("early")).await);
    assert!(settle(trial, &key, 2, delivered("second")).await);
    let told = notice(trial, &key).await;
    assert!(!settle(trial, &key, 2, NoticeOutcome::Failed { why: "again".to_owned() }).await);
    assert_eq!(notice(trial, &key).await, told);
    assert_eq!(told.state, NoticeState::Delivered { receipt: Some("second".to_owned()) });
}

pub async fn a_notice_that_nobody_wrote_is_not_there(trial: &Trial) {
    let run = begin_telling(trial, 1, &["ops"]).await;
    for key in [settled(&run, 1, "ops"), opened(&run, 2, "ops"), opened(&run, 1, "op")] {
        assert_eq!(trial.store.notice(&key).await.unwrap(), None);
        assert!(!settle(trial, &key, 0, delivered("x")).await);
    }
}

pub async fn the_end_of_a_pause_is_told_after_its_opening(trial: &Trial) {
    let run = begin_telling(trial, 1, &["ops"]).await;
    settle_telling(trial, &run, &["ops"]).await;
    let (first, second) = (opened(&run, 1, "ops"), settled(&run, 1, "ops"));
    assert_eq!(keys(&claim(trial, &["ops"]).await), std::slice::from_ref(&first));
    // While an attempt at the first is under way, and while the first waits for its next one.
    assert_eq!(claim(trial, &["ops"]).await, []);
    assert!(settle(trial, &first, 1, NoticeOutcome::Retry(trial.clock.now().after(MINUTE * 5))).await);
    trial.clock.advance(MINUTE * 2);
    assert_eq!(claim(trial, &["ops"]).await, []);
    trial.clock.advance(MINUTE * 3);
    assert_eq!(keys(&claim(trial, &["ops"]).await), std::slice::from_ref(&first));
    assert!(settle(trial, &first, 2, delivered("here")).await);
    assert_eq!(keys(&claim(trial, &["ops"]).await), [second]);
}

pub async fn an_opening_that_was_given_up_holds_up_nothing(trial: &Trial) {
    let run = begin_telling(trial, 1, &["ops"]).await;
    settle_telling(trial, &run, &["ops"]).await;
    claim(trial, &["ops"]).await;
    assert!(settle(trial, &opened(&run, 1, "ops"), 1, NoticeOutcome::Failed { why: "gone".to_owned() }).await);
    assert_eq!(keys(&claim(trial, &["ops"]).await), [settled(&run, 1, "ops")]);
}

pub async fn an_opening_holds_up_only_its_own_pause_and_destination(trial: &Trial) {
    let run = begin_telling(trial, 1, &["a", "b"]).await;
    claim(trial, &["a", "b"]).await;
    assert!(settle(trial, &opened(&run, 1, "b"), 1, delivered("b")).await);
    settle_telling(trial, &run, &["a", "b", "c"]).await;
    let other = begin_telling(trial, 2, &["a"]).await;
    // The destination `c` was never told of the opening, and is told of the end all the same.
    let expected = BTreeSet::from([settled(&run, 1, "b"), settled(&run, 1, "c"), opened(&other, 1, "a")]);
    assert_eq!(keys(&claim(trial, &["a", "b", "c"]).await).into_iter().collect::<BTreeSet<_>>(), expected);
}

pub async fn the_notice_that_is_due_longest_comes_first(trial: &Trial) {
    let mut expected = Vec::new();
    for (number, destination) in [(5, "b"), (4, "a"), (3, "b"), (2, "a"), (1, "b")] {
        let run = begin_telling(trial, number, &[destination]).await;
        expected.push(opened(&run, 1, destination));
        trial.clock.advance(MILLISECOND);
    }
    // Of one moment: in the order of their keys.
    let run = trial.run(6, "s6");
    let same = [opened(&run, 1, "a"), opened(&run, 1, "b"), opened(&run, 2, "a")];
    let pauses = vec![trial.pause(&run, 1), trial.pause(&run, 2)];
    let notices = same.iter().rev().cloned().collect();
    trial.ok(Append { notices, ..trial.opening(&run, pauses) }).await;
    expected.extend(same);
    let both = [to("b"), to("a"), to("b")];
    let mut found = Vec::new();
    for limit in [0, 1, 2, 3, 100] {
        let rows = trial.store.claim_notices(&both, limit, MINUTE).await.unwrap();
        assert!(rows.len() <= limit, "{limit}");
        found.extend(keys(&rows));
    }
    assert_eq!(found, expected);
}

pub async fn only_what_is_asked_for_is_claimed(trial: &Trial) {
    let run = begin_telling(trial, 1, &["ops", "ops2"]).await;
    assert_eq!(claim(trial, &[]).await, []);
    assert_eq!(claim(trial, &["op", "other"]).await, []);
    assert_eq!(keys(&claim(trial, &["ops2"]).await), [opened(&run, 1, "ops2")]);
    assert_eq!(keys(&claim(trial, &["ops", "ops2"]).await), [opened(&run, 1, "ops")]);
}

pub async fn notices_are_listed_by_destination_and_state_in_pages(trial: &Trial) {
    let mut all = BTreeSet::new();
    for number in 1..=4 {
        let run = begin_telling(trial, number, &["a", "b"]).await;
        settle_telling(trial, &run, &["a"]).await;
        all.extend([opened(&run, 1, "a"), opened(&run, 1, "b"), settled(&run, 1, "a")]);
    }
    for (index, row) in claim(trial, &["a", "b"]).await.into_iter().enumerate() {
        let outcome = match index % 3 {
            0 => delivered("x"),
            1 => NoticeOutcome::Failed { why: "y".to_owned() },
            _ => continue,
        };
        assert!(settle(trial, &row.key, 1, outcome).await);
    }
    let everything = list(trial, NoticeFilter::default()).await;
    assert_eq!(keys(&everything), all.into_iter().collect::<Vec<_>>());
    let statuses = [NoticeStatus::Waiting, NoticeStatus::Delivered, NoticeStatus::Failed];
    for status in statuses.into_iter().map(Some).chain([None]) {
        for destination in [Some(to("a")), Some(to("b")), Some(to("c")), None] {
            let mut filter = NoticeFilter { destination: destination.clone(), status, after: None, limit: 2 };
            let wanted: Vec<NoticeRow> = everything.iter().filter(|row| filter.admits(row)).cloned().collect();
            let mut found = Vec::new();
            loop {
                let page = list(trial, filter.clone()).await;
                assert!(page.len() <= 2);
                let Some(last) = page.last() else { break };
                filter.after = Some(last.key.clone());
                found.extend(page);
            }
            assert_eq!(found, wanted, "{status:?} {destination:?}");
        }
    }
}

pub async fn no_page_of_notices_is_longer_than_a_page_may_be(trial: &Trial) {
    let run = trial.run(1, "s");
    let count = u32::try_from(PAGE_MAX).unwrap() + 1;
    let notices = (1..=count).map(|number| opened(&run, number, "ops")).collect();
    trial.ok(Append { notices, ..trial.opening(&run, vec![trial.pause(&run, 1)]) }).await;
    let filter = NoticeFilter { limit: usize::MAX, ..NoticeFilter::default() };
    assert_eq!(list(trial, filter).await.len(), PAGE_MAX);
    let begun = trial.store.claim_notices(&[to("ops")], usize::MAX, MINUTE).await.unwrap();
    assert_eq!((begun.len(), claim(trial, &["ops"]).await.len()), (PAGE_MAX, 1));
}

pub async fn what_is_kept_of_an_attempt_is_bounded(trial: &Trial) {
    let run = begin_telling(trial, 1, &["a", "b", "c", "d"]).await;
    claim(trial, &["a", "b", "c", "d"]).await;
    let longest = "x".repeat(RECEIPT_BYTES_MAX);
    assert!(settle(trial, &opened(&run, 1, "a"), 1, delivered(&longest)).await);
    assert!(settle(trial, &opened(&run, 1, "b"), 1, delivered(&format!("{longest}x"))).await);
    assert!(settle(trial, &opened(&run, 1, "c"), 1, delivered("nul\0")).await);
    let why = format!("\0{}", "ä".repeat(NOTICE_WHY_BYTES_MAX));
    assert!(settle(trial, &opened(&run, 1, "d"), 1, NoticeOutcome::Failed { why }).await);
    let mut states = Vec::new();
    for destination in ["a", "b", "c", "d"] {
        states.push(notice(trial, &opened(&run, 1, destination)).await.state);
    }
    let why = format!(" {}", "ä".repeat((NOTICE_WHY_BYTES_MAX - 1) / 2));
    let kept = |receipt| NoticeState::Delivered { receipt };
    assert_eq!(states, [kept(Some(longest)), kept(None), kept(None), NoticeState::Failed { why }]);
}

pub async fn of_many_claims_each_notice_goes_to_one(trial: &Trial) {
    let mut expected = Vec::new();
    for number in 1..=20 {
        let run = begin_telling(trial, number, &["ops"]).await;
        expected.push(opened(&run, 1, "ops"));
    }
    let claims: Vec<_> = (0..32)
        .map(|_| {
            let store = Arc::clone(&trial.store);
            tokio::spawn(async move { store.claim_notices(&[to("ops")], 2, MINUTE).await.unwrap() })
        })
        .collect();
    let mut begun = Vec::new();
    for claim in claims {
        begun.extend(claim.await.unwrap());
    }
    // Whoever came while another was taking may have left with less than there was.
    begun.extend(claim(trial, &["ops"]).await);
    assert!(begun.iter().all(|row| row.attempts == 1), "{begun:?}");
    let mut found = keys(&begun);
    found.sort_unstable();
    assert_eq!(found, expected);
}
