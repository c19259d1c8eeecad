//! Every bound has a code of its own, and the server lives on.

use holdpoint_server::limits::Limits;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::world::{Answer, Setup, World};

#[tokio::test]
async fn a_body_at_its_bound_is_taken_and_one_byte_more_is_not() {
    let world =
        World::with(Setup { limits: Some(Limits { body_bytes_max: 1_000, ..Limits::default() }), ..Setup::default() })
            .await;
    let body = |length: usize| {
        let shell = r#"{"agent_id":"talker","input":""}"#.len();
        format!(r#"{{"agent_id":"talker","input":"{}"}}"#, "x".repeat(length - shell))
    };
    let send = async |text: String| {
        let request = world.request("POST", "/api/v1/runs").header("content-type", "application/json");
        Answer::to(request.body(text)).await
    };
    assert_eq!(send(body(1_000)).await.status, 201);
    let problem = send(body(1_001)).await.refuses(413, "payload_too_large");
    assert_eq!(problem["limit"], 1_000);
    send(body(1_000_000)).await.refuses(413, "payload_too_large");
    let chunks = futures_util::stream::iter((0..100).map(|_| Ok::<_, std::io::Error>(vec![b' '; 100])));
    let request = world.request("POST", "/api/v1/runs").header("content-type", "application/json");
    let chunked = request.body(reqwest::Body::wrap_stream(chunks));
    Answer::to(chunked).await.refuses(413, "payload_too_large");
    world.start("talker", "still there").await;
}

#[tokio::test]
async fn an_address_that_is_too_long_is_refused() {
    let world = World::solo().await;
    let answer = world.get(&format!("/api/v1/pauses?cursor={}", "x".repeat(9_000))).await;
    answer.refuses(414, "uri_too_long");
    world.get("/api/v1/agents").await.expect(200);
}

#[tokio::test]
async fn json_that_is_too_deep_or_too_much_is_refused() {
    let world = World::solo().await;
    for text in [
        format!(r#"{{"agent_id":"talker","input":{}{}}}"#, "[".repeat(100), "]".repeat(100)),
        format!(r#"{{"agent_id":"talker","input":{}{}}}"#, "[".repeat(100_000), "]".repeat(100_000)),
        format!(r#"{{"agent_id":"talker","input":[{}0]}}"#, "0,".repeat(110_000)),
        r#"{"agent_id":"talker","input":"\ud800"}"#.to_owned(),
        "{\"agent_id\":\"talker\",\"input\":NaN}".to_owned(),
    ] {
        let request = world.request("POST", "/api/v1/runs").header("content-type", "application/json");
        Answer::to(request.body(text)).await.refuses(400, "invalid_json");
    }
    let request = world.request("POST", "/api/v1/runs").header("content-type", "application/json");
    Answer::to(request.body(vec![b'{', 0xff, b'}'])).await.refuses(400, "invalid_json");
}

#[tokio::test]
async fn too_fast_a_caller_is_told_to_wait_and_others_are_not_held_up() {
    let limits = Limits { requests_per_second: 1, requests_burst: 3, ..Limits::default() };
    let world = World::with(Setup { has_keys: true, limits: Some(limits), ..Setup::default() }).await;
    for _ in 0..3 {
        world.get_by("ana", "/api/v1/agents").await.expect(200);
    }
    let refused = world.until_too_fast(Some("ana")).await;
    refused.refuses(429, "rate_limited");
    assert_eq!(refused.header("retry-after"), Some("1"));
    world.get_by("ben", "/api/v1/agents").await.expect(200);
    world.get("/healthz").await.expect(200);
}

#[tokio::test]
async fn methods_and_addresses_that_are_not_there_are_told_so() {
    let world = World::solo().await;
    world.get("/api/v1/nothing").await.refuses(404, "route_not_found");
    world.get("/api/v3/agents").await.refuses(404, "route_not_found");
    let answer = Answer::to(world.request("DELETE", "/api/v1/runs")).await;
    answer.refuses(405, "method_not_allowed");
    let allow = answer.header("allow").unwrap();
    assert!(allow.contains("GET") && allow.contains("POST"), "{allow}");
}

#[tokio::test]
async fn waiting_has_a_bound() {
    let world = World::solo().await;
    let run = world.start("mailer", "ana").await;
    let path = format!("/api/v1/runs/{}", crate::world::text(&run, "run_id"));
    for bad in ["61", "-1", "x", "1e9"] {
        world.get(&format!("{path}?wait={bad}")).await.refuses(400, "invalid_parameter");
    }
    world.get(&format!("{path}?wait=0")).await.expect(200);
}

#[tokio::test]
async fn broken_requests_end_their_connection_and_nothing_else() {
    let world = World::solo().await;
    let host = format!("Host: {}\r\n", world.address());
    for text in [
        "\0\0\0\0\r\n\r\n".to_owned(),
        "GET / HTTP/9.9\r\n\r\n".to_owned(),
        format!("POST /api/v1/runs HTTP/1.1\r\n{host}Content-Length: abc\r\n\r\n"),
        format!(
            "POST /api/v1/runs HTTP/1.1\r\n{host}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"
        ),
        format!("GET /{} HTTP/1.1\r\n{host}\r\n", "x".repeat(70_000)),
        format!("GET / HTTP/1.1\r\n{host}{}\r\n", "X-A: b\r\n".repeat(200)),
        format!("GET / HTTP/1.1\r\n{host}X-Long: {}\r\n\r\n", "x".repeat(80_000)),
    ] {
        let mut stream = TcpStream::connect(world.address()).await.unwrap();
        let _ = stream.write_all(text.as_bytes()).await;
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        let status = String::from_utf8_lossy(&answer).get(9..12).unwrap_or("").to_owned();
        assert!(status.is_empty() || status.starts_with('4'), "{:?}: {status}", &text[..text.len().min(60)]);
    }
    world.get("/api/v1/agents").await.expect(200);
}

#[tokio::test]
async fn a_client_that_hangs_up_right_after_deciding_has_decided() {
    let world = World::solo().await;
    let run = world.start("mailer", "ana").await;
    let body = r#"{"decision":"approve"}"#;
    let text = format!(
        "POST /api/v1/pauses/{}/decide HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        crate::world::first_pause(&run),
        world.address(),
        body.len()
    );
    let mut stream = TcpStream::connect(world.address()).await.unwrap();
    stream.write_all(text.as_bytes()).await.unwrap();
    let mut head = [0_u8; 12];
    stream.read_exact(&mut head).await.unwrap();
    drop(stream);
    let done = world.get(&format!("/api/v1/runs/{}?wait=30", crate::world::text(&run, "run_id"))).await.expect(200);
    assert_eq!(done["output"], "outcome: sent");
    assert_eq!(json!(world.effects.sent().len()), 1);
}
