//! What only a file can go through: being closed and opened, shared, damaged, filled up, written by a newer version.
#![cfg(feature = "sqlite")]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use holdpoint_runtime::Runtime;
use holdpoint_runtime::notices::Dispatcher;
use holdpoint_runtime::ports::clock::{Clock, SystemClock};
use holdpoint_runtime::ports::notifier::{NoticeKey, NoticeKind, Notifier};
use holdpoint_runtime::ports::store::{
    Append, AppendError, PauseFilter, PauseRow, RunStatus, Store, StoreFault, StoreFaultKind,
};
use holdpoint_runtime::worker::Worker;
use holdpoint_stores::sqlite::{SqliteOptions, SqliteStore};
use holdpoint_testkit::conformance::{Trial, UnderTest, sample};
use holdpoint_testkit::outbox;
use rusqlite::Connection;
use tempfile::TempDir;

/// A folder for a file, and a trial whose store is in memory: it says what to append.
struct Desk {
    folder: TempDir,
    trial: Trial,
}

impl Desk {
    async fn new() -> Self {
        async fn script(clock: Arc<dyn Clock>) -> UnderTest {
            UnderTest::new(holdpoint_runtime::memory::MemoryStore::new(clock))
        }
        Self { folder: tempfile::tempdir().expect("a folder"), trial: Trial::new(script).await }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("holdpoint.db")
    }

    fn open(&self) -> SqliteStore {
        self.try_open().unwrap_or_else(|fault| panic!("{fault}: {:?}", fault.source))
    }

    fn try_open(&self) -> Result<SqliteStore, StoreFault> {
        SqliteStore::open(self.path(), self.trial.clock.shared())
    }

    /// Changes the file behind the store's back.
    fn meddle(&self, sql: &str) {
        Connection::open(self.path()).expect("the file").execute_batch(sql).expect("the change");
    }

    /// The files as they lie on the disk.
    fn bytes(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let read = |path: PathBuf| std::fs::read(&path).map(|bytes| (path, bytes)).ok();
        let wal = PathBuf::from(format!("{}-wal", self.path().display()));
        [self.path(), wal].into_iter().filter_map(read).filter(|(_, bytes)| !bytes.is_empty()).collect()
    }
}

fn kind_of(fault: Result<SqliteStore, StoreFault>) -> StoreFaultKind {
    fault.err().expect("the file is refused").kind
}

fn fault_of<T: std::fmt::Debug>(answer: Result<T, AppendError>) -> StoreFaultKind {
    match answer.expect_err("a fault") {
        AppendError::Fault(fault) => fault.kind,
        refusal => panic!("a fault expected, not: {refusal}"),
    }
}

#[tokio::test]
async fn everything_is_there_after_the_file_is_opened_again() {
    let desk = Desk::new().await;
    let run = desk.trial.run(1, "s");
    let store = desk.open();
    store.append(desk.trial.opening(&run, vec![desk.trial.pause(&run, 1)])).await.unwrap();
    store.append(desk.trial.append(&run, 1, [sample::said("more")])).await.unwrap();
    let before = store.load(run.id, 0).await.unwrap().unwrap();
    let pauses = store.list_pauses(&PauseFilter::open()).await.unwrap();
    drop(store);
    let store = desk.open();
    assert_eq!(store.load(run.id, 0).await.unwrap().unwrap().entries, before.entries);
    assert_eq!(store.list_pauses(&PauseFilter::open()).await.unwrap(), pauses);
    let appended = store.append(desk.trial.append(&run, 2, [sample::said("and more")])).await.unwrap();
    assert_eq!((appended.revision, appended.seq), (3, 4));
}

#[tokio::test]
async fn closing_leaves_one_file() {
    let desk = Desk::new().await;
    let store = desk.open();
    store.append(desk.trial.first(&desk.trial.run(1, "s"))).await.unwrap();
    store.claimable(9).await.unwrap();
    drop(store);
    let files: Vec<_> = std::fs::read_dir(desk.folder.path()).unwrap().map(|file| file.unwrap().file_name()).collect();
    assert_eq!(files, ["holdpoint.db"]);
}

