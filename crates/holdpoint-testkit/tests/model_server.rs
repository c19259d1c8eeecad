//! The model server keeps its promises: it speaks, waits at gates, breaks off, and remembers what it was asked.
#![allow(clippy::unwrap_used)]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;

use holdpoint_testkit::model_server::{Answer, Gate, ModelServer};
use serde_json::{Value, json};

/// Posts a body by hand and gives the connection, to read from.
fn post(server: &ModelServer, path: &str, body: &Value) -> BufReader<TcpStream> {
    let body = body.to_string();
    let mut stream = TcpStream::connect(server.address()).unwrap();
    let head = format!("POST {path} HTTP/1.1\r\nhost: model\r\nconnection: close\r\nX-Mark: 7\r\n");
    write!(stream, "{head}content-length: {}\r\n\r\n{body}", body.len()).unwrap();
    BufReader::new(stream)
}

/// Reads lines until one has these words in it.
fn read_until(reader: &mut BufReader<TcpStream>, words: &str) -> String {
    let mut all = String::new();
    while !all.contains(words) {
        assert_ne!(reader.read_line(&mut all).unwrap(), 0, "the answer ended: {all}");
    }
    all
}

fn whole(mut reader: BufReader<TcpStream>) -> String {
    let mut all = String::new();
    reader.read_to_string(&mut all).unwrap();
    all
}

const PATHS: [&str; 3] = ["/v1/chat/completions", "/v1/responses", "/v1/messages"];

fn chat(text: &str) -> Value {
    json!({"model": "m", "stream": true, "messages": [{"role": "user", "content": text}]})
}

#[test]
fn what_comes_before_a_gate_is_seen_before_it_opens() {
    let server = ModelServer::start();
    for path in PATHS {
        let gate = Gate::closed();
        server.push(Answer::tokens(["first-word"]).and_gate(&gate).and_tokens(["second-word"]));
        let mut reader = post(&server, path, &chat("hello"));
        let before = read_until(&mut reader, "first-word");
        let deltas = before.lines().filter(|line| line.contains("delta")).collect::<String>();
        assert!(!deltas.contains("second-word"), "{path}: {deltas}");
        gate.open();
        assert!(whole(reader).contains("second-word"), "{path}");
    }
}

#[test]
fn pushed_answers_come_first_then_the_script_then_an_error_that_says_so() {
    let server = ModelServer::start();
    assert!(whole(post(&server, PATHS[0], &chat("a"))).contains("has no answer for this request"));
    server.script(|asked| Answer::text(format!("script:{}", asked.last_user())));
    server.push(Answer::text("pushed"));
    assert!(whole(post(&server, PATHS[0], &chat("b"))).contains("pushed"));
    assert!(whole(post(&server, PATHS[0], &chat("c"))).contains("script:c"));
    let asked: Vec<String> = server.requests().iter().map(|asked| asked.last_user()).collect();
    assert_eq!(asked, ["a", "b", "c"]);
    assert_eq!(server.last_request().header("x-mark"), Some("7"));
}

#[test]
fn without_a_stream_it_answers_in_one_document() {
    let server = ModelServer::start();
    server.script(|_| Answer::text("all at once").and_call("t", json!({"a": 1})));
    for path in PATHS {
        let mut body = chat("a");
        body["stream"] = json!(false);
        let answer = whole(post(&server, path, &body));
        let body: Value = serde_json::from_str(answer.split("\r\n\r\n").nth(1).unwrap()).unwrap();
        assert!(body.to_string().contains("all at once"), "{path}: {body}");
    }
}

#[test]
fn a_cut_ends_the_connection_in_the_middle_and_a_drop_ends_them_all() {
    let server = ModelServer::start();
    server.push(Answer::tokens(["word"]).then_cut());
    let mut cut = post(&server, PATHS[0], &chat("a"));
    read_until(&mut cut, "word");
    let mut rest = Vec::new();
    cut.read_to_end(&mut rest).ok();
    assert!(!String::from_utf8_lossy(&rest).contains("[DONE]"));

    server.push(Answer::tokens(["word"]).then_hang());
    let mut hangs = post(&server, PATHS[0], &chat("a"));
    read_until(&mut hangs, "word");
    let address = server.address().to_string();
    drop(server);
    hangs.read_to_end(&mut rest).ok();
    assert!(TcpStream::connect(&address).is_err());
    drop(ModelServer::start_at(&address));
}

#[test]
fn what_it_was_asked_is_read_alike_in_every_protocol() {
    let server = ModelServer::start();
    server.script(|_| Answer::error(418, "short and stout").with_header("retry-after", "3"));
    let chat = json!({"messages": [
        {"role": "system", "content": "be kind"},
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": null, "tool_calls": [{"id": "a"}, {"id": "b"}]},
        {"role": "tool", "tool_call_id": "a", "content": "one"},
        {"role": "tool", "tool_call_id": "b", "content": "two"},
    ], "tools": [{"type": "function", "function": {"name": "t"}}]});
    let responses = json!({"instructions": "be kind", "input": [
        {"role": "user", "content": [{"type": "input_text", "text": "hello"}]},
        {"type": "function_call", "call_id": "a"},
        {"type": "function_call", "call_id": "b"},
        {"type": "function_call_output", "call_id": "a", "output": "one"},
        {"type": "function_call_output", "call_id": "b", "output": "two"},
    ], "tools": [{"type": "function", "name": "t"}]});
    let messages = json!({"system": "be kind", "messages": [
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "a"}, {"type": "tool_use", "id": "b"}]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "a", "content": "one"},
            {"type": "tool_result", "tool_use_id": "b", "content": [{"type": "text", "text": "two"}]},
        ]},
    ], "tools": [{"name": "t"}]});
    for (path, body) in PATHS.into_iter().zip([chat, responses, messages]) {
        let answer = whole(post(&server, path, &body));
        assert!(answer.starts_with("HTTP/1.1 418") && answer.contains("retry-after: 3"), "{answer}");
        assert!(answer.contains("short and stout"), "{answer}");
        let asked = server.last_request();
        let said = (asked.instructions(), asked.last_user(), asked.replies_since_user(), asked.tools());
        assert_eq!(said, ("be kind".to_owned(), "hello".to_owned(), 1, vec!["t".to_owned()]), "{path}");
        let results = [("a", "one"), ("b", "two")].map(|(id, text)| (id.to_owned(), text.to_owned()));
        assert_eq!(asked.tool_results(), results, "{path}");
    }
}

#[tokio::test]
async fn a_test_can_wait_for_what_happens_at_the_server() {
    let server = ModelServer::start();
    let gate = Gate::closed();
    server.push(Answer::tokens(["word"]).and_gate(&gate));
    let reader = post(&server, PATHS[0], &chat("a"));
    server.wait_for_requests(1).await;
    gate.reached().await;
    gate.open();
    assert!(whole(reader).contains("[DONE]"));
}
