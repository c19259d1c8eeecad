//! What is no command at all: frames of another kind, too large, or not text.

use serde_json::json;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};

use crate::client::Client;
use crate::stage::{Stage, commands_path};

/// How a connection ends: what it is told before, and the code that it is closed with.
async fn end(client: &mut Client) -> (Vec<serde_json::Value>, Option<u16>) {
    let mut told = Vec::new();
    loop {
        match client.try_next().await {
            Ok(event) => told.push(event),
            Err(code) => return (told, code),
        }
    }
}

#[tokio::test]
async fn a_message_that_is_too_large_closes_its_own_connection_and_no_other() {
    let stage = Stage::solo().await;
    let (mut client, mut other) = (stage.connect().await, stage.connect().await);
    let large = json!({"type": "message", "agent_id": "trader", "content": "x".repeat(5 << 20)}).to_string();
    client.send_frame(Message::text(large.clone())).await;
    let (_, code) = end(&mut client).await;
    assert_eq!(code, Some(4010));
    assert_eq!(other.ask(&json!({"type": "ping"}), "pong").await["type"], "pong");
    let request = stage.request("POST", &commands_path("s")).header("content-type", "application/json");
    // The server may close before it has read everything.
    if let Ok(response) = request.body(large).send().await {
        assert_eq!(response.status().as_u16(), 413);
    }
    assert_eq!(stage.everything().await, "");
}

#[tokio::test]
async fn a_binary_frame_is_refused_and_text_that_is_no_text_ends_the_connection() {
    let stage = Stage::solo().await;
    let mut client = stage.connect().await;
    client.send_frame(Message::binary(b"{\"type\":\"ping\"}".to_vec())).await;
    match client.try_next().await {
        Ok(told) => {
            assert_eq!((&told["type"], &told["error"]["code"]), (&json!("error"), &json!("bad_json")), "{told}")
        }
        Err(code) => assert_eq!(code, Some(1003)),
    }
    let mut client = stage.connect().await;
    client.send_frame(Message::Frame(Frame::message(vec![0xff, 0xfe], OpCode::Data(Data::Text), true))).await;
    let (told, code) = end(&mut client).await;
    assert!(told.is_empty() && matches!(code, Some(1007) | None), "{told:?} {code:?}");
    let mut other = stage.connect().await;
    assert_eq!(other.ask(&json!({"type": "ping"}), "pong").await["type"], "pong");
}

#[tokio::test]
async fn nothing_is_told_before_a_caller_is_known() {
    let stage = Stage::with_keys().await;
    let mut client = stage.connect().await;
    let told = client.ask(&json!({"type": "subscribe", "session_id": "s"}), "subscribed").await;
    assert_eq!(told["error"]["code"], "not_allowed", "{told}");
    let wrong = client.ask(&json!({"type": "auth", "token": "hpk_wrong"}), "auth_ok").await;
    assert_eq!(wrong["type"], "error", "{wrong}");
    assert!(!wrong.to_string().contains("hpk_wrong"), "no secret is told back: {wrong}");
}
