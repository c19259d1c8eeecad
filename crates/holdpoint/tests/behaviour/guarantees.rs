//! Guarantees about what surrounds a run: slow readers, full disks, stores that are not there.

use std::sync::Arc;

use crate::common::*;
use holdpoint::*;
use serde_json::json;

fn runner(store: Arc<dyn Store>, model: ScriptedModel) -> Runner {
    Runner::builder().store(store).model(Arc::new(model)).build()
}

fn delete_and_say(words: impl Into<String>) -> ScriptedModel {
    ScriptedModel::new([Reply::call("delete", json!({"path": "a"})), Reply::text(words)])
}

#[tokio::test]
async fn a_slow_reader_loses_words_and_no_event_and_holds_nobody_up() {
    // One character in a delta: far more of them than a reader may lag behind.
    let runner = Runner::in_memory(delete_and_say("word ".repeat(2_000)).chunk_chars_max(1));
    let effects = Effects::default();
    let agent = agent("Ops", [gated(&effects)]);
    let session = SessionId::new("talk").unwrap();
    let mut reader = runner.runtime().watch_session(&session, 1);

    let paused = runner.run(&agent, "delete a").session("talk").await.unwrap();
    runner.approve(&paused.pauses()[0]).await.unwrap();
    let done = runner.resume(&agent, paused.run_id()).await.unwrap();
    assert_eq!(text_of(&done).len(), 10_000);

    let (mut numbers, mut words) = (Vec::new(), 0);
    for item in reader.caught_up().await.unwrap() {
        match item {
            WatchItem::Event { seq, .. } => numbers.push(seq),
            WatchItem::Delta { .. } => words += 1,
        }
    }
    let journal = runner.runtime().read_journal(done.run_id()).await.unwrap();
    let events: usize = journal.iter().map(|entry| entry.events.len()).sum();
    assert_eq!(numbers, (1..=events as u64).collect::<Vec<_>>());
    assert!(words < 10_000, "{words} were kept for a reader that did not read");
}

#[tokio::test]
async fn a_full_disk_is_refused_clearly_and_loses_nothing_and_the_run_goes_on_afterwards() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(SqliteStore::open(folder.path().join("runs.db"), SystemClock::shared()).unwrap());
    let effects = Effects::default();
    let agent = agent("Ops", [gated(&effects)]);
    let runner = runner(store.clone(), delete_and_say("Gone."));
    let paused = runner.run(&agent, "delete a").await.unwrap();

    store.limit_pages(1).await.unwrap();
    let large = "no ".repeat(10_000);
    let full = runner.deny(&paused.pauses()[0]).message(&large).await.expect_err("there is no room for it");
    assert_eq!(full.code(), "store_full");
    assert!(runner.pause(paused.pauses()[0].id()).await.unwrap().pause.is_open());

    store.limit_pages(1_000_000).await.unwrap();
    runner.approve(&paused.pauses()[0]).await.unwrap();
    assert_eq!(text_of(&runner.resume(&agent, paused.run_id()).await.unwrap()), "Gone.");
    assert_eq!(effects.count(), 1);
}

#[test]
fn a_store_that_cannot_be_opened_is_an_error_at_the_start_and_is_left_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let open = |path| SqliteStore::open(path, SystemClock::shared()).map(|_| ()).map_err(|fault| fault.kind);

    assert_eq!(open(folder.path().to_path_buf()), Err(StoreFaultKind::Unavailable));
    assert_eq!(open(folder.path().join("no such folder/runs.db")), Err(StoreFaultKind::Unavailable));

    let text = folder.path().join("notes.txt");
    std::fs::write(&text, "These are my notes, and no store at all. ".repeat(100)).unwrap();
    let before = std::fs::read(&text).unwrap();
    assert_eq!(open(text.clone()), Err(StoreFaultKind::Corrupt));
    assert_eq!(std::fs::read(&text).unwrap(), before);
}

#[tokio::test]
async fn a_state_of_a_newer_version_is_refused_before_anything_is_read_from_it() {
    let agent = agent("Ops", [gated(&Effects::default())]);
    let runner = Runner::in_memory(delete_and_say("Gone."));
    let paused = runner.run(&agent, "delete a").await.unwrap();
    let json = runner.state(&agent, paused.run_id()).await.unwrap().to_json();
    let newer = json.replacen(r#""format":1"#, r#""format":2,"a field of that version":true"#, 1);
    assert_ne!(newer, json);
    let refusal = RunState::from_json(&agent, &newer).expect_err("format 2 is not known here");
    assert_eq!(refusal, Refusal::FormatNewer { found: 2, newest: 1 });
}