#[tokio::test]
async fn a_write_that_nobody_waits_for_is_finished_before_the_file_is_closed() {
    let desk = Desk::new().await;
    let store = desk.open();
    let run = desk.trial.run(1, "s");
    store.append(desk.trial.first(&run)).await.unwrap();
    for expected in 1..50 {
        let mut append = store.append(desk.trial.append(&run, expected, [sample::said("x")]));
        // Queued, and then forgotten by whoever asked.
        let _ = futures_util::poll!(&mut append);
    }
    drop(store);
    assert_eq!(desk.open().load(run.id, 0).await.unwrap().unwrap().revision, 50);
}

#[tokio::test]
async fn a_file_of_a_newer_version_is_refused_and_left_as_it_is() {
    let desk = Desk::new().await;
    desk.open().append(desk.trial.first(&desk.trial.run(1, "s"))).await.unwrap();
    desk.meddle("INSERT INTO migration VALUES (1000, x'00', 0); CREATE TABLE from_the_future (x)");
    let before = desk.bytes();
    assert_eq!(kind_of(desk.try_open()), StoreFaultKind::Newer);
    assert!(desk.bytes() == before, "the file was changed");
}

#[tokio::test]
async fn a_newer_file_with_an_unfinished_log_is_left_as_it_is() {
    let desk = Desk::new().await;
    drop(desk.open());
    // As after a crash of its writer: the newest pages are still in the log, and nobody has the file open.
    let writer = Connection::open(desk.path()).unwrap();
    writer.execute_batch("INSERT INTO migration VALUES (1000, x'00', 0)").unwrap();
    let crashed = Desk::new().await;
    for (path, bytes) in desk.bytes() {
        std::fs::write(crashed.folder.path().join(path.file_name().unwrap()), bytes).unwrap();
    }
    let before = crashed.bytes();
    assert_eq!(before.len(), 2);
    assert_eq!(kind_of(crashed.try_open()), StoreFaultKind::Newer);
    assert!(crashed.bytes() == before, "the file was changed");
}

#[tokio::test]
async fn a_file_of_the_first_version_is_brought_up_to_date_and_its_sessions_get_their_owners() {
    let desk = Desk::new().await;
    let run = desk.trial.run(1, "s");
    desk.open().append(desk.trial.first(&run)).await.unwrap();
    desk.meddle(
        "DROP INDEX session_by_owner; ALTER TABLE session DROP COLUMN began_by; DROP TABLE audit; DROP TABLE audit_head;
         DROP TABLE notice;
         INSERT INTO session (name) VALUES ('without an entry');
         ALTER TABLE entry RENAME TO later; DROP INDEX entry_of_session;
         CREATE TABLE entry (key INTEGER PRIMARY KEY, run INTEGER NOT NULL, revision INTEGER NOT NULL,
                             pause_groups INTEGER NOT NULL, at INTEGER NOT NULL, body BLOB NOT NULL) STRICT;
         INSERT INTO entry SELECT key, run, revision, pause_groups, at, body FROM later; DROP TABLE later;
         DELETE FROM migration WHERE number > 1",
    );
    let store = desk.open();
    assert_eq!(store.session(&run.session).await.unwrap().unwrap().owner, sample::ana());
    assert_eq!(store.audit(0, 9).await.unwrap(), []);
    store.append(desk.trial.append(&run, 1, [sample::said("more")])).await.unwrap();
    let revisions: Vec<u64> =
        store.load(run.id, 0).await.unwrap().unwrap().entries.iter().map(|e| e.revision).collect();
    assert_eq!(revisions, [1, 2]);
    let by_owner: String = Connection::open(desk.path())
        .unwrap()
        .query_row("SELECT began_by FROM session WHERE name = 'without an entry'", [], |row| row.get(0))
        .unwrap();
    assert_eq!(by_owner, "local");
}

