//! What web pages and other machines can reach: nothing.

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::world::{Answer, Setup, World};

/// Sends bytes as they are, and reads the whole answer.
async fn raw(world: &World, text: &str) -> String {
    let mut stream = TcpStream::connect(world.address()).await.unwrap();
    stream.write_all(text.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
async fn a_request_for_another_host_gets_no_further_than_the_door() {
    let world = World::solo().await;
    let port = world.address().port();
    let get = |host: &str, target: &str| format!("GET {target} HTTP/1.1\r\n{host}Connection: close\r\n\r\n");
    for (host, target) in [
        ("Host: evil.example\r\n".to_owned(), "/api/v1/agents".to_owned()),
        (format!("Host: 127.0.0.1.evil.example:{port}\r\n"), "/api/v1/agents".to_owned()),
        ("Host: localhost:9\r\n".to_owned(), "/api/v1/agents".to_owned()),
        (format!("Host: localhost:{port}\r\nHost: localhost:{port}\r\n"), "/api/v1/agents".to_owned()),
        (format!("Host: localhost:{port}\r\n"), "http://evil.example/api/v1/agents".to_owned()),
        ("Host: evil.example\r\n".to_owned(), "/healthz".to_owned()),
        ("Host: evil.example\r\n".to_owned(), "/".to_owned()),
    ] {
        let answer = raw(&world, &get(&host, &target)).await;
        assert!(answer.starts_with("HTTP/1.1 421 "), "{host} {target}: {answer}");
        assert!(answer.contains("bad_host"), "{answer}");
    }
    let good = raw(&world, &get(&format!("Host: localhost:{port}\r\n"), "/api/v1/agents")).await;
    assert!(good.starts_with("HTTP/1.1 200 "), "{good}");
}

#[tokio::test]
async fn no_web_page_of_another_site_can_call() {
    let world = World::solo().await;
    let body = json!({"agent_id": "talker", "input": "x"});
    for (name, value) in [
        ("origin", "https://evil.example"),
        ("origin", "null"),
        ("origin", "http://localhost.evil.example"),
        ("origin", "http://localhost:1"),
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-site", "same-site"),
    ] {
        let answer = Answer::to(world.request("POST", "/api/v1/runs").header(name, value).json(&body)).await;
        answer.refuses(403, "bad_origin");
        let answer = Answer::to(world.request("GET", "/api/v1/pauses/stream").header(name, value)).await;
        answer.refuses(403, "bad_origin");
    }
    let own = format!("http://{}", world.address());
    let request = world.request("POST", "/api/v1/runs").header("origin", own).header("sec-fetch-site", "same-origin");
    Answer::to(request.json(&body)).await.expect(201);
    let preflight = world.request("OPTIONS", "/api/v1/runs").header("origin", "https://evil.example");
    let answer = Answer::to(preflight.header("access-control-request-method", "POST")).await;
    assert_eq!(answer.status, 403);
    assert!(answer.headers.keys().all(|name| !name.as_str().starts_with("access-control-")));
}

#[tokio::test]
async fn a_body_that_a_page_could_send_without_asking_is_not_taken() {
    let world = World::solo().await;
    let before = world.everything().await;
    for kind in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""] {
        let mut request = world.request("POST", "/api/v1/runs").body(r#"{"agent_id":"talker","input":"x"}"#);
        if !kind.is_empty() {
            request = request.header("content-type", kind);
        }
        Answer::to(request).await.refuses(415, "unsupported_media_type");
    }
    assert_eq!(world.everything().await, before);
}

#[tokio::test]
async fn nothing_changes_by_looking() {
    let world = World::solo().await;
    let run = world.start("mailer", "ana").await;
    let before = world.everything().await;
    let pause = crate::world::first_pause(&run);
    for path in [
        format!("/api/v1/pauses/{pause}/decide"),
        format!("/api/v1/runs/{}/cancel", crate::world::text(&run, "run_id")),
    ] {
        for method in ["GET", "HEAD", "PUT", "DELETE"] {
            let answer = Answer::to(world.request(method, &path)).await;
            assert_eq!((answer.status, answer.header("allow")), (405, Some("POST")), "{method} {path}");
        }
    }
    assert_eq!(world.everything().await, before);
}

#[tokio::test]
async fn every_answer_tells_browsers_to_keep_to_themselves() {
    let world = World::solo().await;
    for path in ["/", "/api/v1/agents", "/api/v1/nothing", "/openapi.json"] {
        let answer = world.get(path).await;
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{path}");
        assert_eq!(answer.header("referrer-policy"), Some("no-referrer"), "{path}");
        assert_eq!(answer.header("cross-origin-resource-policy"), Some("same-origin"), "{path}");
    }
}

#[tokio::test]
async fn a_page_that_the_operator_trusts_may_call_and_read_the_answer() {
    let world = World::with(Setup { origins: vec!["https://console.example".to_owned()], ..Setup::default() }).await;
    let preflight = world.request("OPTIONS", "/api/v1/runs").header("origin", "https://console.example");
    let answer = Answer::to(preflight.header("access-control-request-method", "POST")).await;
    assert_eq!((answer.status, answer.header("access-control-allow-origin")), (204, Some("https://console.example")));
    assert!(answer.header("access-control-allow-credentials").is_none());
    let request = world.request("POST", "/api/v1/runs").header("origin", "https://console.example");
    let request = request.header("sec-fetch-site", "cross-site").json(&json!({"agent_id": "talker", "input": "x"}));
    let answer = Answer::to(request).await;
    assert_eq!((answer.status, answer.header("access-control-allow-origin")), (201, Some("https://console.example")));
    let other = Answer::to(world.request("GET", "/api/v1/agents").header("origin", "https://evil.example")).await;
    other.refuses(403, "bad_origin");
    assert!(other.header("access-control-allow-origin").is_none());
}
