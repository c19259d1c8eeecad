//! Plays captured exchanges, and holds what we answer against what was captured.

use serde_json::{Value, json};

use super::exchange::{Exchange, Names, read};
use crate::world::{Answer, World};

/// Sends what was captured to a server of ours.
pub struct Player {
    pub world: World,
    pub names: Names,
}

impl Player {
    pub async fn new() -> Self {
        Self { world: World::start().await, names: Names::default() }
    }

    /// What was captured, and the same request to our server, with names as they are here.
    pub fn request(&self, name: &str) -> (Exchange, reqwest::RequestBuilder) {
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
        (captured, request)
    }

    /// Sends what was captured, with names as they are here.
    pub async fn play(&mut self, name: &str) -> (Exchange, Answer) {
        let (captured, request) = self.request(name);
        let answer = Answer::to(request).await;
        if answer.status == 200 && answer.content_type == "text/event-stream" {
            self.names.learn(&captured, &answer.chunks());
        }
        (captured, answer)
    }

    /// Plays a stream, and holds its shape against what was captured.
    pub async fn stream(&mut self, name: &str) {
        let (captured, answer) = self.play(name).await;
        assert_eq!(captured.status, 200, "{name}");
        self.check(&captured, &answer);
    }

    /// Holds the shape of an answer against what was captured.
    pub fn check(&self, captured: &Exchange, answer: &Answer) {
        let name = &captured.name;
        let (mut ours, mut theirs) = (answer.types(), captured.types.clone());
        // Another kind of agent there tells more of its model.
        theirs.retain(|kind| kind != "response-metadata");
        theirs.dedup();
        // A resumed stream shows the call again before what came of it: its client would complain otherwise.
        let is_resumed = theirs.first().is_some_and(|first| first.starts_with("tool-"));
        if is_resumed && ours.first().map(String::as_str) == Some("tool-call") {
            ours.remove(0);
        }
        // The end of a text may stand on either side of the arguments that follow it.
        let has_pause = theirs.iter().any(|kind| kind == "tool-call-approval" || kind == "tool-call-suspended");
        if has_pause {
            ours.sort();
            theirs.sort();
            ours.dedup();
            theirs.dedup();
        }
        assert_eq!(ours, theirs, "{name}");
        self.check_fields(captured, answer);
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
            ("error", &["error"]),
        ];
        for chunk in answer.chunks() {
            let kind = chunk["type"].as_str().unwrap();
            let fields = required.iter().find(|(known, _)| *known == kind);
            let (_, fields) = fields.unwrap_or_else(|| panic!("{}: {kind} is not known", captured.name));
            let theirs = captured.chunks.iter().find(|chunk| chunk["type"] == kind);
            for field in *fields {
                let ours = &chunk["payload"][field];
                assert!(!ours.is_null(), "{}: {kind}.{field} is missing", captured.name);
                // Some kinds of agents there leave some out.
                let theirs = theirs.map(|chunk| &chunk["payload"][field]).filter(|theirs| !theirs.is_null());
                if let Some(theirs) = theirs {
                    let alike = std::mem::discriminant(ours) == std::mem::discriminant(theirs);
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
    pub async fn refused(&mut self, name: &str, status: u16, code: &str) {
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
    pub async fn answered(&mut self, name: &str, members: &[&str]) -> Value {
        let (captured, answer) = self.play(name).await;
        assert_eq!(answer.status, captured.status, "{name}: {}", answer.body);
        let ours = answer.json();
        check_members(name, &ours, &captured.json, members);
        if let (Some(our), Some(their)) = (ours["runId"].as_str(), captured.json["runId"].as_str()) {
            self.names.0.insert(their.to_owned(), our.to_owned());
            let call = |value: &Value| value["toolCalls"][0]["payload"]["toolCallId"].as_str().map(str::to_owned);
            self.names.0.extend(call(&captured.json).zip(call(&ours)));
        }
        ours
    }
}

/// These members are in both, with values of the same types.
#[track_caller]
pub fn check_members(name: &str, ours: &Value, theirs: &Value, members: &[&str]) {
    for member in members {
        let (our, their) = (&ours[member], &theirs[member]);
        assert!(!our.is_null(), "{name}: {member} is missing in {ours}");
        assert_eq!(std::mem::discriminant(our), std::mem::discriminant(their), "{name}: {member}");
    }
}
