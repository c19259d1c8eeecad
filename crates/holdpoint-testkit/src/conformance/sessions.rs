//! Sessions: one run of an agent at a time, dense numbers, and reading on from any of them.
#![expect(missing_docs, reason = "each case is named by the sentence that it checks")]
#![expect(clippy::unwrap_used, reason = "a case is a test")]

use std::sync::Arc;

use holdpoint_core::record::Entry;
use holdpoint_runtime::ports::store::{Append, AppendError, RunRow, RunStatus};

use super::{Trial, sample};

pub async fn an_agent_has_one_run_at_a_time_in_a_session(trial: &Trial) {
    let (first, second) = (trial.run(1, "s"), trial.run(2, "s"));
    trial.begin(&first).await;
    trial.refused(trial.first(&second), AppendError::SessionBusy { run: first.id }).await;
    assert!(trial.store.load(second.id, 0).await.unwrap().is_none());
}

pub async fn a_run_that_waits_keeps_the_session_busy(trial: &Trial) {
    let (first, second) = (trial.run(1, "s"), trial.run(2, "s"));
    trial.begin_paused(&first, 1).await;
    trial.refused(trial.first(&second), AppendError::SessionBusy { run: first.id }).await;
}

pub async fn another_agent_or_session_is_not_kept_waiting(trial: &Trial) {
    trial.begin(&trial.run_of(1, "s", "Support")).await;
    trial.begin(&trial.run_of(2, "s", "Billing")).await;
    trial.begin(&trial.run_of(3, "t", "Support")).await;
    assert_eq!(trial.store.session_runs(&sample::session("s"), 9).await.unwrap().len(), 2);
}

pub async fn a_finished_run_makes_room(trial: &Trial) {
    let (first, second) = (trial.run(1, "s"), trial.run(2, "s"));
    trial.begin(&first).await;
    trial.ok(Append { status: RunStatus::Finished, ..trial.append(&first, 1, [sample::finished()]) }).await;
    trial.begin(&second).await;
    // A run may also be over as soon as it begins.
    trial.ok(Append { status: RunStatus::Finished, ..trial.append(&second, 1, [sample::finished()]) }).await;
    let third = trial.run(3, "s");
    trial.ok(Append { status: RunStatus::Finished, ..trial.first(&third) }).await;
    trial.begin(&trial.run(4, "s")).await;
}

pub async fn a_finished_run_makes_room_for_its_own_agent_only(trial: &Trial) {
    let (ana, bob) = (trial.run_of(1, "s", "Ana"), trial.run_of(2, "s", "Bob"));
    trial.begin(&ana).await;
    trial.begin(&bob).await;
    trial.ok(Append { status: RunStatus::Finished, ..trial.append(&ana, 1, [sample::finished()]) }).await;
    let next = trial.first(&trial.run_of(3, "s", "Bob"));
    trial.refused(next, AppendError::SessionBusy { run: bob.id }).await;
    trial.begin(&trial.run_of(4, "s", "Ana")).await;
}

pub async fn a_finished_run_is_not_reopened_beside_another(trial: &Trial) {
    let (first, second) = (trial.run(1, "s"), trial.run(2, "s"));
    trial.ok(Append { status: RunStatus::Finished, ..trial.first(&first) }).await;
    trial.begin(&second).await;
    let again = trial.append(&first, 1, [sample::said("again")]);
    trial.refused(again.clone(), AppendError::SessionBusy { run: second.id }).await;
    trial.ok(Append { status: RunStatus::Finished, ..again }).await;
    // Once it is alone it may, and then it is the one that keeps others waiting.
    trial.ok(Append { status: RunStatus::Finished, ..trial.append(&second, 1, [sample::finished()]) }).await;
    trial.ok(trial.append(&first, 2, [sample::said("again")])).await;
    trial.refused(trial.first(&trial.run(3, "s")), AppendError::SessionBusy { run: first.id }).await;
}

pub async fn of_sixty_four_runs_that_begin_together_one_does(trial: &Trial) {
    let writers: Vec<_> = (1..=64)
        .map(|number| {
            let (store, append) = (Arc::clone(&trial.store), trial.first(&trial.run(number, "s")));
            tokio::spawn(async move { (append.run, store.append(append).await) })
        })
        .collect();
    let mut winners = Vec::new();
    let mut named = Vec::new();
    for writer in writers {
        match writer.await.unwrap() {
            (run, Ok(_)) => winners.push(run),
            (_, Err(AppendError::SessionBusy { run })) => named.push(run),
            (_, Err(error)) => panic!("a loser was told something else: {error}"),
        }
    }
    assert_eq!((winners.len(), named.len()), (1, 63));
    assert!(named.iter().all(|run| *run == winners[0]));
    assert_eq!(trial.entries("s").await.len(), 1);
}

