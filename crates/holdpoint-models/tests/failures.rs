//! What goes wrong on real connections: full houses, broken streams, silence, floods, garbage.
#![cfg(all(feature = "openai", feature = "anthropic"))]
#![allow(clippy::unwrap_used)]

mod support;

use std::sync::Arc;
use std::time::Duration;

use holdpoint_models::HttpSettings;
use holdpoint_runtime::ports::clock::SystemClock;
use holdpoint_runtime::ports::model::{DeltaSink, Model, ModelFault};
use holdpoint_testkit::clock::TestClock;
use holdpoint_testkit::model_server::{Answer, ModelServer};
use support::{After, RawServer, Told, Waits, ask, models, nobody, openai, patient, request};

fn seconds(waits: Vec<Duration>) -> Vec<f64> {
    waits.iter().map(Duration::as_secs_f64).collect()
}

#[tokio::test]
async fn a_full_house_is_asked_again_with_longer_and_longer_waits() {
    let (server, waits) = (ModelServer::start(), Waits::default());
    for (name, model) in models(&server.url(), &patient(), &waits.clock()) {
        let before = server.requests().len();
        for status in [429, 500, 529] {
            server.push(Answer::error(status, "busy"));
        }
        server.push(Answer::text("at last"));
        assert_eq!(ask(&model).await.unwrap().text.as_deref(), Some("at last"), "{name}");
        assert_eq!(server.requests().len() - before, 4, "{name}");
        let waits = seconds(waits.take());
        let bounds = [(0.25, 0.5), (0.5, 1.0), (1.0, 2.0)];
        assert_eq!(waits.len(), 3, "{name}");
        let is_within = |(wait, (least, most)): (&f64, &(f64, f64))| (least..=most).contains(&wait);
        assert!(waits.iter().zip(&bounds).all(is_within), "{name}: {waits:?}");
    }
}

#[tokio::test]
async fn attempts_come_to_an_end_and_the_fault_says_how_many() {
    let (server, waits) = (ModelServer::start(), Waits::default());
    server.script(|_| Answer::error(503, "The engine is overloaded."));
    for (name, model) in models(&server.url(), &patient(), &waits.clock()) {
        let before = server.requests().len();
        let fault = ask(&model).await.unwrap_err();
        let told = format!("{} answered 503: The engine is overloaded. (after 4 attempts)", server.address());
        assert_eq!((fault.message, fault.may_retry), (told, true), "{name}");
        assert_eq!(server.requests().len() - before, 4, "{name}");
    }
}

#[tokio::test]
async fn a_wait_that_is_asked_for_is_kept() {
    let (server, waits) = (ModelServer::start(), Waits::default());
    for (name, model) in models(&server.url(), &patient(), &waits.clock()) {
        server.push(Answer::error(429, "slow down").with_header("retry-after", "7"));
        // Seven seconds by the provider's clock, whatever ours says.
        let at = Answer::error(503, "restarting").with_header("date", "Sun, 06 Nov 1994 08:49:37 GMT");
        server.push(at.with_header("retry-after", "Sun, 06 Nov 1994 08:49:46 GMT"));
        server.push(
            Answer::error(429, "slow down").with_header("retry-after-ms", "11500").with_header("retry-after", "1"),
        );
        server.push(Answer::text("ok"));
        ask(&model).await.unwrap();
        assert_eq!(seconds(waits.take()), [7.0, 9.0, 11.5], "{name}");
    }
}

#[tokio::test]
async fn a_wait_that_is_too_long_is_the_callers_to_make() {
    let (server, waits) = (ModelServer::start(), Waits::default());
    let model: Arc<dyn Model> = Arc::new(openai(&server.url(), &patient(), &waits.clock()).chat("m"));
    server.push(Answer::error(429, "Try later.").with_header("retry-after", "3600"));
    let fault = ask(&model).await.unwrap_err();
    let told = format!("{} answered 429: Try later.; it asks to wait 3600 seconds", server.address());
    assert_eq!((fault.message, fault.may_retry), (told, true));
    assert_eq!((server.requests().len(), waits.take().len()), (1, 0));
}

