//! What a server's answer becomes, also when the server means no good.

use std::time::Duration;

use holdpoint_core::json::CanonicalJson;
use holdpoint_core::message::Content;
use holdpoint_runtime::ports::tool::RunTool;
use serde_json::json;

use super::super::HttpMethod;
use super::server::{Answer, Server};
use super::{at, call, runner, soon};
use crate::testing::{arguments, context};

const OPEN_END: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\nconnection: close\r\n\r\n";

/// What a model is told of an answer of which `bytes_max` bytes may be the result.
async fn told(answer: impl Fn() -> Answer + Send + Sync + 'static, bytes_max: usize) -> Result<Content, String> {
    let server = Server::start(move |_| answer()).await;
    let endpoint = at(HttpMethod::Get, &server, "/").response_bytes_max(bytes_max);
    call(endpoint, &json!({})).await.map_err(|failure| failure.0)
}

fn text(text: &str) -> Result<Content, String> {
    Ok(Content::Text(text.to_owned()))
}

#[tokio::test]
async fn the_body_is_the_result() {
    assert_eq!(told(|| Answer::text("two\nlines"), 100).await, text("two\nlines"));
    let json = |text| Ok(Content::Json(CanonicalJson::parse(text).unwrap()));
    assert_eq!(told(|| Answer::json("[1, 2]"), 100).await, json("[1,2]"));
    let answer = || Answer::new("200 OK", "content-type: application/problem+json; charset=utf-8\r\n", "\u{feff}{}");
    assert_eq!(told(answer, 100).await, json("{}"));
}

#[tokio::test]
async fn what_is_called_json_and_is_none_is_text() {
    for body in ["{\"a\": 1, \"a\": 2}", "{", "NaN"] {
        assert_eq!(told(move || Answer::json(body), 100).await, text(body));
    }
    assert_eq!(told(|| Answer::text("{\"a\": 1}"), 100).await, text("{\"a\": 1}"));
}

