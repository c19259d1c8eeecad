//! Every code of the server's own is told at least once, exactly as its page says; and every page belongs to a code.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use holdpoint_core::Refusal;
use holdpoint_core::refusal::{failure, reply};
use holdpoint_runtime::Fault;
use holdpoint_server::access::{ApiKeys, Credentials, Jwks, JwtSettings, JwtVerifier, Role};
use holdpoint_server::limits::Limits;
use holdpoint_server::problem::{Code, status_of};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::world::{Answer, Reading, Setup, World, first_pause};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/errors")
}

fn page(code: &str) -> String {
    std::fs::read_to_string(folder().join(format!("{code}.md"))).unwrap_or_else(|error| panic!("{code}: {error}"))
}

fn own_codes() -> BTreeSet<String> {
    Code::ALL.iter().map(|code| code.name.to_owned()).collect()
}

#[test]
fn every_page_belongs_to_a_code_and_every_code_has_a_page_and_a_row() {
    let of_runs = [
        failure::GUARDRAIL_TRIPPED,
        failure::MODEL_MISBEHAVED,
        failure::TURNS_EXHAUSTED,
        reply::CALL_ID_EMPTY,
        reply::CALL_ID_REUSED,
        reply::REPLY_TOO_LARGE,
        reply::TOO_MANY_CALLS,
    ];
    let of_core: BTreeSet<String> =
        Refusal::CODES.iter().chain(Fault::CODES).chain(&of_runs).map(|code| (*code).to_owned()).collect();
    assert_eq!(own_codes().intersection(&of_core).collect::<Vec<_>>(), Vec::<&String>::new());
    let files = std::fs::read_dir(folder()).unwrap().map(|file| file.unwrap().path());
    let pages: BTreeSet<String> = files.map(|file| file.file_stem().unwrap().to_str().unwrap().to_owned()).collect();
    let codes: BTreeSet<String> = own_codes().union(&of_core).cloned().chain(["README".to_owned()]).collect();
    assert_eq!(pages, codes);
    let index = page("README");
    let (_, server) = index.split_once("## What the server refuses").unwrap();
    let rows: BTreeSet<&str> = server.lines().filter(|line| line.starts_with("| [")).collect();
    assert_eq!(rows.len(), Code::ALL.len());
    for code in Code::ALL {
        let row = format!("| [{0}]({0}.md) | {1} | ", code.name, code.status.as_u16());
        assert!(rows.iter().any(|found| found.starts_with(&row)), "{row}");
        let page = page(code.name);
        let headings: Vec<&str> = page.lines().filter(|line| line.starts_with('#')).collect();
        let title = format!("# {}", code.name);
        assert_eq!(headings, [title.as_str(), "## When it happens", "## What to do", "## Example"]);
        assert!(page.contains(&format!("\nStatus {}.\n", code.status.as_u16())), "{}", code.name);
    }
}

#[test]
fn every_refusal_and_fault_has_a_status_of_its_own_choosing() {
    let unmapped: Vec<&&str> =
        Refusal::CODES.iter().chain(Fault::CODES).filter(|code| status_of(code).0.as_u16() == 500).collect();
    // What an operator must look at, and what only the library can run into.
    let expected = [
        "format_newer",
        "not_a_state",
        "state_corrupt",
        "state_stale",
        "state_tampered",
        "store_corrupt",
        "store_newer",
    ];
    assert_eq!(unmapped, expected.iter().collect::<Vec<_>>());
}

/// The sentence that a page shows.
fn shown(code: &str) -> String {
    let page = page(code);
    let (_, example) = page.split_once("## Example\n\n```text\n").unwrap_or_else(|| panic!("{code} has no example"));
    example.lines().next().unwrap_or_default().to_owned()
}

/// What is said for each code, by making it happen.
#[derive(Default)]
struct Told(BTreeMap<String, String>);

impl Told {
    #[track_caller]
    fn take(&mut self, code: Code, answer: &Answer) {
        let problem = answer.refuses(code.status.as_u16(), code.name);
        self.0.insert(code.name.to_owned(), problem["detail"].as_str().unwrap().to_owned());
    }
}

