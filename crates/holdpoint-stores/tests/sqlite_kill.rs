//! Processes that come to grief while they write: killed, or with a disk that fails under them. Nothing that they were
//! told was written may be missing. The tests start themselves as the processes that suffer.
#![cfg(all(feature = "sqlite", unix))]
#![expect(clippy::unwrap_used, reason = "the helpers of a test are part of it")]

#[path = "databases/killed.rs"]
mod killed;

use std::process::Command;

use holdpoint_runtime::ports::clock::SystemClock;
use holdpoint_runtime::ports::store::{AppendError, Store};
use holdpoint_stores::sqlite::SqliteStore;
use holdpoint_testkit::conformance::{Trial, sample};

use killed::{events, script};

const BROKEN_FILE: &str = "HOLDPOINT_BROKEN_FILE";

/// How the store is opened by those who kill.
mod database {
    use holdpoint_runtime::ports::clock::SystemClock;
    use holdpoint_stores::sqlite::SqliteStore;
    use tempfile::TempDir;

    /// The store under test.
    pub type TestedStore = SqliteStore;

    /// A file, removed at the end.
    pub struct Database(TempDir);

    impl Database {
        pub async fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        pub async fn store(&self) -> SqliteStore {
            Self::open_at(&self.place()).await
        }

        /// What another process needs to open it.
        pub fn place(&self) -> String {
            self.0.path().join("holdpoint.db").display().to_string()
        }

        /// A store at a place.
        pub async fn open_at(place: &str) -> SqliteStore {
            SqliteStore::open(place, SystemClock::shared()).expect("the file opens")
        }

        /// Whoever is dead holds nothing.
        pub async fn until_nobody_is_at(&self, _place: &str) {}
    }
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