#[tokio::test]
async fn an_audit_record_that_was_changed_or_left_out_is_noticed() {
    for (meddling, broken_at) in [
        ("UPDATE audit SET body = replace(body, 'approve', 'deny') WHERE n = 3", 3),
        ("UPDATE audit SET body = 'nonsense' WHERE n = 3", 3),
        ("UPDATE audit SET hash = zeroblob(32) WHERE n = 3", 3),
        ("DELETE FROM audit WHERE n = 3", 4),
        ("DELETE FROM audit WHERE n = 1", 2),
        ("DELETE FROM audit WHERE n = 5", 5),
        ("DELETE FROM audit WHERE n > 2", 3),
        ("DELETE FROM audit", 1),
        ("UPDATE audit_head SET hash = zeroblob(32)", 5),
        ("UPDATE audit_head SET n = 3", 4),
        ("DELETE FROM audit_head", 1),
    ] {
        let desk = Desk::new().await;
        let run = desk.trial.run(1, "s");
        let store = desk.open();
        store.append(desk.trial.first(&run)).await.unwrap();
        for expected in 1..=5 {
            let audit = vec![sample::note(&run.session, run.id)];
            let append = desk.trial.append(&run, expected, [sample::said("x")]);
            store.append(Append { audit, ..append }).await.unwrap();
        }
        drop(store);
        let runtime = |store| Runtime::builder(Arc::new(store)).build();
        let check = runtime(desk.open()).verify_audit().await.unwrap();
        assert_eq!((check.records, check.broken_at), (5, None));
        desk.meddle(meddling);
        let check = runtime(desk.open()).verify_audit().await.unwrap();
        assert_eq!(check.broken_at, Some(broken_at), "{meddling}");
        assert!(!check.is_whole());
    }
}

#[tokio::test]
async fn records_that_were_cut_off_are_missed_also_after_others_were_written() {
    let desk = Desk::new().await;
    let run = desk.trial.run(1, "s");
    let store = desk.open();
    store.append(desk.trial.first(&run)).await.unwrap();
    let noting = |expected| {
        let audit = vec![sample::note(&run.session, run.id)];
        Append { audit, ..desk.trial.append(&run, expected, [sample::said("x")]) }
    };
    for expected in 1..=3 {
        store.append(noting(expected)).await.unwrap();
    }
    drop(store);
    desk.meddle("DELETE FROM audit WHERE n = 3");
    let store = desk.open();
    store.append(noting(4)).await.unwrap();
    let check = Runtime::builder(Arc::new(store)).build().verify_audit().await.unwrap();
    assert_eq!((check.records, check.broken_at, check.written), (2, Some(4), 4));
}

#[tokio::test]
async fn the_head_of_a_chain_that_was_begun_without_one_is_that_of_its_last_record() {
    let desk = Desk::new().await;
    let run = desk.trial.run(1, "s");
    let store = desk.open();
    store.append(desk.trial.first(&run)).await.unwrap();
    let audit = vec![sample::note(&run.session, run.id), sample::note(&run.session, run.id)];
    store.append(Append { audit, ..desk.trial.append(&run, 1, [sample::said("x")]) }).await.unwrap();
    let head = store.audit_head().await.unwrap();
    drop(store);
    desk.meddle("DROP TABLE audit_head; DROP TABLE notice; DELETE FROM migration WHERE number > 3");
    assert_eq!(desk.open().audit_head().await.unwrap(), head);
    assert_eq!(head.map(|(n, _)| n), Some(2));
}

#[tokio::test]
async fn a_run_that_cannot_be_read_does_not_keep_the_others_from_expiring() {
    let desk = Desk::new().await;
    let store = desk.open();
    let runs = [desk.trial.run(1, "s"), desk.trial.run(2, "t")];
    for run in &runs {
        let expires_at = Some(desk.trial.clock.now().after(Duration::from_secs(60)));
        let events = [
            sample::started(&run.session, &run.agent),
            sample::replied(sample::json("{}")),
            sample::opened(1, expires_at),
        ];
        let pauses = vec![PauseRow { expires_at, ..desk.trial.pause(run, 1) }];
        let append = desk.trial.append(run, 0, events);
        store.append(Append { status: RunStatus::Waiting, pauses, ..append }).await.unwrap();
    }
    drop(store);
    desk.meddle("UPDATE entry SET body = x'7b7d' WHERE key = (SELECT min(key) FROM entry)");
    desk.trial.clock.advance(Duration::from_secs(60));
    let runtime = Runtime::builder(Arc::new(desk.open())).clock(desk.trial.clock.shared()).build();
    let sweep = Worker::new(runtime.clone(), Vec::new()).sweep().await.unwrap();
    assert_eq!(sweep.expired, [runs[1].id]);
    assert_eq!((sweep.failed[0].0, sweep.failed[0].1.code()), (runs[0].id, "store_corrupt"));
    let sweep = Worker::new(runtime, Vec::new()).sweep().await.unwrap();
    assert_eq!(sweep.expired, [], "the good run's pause expired once");
}

