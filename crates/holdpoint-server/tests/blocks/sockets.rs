//! Connections: who they are, how many there may be, and how they end.

use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use holdpoint_server::limits::Limits;
use holdpoint_testkit::model_server::Answer as Reply;
use serde_json::{Value, json};
use tokio::net::{TcpSocket, TcpStream};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;

use crate::agents::key;
use crate::client::{Client, is};
use crate::stage::{Setup, Stage, message};

/// The code that a connection is closed with.
async fn end(client: &mut Client) -> Option<u16> {
    loop {
        if let Err(code) = client.try_next().await {
            return code;
        }
    }
}

async fn with_limits(has_keys: bool, limits: Limits) -> Stage {
    Stage::with(Setup { has_keys, limits: Some(limits), ..Setup::default() }).await
}

#[tokio::test]
async fn who_sends_no_header_says_who_they_are_and_is_somebody_from_then_on() {
    let stage = Stage::with_keys().await;
    let mut client = stage.connect().await;
    let answer = client.ask(&json!({"type": "auth", "token": key("agnes"), "request_id": "a"}), "auth_ok").await;
    assert_eq!((&answer["actor"], &answer["request_id"]), (&json!("agnes"), &json!("a")), "{answer}");
    stage.model.push(Reply::text("Chào."));
    client.send(&message("trader", "s", "Xin chào")).await;
    client.until(is("message_stop")).await;
    // Nobody becomes somebody else.
    let other = client.ask(&json!({"type": "auth", "token": key("otto")}), "auth_ok").await;
    assert_eq!(other["error"]["code"], "not_allowed", "{other}");
    // A session of somebody else's looks as if it did not exist.
    let mut stranger = stage.connect_by("otto").await;
    let told = stranger.ask(&json!({"type": "subscribe", "session_id": "s"}), "subscribed").await;
    assert_eq!(told["error"]["code"], "unknown_session", "{told}");
    let told = stranger.ask(&message("trader", "s", "Xin chào"), "message_start").await;
    assert_eq!(told["error"]["code"], "unknown_session", "{told}");
}

#[tokio::test]
async fn a_wrong_credential_closes_the_connection_and_a_wrong_header_opens_none() {
    let stage = Stage::with_keys().await;
    let mut client = stage.connect().await;
    client.send(&json!({"type": "auth", "token": "hpk_nobody"})).await;
    assert_eq!(end(&mut client).await, Some(4001));
    let mut request = format!("ws://{}/api/v1/ws", stage.address()).into_client_request().unwrap();
    request.headers_mut().insert("authorization", "Bearer hpk_nobody".parse().unwrap());
    let stream = TcpStream::connect(stage.address()).await.unwrap();
    assert!(tokio_tungstenite::client_async(request, stream).await.is_err());
}

#[tokio::test]
async fn who_never_says_who_they_are_is_not_waited_for() {
    let limits = Limits { socket_auth_timeout: Duration::from_millis(100), ..Limits::default() };
    let stage = with_limits(true, limits).await;
    let mut client = stage.connect().await;
    assert_eq!(end(&mut client).await, Some(4001));
}

#[tokio::test]
async fn a_page_of_another_site_opens_no_connection_and_a_token_in_the_address_is_refused() {
    let stage = Stage::solo().await;
    for (path, header) in [("/api/v1/ws", Some("https://evil.example")), ("/api/v1/ws?token=hpk_x", None)] {
        let mut request = format!("ws://{}{path}", stage.address()).into_client_request().unwrap();
        if let Some(origin) = header {
            request.headers_mut().insert("origin", origin.parse().unwrap());
        }
        let stream = TcpStream::connect(stage.address()).await.unwrap();
        assert!(tokio_tungstenite::client_async(request, stream).await.is_err(), "{path}");
    }
    assert_eq!(stage.get("/api/v1/ws").await.status, 400);
}

#[tokio::test]
async fn more_connections_than_there_may_be_are_closed_and_the_others_stay() {
    let stage = with_limits(false, Limits { sockets_per_caller: 1, ..Limits::default() }).await;
    let mut first = stage.connect().await;
    let request = format!("ws://{}/api/v1/ws", stage.address()).into_client_request().unwrap();
    let stream = TcpStream::connect(stage.address()).await.unwrap();
    let (mut second, _) = tokio_tungstenite::client_async(request, stream).await.unwrap();
    let Some(Ok(Message::Close(Some(frame)))) = second.next().await else { panic!("a close expected") };
    assert_eq!(u16::from(frame.code), 4013);
    assert_eq!(first.ask(&json!({"type": "ping"}), "pong").await["type"], "pong");
}