#[tokio::test]
async fn every_code_is_told_as_its_page_says() {
    let mut told = Told::default();
    of_requests(&mut told).await;
    of_callers(&mut told).await;
    of_bounds(&mut told).await;
    // Nothing is known that makes the server err, or lets a client see it stop; and only Slack is refused what was never
    // offered there, which its own tests show.
    for code in [Code::INTERNAL, Code::NOT_FULLY_DISPLAYED, Code::STOPPING] {
        assert!(told.0.insert(code.name.to_owned(), shown(code.name)).is_none());
    }
    assert_eq!(told.0.keys().cloned().collect::<BTreeSet<_>>(), own_codes());
    for (code, sentence) in &told.0 {
        assert_eq!(shown(code), *sentence, "{code}");
    }
}

async fn of_requests(told: &mut Told) {
    let world = World::solo().await;
    let post = async |path: &str, body: &str| {
        let request = world.request("POST", path).header("content-type", "application/json");
        Answer::to(request.body(body.to_owned())).await
    };
    let pause = first_pause(&world.start("mailer", "ana").await);
    let decide = format!("/api/v1/pauses/{pause}/decide");
    told.take(Code::AGENT_NOT_FOUND, &world.get("/api/v1/agents/nobody").await);
    told.take(Code::BAD_HOST, &Answer::to(world.request("GET", "/").header("host", "evil.example")).await);
    told.take(Code::BAD_ORIGIN, &Answer::to(world.request("GET", "/").header("origin", "https://evil.example")).await);
    let callback = json!({"agent": "bot", "tool": "deploy", "args": {}, "callback_url": "https://hooks.example/"});
    told.take(Code::CALLBACK_REFUSED, &world.post("/api/v1/requests", callback).await);
    told.take(Code::INVALID_CURSOR, &world.get("/api/v1/pauses?cursor=AAAA").await);
    let bad_key = world
        .request("POST", "/api/v1/runs")
        .header("idempotency-key", "")
        .json(&json!({"agent_id": "talker", "input": "x"}));
    told.take(Code::INVALID_HEADER, &Answer::to(bad_key).await);
    told.take(Code::INVALID_JSON, &post(&decide, r#"{"decision":"approve","decision":"deny"}"#).await);
    told.take(Code::INVALID_PARAMETER, &world.get("/api/v1/pauses?debug=1").await);
    told.take(Code::INVALID_REQUEST, &post(&decide, r#"{"decision":"approve","args":{}}"#).await);
    told.take(Code::METHOD_NOT_ALLOWED, &world.get(&decide).await);
    let json_only = world.request("GET", "/api/v1/pauses/stream").header("accept", "application/json");
    told.take(Code::NOT_ACCEPTABLE, &Answer::to(json_only).await);
    told.take(Code::ROUTE_NOT_FOUND, &world.get("/api/v1/nothing").await);
    told.take(Code::UNSUPPORTED_MEDIA_TYPE, &Answer::to(world.request("POST", "/api/v1/runs").body("x")).await);
    let other = world.start("mailer", "eve").await;
    world.supersede(&other).await;
    let path = format!("/api/v1/pauses/{}/decide", first_pause(&other));
    let late = world.post(&path, json!({"decision": "approve"})).await;
    assert_eq!((&late.json()["outcome"], &late.json()["decided_by"]), (&json!("superseded"), &json!("ana")));
    told.take(Code::SUPERSEDED, &late);
    world.post(&path, json!({"decision": "deny"})).await.refuses(409, "superseded");
    told.take(Code::URI_TOO_LONG, &world.get(&format!("/api/v1/pauses?cursor={}", "x".repeat(9_001))).await);
    let large = format!(r#"{{"agent_id":"talker","input":"{}"}}"#, "x".repeat(1 << 20));
    told.take(Code::PAYLOAD_TOO_LARGE, &post("/api/v1/runs", &large).await);
    let send = async |input: &str| {
        let request = world.request("POST", "/api/v1/runs").header("idempotency-key", "k");
        Answer::to(request.json(&json!({"agent_id": "talker", "input": input}))).await
    };
    send("a").await.expect(201);
    told.take(Code::IDEMPOTENCY_KEY_REUSED, &send("b").await);
}

async fn of_callers(told: &mut Told) {
    let setup = Setup { has_keys: true, requester_may_not_approve: true, ..Setup::default() };
    let world = World::with(setup).await;
    told.take(Code::UNAUTHENTICATED, &world.get("/api/v1/agents").await);
    told.take(Code::FORBIDDEN, &world.get_by("agnes", "/api/v1/audit").await);
    let pause = first_pause(&world.start_by("zoe", "mailer", "eve").await);
    told.take(Code::SELF_APPROVAL, &world.decide_by("zoe", &pause, json!({"decision": "approve"})).await);
    // Nobody listens at this port: the provider is away.
    let away = Jwks::at("http://127.0.0.1:1/keys").unwrap();
    let roles = [("x".to_owned(), Role::Agent)].into();
    let settings = JwtSettings { roles, ..JwtSettings::new("https://issuer.example", "holdpoint") };
    let jwt = Some(JwtVerifier::new(settings, away).unwrap());
    let credentials = Credentials { keys: ApiKeys::default(), jwt };
    let world = World::with(Setup { credentials: Some(credentials), ..Setup::default() }).await;
    let token = "eyJhbGciOiJFZERTQSIsImtpZCI6Im9uZSJ9.e30.c2lnbmF0dXJl";
    told.take(Code::KEYS_UNAVAILABLE, &Answer::to(world.request("GET", "/api/v1/agents").bearer_auth(token)).await);
}

async fn of_bounds(told: &mut Told) {
    let limits = Limits { requests_per_second: 1, requests_burst: 1, ..Limits::default() };
    let world = World::with(Setup { limits: Some(limits), ..Setup::default() }).await;
    told.take(Code::RATE_LIMITED, &world.until_too_fast(None).await);
    let limits = Limits { streams_per_caller: 1, body_timeout: Duration::from_secs(1), ..Limits::default() };
    let world = World::with(Setup { limits: Some(limits), ..Setup::default() }).await;
    let _open = Reading::begin(world.request("GET", "/api/v1/pauses/stream")).await;
    told.take(Code::TOO_MANY_STREAMS, &world.get("/api/v1/pauses/stream").await);
    let limits = Limits { wait_max: Duration::ZERO, answer_timeout: Duration::from_millis(200), ..Limits::default() };
    let store = crate::health::broken::store();
    let slow = World::with(Setup { limits: Some(limits), store: Some(store.clone()), ..Setup::default() }).await;
    store.hangs.store(true, std::sync::atomic::Ordering::SeqCst);
    told.take(Code::TIMED_OUT, &slow.get("/api/v1/runs/run_0198c0ffee007000800000000000beef").await);
    let mut stream = tokio::net::TcpStream::connect(world.address()).await.unwrap();
    let head = format!(
        "POST /api/v1/runs HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: 9\r\nConnection: close\r\n\r\n",
        world.address()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 408 "), "{head}");
    let problem: serde_json::Value = serde_json::from_str(body).unwrap();
    assert_eq!(problem["code"], Code::REQUEST_TIMEOUT.name);
    told.0.insert(Code::REQUEST_TIMEOUT.name.to_owned(), problem["detail"].as_str().unwrap().to_owned());
}

#[tokio::test]
async fn an_address_that_takes_other_methods_names_them() {
    let world = World::solo().await;
    let pause = first_pause(&world.start("mailer", "ana").await);
    for (method, path, allowed) in [
        ("DELETE", "/api/v1/runs", "GET,HEAD,POST"),
        ("POST", "/api/v1/agents", "GET,HEAD"),
        ("GET", &format!("/api/v1/pauses/{pause}/decide"), "POST"),
        ("PUT", "/api/v1/audit/verify", "GET,HEAD"),
        ("GET", "/api/v1/rules/rul_0198c0ffee007000800000000000beef_1", "DELETE"),
        ("POST", "/healthz", "GET,HEAD"),
        ("POST", "/docs", "GET,HEAD"),
    ] {
        let answer = Answer::to(world.request(method, path)).await;
        answer.refuses(405, "method_not_allowed");
        assert_eq!(answer.header("allow"), Some(allowed), "{method} {path}");
    }
}