pub async fn event_numbers_count_events_not_entries(trial: &Trial) {
    let run = trial.run(1, "s");
    trial.begin(&run).await;
    let three = trial.ok(trial.append(&run, 1, ["a", "b", "c"].map(sample::said))).await;
    let one = trial.ok(trial.append(&run, 2, [sample::said("d")])).await;
    assert_eq!((three.seq, one.seq), (2, 5));
}

pub async fn sessions_count_for_themselves(trial: &Trial) {
    let (here, there) = (trial.run(1, "here"), trial.run(2, "there"));
    trial.begin(&here).await;
    trial.ok(trial.append(&here, 1, [sample::said("more")])).await;
    assert_eq!(trial.begin(&there).await.seq, 1);
    assert_eq!(trial.ok(trial.append(&here, 2, [sample::said("more")])).await.seq, 3);
}

pub async fn numbers_are_dense_when_runs_of_a_session_write_at_once(trial: &Trial) {
    let writers: Vec<_> = (1..=16)
        .map(|number| {
            let run = trial.run_of(number, "s", &format!("Agent {number}"));
            let appends: Vec<Append> = (0..8)
                .map(|expected| {
                    let events = (0..=expected % 3).map(|_| sample::said("x"));
                    trial.append(&run, expected, events)
                })
                .collect();
            let store = Arc::clone(&trial.store);
            tokio::spawn(async move {
                let mut last = 0;
                for append in appends {
                    let seq = store.append(append).await.unwrap().seq;
                    assert!(seq > last, "a run's numbers go up");
                    last = seq;
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
    let entries = trial.entries("s").await;
    assert_eq!(entries.len(), 16 * 8);
    assert_dense(entries.iter().map(|(_, entry)| entry), 1);
}

fn assert_dense<'a>(entries: impl Iterator<Item = &'a Entry>, from: u64) -> u64 {
    entries.fold(from, |next, entry| {
        assert_eq!(entry.seq, next, "numbers have neither gap nor duplicate");
        next + entry.events.len() as u64
    })
}

pub async fn runs_are_listed_newest_first(trial: &Trial) {
    let session = sample::session("s");
    assert_eq!(trial.store.session_runs(&session, 9).await.unwrap(), []);
    // The ids go down while time goes on: the order is that of beginning.
    let runs = [9, 5, 3].map(|number| trial.run_of(number, "s", &format!("Agent {number}")));
    trial.begin(&runs[0]).await;
    trial.begin_paused(&runs[1], 1).await;
    trial.ok(Append { status: RunStatus::Finished, ..trial.first(&runs[2]) }).await;
    let row = |index: usize, status| RunRow { run: runs[index].id, agent: runs[index].agent.clone(), status };
    let all = [row(2, RunStatus::Finished), row(1, RunStatus::Waiting), row(0, RunStatus::Working)];
    assert_eq!(trial.store.session_runs(&session, 9).await.unwrap(), all);
    assert_eq!(trial.store.session_runs(&session, 2).await.unwrap(), all[..2]);
    assert_eq!(trial.store.session_runs(&session, 0).await.unwrap(), []);
}

pub async fn entries_are_listed_in_order_with_their_runs(trial: &Trial) {
    let (ana, bob) = (trial.run_of(1, "s", "Ana"), trial.run_of(2, "s", "Bob"));
    trial.begin(&ana).await;
    trial.begin(&bob).await;
    trial.ok(trial.append(&bob, 1, [sample::said("b")])).await;
    trial.ok(trial.append(&ana, 1, [sample::said("a")])).await;
    trial.begin(&trial.run(3, "elsewhere")).await;
    let listed: Vec<_> =
        trial.entries("s").await.iter().map(|(run, entry)| (*run, entry.revision, entry.seq)).collect();
    assert_eq!(listed, [(ana.id, 1, 1), (bob.id, 1, 2), (bob.id, 2, 3), (ana.id, 2, 4)]);
    let loaded = trial.load(bob.id).await.entries;
    let of_bob: Vec<Entry> =
        trial.entries("s").await.into_iter().filter(|(run, _)| *run == bob.id).map(|(_, entry)| entry).collect();
    assert_eq!(of_bob, loaded);
}

pub async fn a_run_is_loaded_whole_from_among_others(trial: &Trial) {
    // Three agents take turns in one session, and one of them has further runs afterwards.
    let runs = ["Ana", "Bob", "Cem"]
        .map(|agent| trial.run_of(agent.len() as u64 + u64::from(agent.as_bytes()[0]), "s", agent));
    for expected in 0..5 {
        for run in &runs {
            let text = format!("{} {expected}", run.agent);
            trial.ok(trial.append(run, expected, [sample::said(&text), sample::said("more")])).await;
        }
    }
    let end = |run| Append { status: RunStatus::Finished, ..trial.append(run, 5, [sample::finished()]) };
    trial.ok(end(&runs[0])).await;
    for number in 1..=3 {
        let later = trial.run_of(number, "s", "Ana");
        trial.ok(Append { status: RunStatus::Finished, ..trial.first(&later) }).await;
    }
    for (run, revision) in runs.iter().zip([6, 5, 5]) {
        for after in 0..=revision {
            let loaded = trial.store.load(run.id, after).await.unwrap().unwrap();
            let found: Vec<u64> = loaded.entries.iter().map(|entry| entry.revision).collect();
            assert_eq!(found, (after + 1..=revision).collect::<Vec<_>>(), "{} after {after}", run.agent);
            for entry in loaded.entries.iter().filter(|entry| entry.revision <= 5) {
                assert_eq!(entry.events[0], sample::said(&format!("{} {}", run.agent, entry.revision - 1)));
            }
        }
    }
}

pub async fn an_entry_is_listed_from_its_middle_on(trial: &Trial) {
    let run = trial.run(1, "s");
    trial.begin(&run).await;
    trial.ok(trial.append(&run, 1, ["2", "3", "4"].map(sample::said))).await;
    trial.ok(trial.append(&run, 2, ["5", "6"].map(sample::said))).await;
    for (from, expected) in [
        (0, vec![1, 2, 5]),
        (1, vec![1, 2, 5]),
        (2, vec![2, 5]),
        (3, vec![2, 5]),
        (4, vec![2, 5]),
        (5, vec![5]),
        (6, vec![5]),
        (7, vec![]),
        (u64::MAX, vec![]),
    ] {
        let entries = trial.store.session_entries(&run.session, from, 100).await.unwrap();
        let numbers: Vec<u64> = entries.iter().map(|(_, entry)| entry.seq).collect();
        assert_eq!(numbers, expected, "from {from}");
    }
}

pub async fn reading_on_from_the_last_number_has_neither_gap_nor_duplicate(trial: &Trial) {
    let run = trial.run(1, "s");
    trial.begin(&run).await;
    let writer = {
        let store = Arc::clone(&trial.store);
        let appends: Vec<Append> = (1..60)
            .map(|expected| trial.append(&run, expected, (0..=expected % 4).map(|_| sample::said("x"))))
            .collect();
        tokio::spawn(async move {
            for append in appends {
                store.append(append).await.unwrap();
            }
        })
    };
    let (mut next, mut entries) = (1, 0);
    while entries < 60 {
        let page = trial.store.session_entries(&run.session, next, 7).await.unwrap();
        assert!(page.len() <= 7);
        entries += page.len();
        next = assert_dense(page.iter().map(|(_, entry)| entry), next);
        tokio::task::yield_now().await;
    }
    writer.await.unwrap();
    assert!(trial.store.session_entries(&run.session, next, 7).await.unwrap().is_empty());
}

pub async fn names_that_look_alike_are_different_sessions(trial: &Trial) {
    // Composed and decomposed, upper and lower case, with a blank, with what SQL and Redis would read as patterns.
    let names = ["é", "e\u{301}", "case", "CASE", "case ", "ca_e", "ca%e", "ca*e", "'", "{case}", "0", "00"];
    for (number, name) in (1..).zip(names) {
        assert_eq!(trial.begin(&trial.run(number, name)).await.seq, 1, "{name:?}");
    }
    for (number, name) in (1..).zip(names) {
        let runs = trial.store.session_runs(&sample::session(name), 9).await.unwrap();
        assert_eq!(runs.iter().map(|row| row.run).collect::<Vec<_>>(), [sample::run_id(number)], "{name:?}");
    }
}

pub async fn the_last_numbers_of_many_sessions_are_told_at_once(trial: &Trial) {
    let (one, other) = (trial.run(1, "s"), trial.run(2, "t"));
    trial.begin(&one).await;
    trial.begin(&other).await;
    trial.ok(trial.append(&one, 1, [sample::said("a"), sample::said("b")])).await;
    let asked = ["s", "nobody used it", "t"].map(sample::session);
    let mut heads = trial.store.session_heads(&asked).await.unwrap();
    heads.sort();
    assert_eq!(heads, [(sample::session("s"), 3), (sample::session("t"), 1)]);
    assert_eq!(trial.store.session_heads(&[]).await.unwrap(), []);
}
