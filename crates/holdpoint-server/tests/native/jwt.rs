//! Tokens of an identity provider, with keys that change.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::extract::State;
use axum::routing::get;
use axum::{Json, Router};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use holdpoint_server::access::{ApiKeys, BadJwtSettings, Credentials, Jwks, JwtSettings, JwtVerifier, Role};
use http::StatusCode;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use serde_json::{Value, json};

use crate::world::{Answer, Setup, World, first_pause};

/// Two private keys of Ed25519 (PKCS 8), and their public halves as a provider publishes them.
const KEYS: [(&str, &str, &str); 2] = [
    (
        "one",
        "MC4CAQAwBQYDK2VwBCIEIGHwTSIeHX671aLIbLraOwRXGqZdgNZRwfVehW+ZT+Dh",
        "nwRtal2a2SeJS_z9fkFFlMRTykakS0K0k1PyHBwXU0c",
    ),
    (
        "two",
        "MC4CAQAwBQYDK2VwBCIEICSXmTSIxtWVH45VbNWpvLnPtP42lw6vfAxLezzaOxcN",
        "pfc9JjgUoZS6oSfmPC6OX66Hu6sLNKoAmFQ39REW8Ak",
    ),
];

/// An identity provider: which keys it publishes, how often it was asked, and whether it is away.
#[derive(Clone, Default)]
struct Provider(Arc<Published>);

#[derive(Default)]
struct Published {
    keys: Mutex<Vec<usize>>,
    asked: AtomicUsize,
    is_away: Mutex<bool>,
}

impl Provider {
    async fn start(keys: &[usize]) -> (Self, String) {
        let provider = Self::default();
        *provider.0.keys.lock().unwrap() = keys.to_vec();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let issuer = format!("http://{}", listener.local_addr().unwrap());
        let discovery = json!({"issuer": issuer, "jwks_uri": format!("{issuer}/keys")});
        let router = Router::new()
            .route("/keys", get(Self::publish))
            .route("/.well-known/openid-configuration", get(move || async move { Json(discovery.clone()) }))
            .with_state(provider.clone());
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        (provider, issuer)
    }

    async fn publish(State(provider): State<Self>) -> Result<Json<Value>, StatusCode> {
        provider.0.asked.fetch_add(1, Ordering::SeqCst);
        if *provider.0.is_away.lock().unwrap() {
            return Err(StatusCode::INTERNAL_SERVER_ERROR);
        }
        let jwk = |index: &usize| json!({"kty": "OKP", "crv": "Ed25519", "alg": "EdDSA", "use": "sig", "kid": KEYS[*index].0, "x": KEYS[*index].2});
        Ok(Json(json!({"keys": provider.0.keys.lock().unwrap().iter().map(jwk).collect::<Vec<_>>()})))
    }

    fn publishes(&self, keys: &[usize]) {
        *self.0.keys.lock().unwrap() = keys.to_vec();
    }

    fn asked(&self) -> usize {
        self.0.asked.load(Ordering::SeqCst)
    }
}

fn settings(issuer: &str) -> JwtSettings {
    let roles = BTreeMap::from([("approvers".to_owned(), Role::Approver), ("bots".to_owned(), Role::Agent)]);
    JwtSettings { roles, ..JwtSettings::new(issuer, "holdpoint") }
}