#[tokio::test]
async fn what_will_not_change_is_not_asked_again() {
    let (server, waits) = (ModelServer::start(), Waits::default());
    let quota =
        r#"{"error":{"message":"You exceeded your quota.","type":"insufficient_quota","code":"insufficient_quota"}}"#;
    for (name, model) in models(&server.url(), &patient(), &waits.clock()) {
        let key = if name == "messages" { "ANTHROPIC" } else { "OPENAI" };
        for (answer, expected) in [
            (Answer::error(400, "bad"), "answered 400: bad".to_owned()),
            (Answer::error(401, "no"), format!("answered 401: no; check the key in {key}_API_KEY")),
            (
                Answer::error(403, "no"),
                format!("answered 403: no; check that the key in {key}_API_KEY may use the model \"m\""),
            ),
            (
                Answer::error(404, "gone"),
                format!("answered 404: gone; check the model's name \"m\" and {key}_BASE_URL"),
            ),
            (Answer::status(413, "<html>too large</html>"), "answered 413: <html>too large</html>".to_owned()),
            (Answer::status(422, r#"{"detail":"bad"}"#), "answered 422: bad".to_owned()),
            (Answer::status(429, quota), "answered 429: You exceeded your quota.".to_owned()),
            (Answer::error(500, "no").with_header("x-should-retry", "false"), "answered 500: no".to_owned()),
        ] {
            let before = server.requests().len();
            server.push(answer);
            let fault = ask(&model).await.unwrap_err();
            assert_eq!(fault.message, format!("{} {expected}", server.address()), "{name}");
            assert!(!fault.may_retry && waits.take().is_empty(), "{name}: {fault}");
            assert_eq!(server.requests().len(), before + 1, "{name}");
        }
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let (server, other) = (ModelServer::start(), ModelServer::start());
    let to = format!("{}/v1/chat/completions", other.url());
    server.push(Answer::status(308, "").with_header("location", to));
    let model: Arc<dyn Model> = Arc::new(openai(&server.url(), &patient(), &Waits::default().clock()).chat("m"));
    let fault = ask(&model).await.unwrap_err();
    let told = "answered 308; redirects are not followed: set OPENAI_BASE_URL to the final address";
    assert_eq!(fault.message, format!("{} {told}", server.address()));
    assert!(other.requests().is_empty());
}

#[tokio::test]
async fn a_stream_that_breaks_before_the_first_word_is_asked_for_again() {
    let (server, waits) = (ModelServer::start(), Waits::default());
    for (name, model) in models(&server.url(), &patient(), &waits.clock()) {
        let before = server.requests().len();
        server.push(Answer::empty().then_cut());
        server.push(Answer::raw("text/event-stream", [": nothing\n\n"]));
        let overloaded = r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;
        server.push(Answer::raw("text/event-stream", [format!("event: error\ndata: {overloaded}\n\n")]));
        server.push(Answer::text("whole"));
        let told = Told::new();
        let reply = model.reply(request("hello"), told.sink()).await.unwrap();
        assert_eq!((reply.text.as_deref(), told.text().as_str()), (Some("whole"), "whole"), "{name}");
        assert_eq!(server.requests().len() - before, 4, "{name}");
    }
}

#[tokio::test]
async fn a_stream_that_breaks_after_the_first_word_is_a_fault_and_is_not_asked_for_again() {
    let (server, waits) = (ModelServer::start(), Waits::default());
    for (name, model) in models(&server.url(), &patient(), &waits.clock()) {
        let before = server.requests().len();
        server.push(Answer::tokens(["It is"]).then_cut());
        let told = Told::new();
        let fault = model.reply(request("hello"), told.sink()).await.unwrap_err();
        let expected = format!("the connection to {} broke in the middle of the reply", server.address());
        assert_eq!((fault.message, fault.may_retry), (expected, true), "{name}");
        assert_eq!((told.text().as_str(), server.requests().len() - before), ("It is", 1), "{name}");
    }
}

#[tokio::test]
async fn nobody_at_the_address_is_a_fault_that_says_what_to_check() {
    let waits = Waits::default();
    for (name, model) in models(&nobody(), &patient(), &waits.clock()) {
        let fault = ask(&model).await.unwrap_err();
        let variable = if name == "messages" { "ANTHROPIC_BASE_URL" } else { "OPENAI_BASE_URL" };
        let expected = format!("cannot be reached: check {variable} and the network (after 4 attempts)");
        assert!(fault.message.ends_with(&expected) && fault.may_retry, "{fault}");
        assert!(std::error::Error::source(&fault).is_some());
        assert_eq!(waits.take().len(), 3);
    }
}

/// Lets the clock run until the reply is there.
async fn run_clock(
    clock: &TestClock,
    step: Duration,
    reply: tokio::task::JoinHandle<Result<(), ModelFault>>,
) -> ModelFault {
    while !reply.is_finished() {
        clock.advance(step);
        tokio::task::yield_now().await;
    }
    reply.await.unwrap().unwrap_err()
}

fn spawn(model: Arc<dyn Model>, sink: DeltaSink) -> tokio::task::JoinHandle<Result<(), ModelFault>> {
    tokio::spawn(async move { model.reply(request("hello"), sink).await.map(|_| ()) })
}

#[tokio::test]
async fn silence_before_the_answer_has_an_end() {
    let server = RawServer::start(b"", After::Hang);
    let clock = TestClock::default();
    for (name, model) in models(&server.url(), &HttpSettings::default(), &clock.shared()) {
        let fault = run_clock(&clock, Duration::from_secs(1), spawn(model, DeltaSink::none())).await;
        let expected = format!("{} did not begin to answer within 300 seconds", server.address);
        assert_eq!((fault.message, fault.may_retry), (expected, true), "{name}");
    }
}

#[tokio::test]
async fn silence_in_the_middle_of_the_answer_has_an_end() {
    let server = ModelServer::start();
    server.script(|_| Answer::tokens(["It is"]).then_hang());
    let clock = TestClock::default();
    for (name, model) in models(&server.url(), &HttpSettings::default(), &clock.shared()) {
        let told = Told::new();
        let reply = spawn(model, told.sink());
        told.wait_for(1).await;
        let fault = run_clock(&clock, Duration::from_secs(1), reply).await;
        let expected = format!("{} said nothing more within 120 seconds", server.address());
        assert_eq!((fault.message, fault.may_retry), (expected, true), "{name}");
    }
}

#[tokio::test]
async fn a_reply_that_never_ends_has_an_end() {
    let server = ModelServer::start();
    server.script(|_| Answer::error(503, "busy"));
    let clock = TestClock::default();
    let http =
        HttpSettings { attempts_max: u32::MAX, total_timeout: Duration::from_secs(90), ..HttpSettings::default() };
    let model: Arc<dyn Model> = Arc::new(openai(&server.url(), &http, &clock.shared()).chat("m"));
    let fault = run_clock(&clock, Duration::from_millis(100), spawn(model, DeltaSink::none())).await;
    let expected = format!("{} gave no whole reply within 90 seconds", server.address());
    assert!(fault.message.starts_with(&expected) && fault.may_retry, "{fault}");
}

#[tokio::test]
async fn a_flood_is_cut_at_its_bound() {
    let server = ModelServer::start();
    let http = HttpSettings { response_bytes_max: 100_000, ..patient() };
    for (name, model) in models(&server.url(), &http, &Waits::default().clock()) {
        for piece in ["data: {}\n\n", ": still here\n\n", "{\"a\": 1, ", "x"] {
            server.push(Answer::raw("text/event-stream", vec![piece.repeat(1_000); 200]));
            let fault = ask(&model).await.unwrap_err();
            let expected = format!("the answer of {} is larger than 100000 bytes", server.address());
            assert_eq!((fault.message, fault.may_retry), (expected, false), "{name} {piece:?}");
        }
        server.push(Answer::status(400, "x".repeat(10_000_000)));
        let fault = ask(&model).await.unwrap_err();
        assert!(fault.message.len() < 1_000 && fault.message.contains("answered 400: xxx"), "{name}");
    }
}

#[tokio::test]
async fn garbage_is_a_fault() {
    let waits = Waits::default();
    let http = HttpSettings { attempts_max: 1, ..patient() };
    let ok = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n";
    for (bytes, expected) in [
        ("hello\r\n\r\n".to_owned(), "closed the connection without an answer"),
        (String::new(), "closed the connection without an answer"),
        ("HTTP/1.1 200 OK\r\ncontent-le".to_owned(), "closed the connection without an answer"),
        (format!("{ok}\r\n"), "ended before the reply was whole"),
        (format!("{ok}content-length: 100\r\n\r\ndata: {{}}\n"), "broke in the middle of the reply"),
        (format!("{ok}\r\n<html>Sign in</html>"), "did not answer as a model does: it says <html>Sign in</html>"),
        (format!("{ok}\r\n{{\"choices\": [}}"), "did not answer as a model does: the answer is not JSON"),
        (format!("{ok}\r\ndata: nonsense\n\n"), "did not answer as a model does: a frame is not JSON: nonsense"),
        (format!("{ok}transfer-encoding: chunked\r\n\r\nzz\r\n"), "broke in the middle of the reply"),
    ] {
        let server = RawServer::start(bytes.as_bytes(), After::Close);
        for (name, model) in models(&server.url(), &http, &waits.clock()) {
            let fault = ask(&model).await.unwrap_err();
            assert!(fault.message.contains(expected), "{name} {bytes:?}: {fault}");
        }
    }
}

#[tokio::test]
async fn a_connection_that_cannot_be_made_in_time_is_given_up() {
    // A listener whose queue is full answers nobody.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let http = HttpSettings { attempts_max: 1, connect_timeout: Duration::from_millis(50), ..HttpSettings::default() };
    let url = format!("http://{}", listener.local_addr().unwrap());
    let address = listener.local_addr().unwrap();
    let mut waiting = Vec::new();
    while let Ok(stream) = std::net::TcpStream::connect_timeout(&address, Duration::from_millis(50)) {
        waiting.push(stream);
        assert!(waiting.len() < 10_000, "the queue has an end");
    }
    let model: Arc<dyn Model> = Arc::new(openai(&url, &http, &SystemClock::shared()).chat("m"));
    let fault = ask(&model).await.unwrap_err();
    assert!(fault.message.contains("cannot be reached") && fault.may_retry, "{fault}");
}

#[tokio::test]
async fn dropping_a_reply_hangs_up() {
    let server = ModelServer::start();
    server.script(|_| Answer::tokens(["It is"]).then_hang());
    let model: Arc<dyn Model> = Arc::new(openai(&server.url(), &patient(), &Waits::default().clock()).chat("m"));
    let told = Told::new();
    let reply = spawn(model.clone(), told.sink());
    told.wait_for(1).await;
    reply.abort();
    assert!(reply.await.unwrap_err().is_cancelled());
    server.push(Answer::text("again"));
    assert_eq!(ask(&model).await.unwrap().text.as_deref(), Some("again"));
}
