//! Requests where a model wants: to real servers, with names that lead where a test says.

use std::collections::VecDeque;
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use holdpoint_core::message::Content;
use holdpoint_runtime::ports::tool::RunTool;
use serde_json::{Value, json};

use super::super::http_request::RequestRunner;
use super::super::{AddressGuard, GuardedClient, HttpRequestTool, Lookup};
use super::server::{Answer, Seen, Server};
use super::soon;
use crate::testing::{arguments, context, holds};

/// Gives the next answer for any name, and the last one over and over.
#[derive(Clone)]
struct Names(Arc<Mutex<Script>>);

struct Script {
    answers: VecDeque<Vec<IpAddr>>,
    asked: Vec<String>,
}

impl Names {
    fn leading_to(answers: &[&[&str]]) -> Self {
        let read = |answer: &&[&str]| answer.iter().map(|address| address.parse().unwrap()).collect();
        Self(Arc::new(Mutex::new(Script { answers: answers.iter().map(read).collect(), asked: Vec::new() })))
    }

    fn asked(&self) -> Vec<String> {
        self.0.lock().unwrap().asked.clone()
    }
}

#[async_trait]
impl Lookup for Names {
    async fn lookup(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        let Script { answers, asked } = &mut *self.0.lock().unwrap();
        asked.push(host.to_owned());
        let answer = if answers.len() > 1 { answers.pop_front() } else { answers.front().cloned() };
        Ok(answer.unwrap_or_default())
    }
}

/// Every name leads to this machine, and `friend.test` is allowed to.
fn friendly() -> AddressGuard {
    AddressGuard::new().any_port().lookup(Names::leading_to(&[&["127.0.0.1"]])).allow("friend.test").unwrap()
}

fn runner(tool: HttpRequestTool) -> RequestRunner {
    RequestRunner { client: GuardedClient::new(tool.guard.clone()).unwrap(), settings: tool }
}

async fn ask(tool: HttpRequestTool, value: Value) -> Result<String, String> {
    let told = soon(runner(tool).run(context(), arguments(&value))).await;
    told.map(|content| content.to_text()).map_err(|failure| failure.0)
}

async fn get(guard: AddressGuard, url: &str) -> Result<String, String> {
    ask(HttpRequestTool::new(guard), json!({ "url": url })).await
}

fn friend(server: &Server, path: &str) -> String {
    format!("http://friend.test:{}{path}", server.port())
}

#[tokio::test]
async fn a_request_tool_is_set_as_every_tool_and_says_what_it_takes() {
    let tool = HttpRequestTool::new(AddressGuard::new()).builder().unwrap().needs_approval(true).build().unwrap();
    assert_eq!(tool.name().as_str(), "http_request");
    assert!(holds(&tool, &json!({"url": "https://example.com/"})).await);
    for value in [
        json!({}),
        json!({"url": ""}),
        json!({"url": "https://example.com/", "method": "TRACE"}),
        json!({"url": "https://example.com/", "headers": {"x": 1}}),
        json!({"url": "https://example.com/", "body": 1}),
        json!({"url": "https://example.com/", "allow_private": true}),
    ] {
        assert!(tool.validate(&arguments(&value)).is_err(), "{value}");
    }
}

