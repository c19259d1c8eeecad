//! Exchanges captured from Mastra itself, played again as requests: what we answer has the same shape, but for the
//! differences that are listed here.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};

use crate::world::{Answer, World};

/// One captured exchange.
struct Exchange {
    name: String,
    method: String,
    /// Without the prefix.
    path: String,
    body: Option<Value>,
    raw: Option<String>,
    status: u16,
    /// The chunks' types in order, each run of the same one once; empty for JSON.
    types: Vec<String>,
    chunks: Vec<Value>,
    json: Value,
}

fn read(name: &str) -> Exchange {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/mastra");
    let text = std::fs::read_to_string(folder.join(format!("{name}.json"))).unwrap();
    let all: Value = serde_json::from_str(&text).unwrap();
    let (request, response) = (&all["request"], &all["response"]);
    let frames = response["sse_frames"].as_array().cloned().unwrap_or_default();
    let chunk = |frame: &Value| serde_json::from_str(frame.as_str().unwrap().strip_prefix("data: ").unwrap()).ok();
    let chunks: Vec<Value> = frames.iter().filter_map(chunk).collect();
    let mut types: Vec<String> =
        chunks.iter().map(|chunk: &Value| chunk["type"].as_str().unwrap().to_owned()).collect();
    types.dedup();
    Exchange {
        name: name.to_owned(),
        method: request["method"].as_str().unwrap().to_owned(),
        path: request["path"].as_str().unwrap().strip_prefix("/api").unwrap().to_owned(),
        body: request.get("json").cloned(),
        raw: request["text"].as_str().map(str::to_owned),
        status: u16::try_from(response["status"].as_u64().unwrap()).unwrap(),
        types,
        chunks,
        json: response["json"].clone(),
    }
}

/// Names in the captured exchanges, and what they are here.
#[derive(Default)]
struct Names(BTreeMap<String, String>);

impl Names {
    /// Learns what the runs and calls of a capture are called here, in their order.
    fn learn(&mut self, captured: &Exchange, ours: &[Value]) {
        for key in ["runId", "toolCallId"] {
            let of = |chunks: &[Value]| {
                let mut found: Vec<String> = Vec::new();
                for chunk in chunks {
                    let value = if key == "runId" { &chunk["runId"] } else { &chunk["payload"]["toolCallId"] };
                    if let Some(name) = value.as_str().filter(|name| !found.iter().any(|known| known == name)) {
                        found.push(name.to_owned());
                    }
                }
                found
            };
            self.0.extend(of(&captured.chunks).into_iter().zip(of(ours)));
        }
    }

    fn translate(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => json!(self.0.get(text).unwrap_or(text)),
            Value::Array(items) => items.iter().map(|item| self.translate(item)).collect(),
            Value::Object(members) => {
                Value::Object(members.iter().map(|(key, value)| (key.clone(), self.translate(value))).collect())
            }
            other => other.clone(),
        }
    }
}

struct Player {
    world: World,
    names: Names,
}

impl Player {
    async fn new() -> Self {
        Self { world: World::start().await, names: Names::default() }
    }

    /// Sends what was captured, with names as they are here.
    async fn play(&mut self, name: &str) -> (Exchange, Answer) {
        let captured = read(name);
        let mut request = self.world.request(&captured.method, &captured.path);
        if let Some(body) = &captured.body {
            let mut body = self.names.translate(body);
            // Our tool asks in another form, so its answer has another one.
            if body["resumeData"]["answer"].is_string() {
                body["resumeData"] = json!({"answer": "prod"});
            }
            request = request.json(&body);
        } else if let Some(raw) = &captured.raw {
            request = request.header("content-type", "application/json").body(raw.clone());
        }
        let answer = Answer::to(request).await;
        if answer.status == 200 && answer.content_type == "text/event-stream" {
            self.names.learn(&captured, &answer.chunks());
        }
        (captured, answer)
    }