#[tokio::test]
async fn a_run_that_cannot_be_read_does_not_keep_people_from_being_told_of_others() {
    let desk = Desk::new().await;
    let runtime = outbox::telling(Arc::new(desk.open()), &["ops"]).build();
    let bad = outbox::open_pause(&runtime, "s").await;
    let good = outbox::open_pause(&runtime, "t").await;
    drop(runtime);
    desk.meddle("UPDATE entry SET body = x'7b7d' WHERE key = (SELECT min(key) FROM entry)");
    let runtime = outbox::telling(Arc::new(desk.open()), &["ops"]).build();
    let (recorder, ops) = (outbox::Recorder::hearing(), outbox::destination("ops"));
    let notifier: Arc<dyn Notifier> = recorder.clone();
    let dispatcher = Dispatcher::new(runtime, [(ops.clone(), notifier)]).parallel_max(1);
    let swept = dispatcher.sweep().await.unwrap();
    let key = |pause| NoticeKey { pause, kind: NoticeKind::Opened, destination: ops.clone() };
    assert_eq!((swept.retried, swept.delivered), (vec![key(bad)], vec![key(good)]));
    assert_eq!(recorder.keys(), [(key(good), 1)]);
}

#[tokio::test]
async fn a_file_that_went_another_way_is_refused() {
    let desk = Desk::new().await;
    drop(desk.open());
    desk.meddle("UPDATE migration SET sha256 = zeroblob(32)");
    let before = desk.bytes();
    assert_eq!(kind_of(desk.try_open()), StoreFaultKind::Corrupt);
    assert!(desk.bytes() == before, "the file was changed");
}

#[tokio::test]
async fn what_is_no_store_is_refused_and_left_as_it_is() {
    let desk = Desk::new().await;
    desk.meddle("CREATE TABLE recipes (title TEXT)");
    let before = desk.bytes();
    assert_eq!(kind_of(desk.try_open()), StoreFaultKind::Corrupt);
    assert!(desk.bytes() == before, "the file was changed");

    std::fs::write(desk.path(), "dear diary, ".repeat(1_000)).unwrap();
    let before = desk.bytes();
    assert_eq!(kind_of(desk.try_open()), StoreFaultKind::Corrupt);
    assert!(desk.bytes() == before, "the file was changed");
}

#[tokio::test]
async fn what_cannot_be_a_file_is_unavailable() {
    let desk = Desk::new().await;
    let clock = SystemClock::shared();
    let nowhere = desk.folder.path().join("missing").join("holdpoint.db");
    for path in [nowhere.as_path(), desk.folder.path(), Path::new("")] {
        let fault = SqliteStore::open(path, Arc::clone(&clock)).err().expect("no store");
        assert_eq!(fault.kind, StoreFaultKind::Unavailable, "{}", path.display());
    }
}

#[cfg(unix)]
#[tokio::test]
async fn a_new_file_is_its_owners_alone() {
    use std::os::unix::fs::PermissionsExt;
    let desk = Desk::new().await;
    let store = desk.open();
    store.append(desk.trial.first(&desk.trial.run(1, "s"))).await.unwrap();
    for file in std::fs::read_dir(desk.folder.path()).unwrap().map(Result::unwrap) {
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{:?}", file.file_name());
    }
}

