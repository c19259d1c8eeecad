//! Processes that come to grief while they write: killed, or with a disk that fails under them. Nothing that they were
//! told was written may be missing. The tests start themselves as the processes that suffer.
#![cfg(all(feature = "sqlite", unix))]
#![expect(clippy::unwrap_used, reason = "the helpers of a test are part of it")]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use holdpoint_core::event::RunEvent;
use holdpoint_core::ids::RunId;
use holdpoint_runtime::memory::MemoryStore;
use holdpoint_runtime::ports::clock::{Clock, SystemClock};
use holdpoint_runtime::ports::store::{AppendError, Store};
use holdpoint_stores::sqlite::SqliteStore;
use holdpoint_testkit::conformance::{RunPen, Trial, UnderTest, sample};

const FILE: &str = "HOLDPOINT_KILL_FILE";
const BROKEN_FILE: &str = "HOLDPOINT_BROKEN_FILE";
const WRITERS: u64 = 8;
const KILLS: usize = 12;

async fn script(clock: Arc<dyn Clock>) -> UnderTest {
    UnderTest::new(MemoryStore::new(clock))
}

/// What entry `revision` of a run says, so that a wrong one would be noticed.
fn events(run: RunId, revision: u64) -> [RunEvent; 2] {
    [sample::said(&format!("entry {revision} of {run}")), sample::said(&"x".repeat((revision % 7 * 300) as usize))]
}

/// The runs that are written: several in each session, so that their numbers interleave.
fn pens(trial: &Trial) -> Vec<RunPen> {
    let pen = |number| trial.run_of(number, &format!("session {}", number % 3), &format!("Agent {number}"));
    (1..=WRITERS).map(pen).collect()
}

/// The process that is killed: appends to its runs for ever, and says so after each acknowledgement.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_process_that_is_killed() {
    let Ok(file) = std::env::var(FILE) else { return };
    let trial = Arc::new(Trial::new(script).await);
    let store = Arc::new(SqliteStore::open(file, SystemClock::shared()).expect("the store"));
    let write = |run: RunPen| {
        let (store, trial) = (Arc::clone(&store), Arc::clone(&trial));
        tokio::spawn(async move {
            let mut revision = store.load(run.id, 0).await.unwrap().map_or(0, |run| run.revision);
            loop {
                let append = trial.append(&run, revision, events(run.id, revision + 1));
                revision = store.append(append).await.unwrap().revision;
                // In one write, so that a line is whole or not there.
                std::io::stdout().lock().write_all(format!("ack {} {revision}\n", run.id).as_bytes()).unwrap();
            }
        })
    };
    let writers: Vec<_> = pens(&trial).into_iter().map(write).collect();
    futures_util::future::join_all(writers).await;
}

#[tokio::test]
async fn a_killed_process_loses_nothing_that_was_acknowledged() {
    if std::env::var(FILE).is_ok() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("holdpoint.db");
    let trial = Trial::new(script).await;
    let mut acknowledged: BTreeMap<RunId, u64> = BTreeMap::new();
    for kill in 1..=KILLS {
        write_and_kill(&file, kill * 29 % 101 + 1, &mut acknowledged);
        let store = SqliteStore::open(&file, SystemClock::shared()).expect("the file opens again");
        for (run, revision) in &acknowledged {
            let loaded = store.load(*run, 0).await.unwrap().expect("the run is there");
            assert!(loaded.revision >= *revision, "kill {kill}: {run} lost entry {revision}");
            for entry in &loaded.entries {
                assert_eq!(*entry.events, events(*run, entry.revision), "kill {kill}");
            }
        }
        for session in 0..3 {
            check_numbers(&store, &format!("session {session}"), kill).await;
        }
    }
    assert_eq!(acknowledged.len() as u64, WRITERS);
    assert_eq!(
        acknowledged.keys().copied().collect::<Vec<_>>(),
        pens(&trial).iter().map(|pen| pen.id).collect::<Vec<_>>()
    );
}

/// Lets a process write until it has acknowledged so much, kills it, and notes what it said.
fn write_and_kill(file: &Path, acknowledgements: usize, acknowledged: &mut BTreeMap<RunId, u64>) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["the_process_that_is_killed", "--exact", "--nocapture"])
        .env(FILE, file)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    // What the pipe still holds after the kill was acknowledged as well.
    for (count, ack) in lines.filter(|line| line.starts_with("ack ")).enumerate() {
        if count == acknowledgements {
            child.kill().unwrap();
        }
        let Some((run, revision)) = ack["ack ".len()..].split_once(' ') else { continue };
        let (Ok(run), Ok(revision)) = (run.parse(), revision.parse()) else { continue };
        acknowledged.insert(run, revision);
    }
    let status = child.wait().unwrap();
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(9), "the process was killed, not done");
}

async fn check_numbers(store: &SqliteStore, session: &str, kill: usize) {
    let entries = store.session_entries(&sample::session(session), 1, usize::MAX).await.unwrap();
    entries.iter().fold(1, |next, (_, entry)| {
        assert_eq!(entry.seq, next, "kill {kill}: the numbers of {session} are dense");
        next + entry.events.len() as u64
    });
}

/// The process whose disk fails: appends until it may write no more, and says what it was told.
#[tokio::test]
async fn the_process_whose_disk_fails() {
    let Ok(file) = std::env::var(BROKEN_FILE) else { return };
    let trial = Trial::new(script).await;
    let store = SqliteStore::open(file, SystemClock::shared()).expect("the store");
    let run = trial.run(1, "s");
    let mut revision = 0;
    loop {
        let append = trial.append(&run, revision, events(run.id, revision + 1));
        match store.append(append.clone()).await {
            Ok(appended) => revision = appended.revision,
            Err(AppendError::Fault(fault)) => {
                let again = store.append(append).await.unwrap_err();
                let read = store.load(run.id, 0).await.unwrap_err();
                println!("told {revision} {} | {again} | {read}", fault.kind.code());
                return;
            }
            Err(refusal) => panic!("{refusal}"),
        }
    }
}

#[tokio::test]
async fn a_commit_that_may_not_have_reached_the_disk_is_told_as_unknown() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("holdpoint.db");
    // No file may grow beyond 500 KiB, and writing further is an error rather than death.
    let output = Command::new("sh")
        .args(["-c", "trap '' XFSZ; ulimit -f 1000; exec \"$0\" the_process_whose_disk_fails --exact --nocapture"])
        .arg(std::env::current_exe().unwrap())
        .env(BROKEN_FILE, &file)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let told = said.lines().find_map(|line| line.split_once("told ")).unwrap_or_else(|| panic!("{output:?}")).1;
    let (revision, told) = told.split_once(' ').unwrap();
    // Once nobody knows what the disk holds, the store neither writes nor reads on.
    assert_eq!(
        told,
        "store_unknown | the store could not append: it is not available | \
         the store could not load a run: it is not available"
    );
    let revision: u64 = revision.parse().unwrap();
    assert!(revision > 3, "{revision}");
    let store = SqliteStore::open(&file, SystemClock::shared()).expect("the file opens again");
    let loaded = store.load(sample::run_id(1), 0).await.unwrap().expect("the run is there");
    assert!((revision..=revision + 1).contains(&loaded.revision), "{revision}, {}", loaded.revision);
}
