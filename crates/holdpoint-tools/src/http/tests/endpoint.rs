//! What a call of an HTTP tool sends.

use holdpoint_core::json::CanonicalJson;
use holdpoint_core::tool::Effect;
use holdpoint_runtime::ports::tool::RunTool;
use serde_json::json;

use super::super::{BadEndpoint, Endpoint, HttpMethod, HttpTool};
use super::server::{Answer, Seen, Server};
use super::{at, call, direct, runner, soon};
use crate::testing::{context, holds};

async fn answering() -> Server {
    Server::start(|_| Answer::text("ok")).await
}

#[tokio::test]
async fn a_tool_of_an_endpoint_is_set_as_every_tool() {
    let endpoint = || Endpoint::new(HttpMethod::Post, "http://127.0.0.1:9/").unwrap();
    let tool = HttpTool::builder("trade", &direct(), endpoint()).needs_approval(true).build().unwrap();
    assert_eq!((tool.name().as_str(), tool.effect()), ("trade", Effect::AtMostOnce));
    assert!(holds(&tool, &json!({})).await);
}

#[tokio::test]
async fn the_arguments_are_the_body_byte_for_byte_as_they_were_approved() {
    let approved = r#"{"amount":12345678901234567890.5,"note":"täglich \"neu\"","to":["ana",null]}"#;
    for (method, name) in [(HttpMethod::Post, "POST"), (HttpMethod::Put, "PUT"), (HttpMethod::Patch, "PATCH")] {
        let server = answering().await;
        let arguments = CanonicalJson::parse(approved).unwrap();
        soon(runner(at(method, &server, "/orders?dry=1")).run(context(), arguments)).await.unwrap();
        let seen = server.only();
        assert_eq!((seen.line.as_str(), seen.body.as_str()), (format!("{name} /orders?dry=1").as_str(), approved));
        assert_eq!(seen.header("content-type"), Some("application/json"));
    }
}

