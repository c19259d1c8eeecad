//! Twenty bad inputs each for decisions and for answers, over the WebSocket and as commands over HTTP: each gets its code,
//! changes nothing, and leaves the connection and the server alive.
//!
//! The rows are numbered as they are documented.

mod answers;
mod approval;
mod frames;

use reqwest::header::CONTENT_TYPE;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use crate::client::Client;
use crate::stage::{Answer, Stage, commands_path};

/// A bad input, and what is said to it.
struct Row {
    number: u32,
    text: String,
    code: &'static str,
    /// What the sentence must say.
    says: &'static str,
}

fn row(number: u32, text: impl ToString, code: &'static str, says: &'static str) -> Row {
    Row { number, text: text.to_string(), code, says }
}

/// Sends each row both ways to a session, and sees that it is refused as documented and changes nothing.
async fn check_rows(stage: &Stage, client: &mut Client, session: &str, rows: Vec<Row>) {
    let before = stage.everything().await;
    for Row { number, text, code, says } in rows {
        let shown: String = text.chars().take(200).collect();
        let about = format!("row {number}: {shown}");
        client.send_frame(Message::text(text.clone())).await;
        let told = client.until(|event| event["type"] == "error" || event["type"] == "approval_resolved").await;
        let told = told.last().unwrap();
        check_error(told, code, says, &about);
        let request = stage.request("POST", &commands_path(session)).header(CONTENT_TYPE, "application/json");
        let answer = Answer::to(request.body(text)).await;
        assert!((400..500).contains(&answer.status), "{about} -> {} {}", answer.status, answer.body);
        check_error(&answer.json(), code, says, &about);
        assert_eq!(stage.everything().await, before, "{about} changed something");
    }
    assert_eq!(client.ask(&json!({"type": "ping"}), "pong").await["type"], "pong", "the connection lives");
}

/// Whatever the error, it has this form.
#[track_caller]
fn check_error(told: &Value, code: &str, says: &str, about: &str) {
    assert_eq!((&told["type"], &told["error"]["code"]), (&json!("error"), &json!(code)), "{about} -> {told}");
    let sentence = told["error"]["message"].as_str().unwrap_or_else(|| panic!("{about}: no sentence in {told}"));
    assert!(sentence.contains(says), "{about}: {sentence:?} does not say {says:?}");
    assert!(!sentence.is_empty() && sentence.len() < 700 && !sentence.chars().any(char::is_control), "{sentence:?}");
}
