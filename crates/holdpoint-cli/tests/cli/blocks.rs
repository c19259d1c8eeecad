//! The blocks protocol through the real program: a request waits while the program is killed and started again.

use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::{self, Message, WebSocket};

use crate::world::{Place, Server};

const AGENT: &str = r#"
apiVersion: holdpoint/v1
kind: Agent
metadata: { name: trader }
spec:
  type: chat_model_agent
  model: { primary: scripted/trader.json }
  tools:
    - name: execute_trade
      description: places an order
      parameters: { type: object, required: [symbol], properties: { symbol: { type: string } } }
      command: { argv: ["/bin/sh", "-c", "cat >> traded.txt; echo filled"] }
      display: { message: "Buy {symbol}" }
"#;

const SCRIPT: &str = r#"{"pace_ms": 5, "replies": [
  {"thinking": "They want the share.", "text": "I place the order now.",
   "calls": [{"tool": "execute_trade", "arguments": {"symbol": "VNM"}}]},
  "It is bought: {result}"
]}"#;

/// A connection that was greeted.
struct Socket(WebSocket<TcpStream>);

impl Socket {
    fn connect(server: &Server) -> Self {
        let mut request = format!("ws://{}/api/v1/ws", server.address).into_client_request().unwrap();
        request.headers_mut().insert("sec-websocket-protocol", "holdpoint.blocks.v1".parse().unwrap());
        let stream = TcpStream::connect(&server.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let (socket, _) = tungstenite::client(request, stream).unwrap();
        let mut socket = Self(socket);
        assert_eq!(socket.next()["type"], "connected");
        socket
    }

    fn send(&mut self, command: &Value) {
        self.0.send(Message::text(command.to_string())).unwrap();
    }

    fn next(&mut self) -> Value {
        loop {
            if let Message::Text(text) = self.0.read().unwrap() {
                return serde_json::from_str(&text).unwrap();
            }
        }
    }

    /// Everything up to the first event that is wanted.
    fn until(&mut self, is_wanted: impl Fn(&Value) -> bool) -> Vec<Value> {
        let mut read = Vec::new();
        while !read.last().is_some_and(&is_wanted) {
            read.push(self.next());
        }
        read
    }
}

/// The numbers of the durable events.
fn numbers(events: &[Value]) -> Vec<u64> {
    events.iter().filter_map(|event| event["seq"].as_u64()).collect()
}

/// The indexes of the blocks, in the order in which they began.
fn indexes(events: &[Value]) -> Vec<u64> {
    let starts = events.iter().filter(|event| event["type"] == "content_block_start");
    starts.map(|event| event["index"].as_u64().unwrap()).collect()
}

#[test]
fn a_request_waits_through_a_kill_and_the_run_goes_on_after_its_answer_without_a_gap() {
    let place = Place::new();
    place.run(&["init"]);
    place.write("agents/trader.yaml", AGENT);
    place.write("agents/trader.json", SCRIPT);
    let server = place.serve(&[]);
    let mut socket = Socket::connect(&server);
    socket.send(&json!({"type": "message", "agent_id": "trader", "session_id": "s", "content": "Buy VNM"}));
    let mut all = socket.until(|event| event["content_block"]["type"] == "approval_request");
    let request = all.last().unwrap()["content_block"].clone();
    assert_eq!(request["actions"][0]["args"], json!({"symbol": "VNM"}), "{request}");
    all.extend(socket.until(|event| event["type"] == "content_block_stop"));
    let cursor = *numbers(&all).last().unwrap();
    server.kill();
    assert!(!place.join("traded.txt").exists(), "nothing ran");

    let server = place.serve(&[]);
    let mut socket = Socket::connect(&server);
    socket.send(&json!({"type": "subscribe", "session_id": "s", "after": cursor}));
    let subscribed = socket.next();
    assert_eq!(
        (&subscribed["type"], &subscribed["status"], &subscribed["head_seq"], &subscribed["open"]),
        (&json!("subscribed"), &json!("waiting"), &json!(cursor), &json!([request["approval_key"]])),
        "{subscribed}"
    );
    socket.send(&json!({"type": "approval", "request_id": "r", "session_id": "s",
        "approval_key": request["approval_key"], "decisions": [{"type": "approve"}]}));
    all.extend(socket.until(|event| event["type"] == "message_stop" || event["type"] == "error"));
    assert_eq!(all.last().unwrap()["stop_reason"], "end_turn", "{all:?}");
    let count = |list: Vec<u64>, first: u64| assert_eq!(list, (first..first + list.len() as u64).collect::<Vec<_>>());
    count(numbers(&all), 1);
    count(indexes(&all), 0);
    let ids: Vec<&Value> = all.iter().filter_map(|event| event.get("message_id")).collect();
    assert!(ids.windows(2).all(|pair| pair[0] == pair[1]), "it is one message: {ids:?}");
    assert_eq!(std::fs::read_to_string(place.join("traded.txt")).unwrap(), r#"{"symbol":"VNM"}"#);

    // After another kill everything is told again under the same numbers, and the same command does nothing twice.
    server.kill();
    let server = place.serve(&[]);
    let mut socket = Socket::connect(&server);
    socket.send(&json!({"type": "subscribe", "session_id": "s", "after": 0}));
    let again = socket.until(|event| event["type"] == "message_stop");
    assert_eq!((numbers(&again), indexes(&again)), (numbers(&all), indexes(&all)));
    socket.send(&json!({"type": "approval", "request_id": "r", "session_id": "s",
        "approval_key": request["approval_key"], "decisions": [{"type": "approve"}]}));
    let answer = socket.next();
    assert_eq!((&answer["type"], &answer["request_id"]), (&json!("approval_resolved"), &json!("r")), "{answer}");
    assert_eq!(std::fs::read_to_string(place.join("traded.txt")).unwrap().matches("VNM").count(), 1);
}
