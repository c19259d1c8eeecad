//! The real server among others: tools that are reached over HTTP, callbacks, and tokens of an identity provider.

use std::io::{BufRead, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use holdpoint_core::time::Timestamp;
use holdpoint_server::webhooks::{WebhookSecret, verify};
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use serde_json::{Value, json};

use crate::world::{Place, Server};

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// A request that reached another server.
struct Arrived {
    /// Counts the connections from one.
    connection: usize,
    /// Method and path.
    what: String,
    headers: Vec<(String, String)>,
    body: String,
}

impl Arrived {
    /// The next request of a connection; `None` at its end.
    fn read(connection: usize, reader: &mut impl BufRead) -> Option<Self> {
        let mut line = || {
            let mut line = String::new();
            reader.read_line(&mut line).ok().filter(|count| *count > 0).map(|_| line.trim_end().to_owned())
        };
        let first = line()?;
        let mut headers = Vec::new();
        while let Some((name, value)) = line()?.split_once(':') {
            headers.push((name.to_lowercase(), value.trim().to_owned()));
        }
        let length = headers.iter().find(|(name, _)| name == "content-length");
        let mut body = vec![0; length.map_or(0, |(_, value)| value.parse().unwrap())];
        reader.read_exact(&mut body).ok()?;
        let what = first.rsplit_once(' ').map_or(first.clone(), |(what, _)| what.to_owned());
        Some(Self { connection, what, headers, body: String::from_utf8(body).unwrap() })
    }

    fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(given, _)| given == name);
        found.map(|(_, value)| value.as_str()).unwrap_or_else(|| panic!("{name} is not among {:?}", self.headers))
    }
}

/// Another server on this machine. It answers every request as `answer` says, and keeps what arrived. Its threads end
/// with the test's process, or when nobody takes what arrives.
struct Other {
    url: String,
    arrived: Receiver<Arrived>,
}

impl Other {
    fn start(answer: impl Fn(&Arrived) -> (u16, String) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (sender, arrived) = channel();
        let answer = Arc::new(answer);
        std::thread::spawn(move || {
            for (number, stream) in (1..).zip(listener.incoming()) {
                let (answer, sender) = (answer.clone(), sender.clone());
                std::thread::spawn(move || serve(number, &stream.unwrap(), &*answer, &sender));
            }
        });
        Self { url, arrived }
    }

    fn next(&self) -> Arrived {
        self.arrived.recv_timeout(PATIENCE).expect("a request in time")
    }
}

/// Answers the requests of a connection, one after the other.
fn serve(number: usize, mut stream: &TcpStream, answer: &dyn Fn(&Arrived) -> (u16, String), sender: &Sender<Arrived>) {
    let mut reader = BufReader::new(stream);
    while let Some(arrived) = Arrived::read(number, &mut reader) {
        let (status, text) = answer(&arrived);
        let length = text.len();
        // Told first: whoever has the answer must find it told.
        if sender.send(arrived).is_err() {
            return;
        }
        let head = format!("HTTP/1.1 {status} x\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n");
        if stream.write_all(format!("{head}{text}").as_bytes()).is_err() {
            return;
        }
    }
}

fn text<'a>(value: &'a Value, member: &str) -> &'a str {
    value[member].as_str().unwrap_or_else(|| panic!("{member} expected: {value}"))
}

fn decide(server: &Server, pause: &Value, body: &Value) {
    let (status, decided) = server.post(&format!("/api/v1/pauses/{}/decide", text(pause, "id")), body);
    assert_eq!(status, 200, "{decided}");
}

/// An agent that places an order over HTTP.
fn trader(place: &Place, url: &str) {
    place.write(
        "agents/trader.yaml",
        &format!(
            r#"apiVersion: holdpoint/v1
kind: Agent
metadata: {{ name: trader }}
spec:
  type: chat_model_agent
  model: {{ primary: scripted/trader.json }}
  tools:
    - name: execute_trade
      description: Place an order
      parameters: {{ type: object, required: [symbol], properties: {{ symbol: {{ type: string }}, quantity: {{ type: integer }} }} }}
      http: {{ method: POST, url: "{url}/orders/{{symbol}}", headers: {{ Authorization: "Bearer ${{BROKER_TOKEN}}" }} }}
      approval: required
"#
        ),
    );
    let script = r#"{"replies": [{"calls": [{"tool": "execute_trade", "arguments": {"symbol": "A/B c", "quantity": 3}}]}, "told: {result}"]}"#;
    place.write("agents/trader.json", script);
}

