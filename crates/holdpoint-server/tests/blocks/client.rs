//! A client of the protocol over a WebSocket, as plain as can be: it sends what it is given and reads frame by frame.

use std::net::SocketAddr;
use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;

/// How long an event may take to come.
const PATIENCE: Duration = Duration::from_secs(30);

/// A connection.
pub struct Client {
    socket: WebSocketStream<TcpStream>,
}

impl Client {
    /// Connects, with this key if any, and reads the greeting.
    pub async fn connect(address: SocketAddr, key: Option<&str>) -> Self {
        let mut request = format!("ws://{address}/api/v1/ws").into_client_request().unwrap();
        request.headers_mut().insert("sec-websocket-protocol", "holdpoint.blocks.v1".parse().unwrap());
        if let Some(key) = key {
            request.headers_mut().insert("authorization", format!("Bearer {key}").parse().unwrap());
        }
        let stream = TcpStream::connect(address).await.unwrap();
        let (socket, _) = tokio_tungstenite::client_async(request, stream).await.unwrap();
        let mut client = Self { socket };
        let greeting = client.next().await;
        assert_eq!((&greeting["type"], &greeting["protocol"]), (&json!("connected"), &json!("blocks/1")));
        client
    }

    pub async fn send(&mut self, command: &Value) {
        self.send_frame(Message::text(command.to_string())).await;
    }

    pub async fn send_frame(&mut self, frame: Message) {
        // A server that closes while it is written to has said why, which is read next.
        let _ = self.socket.send(frame).await;
    }

    /// The next event, or the code that the connection was closed with.
    pub async fn try_next(&mut self) -> Result<Value, Option<u16>> {
        let deadline = tokio::time::Instant::now() + PATIENCE;
        loop {
            let frame = tokio::time::timeout_at(deadline, self.socket.next()).await.expect("an event in time");
            match frame {
                Some(Ok(Message::Text(text))) => return Ok(serde_json::from_str(&text).unwrap()),
                Some(Ok(Message::Close(frame))) => return Err(frame.map(|frame| frame.code.into())),
                Some(Ok(Message::Binary(_))) => panic!("the protocol has text frames only"),
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return Err(None),
            }
        }
    }

    pub async fn next(&mut self) -> Value {
        self.try_next().await.unwrap_or_else(|code| panic!("closed with {code:?}"))
    }

    /// Reads up to the first event that is wanted; gives back all that was read, that one last.
    pub async fn until(&mut self, is_wanted: impl Fn(&Value) -> bool) -> Vec<Value> {
        let mut read = Vec::new();
        loop {
            let event = self.next().await;
            let is_last = is_wanted(&event);
            read.push(event);
            if is_last {
                return read;
            }
        }
    }

    /// Sends a command, and reads up to the first event of this type that follows, or an error.
    pub async fn ask(&mut self, command: &Value, kind: &str) -> Value {
        self.send(command).await;
        let mut read = self.until(|event| event["type"] == kind || event["type"] == "error").await;
        read.pop().unwrap_or_default()
    }

    /// Takes part in a session from this event on.
    pub async fn subscribe(&mut self, session: &str, after: u64) -> Value {
        let answer = self.ask(&json!({"type": "subscribe", "session_id": session, "after": after}), "subscribed").await;
        assert_eq!(answer["type"], "subscribed", "{answer}");
        answer
    }

    /// Goes away without a word, as a phone in a tunnel does.
    pub fn vanish(self) {
        drop(self.socket);
    }
}

/// Whether an event is of this type.
pub fn is(kind: &str) -> impl Fn(&Value) -> bool {
    move |event| event["type"] == kind
}

/// Whether an event ends a block that began as this kind: for a request to a person, that all of it was told.
pub fn is_block(event: &Value, kind: &str) -> bool {
    event["type"] == "content_block_start" && event["content_block"]["type"] == kind
}

/// Reads until a request to a person has come whole; gives back all that was read.
pub async fn until_asked(client: &mut Client) -> Vec<Value> {
    let mut read = client.until(|event| is_block(event, "approval_request") || event["type"] == "error").await;
    let index = read.last().map(|event| event["index"].clone()).unwrap_or_default();
    assert!(index.is_u64(), "{read:?}");
    let rest = client.until(|event| event["type"] == "content_block_stop" && event["index"] == index).await;
    read.extend(rest);
    read
}