async fn world(issuer: &str, floor: Duration) -> World {
    let keys = Jwks::of_issuer(issuer).unwrap().ages(floor, Duration::from_secs(3600));
    let jwt = JwtVerifier::new(settings(issuer), keys).unwrap();
    let credentials = Credentials { keys: ApiKeys::default(), jwt: Some(jwt) };
    World::with(Setup { credentials: Some(credentials), ..Setup::default() }).await
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

fn claims(issuer: &str) -> Value {
    json!({"iss": issuer, "aud": "holdpoint", "sub": "ana@example.com", "exp": now() + 600, "nbf": now() - 10, "roles": ["approvers", "other"], "groups": ["treasury"]})
}

fn signed(key: usize, kid: Option<&str>, claims: &Value) -> String {
    let header = Header { kid: kid.map(str::to_owned), ..Header::new(Algorithm::EdDSA) };
    encode(&header, claims, &EncodingKey::from_ed_der(&STANDARD.decode(KEYS[key].1).unwrap())).unwrap()
}

async fn ask(world: &World, token: &str) -> Answer {
    Answer::to(world.request("GET", "/api/v1/pauses").bearer_auth(token)).await
}

#[tokio::test]
async fn a_token_that_holds_opens_with_its_role_and_its_groups() {
    let (_provider, issuer) = Provider::start(&[0]).await;
    let world = world(&issuer, Duration::ZERO).await;
    let approver = signed(0, Some("one"), &claims(&issuer));
    ask(&world, &approver).await.expect(200);
    ask(&world, &signed(0, None, &claims(&issuer))).await.expect(200);
    let bot = signed(
        0,
        Some("one"),
        &json!({"iss": issuer, "aud": ["x", "holdpoint"], "sub": "bot", "exp": now() + 60, "roles": "bots"}),
    );
    let start = world.request("POST", "/api/v1/runs?wait=30").bearer_auth(&bot);
    let run = Answer::to(start.json(&json!({"agent_id": "treasurer", "input": "eve"}))).await.expect(201);
    let path = format!("/api/v1/pauses/{}/decide", first_pause(&run));
    let voted = Answer::to(world.request("POST", &path).bearer_auth(&approver).json(&json!({"decision": "approve"})))
        .await
        .expect(200);
    assert_eq!(voted["approvals"][0]["by"], "ana@example.com");
    let refused =
        Answer::to(world.request("POST", &path).bearer_auth(&bot).json(&json!({"decision": "approve"}))).await;
    refused.refuses(403, "forbidden");
    let no_role = signed(0, Some("one"), &json!({"iss": issuer, "aud": "holdpoint", "sub": "eve", "exp": now() + 60}));
    ask(&world, &no_role).await.refuses(403, "forbidden");
}

#[tokio::test]
async fn a_token_with_anything_wrong_opens_nothing() {
    let (_provider, issuer) = Provider::start(&[0]).await;
    let world = world(&issuer, Duration::from_secs(60)).await;
    let with = |name: &str, value: Value| {
        let mut claims = claims(&issuer);
        claims[name] = value;
        signed(0, Some("one"), &claims)
    };
    let without = |name: &str| {
        let mut claims = claims(&issuer);
        claims.as_object_mut().unwrap().remove(name);
        signed(0, Some("one"), &claims)
    };
    let good = signed(0, Some("one"), &claims(&issuer));
    let (head, rest) = good.split_once('.').unwrap();
    let (_, signature) = rest.split_once('.').unwrap();
    let none = URL.encode(r#"{"alg":"none","typ":"JWT"}"#);
    let shared = Header { kid: Some("one".to_owned()), ..Header::new(Algorithm::HS256) };
    let confused = encode(&shared, &claims(&issuer), &EncodingKey::from_secret(KEYS[0].2.as_bytes())).unwrap();
    let body = URL.encode(claims(&issuer).to_string());
    for (bad, why) in [
        (with("iss", json!("https://evil.example")), "issuer"),
        (with("aud", json!("another")), "audience"),
        (with("exp", json!(now() - 120)), "expired"),
        (with("nbf", json!(now() + 600)), "not yet"),
        (with("sub", json!("")), "empty actor"),
        (with("sub", json!("local")), "reserved actor"),
        (with("sub", json!("timeout")), "reserved actor"),
        (with("sub", json!("a\u{202e}b")), "unreadable actor"),
        (without("exp"), "no end"),
        (without("aud"), "no audience"),
        (without("iss"), "no issuer"),
        (without("sub"), "no actor"),
        (signed(1, Some("one"), &claims(&issuer)), "another key under a known name"),
        (signed(1, Some("two"), &claims(&issuer)), "a key that is not published"),
        (confused, "a shared secret made of the public key"),
        (format!("{none}.{body}."), "no signature"),
        (format!("{head}.{body}.{signature}x"), "changed signature"),
        (format!("{head}.{}.{signature}", URL.encode(r#"{"sub":"adam"}"#)), "changed claims"),
        ("a.b.c".to_owned(), "nonsense"),
        ("a".to_owned(), "nonsense"),
    ] {
        let answer = ask(&world, &bad).await;
        assert_eq!(
            (answer.status, answer.json()["code"].as_str()),
            (401, Some("unauthenticated")),
            "{why}: {}",
            answer.body
        );
        assert!(answer.header("www-authenticate").is_some(), "{why}");
    }
    ask(&world, &good).await.expect(200);
}

const URL: base64::engine::GeneralPurpose = base64::engine::general_purpose::URL_SAFE_NO_PAD;

#[tokio::test]
async fn a_new_key_is_found_and_made_up_ones_do_not_make_the_server_ask_and_ask() {
    let (provider, issuer) = Provider::start(&[0]).await;
    let world = world(&issuer, Duration::ZERO).await;
    ask(&world, &signed(0, Some("one"), &claims(&issuer))).await.expect(200);
    ask(&world, &signed(0, Some("one"), &claims(&issuer))).await.expect(200);
    assert_eq!(provider.asked(), 1);
    provider.publishes(&[0, 1]);
    ask(&world, &signed(1, Some("two"), &claims(&issuer))).await.expect(200);
    assert_eq!(provider.asked(), 2);
    let (provider, issuer) = Provider::start(&[0]).await;
    let patient = self::world(&issuer, Duration::from_secs(3600)).await;
    for number in 0..20 {
        let made_up = signed(1, Some(&format!("made-up-{number}")), &claims(&issuer));
        ask(&patient, &made_up).await.refuses(401, "unauthenticated");
    }
    assert_eq!(provider.asked(), 1);
}

#[tokio::test]
async fn while_the_provider_is_away_known_keys_hold_and_unknown_ones_are_not_guessed_at() {
    let (provider, issuer) = Provider::start(&[0]).await;
    *provider.0.is_away.lock().unwrap() = true;
    let world = world(&issuer, Duration::ZERO).await;
    let token = signed(0, Some("one"), &claims(&issuer));
    let answer = ask(&world, &token).await;
    answer.refuses(503, "keys_unavailable");
    assert!(answer.header("retry-after").is_some());
    *provider.0.is_away.lock().unwrap() = false;
    ask(&world, &token).await.expect(200);
    *provider.0.is_away.lock().unwrap() = true;
    ask(&world, &signed(1, Some("two"), &claims(&issuer))).await.refuses(503, "keys_unavailable");
    ask(&world, &token).await.expect(200);
}

#[test]
fn settings_under_which_nothing_could_be_checked_are_refused() {
    let jwks = || Jwks::at("https://issuer.example/keys").unwrap();
    let refused = |settings: JwtSettings| JwtVerifier::new(settings, jwks()).err();
    let good = settings("https://issuer.example");
    assert_eq!(refused(JwtSettings { audience: String::new(), ..good.clone() }), Some(BadJwtSettings::Unbound));
    assert_eq!(refused(JwtSettings { issuer: String::new(), ..good.clone() }), Some(BadJwtSettings::Unbound));
    assert_eq!(
        refused(JwtSettings { algorithms: vec![Algorithm::HS256], ..good.clone() }),
        Some(BadJwtSettings::Algorithms)
    );
    assert_eq!(refused(JwtSettings { algorithms: Vec::new(), ..good.clone() }), Some(BadJwtSettings::Algorithms));
    assert_eq!(refused(JwtSettings { roles: BTreeMap::new(), ..good.clone() }), Some(BadJwtSettings::NoRoles));
    assert_eq!(refused(good), None);
    assert!(Jwks::at("http://issuer.example/keys").is_err());
    assert!(Jwks::of_issuer("nonsense").is_err());
}
