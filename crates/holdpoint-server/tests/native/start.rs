//! What keeps a server from starting, and says what to change.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use holdpoint_runtime::Runtime;
use holdpoint_runtime::ports::store::Store;
use holdpoint_server::access::Credentials;
use holdpoint_server::{ServerConfig, StartError, serve};

use crate::agents::{self, Effects};
use crate::health::broken;

async fn start(config: ServerConfig, store: Arc<dyn Store>) -> Result<holdpoint_server::Running, StartError> {
    serve(config, Runtime::builder(store).build(), agents::catalogue(&Effects::default())).await
}

async fn refused(config: ServerConfig) -> String {
    match start(config, broken::store()).await {
        Ok(_) => panic!("the server must not start"),
        Err(error) => error.to_string(),
    }
}

#[tokio::test]
async fn a_public_address_without_credentials_is_not_served() {
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:80"] {
        let said = refused(ServerConfig::solo(address.parse().unwrap())).await;
        assert!(said.contains("no credentials are configured"), "{said}");
    }
}

#[tokio::test]
async fn credentials_that_let_nobody_in_are_not_served() {
    let said = refused(ServerConfig::with_credentials("127.0.0.1:0".parse().unwrap(), Credentials::default())).await;
    assert!(said.contains("none are configured"), "{said}");
}

#[tokio::test]
async fn requester_and_approver_cannot_differ_where_there_is_only_one_person() {
    let config = ServerConfig { requester_may_approve: false, ..ServerConfig::solo("127.0.0.1:0".parse().unwrap()) };
    let said = refused(config).await;
    assert!(said.contains("the same person"), "{said}");
}

#[tokio::test]
async fn an_address_that_is_taken_is_named() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let said = refused(ServerConfig::solo(address)).await;
    assert!(said.contains(&address.to_string()), "{said}");
}

#[tokio::test]
async fn a_store_out_of_order_keeps_the_server_from_starting() {
    let store = broken::store();
    store.is_broken.store(true, Ordering::SeqCst);
    let started = start(ServerConfig::solo("127.0.0.1:0".parse().unwrap()), store).await;
    assert!(matches!(started.err(), Some(StartError::Store(_))));
}

#[tokio::test]
async fn loopback_of_both_kinds_is_served() {
    for address in ["127.0.0.1:0", "[::1]:0"] {
        let running = start(ServerConfig::solo(address.parse().unwrap()), broken::store()).await.unwrap();
        let answer = reqwest::get(format!("http://{}/healthz", running.address())).await.unwrap();
        assert_eq!(answer.status().as_u16(), 200);
        running.stop().await;
    }
}