#[tokio::test]
async fn an_argument_that_stands_in_the_address_is_not_in_the_body_again() {
    let server = answering().await;
    let endpoint = at(HttpMethod::Put, &server, "/users/{id}?by={actor}");
    let value = json!({"id": 7, "actor": "ana", "b": {"z": 1.50, "a": []}, "a": "x"});
    call(endpoint, &value).await.unwrap();
    let seen = server.only();
    assert_eq!(seen.line, "PUT /users/7?by=ana");
    assert_eq!(seen.body, r#"{"a":"x","b":{"a":[],"z":1.5}}"#);
}

#[tokio::test]
async fn without_a_body_the_arguments_are_the_query() {
    for (method, name) in [(HttpMethod::Get, "GET"), (HttpMethod::Delete, "DELETE")] {
        let server = answering().await;
        let value = json!({
            "id": 7, "q": "a b&c", "tag": ["x", "y", 3, [1]], "where": {"b": 1, "a": "é"},
            "exact": true, "none": null, "empty": "", "no": [],
        });
        call(at(method, &server, "/users/{id}?v=2"), &value).await.unwrap();
        let seen = server.only();
        let query = "v=2&empty=&exact=true&q=a%20b%26c&tag=x&tag=y&tag=3&tag=%5B1%5D\
            &where=%7B%22a%22%3A%22%C3%A9%22%2C%22b%22%3A1%7D";
        assert_eq!(seen.header("content-type"), None);
        assert_eq!((seen.line, seen.body.as_str()), (format!("{name} /users/7?{query}"), ""));
    }
}

#[tokio::test]
async fn an_argument_cannot_set_what_the_address_sets() {
    let server = answering().await;
    for value in [json!({"account": 43, "query": "x"}), json!({"q": "y", "query": "x"})] {
        let endpoint = at(HttpMethod::Get, &server, "/orders?account=42&q={query}");
        let failure = call(endpoint, &value).await.unwrap_err();
        assert!(failure.0.ends_with("is set in the tool's address and cannot be given"), "{failure}");
    }
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn every_attempt_at_a_call_carries_the_same_key() {
    let server = answering().await;
    for attempt in [1, 2] {
        let mut context = context();
        context.attempt = attempt;
        let arguments = CanonicalJson::parse("{}").unwrap();
        soon(runner(at(HttpMethod::Post, &server, "/")).run(context, arguments)).await.unwrap();
    }
    let keys: Vec<_> = server.seen().iter().map(|seen| seen.header("idempotency-key").unwrap().to_owned()).collect();
    assert_eq!(keys, [context().idempotency_key(), context().idempotency_key()]);
}

#[tokio::test]
async fn headers_are_sent_and_a_content_type_of_ones_own_is_kept() {
    let server = answering().await;
    let endpoint = at(HttpMethod::Post, &server, "/")
        .header("Authorization", "Bearer t0ken-of-ours".to_owned().into())
        .and_then(|endpoint| endpoint.header("Content-Type", "application/vnd.api+json".to_owned().into()))
        .unwrap();
    assert!(!format!("{endpoint:?}").contains("t0ken-of-ours"));
    call(endpoint, &json!({})).await.unwrap();
    let seen = server.only();
    assert_eq!(seen.header("authorization"), Some("Bearer t0ken-of-ours"));
    assert_eq!(seen.header("content-type"), Some("application/vnd.api+json"));
    assert!(seen.header("user-agent").unwrap().starts_with("holdpoint/"));
}

#[test]
fn a_header_that_would_break_out_of_its_line_or_of_the_message_is_refused() {
    let endpoint = || Endpoint::new(HttpMethod::Post, "https://shop.example/").unwrap();
    for (name, value) in [
        ("X-Team", "a\r\nX-Admin: yes"),
        ("X-Team", "a\nb"),
        ("X-Team", "a\0b"),
        ("X Team", "a"),
        ("X-Team:", "a"),
        ("", "a"),
        ("X-Team\r\nX-Admin", "a"),
        ("Content-Length", "1"),
        ("Transfer-Encoding", "chunked"),
        ("Connection", "close"),
        ("idempotency-key", "mine"),
    ] {
        let refused = endpoint().header(name, value.to_owned().into());
        assert!(matches!(refused, Err(BadEndpoint::Header { .. })), "{name:?}: {value:?}");
    }
    let problem = endpoint().header("X-Key", "s3cret\n".to_owned().into()).unwrap_err();
    assert!(!problem.to_string().contains("s3cret"), "{problem}");
}

#[tokio::test]
async fn a_secret_that_a_server_repeats_does_not_reach_the_model() {
    let echo = |seen: &Seen| {
        let body = format!("{:?} {}", seen.headers, seen.line);
        if seen.line.contains("fail") { Answer::new("401 Unauthorized", "", body) } else { Answer::text(&body) }
    };
    let server = Server::start(echo).await;
    for path in ["/ok?key=k3y-in-the-url", "/fail?key=k3y-in-the-url"] {
        let endpoint = at(HttpMethod::Get, &server, path)
            .header("Authorization", "Bearer t0ken-of-ours".to_owned().into())
            .unwrap()
            .header("X-Shop", "shop-of-the-desk".to_owned().into())
            .unwrap()
            .keep_secret(&"k3y-in-the-url".to_owned().into());
        let told = match call(endpoint, &json!({})).await {
            Ok(content) => content.to_text(),
            Err(failure) => failure.0,
        };
        assert!(told.contains("\"[redacted]\"") && told.contains("key=[redacted]"), "{told}");
        assert!(told.contains("shop-of-the-desk"), "{told}");
        assert!(!told.contains("t0ken-of-ours") && !told.contains("k3y-in-the-url"), "{told}");
    }
}

#[tokio::test]
async fn arguments_that_are_no_object_are_sent_nowhere() {
    let server = answering().await;
    let arguments = CanonicalJson::parse("[1]").unwrap();
    let failure = soon(runner(at(HttpMethod::Get, &server, "/")).run(context(), arguments)).await.unwrap_err();
    assert!(failure.0.starts_with("the arguments are not an object"), "{failure}");
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn a_server_that_is_not_there_is_told_without_its_address() {
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let endpoint = Endpoint::new(HttpMethod::Get, &format!("http://{gone}/s3cret?key=s3cret")).unwrap();
    let failure = call(endpoint, &json!({})).await.unwrap_err();
    assert!(failure.0.starts_with("the server was not reached: "), "{failure}");
    assert!(!failure.0.contains("s3cret"), "{failure}");
}

#[test]
fn methods_are_read_in_any_case() {
    assert_eq!("post".parse(), Ok(HttpMethod::Post));
    assert_eq!("DELETE".parse(), Ok(HttpMethod::Delete));
    assert_eq!("TRACE".parse::<HttpMethod>(), Err(BadEndpoint::Method));
}
