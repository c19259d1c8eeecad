//! A server that has forgotten what it was told.

use holdpoint_runtime::ports::store::Store as _;

use crate::databases::remote::{Remote, SECOND};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_forgot_the_script_is_told_again() {
    let remote = Remote::new().await;
    let run = remote.begun().await;
    redis::cmd("SCRIPT").arg("FLUSH").query::<()>(&mut remote.database.connect()).unwrap();
    assert_eq!(remote.store.append(remote.second(&run)).await.unwrap(), SECOND);
}