#[tokio::test]
async fn a_client_that_is_silent_is_asked_once_and_then_left() {
    let stage = with_limits(false, Limits { socket_heartbeat: Duration::from_millis(200), ..Limits::default() }).await;
    // Reads nothing, and so answers no ping, until the server has left.
    let request = format!("ws://{}/api/v1/ws", stage.address()).into_client_request().unwrap();
    let stream = TcpStream::connect(stage.address()).await.unwrap();
    let (mut silent, _) = tokio_tungstenite::client_async(request, stream).await.unwrap();
    // One that answers stays.
    let mut alive = stage.connect().await;
    let answering = tokio::time::timeout(Duration::from_secs(2), alive.try_next()).await;
    assert!(answering.is_err(), "{answering:?}");
    let mut code = None;
    while let Some(Ok(frame)) = silent.next().await {
        if let Message::Close(Some(frame)) = frame {
            code = Some(u16::from(frame.code));
        }
    }
    assert_eq!(code, Some(4008));
}

#[tokio::test]
async fn a_reader_that_is_too_slow_is_left_and_goes_on_where_it_was() {
    let limits = Limits {
        slow_reader: Duration::from_millis(300),
        sockets_per_caller: 2,
        requests_per_second: 1_000_000,
        requests_burst: 1_000_000,
        ..Limits::default()
    };
    let stage = with_limits(false, limits).await;
    let mut client = stage.connect().await;
    // More than the machine keeps for a reader: each quote is two bytes on the wire.
    stage.model.push(Reply::text("\"".repeat(3 << 20)));
    client.send(&message("trader", "s", "Nói")).await;
    let head = client.until(is("message_stop")).await.pop().unwrap()["seq"].as_u64().unwrap();

    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4 << 10).unwrap();
    let stream = socket.connect(stage.address()).await.unwrap();
    let request = format!("ws://{}/api/v1/ws", stage.address()).into_client_request().unwrap();
    let (mut slow, _) = tokio_tungstenite::client_async(request, stream).await.unwrap();
    slow.send(Message::text(json!({"type": "subscribe", "session_id": "s"}).to_string())).await.unwrap();
    // Nothing is read until the server has left it, which makes room for another one. Others are served meanwhile.
    while is_turned_away(&stage).await {
        assert_eq!(client.ask(&json!({"type": "ping"}), "pong").await["type"], "pong");
    }
    let mut seen = 0;
    while let Some(Ok(frame)) = slow.next().await {
        match frame {
            Message::Text(text) => {
                let event: Value = serde_json::from_str(&text).unwrap();
                seen = event["seq"].as_u64().unwrap_or(seen);
            }
            Message::Close(Some(frame)) => assert_eq!(u16::from(frame.code), 4009),
            _ => {}
        }
    }
    assert!(seen < head, "all of it was read");
    let mut again = stage.connect().await;
    again.subscribe("s", seen).await;
    let mut numbers = Vec::new();
    while numbers.last() != Some(&head) {
        numbers.extend(again.next().await["seq"].as_u64());
    }
    assert_eq!(numbers, (seen + 1..=head).collect::<Vec<_>>());
}

/// Whether there is no room for a further connection.
async fn is_turned_away(stage: &Stage) -> bool {
    let request = format!("ws://{}/api/v1/ws", stage.address()).into_client_request().unwrap();
    let stream = TcpStream::connect(stage.address()).await.unwrap();
    let (mut socket, _) = tokio_tungstenite::client_async(request, stream).await.unwrap();
    let is_turned_away = matches!(socket.next().await, Some(Ok(Message::Close(_))));
    // Says goodbye, and waits until the server has left too.
    let _ = socket.close(None).await;
    while let Some(Ok(_)) = socket.next().await {}
    is_turned_away
}

#[tokio::test]
async fn who_says_goodbye_is_answered() {
    let stage = Stage::solo().await;
    let request = format!("ws://{}/api/v1/ws", stage.address()).into_client_request().unwrap();
    let stream = TcpStream::connect(stage.address()).await.unwrap();
    let (mut socket, _) = tokio_tungstenite::client_async(request, stream).await.unwrap();
    assert!(matches!(socket.next().await, Some(Ok(Message::Text(_)))));
    socket.send(Message::Close(None)).await.unwrap();
    let answer = socket.next().await;
    assert!(matches!(answer, Some(Ok(Message::Close(_)))), "{answer:?}");
}

#[tokio::test]
async fn so_many_sessions_are_shown_to_one_connection_and_no_more() {
    let stage = with_limits(false, Limits { socket_sessions_max: 2, ..Limits::default() }).await;
    let mut client = stage.connect().await;
    stage.model.script(|_| Reply::text("Chào."));
    for session in ["a", "b"] {
        client.send(&message("trader", session, "Xin chào")).await;
        client.until(is("message_stop")).await;
    }
    let refused = client.ask(&message("trader", "c", "Xin chào"), "message_start").await;
    assert_eq!(refused["error"]["code"], "overloaded", "{refused}");
    // The same one again is no further one.
    client.subscribe("a", 0).await;
    client.until(is("message_stop")).await;
}
