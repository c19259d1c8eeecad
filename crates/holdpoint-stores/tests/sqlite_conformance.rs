//! The SQLite store passes the suite.
#![cfg(feature = "sqlite")]

use std::sync::Arc;

use holdpoint_runtime::ports::clock::Clock;
use holdpoint_stores::sqlite::SqliteStore;
use holdpoint_testkit::conformance::UnderTest;

async fn empty(clock: Arc<dyn Clock>) -> UnderTest {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let store = SqliteStore::open(folder.path().join("holdpoint.db"), clock).expect("a new store");
    UnderTest::new(store).keeping(folder)
}

holdpoint_testkit::store_conformance!(empty);
