//! Twenty bad inputs for each of three addresses: each gets its answer, changes nothing, and leaves the server alive.
//!
//! The rows are numbered as they are documented. Rows about who calls are in `access`.

mod every_address;
mod resume;
mod state;
mod stream;

use holdpoint_testkit::model_server::Answer as Reply;
use reqwest::header::CONTENT_TYPE;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::world::{Answer, World};

const STREAM: &str = "/api/v1/chat/stream";
const RESUME: &str = "/api/v1/chat/resume";
const STATE: &str = "/api/v1/chat/interrupt_state";

/// A bad input, and what is said to it.
struct Row {
    number: u32,
    body: Vec<u8>,
    status: u16,
    code: &'static str,
    /// What the sentence must say.
    says: &'static str,
}

fn row(number: u32, body: impl Into<Vec<u8>>, status: u16, code: &'static str, says: &'static str) -> Row {
    Row { number, body: body.into(), status, code, says }
}

/// Sends each row's body, and sees that it is answered as documented and changes nothing.
async fn check_bodies(world: &World, path: &str, rows: Vec<Row>) {
    let before = world.everything().await;
    for Row { number, body, status, code, says } in rows {
        let request = world.request("POST", path).header(CONTENT_TYPE, "application/json").body(body.clone());
        let answer = Answer::to(request).await;
        let shown = String::from_utf8_lossy(&body[..body.len().min(200)]).into_owned();
        check_error(&answer, status, code, says, &format!("row {number}: {shown}"));
        assert_eq!(world.everything().await, before, "row {number} changed something: {shown}");
    }
}

/// Whatever the error, it has this form.
#[track_caller]
fn check_error(answer: &Answer, status: u16, code: &str, says: &str, row: &str) {
    assert_eq!(answer.status, status, "{row} -> {}", answer.body);
    assert_eq!(answer.header("content-type"), Some("application/json"), "{row}");
    let body = answer.json();
    assert_eq!(body["code"], json!(code), "{row} -> {body}");
    let sentence = body["error"].as_str().unwrap_or_else(|| panic!("{row}: no sentence in {body}"));
    assert!(sentence.contains(says), "{row}: {sentence:?} does not say {says:?}");
    assert!(sentence.len() < 600 && !sentence.chars().any(|c| c.is_control()), "{row}: {sentence:?}");
}

/// The server still answers.
async fn is_alive(world: &World) {
    world.model.push(Reply::text("Alive."));
    assert_eq!(world.say("plain-agent", "alive", "are you?").await.said(), "Alive.");
}

/// A session that waits for a confirmation.
async fn hold(world: &World, agent: &str, session: &str) {
    world.model.push(Reply::text("Please confirm."));
    world.say(agent, session, "go").await.interrupt();
}

/// Sends a GET byte by byte as it is written here, and reads the answer.
async fn raw_get(world: &World, target: &str) -> Answer {
    let mut connection = tokio::net::TcpStream::connect(world.address()).await.unwrap();
    let request = format!("GET {target} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n\r\n", world.address());
    // The server may answer and close before it has read everything.
    let _ = connection.write_all(request.as_bytes()).await;
    let mut bytes = Vec::new();
    let _ = connection.read_to_end(&mut bytes).await;
    let text = String::from_utf8(bytes).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let mut lines = head.lines();
    let status = lines.next().and_then(|line| line.split(' ').nth(1)).and_then(|status| status.parse().ok());
    let headers = lines.filter_map(|line| line.split_once(": "));
    let headers = headers.map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect();
    Answer { status: status.unwrap_or_default(), headers, body: body.to_owned() }
}