    /// Plays a stream, and holds its shape against what was captured.
    async fn stream(&mut self, name: &str) {
        let (captured, answer) = self.play(name).await;
        assert_eq!(captured.status, 200, "{name}");
        let (mut ours, mut theirs) = (answer.types(), captured.types.clone());
        // A resumed stream shows the call again before what came of it: its client would complain otherwise.
        let is_resumed = theirs.first().is_some_and(|first| first.starts_with("tool-"));
        if is_resumed && ours.first().map(String::as_str) == Some("tool-call") {
            ours.remove(0);
        }
        // The end of a text may stand on either side of the arguments that follow it.
        let is_pause = theirs.last().is_some_and(|last| last.starts_with("tool-call"));
        if is_pause {
            ours.sort();
            theirs.sort();
            ours.dedup();
            theirs.dedup();
        }
        assert_eq!(ours, theirs, "{name}");
        self.check_fields(&captured, &answer);
    }

    /// Every field of a captured chunk that a client reads is in ours, with a value of the same type.
    fn check_fields(&self, captured: &Exchange, answer: &Answer) {
        let required: &[(&str, &[&str])] = &[
            ("start", &["id", "messageId"]),
            ("step-start", &["messageId", "startedAt", "warnings", "request"]),
            ("text-start", &["id"]),
            ("text-delta", &["id", "text"]),
            ("text-end", &["type", "id"]),
            ("tool-call-input-streaming-start", &["toolCallId", "toolName"]),
            ("tool-call-delta", &["toolCallId", "toolName", "argsTextDelta"]),
            ("tool-call-input-streaming-end", &["toolCallId"]),
            ("tool-call", &["toolCallId", "toolName", "args"]),
            ("tool-call-approval", &["toolCallId", "toolName", "args", "resumeSchema"]),
            ("tool-call-suspended", &["toolCallId", "toolName", "args", "resumeSchema", "suspendPayload"]),
            ("tool-result", &["toolCallId", "toolName", "args", "result"]),
            ("tool-error", &["toolCallId", "toolName", "args", "error"]),
            ("tool-output-denied", &["toolCallId", "toolName", "args", "approval"]),
            ("step-finish", &["messageId", "stepResult", "output"]),
            ("finish", &["messageId", "stepResult", "output"]),
        ];
        for chunk in answer.chunks() {
            let kind = chunk["type"].as_str().unwrap();
            let fields = required.iter().find(|(known, _)| *known == kind);
            let (_, fields) = fields.unwrap_or_else(|| panic!("{}: {kind} is not known", captured.name));
            let theirs = captured.chunks.iter().find(|chunk| chunk["type"] == kind);
            for field in *fields {
                let ours = &chunk["payload"][field];
                assert!(!ours.is_null(), "{}: {kind}.{field} is missing", captured.name);
                if let Some(theirs) = theirs {
                    let alike = std::mem::discriminant(ours) == std::mem::discriminant(&theirs["payload"][field]);
                    assert!(alike, "{}: {kind}.{field} is {ours}", captured.name);
                }
            }
        }
        for (ours, theirs) in answer
            .payloads("step-finish")
            .iter()
            .zip(captured.chunks.iter().filter(|chunk| chunk["type"] == "step-finish"))
        {
            for field in ["reason", "isContinued"] {
                assert_eq!(ours["stepResult"][field], theirs["payload"]["stepResult"][field], "{}", captured.name);
            }
        }
    }

    /// Plays something that is refused; ours has another status where theirs makes clients repeat what was done.
    async fn refused(&mut self, name: &str, status: u16, code: &str) {
        let (captured, answer) = self.play(name).await;
        assert!(captured.status >= 400, "{name}");
        assert_eq!(answer.refusal(), (status, code.to_owned()), "{name}");
        if captured.status < 500 {
            assert_eq!(answer.status, captured.status, "{name}");
            let shape = |value: &Value| (value["error"].is_string(), value["issues"][0]["field"].clone());
            assert_eq!(shape(&answer.json()), shape(&captured.json), "{name}");
        }
    }