#[test]
fn a_tool_over_http_runs_once_it_is_approved_and_its_secret_is_nowhere_else() {
    let broker = Other::start(|_| (200, r#"{"order":17}"#.to_owned()));
    let place = Place::new();
    trader(&place, &broker.url);
    let server = place.serve_with(&["--log", "debug"], &[("BROKER_TOKEN", "s3cret-token")]);
    let (_, run) = server.post("/api/v1/runs?wait=30", &json!({"agent_id": "trader", "input": "buy"}));
    assert_eq!(run["status"], "paused", "{run}");
    assert!(broker.arrived.try_recv().is_err(), "nothing is asked before it is approved");
    decide(
        &server,
        &run["pauses"][0],
        &json!({"decision": "approve_edited", "args": {"symbol": "A/B c", "quantity": 2}}),
    );
    let arrived = broker.next();
    assert_eq!(arrived.what, "POST /orders/A%2FB%20c");
    assert_eq!(serde_json::from_str::<Value>(&arrived.body).unwrap(), json!({"quantity": 2}));
    assert_eq!(arrived.header("authorization"), "Bearer s3cret-token");
    assert!(!arrived.header("idempotency-key").is_empty());
    let path = format!("/api/v1/runs/{}", text(&run, "run_id"));
    let done = server.until(&path, |run| run["status"] == "done");
    assert_eq!(done["output"], r#"told: {"order":17}"#);
    assert!(broker.arrived.try_recv().is_err(), "it ran once");
    let told = [path, format!("/api/v1/sessions/{}/history", text(&run, "session_id")), "/api/v1/agents/trader".into()];
    for path in told {
        let (_, answer) = server.get(&path);
        assert!(!answer.to_string().contains("s3cret"), "{path}: {answer}");
    }
    server.terminate();
    assert!(!place.log().contains("s3cret"), "{}", place.log());
    let file = std::fs::read(place.join("holdpoint.db")).unwrap();
    assert!(!file.windows(6).any(|part| part == b"s3cret"), "the secret is in the store");
}

#[test]
fn a_tool_over_http_that_fails_is_told_to_the_model_as_a_failure() {
    let broker = Other::start(|_| (503, "the market is closed".to_owned()));
    let place = Place::new();
    trader(&place, &broker.url);
    let server = place.serve_with(&["--store", "memory:"], &[("BROKER_TOKEN", "x")]);
    let (_, run) = server.post("/api/v1/runs?wait=30", &json!({"agent_id": "trader", "input": "buy"}));
    decide(&server, &run["pauses"][0], &json!({"decision": "approve"}));
    let done = server.until(&format!("/api/v1/runs/{}", text(&run, "run_id")), |run| run["status"] == "done");
    let output = text(&done, "output");
    assert!(output.contains("503") && output.contains("the market is closed"), "{output}");
    broker.next();
    assert!(broker.arrived.try_recv().is_err(), "what may have taken effect is not repeated");
}

#[test]
fn tools_over_http_share_their_connections() {
    let service = Other::start(|_| (200, "{}".to_owned()));
    let place = Place::new();
    let tool = |name: &str| {
        format!(
            "    - name: {name}\n      description: looks\n      parameters: {{ type: object }}\n      \
             approval: never\n      http: {{ method: GET, url: \"{}/{name}\" }}\n",
            service.url
        )
    };
    let head = "apiVersion: holdpoint/v1\nkind: Agent\nmetadata: { name: looker }\nspec:\n  type: chat_model_agent\n  model: { primary: scripted/looker.json }\n  tools:\n";
    place.write("agents/looker.yaml", &format!("{head}{}{}", tool("here"), tool("there")));
    let call = |tool: &str| json!({"calls": [{"tool": tool, "arguments": {}}]});
    place.write("agents/looker.json", &json!({"replies": [call("here"), call("there"), "seen"]}).to_string());
    let server = place.serve(&["--store", "memory:"]);
    let (_, run) = server.post("/api/v1/runs?wait=30", &json!({"agent_id": "looker", "input": "look"}));
    assert_eq!(run["output"], "seen", "{run}");
    let (first, second) = (service.next(), service.next());
    assert_eq!((first.what.as_str(), second.what.as_str()), ("GET /here", "GET /there"));
    assert_eq!((first.connection, second.connection), (1, 1));
}

const WEBHOOK_SECRET: &str = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz";

fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap()
}

#[test]
fn whoever_asked_for_an_approval_is_called_back_with_a_message_that_they_can_verify() {
    let asker = Other::start(|_| (204, String::new()));
    let place = Place::new();
    let server = place.serve_with(
        &["--store", "memory:", "--webhooks-allow-private"],
        &[("HOLDPOINT_WEBHOOKS_SECRET", WEBHOOK_SECRET)],
    );
    let hook = format!("{}/hook", asker.url);
    let body = json!({"agent": "bot", "tool": "deploy", "args": {"version": "1.2"}, "callback_url": hook});
    let (status, request) = server.post("/api/v1/requests", &body);
    assert_eq!(status, 201, "{request}");
    assert!(asker.arrived.try_recv().is_err(), "nobody is told before it is decided");
    decide(&server, &request["pause"], &json!({"decision": "deny", "message": "not on a Friday"}));
    let arrived = asker.next();
    assert_eq!(arrived.what, "POST /hook");
    let secret = WebhookSecret::parse(&WEBHOOK_SECRET.to_owned().into()).unwrap();
    let (id, at) = (arrived.header("webhook-id"), arrived.header("webhook-timestamp"));
    let signature = arrived.header("webhook-signature");
    let time = Timestamp::from_millis(i64::try_from(now().as_millis()).unwrap());
    verify(&secret, id, at, signature, arrived.body.as_bytes(), time).unwrap();
    let other = arrived.body.replace("denied", "approved");
    assert_ne!(other, arrived.body);
    assert!(verify(&secret, id, at, signature, other.as_bytes(), time).is_err());
    let told: Value = serde_json::from_str(&arrived.body).unwrap();
    assert_eq!((text(&told, "type"), text(&told["data"], "status")), ("request.settled", "denied"));
    assert_eq!((&told["data"]["id"], text(&told["data"], "message")), (&request["id"], "not on a Friday"));
    let path = format!("/api/v1/requests/{}", text(&request, "id"));
    let settled = server.until(&path, |request| request["callback"]["status"] == "delivered");
    assert_eq!(settled["callback"]["attempts"], 1);
}

#[test]
fn a_callback_that_waits_for_its_next_attempt_is_no_cause_for_alarm() {
    let asker = Other::start(|_| (500, String::new()));
    let place = Place::new();
    let server = place.serve_with(
        &["--store", "memory:", "--webhooks-allow-private", "--log", "info,holdpoint_runtime::worker=debug"],
        &[("HOLDPOINT_WEBHOOKS_SECRET", WEBHOOK_SECRET)],
    );
    let body = json!({"agent": "bot", "tool": "deploy", "args": {}, "callback_url": asker.url});
    let (_, request) = server.post("/api/v1/requests", &body);
    decide(&server, &request["pause"], &json!({"decision": "approve"}));
    asker.next();
    // The second attempt comes some seconds after the first, and the worker looks in between.
    place.await_log("a run waits for its time");
    server.terminate();
    let log = place.log();
    assert!(log.contains("a callback did not arrive"), "{log}");
    assert!(!log.contains("WARN") && !log.contains("ERROR"), "{log}");
}

#[test]
fn without_the_operators_word_nobody_on_this_machine_is_called_back() {
    let place = Place::new();
    let server = place.serve_with(&["--store", "memory:"], &[("HOLDPOINT_WEBHOOKS_SECRET", WEBHOOK_SECRET)]);
    for url in ["http://127.0.0.1:9/hook", "https://127.0.0.1/hook", "https://10.0.0.1/", "https://169.254.169.254/"] {
        let body = json!({"agent": "bot", "tool": "deploy", "args": {}, "callback_url": url});
        let (status, refused) = server.post("/api/v1/requests", &body);
        assert_eq!((status, text(&refused, "code")), (422, "callback_refused"), "{url}");
    }
}

/// A private key of Ed25519 (PKCS 8), and its public half as a provider publishes it.
const KEY: (&str, &str) =
    ("MC4CAQAwBQYDK2VwBCIEIGHwTSIeHX671aLIbLraOwRXGqZdgNZRwfVehW+ZT+Dh", "nwRtal2a2SeJS_z9fkFFlMRTykakS0K0k1PyHBwXU0c");

fn token(issuer: &str, subject: &str, role: &str, seconds: i64) -> String {
    let expires = i64::try_from(now().as_secs()).unwrap() + seconds;
    let claims = json!({"iss": issuer, "aud": "holdpoint", "sub": subject, "exp": expires, "hp_roles": [role]});
    let header = Header { kid: Some("one".to_owned()), ..Header::new(Algorithm::EdDSA) };
    encode(&header, &claims, &EncodingKey::from_ed_der(&STANDARD.decode(KEY.0).unwrap())).unwrap()
}

#[test]
fn people_come_in_with_tokens_of_the_identity_provider() {
    let keys =
        json!({"keys": [{"kty": "OKP", "crv": "Ed25519", "alg": "EdDSA", "use": "sig", "kid": "one", "x": KEY.1}]});
    let provider = Other::start(move |_| (200, keys.to_string()));
    let place = Place::new();
    let issuer = "https://login.example";
    place.write(
        "holdpoint.yaml",
        &format!(
            "apiVersion: holdpoint/v1\nkind: Server\nstore: \"memory:\"\naccess:\n  jwt:\n    issuer: {issuer}\n    \
             audience: holdpoint\n    jwks_url: {}/keys\n    role_claim: hp_roles\n    \
             roles: {{ bots: agent, people: approver }}\n    algorithms: [EdDSA]\n",
            provider.url
        ),
    );
    let server = place.serve(&[]);
    let (bot, ana) = (token(issuer, "bot-7", "bots", 600), token(issuer, "ana@example.com", "people", 600));
    let ask =
        |token: &str, method: &str, path: &str, body: Option<&Value>| server.ask_with(Some(token), method, path, body);
    let start = json!({"agent_id": "refund-desk", "input": "refund it"});
    let (status, run) = ask(&bot, "POST", "/api/v1/runs?wait=30", Some(&start));
    assert_eq!((status, &run["started_by"]), (201, &json!("bot-7")), "{run}");
    assert_eq!(provider.next().what, "GET /keys");
    let path = format!("/api/v1/pauses/{}/decide?wait=30", text(&run["pauses"][0], "id"));
    let approve = json!({"decision": "approve"});
    let wrong = [
        (server.ask_with(None, "POST", &path, Some(&approve)), 401, "unauthenticated"),
        (ask(&bot, "POST", &path, Some(&approve)), 403, "forbidden"),
        (ask(&token(issuer, "ana", "people", -600), "POST", &path, Some(&approve)), 401, "unauthenticated"),
        (
            ask(&token("https://evil.example", "ana", "people", 600), "POST", &path, Some(&approve)),
            401,
            "unauthenticated",
        ),
        (ask(&token(issuer, "ana", "strangers", 600), "POST", &path, Some(&approve)), 403, "forbidden"),
        (ask(&format!("{}x", &ana[..ana.len() - 1]), "POST", &path, Some(&approve)), 401, "unauthenticated"),
    ];
    for (at, ((status, answer), expected, code)) in wrong.into_iter().enumerate() {
        assert_eq!((status, text(&answer, "code")), (expected, code), "{at}: {answer}");
    }
    let (status, decided) = ask(&ana, "POST", &path, Some(&approve));
    assert_eq!((status, &decided["decision"]["by"]), (200, &json!("ana@example.com")), "{decided}");
    server.terminate();
    for secret in [&bot, &ana] {
        assert!(!place.log().contains(secret.as_str()), "a token is in the log");
    }
}