#[tokio::test]
async fn a_request_is_sent_as_the_model_wrote_it() {
    let server = Server::start(|_| Answer::json(r#"{"ok": true}"#)).await;
    let value = json!({
        "url": friend(&server, "/a?b=c"), "method": "POST",
        "headers": {"X-Team": "desk", "Accept": "application/json"}, "body": {"b": 1.5, "a": [null]},
    });
    let told = soon(runner(HttpRequestTool::new(friendly())).run(context(), arguments(&value))).await.unwrap();
    assert_eq!(told, Content::Json(arguments(&json!({"ok": true}))));
    let seen = server.only();
    assert_eq!((seen.line.as_str(), seen.body.as_str()), ("POST /a?b=c", r#"{"a":[null],"b":1.5}"#));
    assert_eq!(seen.header("x-team"), Some("desk"));
    assert_eq!(seen.header("content-type"), Some("application/json"));
    assert_eq!(seen.header("idempotency-key"), Some(context().idempotency_key().as_str()));
}

#[tokio::test]
async fn a_text_is_sent_as_it_is_and_a_get_carries_no_key() {
    let server = Server::start(|_| Answer::text("ok")).await;
    let url = friend(&server, "/");
    let value = json!({"url": url, "method": "PUT", "headers": {"Content-Type": "text/csv"}, "body": "a,\"b\"\n"});
    ask(HttpRequestTool::new(friendly()), value).await.unwrap();
    ask(HttpRequestTool::new(friendly()), json!({"url": url, "method": "PATCH", "body": "x"})).await.unwrap();
    ask(HttpRequestTool::new(friendly()), json!({"url": url})).await.unwrap();
    let seen = server.seen();
    assert_eq!((seen[0].body.as_str(), seen[0].header("content-type")), ("a,\"b\"\n", Some("text/csv")));
    assert_eq!(seen[1].header("content-type"), Some("text/plain; charset=utf-8"));
    assert_eq!((seen[2].line.as_str(), seen[2].header("idempotency-key")), ("GET /", None));
}

#[tokio::test]
async fn no_spelling_of_an_address_on_this_machine_or_network_is_connected_to() {
    let server = Server::start(|_| Answer::text("stolen")).await;
    let guard = AddressGuard::new().any_port().lookup(Names::leading_to(&[&["127.0.0.1"]]));
    for url in [
        "http://127.0.0.1:{p}/",
        "http://127.1:{p}/",
        "http://127.0.1:{p}/",
        "http://2130706433:{p}/",
        "http://0x7f000001:{p}/",
        "http://0x7f.0x0.0x0.0x1:{p}/",
        "http://0177.0.0.1:{p}/",
        "http://017700000001:{p}/",
        "http://127.0.0.1.:{p}/",
        "http://0:{p}/",
        "http://0.0.0.0:{p}/",
        "http://[::1]:{p}/",
        "http://[0:0:0:0:0:0:0:1]:{p}/",
        "http://[::]:{p}/",
        "http://[::ffff:127.0.0.1]:{p}/",
        "http://[::ffff:7f00:1]:{p}/",
        "http://[0:0:0:0:0:ffff:7f00:0001]:{p}/",
        "http://[::127.0.0.1]:{p}/",
        "http://[64:ff9b::7f00:1]:{p}/",
        "http://[2002:7f00:1::]:{p}/",
        "http://[fe80::1]:{p}/",
        "http://①②⑦.⓪.⓪.①:{p}/",
        "http://127。0。0。1:{p}/",
        "http://１２７.0.0.1:{p}/",
        "http://%31%32%37.0.0.1:{p}/",
        "http://localhost:{p}/",
        "http://LOCALHOST:{p}/",
        "http://localhost.:{p}/",
        "http://evil.test:{p}/",
        "http://friend.test.evil.test:{p}/",
        "http://user@127.0.0.1:{p}/",
        "http://example.com@127.0.0.1:{p}/",
        "http://example.com:80@127.0.0.1:{p}/",
        "http://127.0.0.1:{p}#@example.com/",
        "http:\\\\127.0.0.1:{p}\\",
        "http:/127.0.0.1:{p}/",
        "http:127.0.0.1:{p}/",
        "  http://127.0.0.1:{p}/  ",
        "ht\ntp://127.0.0.1:{p}/",
        "https://127.0.0.1:{p}/",
        "ftp://127.0.0.1:{p}/",
        "ws://127.0.0.1:{p}/",
        "//127.0.0.1:{p}/",
        "127.0.0.1:{p}",
    ] {
        let told = get(guard.clone(), &url.replace("{p}", &server.port().to_string())).await;
        assert!(told.is_err(), "{url} {told:?}");
    }
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn a_name_that_leads_to_one_forbidden_address_is_refused_and_the_address_is_not_told() {
    for (addresses, told) in [
        (&["10.0.0.7"][..], "the address is private, which may not be asked"),
        (&["93.184.216.34", "10.0.0.7"], "the address is private, which may not be asked"),
        (&["169.254.169.254"], "the address is link-local, which may not be asked"),
        (&["::ffff:127.0.0.1"], "the address is IPv4-in-IPv6, which may not be asked"),
        (&["fd00:ec2::254"], "the address is cloud metadata, which may not be asked"),
        (&["100.100.100.200"], "the address is cloud metadata, which may not be asked"),
        (&["fd12::254"], "the address is private, which may not be asked"),
        (&["100.100.100.201"], "the address is carrier-shared, which may not be asked"),
        (&["224.0.0.1"], "the address is multicast, which may not be asked"),
    ] {
        let guard = AddressGuard::new().lookup(Names::leading_to(&[addresses]));
        assert_eq!(get(guard, "http://rebind.test/").await, Err(told.to_owned()), "{addresses:?}");
    }
    let guard = AddressGuard::new().lookup(Names::leading_to(&[&[]]));
    let told = get(guard, "http://nobody.test/").await.unwrap_err();
    assert_eq!(told, "the server was not reached: the name has no address");
}

#[tokio::test]
async fn the_address_that_was_checked_is_the_one_that_is_connected_to() {
    let server = Server::start(|_| Answer::text("ok")).await;
    let url = format!("http://rebind.test:{}/", server.port());
    let names = Names::leading_to(&[&["127.0.0.1"], &["169.254.169.254"]]);
    let guard = AddressGuard::new().any_port().lookup(names.clone()).allow("127.0.0.1").unwrap();
    let tool = HttpRequestTool::new(guard);
    // Had the name been resolved a second time, for the connection, it would have led elsewhere.
    assert_eq!(ask(tool.clone(), json!({"url": url})).await.as_deref(), Ok("ok"));
    assert_eq!(names.asked(), ["rebind.test"]);
    let told = ask(tool, json!({"url": url})).await;
    assert_eq!(told.unwrap_err(), "the address is link-local, which may not be asked");
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn a_host_that_is_allowed_is_allowed_under_its_exact_name() {
    let server = Server::start(|_| Answer::text("ok")).await;
    for host in ["friend.test", "FRIEND.test", "friend.test."] {
        let url = format!("http://{host}:{}/", server.port());
        assert_eq!(get(friendly(), &url).await.as_deref(), Ok("ok"), "{host}");
    }
    for host in ["a.friend.test", "friend.test.a", "xfriend.test"] {
        let url = format!("http://{host}:{}/", server.port());
        assert!(get(friendly(), &url).await.is_err(), "{host}");
    }
    assert_eq!(server.connections(), 3);
    // A name does not open what no name leads to in earnest.
    let guard = friendly().lookup(Names::leading_to(&[&["169.254.169.254"]]));
    let told = get(guard, "http://friend.test/").await;
    assert_eq!(told.unwrap_err(), "the address is link-local, which may not be asked");
}

#[tokio::test]
async fn a_redirect_to_where_nobody_may_go_is_not_followed() {
    let inner = Server::start(|_| Answer::text("stolen")).await;
    let port = inner.port();
    for to in [
        "http://169.254.169.254/latest/meta-data/".to_owned(),
        format!("http://127.0.0.1:{port}/"),
        format!("http://[::1]:{port}/"),
        format!("//127.0.0.1:{port}/"),
        format!("http://inner.test:{port}/"),
        format!("http://user:word@friend.test:{port}/"),
        "file:///etc/passwd".to_owned(),
        "ftp://example.com/".to_owned(),
    ] {
        let leading = to.clone();
        let server = Server::start(move |_| Answer::redirect(&leading)).await;
        let told = get(friendly(), &friend(&server, "/")).await;
        assert!(told.as_ref().is_err_and(|told| told.contains("may")), "{to} {told:?}");
        assert_eq!(server.connections(), 1);
    }
    assert_eq!(inner.connections(), 0);
}

#[tokio::test]
async fn redirects_of_a_get_are_followed_each_one_checked_up_to_a_number() {
    let hop = |seen: &Seen| match seen.line.trim_start_matches("GET /").split('?').next().unwrap().parse::<u32>() {
        Ok(0) => Answer::text("arrived"),
        Ok(left) => Answer::redirect(&format!("/{}?token=s3cret", left - 1)),
        Err(error) => panic!("{error}: {}", seen.line),
    };
    let server = Server::start(hop).await;
    assert_eq!(get(friendly(), &friend(&server, "/5")).await.as_deref(), Ok("arrived"));
    let told = get(friendly(), &friend(&server, "/6")).await.unwrap_err();
    assert_eq!(told, "the server answered 302 Found and points to /0: no more redirects are followed");
    let none = HttpRequestTool::new(friendly()).redirects_max(0);
    assert!(ask(none, json!({"url": friend(&server, "/1")})).await.is_err());
    let most = HttpRequestTool::new(friendly()).redirects_max(200);
    assert!(ask(most, json!({"url": friend(&server, "/6")})).await.is_err());
}

#[tokio::test]
async fn a_request_that_changes_something_goes_to_one_address_only() {
    let other = Server::start(|_| Answer::text("stolen")).await;
    let to = friend(&other, "/away");
    for method in ["POST", "PUT", "PATCH", "DELETE"] {
        let leading = to.clone();
        let server =
            Server::start(move |_| Answer::new("307 Temporary Redirect", &format!("location: {leading}\r\n"), ""))
                .await;
        let value = json!({"url": friend(&server, "/"), "method": method});
        let told = ask(HttpRequestTool::new(friendly()), value).await.unwrap_err();
        let expected =
            format!("the server answered 307 Temporary Redirect and points to {to}: redirects are not followed");
        assert_eq!(told, expected);
    }
    assert_eq!(other.connections(), 0);
}

#[tokio::test]
async fn headers_that_say_who_asks_or_where_a_message_ends_are_refused() {
    let server = Server::start(|_| Answer::text("ok")).await;
    for name in [
        "Host",
        "Authorization",
        "authorization",
        "Cookie",
        "Proxy-Authorization",
        "Connection",
        "Keep-Alive",
        "TE",
        "Trailer",
        "Transfer-Encoding",
        "Upgrade",
        "Content-Length",
        "Expect",
        "X-Forwarded-For",
        "Forwarded",
        "X-Real-IP",
        "Metadata-Flavor",
        "X-aws-ec2-metadata-token",
        "Idempotency-Key",
        "Proxy-Connection",
    ] {
        let value = json!({"url": friend(&server, "/"), "headers": {name: "x"}});
        let told = ask(HttpRequestTool::new(friendly()), value).await;
        assert_eq!(told, Err(format!("the header {name} may not be set")));
    }
    for (name, value) in [("X-A", "a\r\nHost: evil"), ("X-A", "a\nb"), ("X-A", "\0"), ("X A", "a"), ("X-A\r\nB", "a")] {
        let value = json!({"url": friend(&server, "/"), "headers": {name: value}});
        assert!(ask(HttpRequestTool::new(friendly()), value.clone()).await.is_err(), "{value}");
    }
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn a_header_that_is_allowed_goes_to_the_host_that_was_named_and_to_no_other() {
    let other = Server::start(|_| Answer::text("arrived")).await;
    let to = friend(&other, "/");
    let server = Server::start(move |_| Answer::redirect(&to)).await;
    let tool = HttpRequestTool::new(friendly()).allow_header("Authorization").unwrap();
    let headers = json!({"Authorization": "Bearer x", "X-Team": "desk"});
    let told = ask(tool, json!({"url": friend(&server, "/"), "headers": headers})).await;
    assert_eq!(told.as_deref(), Ok("arrived"));
    assert_eq!(server.only().header("authorization"), Some("Bearer x"));
    assert_eq!((other.only().header("authorization"), other.only().header("x-team")), (None, Some("desk")));
    for name in ["Content-Length", "Transfer-Encoding", "Connection", "Idempotency-Key", "a b", ""] {
        assert!(HttpRequestTool::new(friendly()).allow_header(name).is_err(), "{name}");
    }
}

#[tokio::test]
async fn requests_have_bounds() {
    let server = Server::start(|_| Answer::text("ok")).await;
    let url = friend(&server, "/");
    let many: serde_json::Map<String, Value> = (0..33).map(|at| (format!("x-{at}"), json!("v"))).collect();
    for value in [
        json!({"url": format!("{url}{}", "x".repeat(8192))}),
        json!({"url": url, "headers": many}),
        json!({"url": url, "body": "x"}),
        json!({"url": url, "method": "get"}),
        json!({"url": "not an address"}),
        json!({"url": url, "unknown": 1}),
    ] {
        assert!(ask(HttpRequestTool::new(friendly()), value.clone()).await.is_err(), "{value}");
    }
    assert_eq!(server.connections(), 0);
    let server = Server::start(|_| {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\nconnection: close\r\n\r\n";
        Answer::Endless(head.into(), vec![b'x'; 4096])
    })
    .await;
    let tool = HttpRequestTool::new(friendly()).response_bytes_max(5);
    let told = ask(tool, json!({"url": friend(&server, "/")})).await;
    assert_eq!(told.as_deref(), Ok("xxxxx\n[cut here: the answer goes on]"));
    let server = Server::start(|_| Answer::Stalled(Vec::new())).await;
    let tool = HttpRequestTool::new(friendly()).timeout(Duration::from_millis(300));
    let told = ask(tool, json!({"url": friend(&server, "/")})).await.unwrap_err();
    assert_eq!(told, "no complete answer within 300ms; the server may have acted all the same");
}

#[tokio::test]
async fn a_head_is_answered_with_its_status() {
    let server = Server::start(|_| Answer::new("200 OK", "", "")).await;
    let told = ask(HttpRequestTool::new(friendly()), json!({"url": friend(&server, "/"), "method": "HEAD"})).await;
    assert_eq!(told.as_deref(), Ok("the server answered 200 OK without a body"));
}
