//! What goes in comes out: bytes, names, numbers, definitions.
#![expect(missing_docs, reason = "each case is named by the sentence that it checks")]
#![expect(clippy::unwrap_used, reason = "a case is a test")]

use std::sync::Arc;
use std::time::Duration;

use holdpoint_core::event::RunEvent;
use holdpoint_core::json::Digest;
use holdpoint_core::record;
use holdpoint_core::time::Timestamp;
use holdpoint_runtime::ports::store::{Append, LeaseChange, PauseFilter, PauseRow};

use super::{Trial, sample};

pub async fn odd_arguments_come_back_byte_for_byte(trial: &Trial) {
    let deep = format!("{}1{}", "[".repeat(60), "]".repeat(60));
    let texts = [
        r#"{"a\u0000b":"\u0000","c":"\u001f\u007f\\\"\/"}"#,
        "{\"ключ\":\"значение\",\"😀\":\"👩‍👩‍👧‍👧\",\"e\u{301}\":\"é\",\"rtl\":\"\u{202e}abc\"}",
        r#"{"huge":123456789012345678901234567890123456789012345678901234567890,"tiny":1e-400,"big":1e400}"#,
        r#"{"max":18446744073709551615,"over":18446744073709551616,"min":-9223372036854775808,"zero":-0}"#,
        r#"{"pi":3.141592653589793238462643383279,"tenth":0.1000000000000000055511151231257827,"e":1E+2}"#,
        r#"{"quote":"it's; DROP TABLE run; --","percent":"%_*?","empty":"","null":null,"line":"\u2028\u2029"}"#,
        deep.as_str(),
        "\"\"",
        "null",
    ];
    let run = trial.run(1, "s");
    trial.begin(&run).await;
    for (expected, text) in (1..).zip(texts) {
        let events: Arc<[RunEvent]> = [sample::replied(sample::json(text)), sample::said(text)].into();
        trial.ok(Append { events: Arc::clone(&events), ..trial.append(&run, expected, []) }).await;
        let read = trial.store.load(run.id, expected).await.unwrap().unwrap().entries;
        assert_eq!(read[0].events, events, "{text}");
        assert_eq!(record::encode(&read[0].events), record::encode(&events), "{text}");
    }
    let listed = trial.entries("s").await;
    let loaded = trial.load(run.id).await.entries;
    assert_eq!(listed.into_iter().map(|(_, entry)| entry).collect::<Vec<_>>(), loaded);
}

pub async fn a_mebibyte_of_arguments_comes_back_byte_for_byte(trial: &Trial) {
    let run = trial.run(1, "s");
    trial.begin(&run).await;
    let long = "é\\u0000x".repeat(1_048_576 / 9);
    let events: Arc<[RunEvent]> = [sample::replied(sample::json(&format!("{{\"text\":\"{long}\"}}")))].into();
    let bytes = record::encode(&events);
    assert!(bytes.len() >= 1_048_576, "{}", bytes.len());
    trial.ok(Append { events: Arc::clone(&events), ..trial.append(&run, 1, []) }).await;
    // Its neighbours are none the worse.
    trial.ok(trial.append(&run, 2, [sample::said("small")])).await;
    let entries = trial.load(run.id).await.entries;
    assert_eq!(record::encode(&entries[1].events), bytes);
    assert_eq!(*entries[2].events, [sample::said("small")]);
}

pub async fn odd_names_come_back_as_they_were(trial: &Trial) {
    let longest = "é".repeat(128);
    let odd = ["O'Brien; DROP TABLE run; --", "{a}:b:*", "😀", " blank ", "\"quoted\"", longest.as_str()];
    for (number, name) in (1..).zip(odd) {
        let agent: String = name.chars().take(60).collect();
        let run = trial.run_of(number, name, &format!("{agent}/transfer_to_x"));
        let owner = name.to_owned();
        let lease = LeaseChange::Take { owner: owner.clone(), duration: Duration::from_secs(60) };
        let pauses = vec![trial.pause(&run, 1)];
        trial.ok(Append { lease, ..trial.opening(&run, pauses) }).await;
        let loaded = trial.load(run.id).await;
        assert_eq!((&loaded.session, &loaded.agent), (&run.session, &run.agent));
        assert_eq!(loaded.lease.map(|lease| lease.owner), Some(owner));
        let filter = PauseFilter { session: Some(run.session.clone()), ..PauseFilter::open() };
        let listed = trial.store.list_pauses(&filter).await.unwrap();
        assert_eq!(listed, [PauseRow { group: 1, ..trial.pause(&run, 1) }]);
    }
}

pub async fn the_largest_times_and_numbers_come_back(trial: &Trial) {
    for (number, at) in [(1, Timestamp::from_millis(0)), (2, Timestamp::MAX)] {
        let run = trial.run(number, &format!("s{number}"));
        let row = PauseRow { opened_at: at, expires_at: Some(Timestamp::MAX), ..trial.pause(&run, u32::MAX) };
        trial.ok(Append { at, ..trial.opening(&run, vec![row.clone()]) }).await;
        assert_eq!(trial.load(run.id).await.entries[0].at, at);
        let filter = PauseFilter { session: Some(run.session.clone()), ..PauseFilter::open() };
        assert_eq!(trial.store.list_pauses(&filter).await.unwrap(), [PauseRow { group: 1, ..row }]);
    }
    assert_eq!(trial.store.next_deadline().await.unwrap(), Some(Timestamp::MAX));
    let lease = trial.store.claim(sample::run_id(1), "ana", Duration::MAX).await.unwrap();
    assert_eq!(lease.until, Timestamp::MAX);
}

pub async fn definitions_come_back_and_are_kept_once(trial: &Trial) {
    let bytes: Arc<[u8]> = [0, 255, b'{', 10, 0].repeat(20_000).into();
    let digest = Digest::of(&bytes);
    for number in 1..=3 {
        let run = trial.run(number, &format!("s{number}"));
        let definitions = vec![(digest, Arc::clone(&bytes)), (digest, Arc::clone(&bytes))];
        trial.ok(Append { definitions, ..trial.first(&run) }).await;
        assert_eq!(trial.store.definition(&digest).await.unwrap().as_deref(), Some(&*bytes));
    }
    let empty: Arc<[u8]> = [].into();
    let run = trial.run(1, "s1");
    let definitions = vec![(Digest::of(&empty), Arc::clone(&empty))];
    trial.ok(Append { definitions, ..trial.append(&run, 1, [sample::said("x")]) }).await;
    assert_eq!(trial.store.definition(&Digest::of(&empty)).await.unwrap(), Some(empty));
}

pub async fn an_unknown_definition_is_not_there(trial: &Trial) {
    assert_eq!(trial.store.definition(&Digest::of(b"nothing")).await.unwrap(), None);
}

pub async fn what_was_read_does_not_change_with_the_store(trial: &Trial) {
    let run = trial.run(1, "s");
    trial.begin_paused(&run, 1).await;
    let before = trial.load(run.id).await;
    let rows = trial.store.list_pauses(&PauseFilter::open()).await.unwrap();
    trial.ok(trial.append(&run, 1, [sample::decided(1)])).await;
    assert_eq!((before.revision, before.entries.len(), rows.len()), (1, 1, 1));
    assert_eq!(trial.load(run.id).await.entries[..1], before.entries);
}

pub async fn the_store_says_what_it_promises(trial: &Trial) {
    let durability = trial.store.durability();
    assert!(!durability.store.is_empty() && !durability.settings.is_empty());
    assert_eq!(trial.store.now(), trial.clock.now());
}
