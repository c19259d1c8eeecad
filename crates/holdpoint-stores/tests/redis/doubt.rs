//! Writes whose answer is lost for longer than the store asks: the runtime finds out what became of them.

use std::sync::Arc;
use std::time::Duration;

use holdpoint_stores::redis::RedisStore;
use holdpoint_testkit::conformance::{Trial, UnderTest, retention};
use holdpoint_testkit::crash::lost::{Road, everything_comes_true_once};
use holdpoint_testkit::servers::{Proxy, When};

use crate::database::Database;

const SCRIPT: &[u8] = b"EVALSHA\r\n";
const DONE: &[u8] = b":1\r\n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_whose_connection_is_lost_at_any_write_goes_on_by_itself_and_nothing_happens_twice() {
    let database = Database::new().await;
    let proxy = Proxy::to(database.socket()).await;
    let mut options = database.options();
    options.patience = Duration::from_secs(2);
    let store = RedisStore::open_with(&database.by_way_of(proxy.address), options).await.unwrap();
    let road = Road { store: Arc::new(store), proxy: &proxy, commit: SCRIPT, committed: DONE, turned_away: 20 };
    everything_comes_true_once(&road, "approve").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_whose_removal_is_cut_off_is_whole_or_gone() {
    for when in [When::Before, When::After(DONE)] {
        let database = Database::new().await;
        let proxy = Proxy::to(database.socket()).await;
        let trial = Trial::new(async |clock| {
            let address = database.by_way_of(proxy.address);
            let store = RedisStore::open_with(&address, database.options()).await.unwrap();
            UnderTest::new(store.going_by(clock))
        });
        let trial = trial.await;
        retention::is_whole_or_gone(&trial, || proxy.cut_at(SCRIPT, 0, when, false)).await;
        assert_eq!(proxy.cuts(), 1);
    }
}