    /// Plays something that is answered with JSON: every member that ours has as well is of the same type.
    async fn answered(&mut self, name: &str, members: &[&str]) -> Value {
        let (captured, answer) = self.play(name).await;
        assert_eq!(answer.status, captured.status, "{name}: {}", answer.body);
        let ours = answer.json();
        for member in members {
            let (our, their) = (&ours[member], &captured.json[member]);
            assert!(!our.is_null(), "{name}: {member} is missing in {ours}");
            assert_eq!(std::mem::discriminant(our), std::mem::discriminant(their), "{name}: {member}");
        }
        if let (Some(our), Some(their)) = (ours["runId"].as_str(), captured.json["runId"].as_str()) {
            self.names.0.insert(their.to_owned(), our.to_owned());
            let call = |value: &Value| value["toolCalls"][0]["payload"]["toolCallId"].as_str().map(str::to_owned);
            self.names.0.extend(call(&captured.json).zip(call(&ours)));
        }
        ours
    }
}

#[tokio::test]
async fn streams_and_decisions_have_the_shape_that_was_captured() {
    let mut player = Player::new().await;
    for name in ["05-stream-text-only", "06-stream-tool-no-approval"] {
        player.stream(name).await;
    }
    for (pause, decision) in [
        ("07-stream-pause", "08-approve"),
        ("11-stream-pause", "12-decline-reason"),
        ("13-stream-pause", "14-decline-no-reason"),
        ("43-call-level-requireToolApproval", "44-call-level-approve"),
        ("45-tool-suspend", "46-resume-stream"),
        ("52-fail-tool-pause", "53-fail-tool-approve"),
        ("55-mem-stream-pause", "58-mem-approve"),
        ("60-mem-decline", "60-mem-decline_2"),
        ("71-client-run-id-reuse", "71-client-run-id-approve"),
        ("extra-1-pause", "extra-2-decline-with-info-field"),
        ("extra-5-pause", "extra-6-decline-blank-reason"),
        ("extra-7-approve-inside-onchunk", "extra-7-approve-inside-onchunk_2"),
    ] {
        player.stream(pause).await;
        player.stream(decision).await;
    }
    for name in ["40-twostep-pause", "41-twostep-approve-1", "42-twostep-approve-2"] {
        player.stream(name).await;
    }
}

#[tokio::test]
async fn refusals_have_the_form_that_was_captured_and_statuses_that_nobody_repeats() {
    let mut player = Player::new().await;
    player.stream("07-stream-pause").await;
    player.stream("08-approve").await;
    player.refused("10-decline-after-approve", 409, "already_decided").await;
    player.refused("15-approve-unknown-run", 404, "run_not_found").await;
    player.refused("16-decline-unknown-run", 404, "run_not_found").await;
    player.stream("17-approve-missing-toolCallId").await;
    player.refused("18-approve-wrong-toolCallId", 409, "tool_call_not_suspended").await;
    player.stream("19-approve-right-after-wrong").await;
    player.refused("20-approve-missing-runId", 400, "missing_field").await;
    player.refused("21-approve-unknown-agent", 404, "agent_not_found").await;
    player.refused("22-stream-unknown-agent", 404, "agent_not_found").await;
    player.refused("23-malformed-json", 400, "invalid_json").await;
    player.refused("24-stream-missing-messages", 400, "missing_field").await;
    player.refused("31-approve-generate-unknown-run", 404, "run_not_found").await;
    player.refused("04-agent-details-unknown", 404, "agent_not_found").await;
}

