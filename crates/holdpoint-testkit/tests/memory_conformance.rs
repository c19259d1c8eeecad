//! The memory store passes the suite first: it is what the other stores are held against.

use std::sync::Arc;

use holdpoint_runtime::memory::MemoryStore;
use holdpoint_runtime::ports::clock::Clock;
use holdpoint_testkit::conformance::UnderTest;

async fn empty(clock: Arc<dyn Clock>) -> UnderTest {
    UnderTest::new(MemoryStore::new(clock))
}

holdpoint_testkit::store_conformance!(empty);
