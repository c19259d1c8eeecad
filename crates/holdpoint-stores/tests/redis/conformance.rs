//! The store passes the suite.

use std::sync::Arc;

use holdpoint_runtime::ports::clock::Clock;
use holdpoint_testkit::conformance::UnderTest;

use crate::database::Database;

async fn empty(clock: Arc<dyn Clock>) -> UnderTest {
    let database = Database::new().await;
    UnderTest::new(database.open(clock).await).keeping(database)
}

holdpoint_testkit::store_conformance!(empty);