#[tokio::test]
async fn the_settings_that_durability_rests_on_are_told() {
    let desk = Desk::new().await;
    let durability = desk.open().durability();
    assert!(durability.survives_crash && durability.is_shared);
    assert!(durability.settings.ends_with("journal_mode=wal, synchronous=full"), "{}", durability.settings);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_may_begin_one_file_at_once() {
    for _ in 0..10 {
        let desk = Desk::new().await;
        let openings: Vec<_> = (0..4)
            .map(|_| {
                let (path, clock) = (desk.path(), desk.trial.clock.shared());
                std::thread::spawn(move || SqliteStore::open(path, clock).map(drop))
            })
            .collect();
        for opening in openings {
            opening.join().unwrap().unwrap_or_else(|fault| panic!("{fault}: {:?}", fault.source));
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_handles_on_one_file_have_one_winner_for_each_revision() {
    let desk = Desk::new().await;
    let stores = [Arc::new(desk.open()), Arc::new(desk.open())];
    let run = desk.trial.run(1, "s");
    stores[0].append(desk.trial.first(&run)).await.unwrap();
    for expected in 1..=40 {
        let race: Vec<_> = [0, 1, 0, 1]
            .map(|index: usize| {
                let append = desk.trial.append(&run, expected, [sample::said(&format!("store {index}"))]);
                let store = Arc::clone(&stores[index]);
                tokio::spawn(async move { store.append(append).await })
            })
            .into();
        let mut wins = 0;
        for racer in race {
            match racer.await.unwrap() {
                Ok(appended) => {
                    wins += 1;
                    assert_eq!((appended.revision, appended.seq), (expected + 1, expected + 1));
                }
                Err(AppendError::Conflict { revision, .. }) => assert_eq!(revision, expected + 1),
                Err(error) => panic!("{error}"),
            }
        }
        assert_eq!(wins, 1);
        // What one acknowledged, the other reads.
        for store in &stores {
            assert_eq!(store.load(run.id, 0).await.unwrap().unwrap().revision, expected + 1);
        }
    }
}

#[tokio::test]
async fn somebody_elses_lock_makes_the_store_unavailable_until_it_is_gone() {
    let desk = Desk::new().await;
    let mut options = SqliteOptions::default();
    options.busy_timeout = Duration::from_millis(20);
    let store = SqliteStore::open_with(desk.path(), desk.trial.clock.shared(), options).unwrap();
    let run = desk.trial.run(1, "s");
    let other = Connection::open(desk.path()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert_eq!(fault_of(store.append(desk.trial.first(&run)).await), StoreFaultKind::Unavailable);
    assert!(store.load(run.id, 0).await.unwrap().is_none(), "reading goes on");
    other.execute_batch("ROLLBACK").unwrap();
    store.append(desk.trial.first(&run)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writers_at_once_share_commits() {
    let desk = Desk::new().await;
    let store = Arc::new(desk.open());
    let writers: Vec<_> = (1..=64)
        .map(|number| {
            let run = desk.trial.run(number, &format!("s{number}"));
            let appends: Vec<_> =
                (0..20).map(|expected| desk.trial.append(&run, expected, [sample::said("x")])).collect();
            let store = Arc::clone(&store);
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
    let counts = store.counts();
    assert_eq!(counts.writes, 64 * 20);
    assert!(counts.commits * 4 < counts.writes, "{counts:?}");
    assert!(counts.commits * 256 >= counts.writes, "{counts:?}");
}

#[tokio::test]
async fn a_refused_neighbour_does_not_hurt_the_others_in_its_commit() {
    let desk = Desk::new().await;
    let store = desk.open();
    let (run, other) = (desk.trial.run(1, "s"), desk.trial.run(2, "t"));
    let appends = [
        desk.trial.first(&run),
        desk.trial.append(&run, 7, [sample::said("stale")]),
        desk.trial.append(&run, 1, [sample::said("good")]),
        desk.trial.append(&other, 3, [sample::said("unknown")]),
        desk.trial.first(&other),
    ];
    let answers = futures_util::future::join_all(appends.map(|append| store.append(append))).await;
    let accepted: Vec<bool> = answers.iter().map(Result::is_ok).collect();
    assert_eq!(accepted, [true, false, true, false, true]);
    assert_eq!(store.load(run.id, 0).await.unwrap().unwrap().revision, 2);
}

#[tokio::test]
async fn a_full_disk_is_told_and_the_store_goes_on_when_there_is_room() {
    let desk = Desk::new().await;
    let store = desk.open();
    let run = desk.trial.run(1, "s");
    store.append(desk.trial.first(&run)).await.unwrap();
    store.limit_pages(60).await.unwrap();
    let text = "x".repeat(20_000);
    let mut revision = 1;
    let kind = loop {
        match store.append(desk.trial.append(&run, revision, [sample::said(&text)])).await {
            Ok(appended) => revision = appended.revision,
            Err(error) => break fault_of::<()>(Err(error)),
        }
    };
    assert_eq!(kind, StoreFaultKind::Full);
    assert!(revision > 1, "some of it fitted");
    // Reading goes on, nothing acknowledged is missing, and it is still full.
    assert_eq!(store.load(run.id, 0).await.unwrap().unwrap().revision, revision);
    let again = desk.trial.append(&run, revision, [sample::said(&text)]);
    assert_eq!(fault_of(store.append(again.clone()).await), StoreFaultKind::Full);
    store.limit_pages(10_000).await.unwrap();
    assert_eq!(store.append(again).await.unwrap().revision, revision + 1);
    drop(store);
    assert_eq!(desk.open().load(run.id, 0).await.unwrap().unwrap().entries.len() as u64, revision + 1);
}

#[tokio::test]
async fn one_append_that_does_not_fit_leaves_its_neighbours_room() {
    let desk = Desk::new().await;
    let store = desk.open();
    let runs: Vec<_> = (1..=8).map(|number| desk.trial.run(number, &format!("s{number}"))).collect();
    for run in &runs {
        store.append(desk.trial.first(run)).await.unwrap();
    }
    store.limit_pages(80).await.unwrap();
    let huge = "x".repeat(500_000);
    let texts = ["a", "b", "c", &huge, "d", "e", "f", "g"];
    let appends = runs.iter().zip(texts).map(|(run, text)| desk.trial.append(run, 1, [sample::said(text)]));
    let answers = futures_util::future::join_all(appends.map(|append| store.append(append))).await;
    for (index, answer) in answers.into_iter().enumerate() {
        match index {
            3 => assert_eq!(fault_of(answer), StoreFaultKind::Full),
            _ => assert_eq!(answer.unwrap().revision, 2, "neighbour {index}"),
        }
    }
}

#[tokio::test]
async fn an_entry_that_cannot_be_read_names_its_run() {
    let desk = Desk::new().await;
    let (run, sound) = (desk.trial.run(1, "s"), desk.trial.run(2, "t"));
    let store = desk.open();
    store.append(desk.trial.first(&run)).await.unwrap();
    store.append(desk.trial.append(&run, 1, [sample::said("x")])).await.unwrap();
    store.append(desk.trial.first(&sound)).await.unwrap();
    desk.meddle("UPDATE entry SET body = CAST(substr(body, 1, length(body) - 4) AS BLOB) WHERE revision = 2");
    let fault = store.load(run.id, 0).await.unwrap_err();
    assert_eq!(fault.kind, StoreFaultKind::Corrupt);
    let why = fault.source.unwrap().to_string();
    assert!(why.contains(&format!("entry 2 of {}", run.id)), "{why}");
    assert_eq!(store.session_entries(&run.session, 1, 9).await.unwrap_err().kind, StoreFaultKind::Corrupt);
    // The others are none the worse, and what is sound of the run can still be read.
    assert_eq!(store.load(sound.id, 0).await.unwrap().unwrap().revision, 1);
    assert!(store.load(run.id, 2).await.unwrap().is_some());
}

#[tokio::test]
async fn a_missing_entry_is_noticed() {
    let desk = Desk::new().await;
    let run = desk.trial.run(1, "s");
    let store = desk.open();
    store.append(desk.trial.first(&run)).await.unwrap();
    store.append(desk.trial.append(&run, 1, [sample::said("x")])).await.unwrap();
    desk.meddle("DELETE FROM entry WHERE revision = 1");
    let fault = store.load(run.id, 0).await.unwrap_err();
    assert_eq!(fault.kind, StoreFaultKind::Corrupt);
    assert!(fault.source.unwrap().to_string().contains(&run.id.to_string()));
}

#[tokio::test]
async fn an_entry_in_a_newer_format_is_not_guessed_at() {
    let desk = Desk::new().await;
    let run = desk.trial.run(1, "s");
    let store = desk.open();
    store.append(desk.trial.first(&run)).await.unwrap();
    desk.meddle(r#"UPDATE entry SET body = CAST('{"v":999,"happenings":[]}' AS BLOB)"#);
    assert_eq!(store.load(run.id, 0).await.unwrap_err().kind, StoreFaultKind::Newer);
}