#[tokio::test]
async fn answers_in_one_piece_have_the_shape_that_was_captured() {
    let mut player = Player::new().await;
    let members =
        ["text", "usage", "steps", "finishReason", "warnings", "toolCalls", "toolResults", "runId", "messages"];
    player.answered("25-generate-text", &members).await;
    let paused =
        player.answered("26-generate-pause", &[&members[..], &["suspendPayload", "resumeSchema"]].concat()).await;
    assert_eq!(paused["finishReason"], json!("suspended"));
    player.answered("27-approve-generate", &members).await;
    player.answered("29-generate-pause", &members).await;
    player.answered("30-decline-generate", &members).await;
    player.answered("51-generate-suspend", &["finishReason", "suspendPayload", "runId"]).await;
    player.answered("01-list-agents", &[]).await;
    let agent = [
        "name",
        "description",
        "instructions",
        "tools",
        "agents",
        "workflows",
        "provider",
        "modelId",
        "defaultOptions",
    ];
    player.answered("03-agent-details", &agent).await;
    player.stream("55-mem-stream-pause").await;
    let listed = player.answered("56-mem-list-suspended-runs", &["runs", "total"]).await;
    assert_eq!((&listed["total"], &listed["runs"][0]["threadId"]), (&json!(1), &json!("th-1")));
    let members = ["messages", "total", "page", "perPage", "hasMore"];
    assert_eq!(player.answered("57-mem-list-thread-messages", &members).await["total"], json!(2));
    player.stream("58-mem-approve").await;
    assert_eq!(player.answered("59-mem-list-thread-messages-after", &members).await["total"], json!(3));
    player.stream("60-mem-decline").await;
    player.stream("60-mem-decline_2").await;
    assert_eq!(player.answered("61-mem-list-thread-messages-declined", &members).await["total"], json!(3));
}

#[tokio::test]
async fn where_we_do_better_the_same_requests_are_answered_otherwise() {
    let mut player = Player::new().await;
    player.stream("07-stream-pause").await;
    player.stream("08-approve").await;
    let (captured, again) = player.play("09-approve-again-already-decided").await;
    assert_eq!((captured.status, again.types().last().unwrap().as_str()), (500, "finish"), "it is replayed");
    player.stream("17-approve-missing-toolCallId").await;
    let (captured, only) = player.play("17-approve-missing-toolCallId_2").await;
    assert_eq!((captured.status, only.types().last().unwrap().as_str()), (400, "finish"), "one call waits");

    let (captured, pause) = player.play("35-parallel-pause").await;
    let announced = |chunks: &[Value]| chunks.iter().filter(|chunk| chunk["type"] == "tool-call-approval").count();
    assert_eq!((announced(&captured.chunks), announced(&pause.chunks())), (1, 2), "every call is announced");
    let (captured, second_first) = player.play("36-parallel-approve-second-first").await;
    assert_eq!((captured.status, second_first.payloads("tool-result").len()), (500, 1), "in any order");
    let (_, first_last) = player.play("37-parallel-approve-first-last").await;
    assert_eq!(first_last.types().last().unwrap(), "finish");

    let (captured, mixed) = player.play("38-mixed-pause").await;
    assert!(!captured.types.contains(&"tool-result".to_owned()));
    assert_eq!(mixed.payloads("tool-result").len(), 1, "what is not held is told at once");

    player.stream("47-tool-suspend").await;
    let (captured, invalid) = player.play("48-resume-invalid-data").await;
    assert_eq!((captured.status, invalid.refusal()), (200, (400, "invalid_resume_data".to_owned())));
    player.stream("49-tool-suspend").await;
    let (captured, wrong) = player.play("50-approve-on-suspended-tool").await;
    assert_eq!((captured.status, wrong.refusal()), (200, (400, "invalid_resume_data".to_owned())));

    player.play("62-mem-new-message-while-suspended").await;
    let (captured, busy) = player.play("62-mem-new-message-while-suspended_2").await;
    assert_eq!((captured.status, busy.refusal()), (200, (409, "thread_busy".to_owned())));
    player.play("62-mem-new-message-while-suspended_3").await.1.json();
    player.stream("63-mem-approve-stale").await;
    player.stream("68-auth-header").await;
    assert_eq!(player.world.tools.calls().len(), 6, "each approved call ran once");
}