#[tokio::test]
async fn an_answer_without_a_body_says_so() {
    let answer = || Answer::Bytes(b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n".to_vec());
    assert_eq!(told(answer, 100).await, text("the server answered 204 No Content without a body"));
    assert_eq!(told(|| Answer::text(""), 100).await, text("the server answered 200 OK without a body"));
}

#[tokio::test]
async fn a_long_body_is_cut_between_characters_and_says_how_much_is_missing() {
    assert_eq!(told(|| Answer::text("0123456789"), 4).await, text("0123\n[cut here: 6 more bytes]"));
    assert_eq!(told(|| Answer::text("aéé"), 4).await, text("aé\n[cut here: 1 more bytes]"));
    assert_eq!(told(|| Answer::json("[1, 2, 3]"), 4).await, text("[1, \n[cut here: 5 more bytes]"));
    assert_eq!(told(|| Answer::text("0123"), 4).await, text("0123"));
}

#[tokio::test]
async fn a_body_without_an_end_is_left_when_there_is_enough() {
    let answer = || Answer::Endless(OPEN_END.into(), vec![b'x'; 4096]);
    let expected = format!("{}\n[cut here: the answer goes on]", "x".repeat(10_000));
    assert_eq!(told(answer, 10_000).await, text(&expected));
}

#[tokio::test]
async fn what_a_small_answer_unpacks_to_is_bounded() {
    let head = OPEN_END.replace("text/plain", "text/plain\r\ncontent-encoding: gzip");
    let head = [head.as_bytes(), &GZIP_HEADER, &packed_letters(true)].concat();
    let answer = move || Answer::Endless(head.clone(), packed_letters(false));
    let expected = format!("{}\n[cut here: the answer goes on]", "x".repeat(100_000));
    assert_eq!(told(answer, 100_000).await, text(&expected));
}

#[tokio::test]
async fn bytes_that_are_no_text_do_no_harm() {
    let answer = || Answer::new("200 OK", "content-type: text/plain\r\n", b"a\xff\xfeb");
    assert_eq!(told(answer, 100).await, text("a\u{fffd}\u{fffd}b"));
    let answer = || Answer::new("200 OK", "content-type: image/png\r\n", b"\x89PNG\0\0");
    assert_eq!(told(answer, 100).await, text("[not text: 6 bytes, not shown]"));
    assert_eq!(told(answer, 5).await, text("[not text: 5 bytes and more, not shown]"));
}

#[tokio::test]
async fn a_status_outside_2xx_is_a_failure_with_what_the_server_said_and_no_header() {
    let answer = || Answer::new("422 Whatever", "x-internal: s3cret\r\n", "no\u{202e} such account\n");
    let expected = "the server answered 422 Unprocessable Entity: no⟦U+202E⟧ such account";
    assert_eq!(told(answer, 100).await, Err(expected.to_owned()));
    let answer = || Answer::new("500 Internal Server Error", "", "");
    assert_eq!(told(answer, 100).await, Err("the server answered 500 Internal Server Error".to_owned()));
    let answer = || Answer::new("599 Odd", "", "x".repeat(5_000));
    let expected = format!("the server answered 599: {}\n[cut here: 2952 more bytes]", "x".repeat(2_048));
    assert_eq!(told(answer, 100_000).await, Err(expected));
}

#[tokio::test]
async fn a_redirect_is_a_failure_that_says_where_to_and_is_not_followed() {
    let other = Server::start(|_| Answer::text("stolen")).await;
    let to = other.url("/away?token=s3cret");
    let expected =
        format!("the server answered 302 Found and points to {}: redirects are not followed", other.url("/away"));
    assert_eq!(told(move || Answer::redirect(&to), 100).await, Err(expected));
    let expected = "the server answered 302 Found and points to /login: redirects are not followed";
    assert_eq!(told(|| Answer::redirect("/login?next=1"), 100).await, Err(expected.to_owned()));
    assert_eq!(other.connections(), 0);
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_no_result() {
    let answer = || Answer::Bytes(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf".to_vec());
    let failure = told(answer, 100).await.unwrap_err();
    assert!(failure.starts_with("the server's answer broke off; it may have acted all the same"), "{failure}");
    let failure = told(|| Answer::Bytes(b"nonsense\r\n\r\n".to_vec()), 100).await.unwrap_err();
    assert!(failure.starts_with("the request did not work; the server may have acted all the same"), "{failure}");
}

#[tokio::test]
async fn a_server_that_does_not_come_to_an_end_is_left_when_the_time_is_up() {
    for bytes in ["", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nslow"] {
        let server = Server::start(|_| Answer::Stalled(bytes.into())).await;
        let endpoint = at(HttpMethod::Post, &server, "/").timeout(Duration::from_millis(300));
        let failure = call(endpoint, &json!({})).await.unwrap_err();
        assert_eq!(failure.0, "no complete answer within 300ms; the server may have acted all the same");
    }
}

#[tokio::test]
async fn a_cancelled_run_waits_for_no_answer() {
    let server = Server::start(|_| Answer::Stalled(OPEN_END.into())).await;
    let context = context();
    let cancelled = context.cancelled.clone();
    let runner = runner(at(HttpMethod::Get, &server, "/"));
    let running = tokio::spawn(async move { runner.run(context, arguments(&json!({}))).await });
    soon(server.arrived()).await;
    cancelled.cancel();
    let failure = soon(running).await.unwrap().unwrap_err();
    assert_eq!(failure.0, "the run was cancelled during the request; the server may have acted all the same");
}

const GZIP_HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];

/// The beginning of a deflate stream, or a part of one that can follow it any number of times: in both, thirteen bits
/// stand for 258 more of the same letter, and the last byte is full.
fn packed_letters(is_beginning: bool) -> Vec<u8> {
    let mut bits: Vec<u8> = Vec::new();
    if is_beginning {
        // A block that is not the last, with fixed codes; then `x`, whose code is 0x30 + 0x78, highest bit first.
        bits.extend([0, 1, 0]);
        bits.extend((0..8).rev().map(|at| ((0x30 + b'x') >> at) & 1));
    }
    bits.extend(repetition());
    while !bits.len().is_multiple_of(8) {
        bits.extend(repetition());
    }
    bits.chunks(8).map(|byte| byte.iter().enumerate().fold(0, |byte, (at, bit)| byte | (bit << at))).collect()
}

/// The length 258 (code 285, eight bits) at the distance 1 (code 0, five bits), codes with their highest bit first.
fn repetition() -> Vec<u8> {
    let length = 0b1100_0101_u8;
    (0..8).rev().map(|at| (length >> at) & 1).chain([0; 5]).collect()
}
