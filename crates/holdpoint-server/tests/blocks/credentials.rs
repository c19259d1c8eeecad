//! Credentials that run out while a connection is open: it is closed with the code for those who are not known.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::routing::get;
use axum::{Json, Router};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use holdpoint_core::ids::ActorId;
use holdpoint_core::time::Timestamp;
use holdpoint_server::access::{ApiKey, ApiKeys, Credentials, Jwks, JwtSettings, JwtVerifier, Role};
use holdpoint_server::limits::Limits;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use serde_json::json;
use tokio::task::JoinHandle;

use crate::agents::key;
use crate::client::Client;
use crate::stage::{Setup, Stage, message};

/// A private key of Ed25519 (PKCS 8), and its public half as a provider publishes it.
const PRIVATE: &str = "MC4CAQAwBQYDK2VwBCIEIGHwTSIeHX671aLIbLraOwRXGqZdgNZRwfVehW+ZT+Dh";
const PUBLIC: &str = "nwRtal2a2SeJS_z9fkFFlMRTykakS0K0k1PyHBwXU0c";

/// For how many seconds something counts that is to run out: long enough for a server to start and a client to come.
const SHORT: u64 = 6;

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

/// An identity provider; says where it is.
async fn provider() -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let issuer = format!("http://{}", listener.local_addr().unwrap());
    let discovery = json!({"issuer": issuer, "jwks_uri": format!("{issuer}/keys")});
    let keys =
        json!({"keys": [{"kty": "OKP", "crv": "Ed25519", "alg": "EdDSA", "use": "sig", "kid": "one", "x": PUBLIC}]});
    let router = Router::new()
        .route("/keys", get(move || async move { Json(keys.clone()) }))
        .route("/.well-known/openid-configuration", get(move || async move { Json(discovery.clone()) }));
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    issuer
}

fn token(issuer: &str, seconds: u64) -> String {
    let claims = json!({"iss": issuer, "aud": "holdpoint", "sub": "ana", "exp": now() + seconds, "roles": ["all"]});
    let header = Header { kid: Some("one".to_owned()), ..Header::new(Algorithm::EdDSA) };
    encode(&header, &claims, &EncodingKey::from_ed_der(&STANDARD.decode(PRIVATE).unwrap())).unwrap()
}

/// A server that takes tokens of this issuer, and asks often whether clients are there.
async fn stage(issuer: &str) -> Stage {
    let issuer = issuer.to_owned();
    let credentials = move || {
        let roles = BTreeMap::from([("all".to_owned(), Role::Admin)]);
        let settings = JwtSettings { roles, leeway_seconds: 0, ..JwtSettings::new(&issuer, "holdpoint") };
        let jwt = JwtVerifier::new(settings, Jwks::of_issuer(&issuer).unwrap()).unwrap();
        Credentials { keys: ApiKeys::default(), jwt: Some(jwt) }
    };
    with(Arc::new(credentials)).await
}

async fn with(credentials: Arc<dyn Fn() -> Credentials + Send + Sync>) -> Stage {
    let limits = Limits { socket_heartbeat: Duration::from_secs(3), ..Limits::default() };
    Stage::with(Setup { credentials: Some(credentials), limits: Some(limits), ..Setup::default() }).await
}

/// Reads a connection to its end, so that every ping is answered; says the code that it was closed with.
fn end(mut client: Client) -> JoinHandle<Option<u16>> {
    tokio::spawn(async move {
        loop {
            if let Err(code) = client.try_next().await {
                return code;
            }
        }
    })
}

#[tokio::test]
async fn a_token_that_runs_out_closes_the_connection_and_one_that_holds_keeps_it() {
    let issuer = provider().await;
    let stage = stage(&issuer).await;
    let long = end(Client::connect(stage.address(), Some(&token(&issuer, 3_600))).await);
    let shown = end(Client::connect(stage.address(), Some(&token(&issuer, SHORT))).await);
    let mut said = Client::connect(stage.address(), None).await;
    let ok = said.ask(&json!({"type": "auth", "token": token(&issuer, SHORT)}), "auth_ok").await;
    assert_eq!(ok["actor"], "ana", "{ok}");
    assert_eq!(end(said).await.unwrap(), Some(4001));
    assert_eq!(shown.await.unwrap(), Some(4001));
    assert!(!long.is_finished(), "a token that holds keeps its connection");
}

#[tokio::test]
async fn a_command_under_a_token_that_ran_out_does_nothing() {
    let issuer = provider().await;
    let limits = Limits { socket_heartbeat: Duration::from_secs(3_600), ..Limits::default() };
    let mut stage = stage(&issuer).await;
    stage.restart_with(limits).await;
    let exp = now() + SHORT;
    let mut client = Client::connect(stage.address(), Some(&token(&issuer, SHORT))).await;
    // The server's clock is this machine's: nothing but time makes a token run out.
    while now() <= exp {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    client.send(&message("trader", "s", "Mua")).await;
    assert_eq!(end(client).await.unwrap(), Some(4001));
    assert_eq!(stage.everything().await, "");
    assert_eq!(stage.model.requests().len(), 0);
}

#[tokio::test]
async fn a_key_whose_time_is_up_closes_the_connection() {
    let until = Timestamp::from_millis(i64::try_from(now() + SHORT).unwrap() * 1_000);
    let credentials = move || {
        let actor = ActorId::new("ana").unwrap();
        let mut given = ApiKey::new(actor, &ApiKey::digest(&key("ana")), [Role::Approver]).unwrap();
        given.expires_at = Some(until);
        Credentials { keys: ApiKeys::new(vec![given]).unwrap(), jwt: None }
    };
    let stage = with(Arc::new(credentials)).await;
    let client = stage.connect_by("ana").await;
    assert_eq!(end(client).await.unwrap(), Some(4001));
}

#[tokio::test]
async fn a_key_whose_time_is_up_ends_the_streams_that_watch() {
    let until = Timestamp::from_millis(i64::try_from(now() + SHORT).unwrap() * 1_000);
    let credentials = move || {
        let actor = |name| ActorId::new(name).unwrap();
        let mut given = ApiKey::new(actor("ana"), &ApiKey::digest(&key("ana")), [Role::Admin]).unwrap();
        given.expires_at = Some(until);
        let lasting = ApiKey::new(actor("ben"), &ApiKey::digest(&key("ben")), [Role::Admin]).unwrap();
        Credentials { keys: ApiKeys::new(vec![given, lasting]).unwrap(), jwt: None }
    };
    let limits = Limits { heartbeat: Duration::from_secs(1), ..Limits::default() };
    let setup = Setup { credentials: Some(Arc::new(credentials)), limits: Some(limits), ..Setup::default() };
    let stage = Stage::with(setup).await;
    stage.model.push(holdpoint_testkit::model_server::Answer::text("Chào."));
    let mut client = stage.connect_by("ben").await;
    client.send(&message("trader", "s", "Chào")).await;
    client.until(crate::client::is("message_stop")).await;
    let watching = |path: &'static str, who: &'static str| {
        let request = stage.request("GET", path).header("accept", "text/event-stream").bearer_auth(key(who));
        tokio::spawn(async move { request.send().await.unwrap().error_for_status().unwrap().bytes().await })
    };
    let paths = ["/api/v1/sessions/s/blocks", "/api/v1/sessions/s/events", "/api/v1/pauses/stream"];
    let lasting = paths.map(|path| watching(path, "ben"));
    for ending in paths.map(|path| watching(path, "ana")) {
        ending.await.unwrap().unwrap();
    }
    assert!(lasting.iter().all(|stream| !stream.is_finished()), "a key that holds keeps its streams");
}
