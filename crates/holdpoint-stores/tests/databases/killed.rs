//! A process that is killed in the middle of many writes at once. Nothing that it was told was written may be missing.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};
use std::sync::Arc;

use holdpoint_core::event::RunEvent;
use holdpoint_core::ids::RunId;
use holdpoint_runtime::memory::MemoryStore;
use holdpoint_runtime::ports::clock::Clock;
use holdpoint_runtime::ports::store::{Append, PAGE_MAX, Store};
use holdpoint_testkit::conformance::{RunPen, Trial, UnderTest, sample};

use crate::database::{Database, TestedStore};

const PLACE: &str = "HOLDPOINT_KILL_PLACE";
const WRITERS: u64 = 8;
const KILLS: usize = 12;

pub async fn script(clock: Arc<dyn Clock>) -> UnderTest {
    UnderTest::new(MemoryStore::new(clock))
}

/// What entry `revision` of a run says, so that a wrong one would be noticed.
pub fn events(run: RunId, revision: u64) -> [RunEvent; 2] {
    [sample::said(&format!("entry {revision} of {run}")), sample::said(&"x".repeat((revision % 7 * 300) as usize))]
}

/// The runs that are written: several in each session, so that their numbers interleave.
fn pens(trial: &Trial) -> Vec<RunPen> {
    let pen = |number| trial.run_of(number, &format!("session {}", number % 3), &format!("Agent {number}"));
    (1..=WRITERS).map(pen).collect()
}

/// Not a test of its own: appends to its runs for ever, and says so after each acknowledgement.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_process_that_is_killed() {
    let Ok(place) = std::env::var(PLACE) else { return };
    let trial = Arc::new(Trial::new(script).await);
    let store = Arc::new(Database::open_at(&place).await);
    let write = |run: RunPen| {
        let (store, trial) = (Arc::clone(&store), Arc::clone(&trial));
        tokio::spawn(async move {
            let mut revision = store.load(run.id, 0).await.unwrap().map_or(0, |run| run.revision);
            loop {
                let audit = vec![sample::note(&run.session, run.id)];
                let append = Append { audit, ..trial.append(&run, revision, events(run.id, revision + 1)) };
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
    let database = Database::new().await;
    let mut acknowledged: BTreeMap<RunId, u64> = BTreeMap::new();
    for kill in 1..=KILLS {
        let place = database.place();
        write_and_kill(&place, kill * 29 % 101 + 1, &mut acknowledged);
        database.until_nobody_is_at(&place).await;
        let store = database.store().await;
        let mut entries = 0;
        for (run, revision) in &acknowledged {
            let loaded = store.load(*run, 0).await.unwrap().expect("the run is there");
            assert!(loaded.revision >= *revision, "kill {kill}: {run} lost entry {revision}");
            for entry in &loaded.entries {
                assert_eq!(*entry.events, events(*run, entry.revision), "kill {kill}");
            }
            entries += loaded.entries.len();
        }
        for session in 0..3 {
            check_numbers(&store, &format!("session {session}"), kill).await;
        }
        check_audit(&store, kill, entries).await;
    }
    assert_eq!(acknowledged.len() as u64, WRITERS);
}

/// Lets a process write until it has acknowledged so much, kills it, and notes what it said.
fn write_and_kill(place: &str, acknowledgements: usize, acknowledged: &mut BTreeMap<RunId, u64>) {
    // The crate's name is no part of a test's.
    let module = module_path!().split_once("::").unwrap().1;
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([&format!("{module}::the_process_that_is_killed"), "--exact", "--nocapture"])
        .env(PLACE, place)
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

async fn check_numbers(store: &TestedStore, session: &str, kill: usize) {
    let entries = store.session_entries(&sample::session(session), 1, usize::MAX).await.unwrap();
    entries.iter().fold(1, |next, (_, entry)| {
        assert_eq!(entry.seq, next, "kill {kill}: the numbers of {session} are dense");
        next + entry.events.len() as u64
    });
}

/// The chain is whole, and has a record for each entry at least.
async fn check_audit(store: &TestedStore, kill: usize, entries: usize) {
    let mut last: Option<(u64, _)> = None;
    loop {
        let page = store.audit(last.map_or(0, |(n, _)| n), PAGE_MAX).await.unwrap();
        for record in &page {
            assert!(record.follows(last), "kill {kill}: record {} does not follow", record.n);
            last = Some((record.n, record.hash));
        }
        if page.len() < PAGE_MAX {
            break;
        }
    }
    assert_eq!(store.audit_head().await.unwrap(), last, "kill {kill}: the head is the last record");
    assert!(last.map_or(0, |(n, _)| n) >= entries as u64, "kill {kill}: fewer records than entries");
}
