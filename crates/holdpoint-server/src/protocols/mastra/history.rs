//! What was said in a run, as the messages that Mastra's clients keep.

use std::collections::BTreeMap;

use holdpoint_core::event::{CallAnswered, ModelReplied, RunEvent};
use holdpoint_core::ids::CallPath;
use holdpoint_core::message::Content;
use holdpoint_core::pause::{Pause, PauseState, Subject};
use holdpoint_core::record::Entry;
use holdpoint_core::run::Run;
use holdpoint_core::time::Timestamp;
use holdpoint_core::tool::{CallRecord, Outcome};
use serde_json::{Map, Value, json};

use super::calls::{call_name, waiting};
use super::chunks::{Maker, result};
use super::origin::{Origin, run_name, thread};

/// The messages of a run, oldest first.
pub(super) fn messages(run: &Run, entries: &[Entry]) -> Vec<Value> {
    let mut writer = Writer {
        make: Maker { run: run_name(run) },
        thread: thread(run).map(ToString::to_string),
        resource: Origin::of(run).resource,
        outcomes: outcomes(entries),
        run,
        turn: 0,
        staged: 0,
        messages: Vec::new(),
    };
    for (event, at) in entries.iter().flat_map(Entry::timed) {
        match event {
            RunEvent::RunStarted(started) => writer.user("0".to_owned(), &started.input, at),
            RunEvent::InputStaged(input) => {
                writer.staged += 1;
                writer.user(format!("input-{}", writer.staged), &input.content, at);
            }
            RunEvent::ModelReplied(replied) if replied.frame.is_root() => writer.assistant(replied, at),
            RunEvent::ReplyRefused(refused) if refused.frame.is_root() => writer.turn += 1,
            _ => {}
        }
    }
    writer.messages
}

/// What came of each call, and when.
fn outcomes(entries: &[Entry]) -> BTreeMap<CallPath, Outcome> {
    let answered = |event: &RunEvent| match event {
        RunEvent::CallAnswered(CallAnswered { call, outcome }) => Some((call.clone(), outcome.clone())),
        _ => None,
    };
    entries.iter().flat_map(|entry| entry.events.iter()).filter_map(answered).collect()
}

struct Writer<'a> {
    run: &'a Run,
    make: Maker,
    thread: Option<String>,
    resource: Option<String>,
    outcomes: BTreeMap<CallPath, Outcome>,
    turn: u32,
    staged: u32,
    messages: Vec<Value>,
}

impl Writer<'_> {
    fn user(&mut self, id: String, content: &Content, at: Timestamp) {
        let text = content.to_text();
        let content = json!({"format": 2, "parts": [text_part(&text, at)], "content": text});
        let id = format!("{}-{id}", self.make.run);
        self.write(id, "user", content, at);
    }

    fn assistant(&mut self, replied: &ModelReplied, at: Timestamp) {
        self.turn += 1;
        let text = replied.text.clone().unwrap_or_default();
        let mut parts: Vec<Value> = if text.is_empty() { Vec::new() } else { vec![text_part(&text, at)] };
        let mut pending = Map::new();
        for (index, record) in (0..).zip(&replied.calls) {
            let path = replied.frame.call(self.turn, index);
            parts.push(json!({"type": "tool-invocation", "toolInvocation": self.invocation(&path, record), "createdAt": at.as_millis()}));
            // A call of an agent below belongs to the call that leads to it.
            for named in waiting(self.run) {
                let is_within =
                    matches!(&named.view.pause.subject, Subject::Call { path: of, .. } if of.is_within(&path));
                if is_within {
                    pending.insert(named.name.clone(), self.pending(&self.make.waiting(&named)));
                }
            }
        }
        let mut metadata = Map::new();
        if !pending.is_empty() {
            metadata.insert("pendingToolApprovals".to_owned(), Value::Object(pending));
        }
        let content = json!({"format": 2, "parts": parts, "content": text, "metadata": metadata});
        self.write(self.make.message(self.turn), "assistant", content, at);
    }

    /// A question that waits, as a page that is loaded again finds it.
    fn pending(&self, chunk: &super::wire::Chunk) -> Value {
        let mut pending = serde_json::to_value(&chunk.payload).unwrap_or_default();
        pending["type"] = json!(if chunk.kind == "tool-call-approval" { "approval" } else { "suspension" });
        pending["runId"] = json!(self.make.run);
        pending
    }

    fn invocation(&self, path: &CallPath, record: &CallRecord) -> Value {
        let id = call_name(path, &record.call_id);
        let mut invocation =
            json!({"state": "call", "toolCallId": id, "toolName": record.tool.as_str(), "args": record.arguments});
        let outcome = match &record.problem {
            Some(problem) => Some(Outcome::Invalid(problem.clone())),
            None => self.outcomes.get(path).cloned(),
        };
        let told = |outcome: &Outcome| outcome.to_output(&record.kind);
        match outcome {
            None => {}
            Some(outcome @ (Outcome::Denied(_) | Outcome::Expired | Outcome::Withdrawn)) => {
                invocation["state"] = json!("output-denied");
                let reason = told(&outcome).to_text();
                invocation["approval"] = json!({"id": id, "approved": false, "reason": reason});
            }
            Some(outcome) => {
                invocation["state"] = json!("result");
                invocation["result"] = json!(result(&told(&outcome)));
                if self.run.pauses().iter().any(|pause| is_approval_of(pause, path)) {
                    invocation["approval"] = json!({"id": id, "approved": true});
                }
            }
        }
        invocation
    }

    fn write(&mut self, id: String, role: &str, content: Value, at: Timestamp) {
        let mut message = json!({"id": id, "role": role, "content": content, "createdAt": at.to_string()});
        if let Some(thread) = &self.thread {
            message["threadId"] = json!(thread);
        }
        if let Some(resource) = &self.resource {
            message["resourceId"] = json!(resource);
        }
        self.messages.push(message);
    }
}

fn text_part(text: &str, at: Timestamp) -> Value {
    json!({"type": "text", "text": text, "createdAt": at.as_millis()})
}

fn is_approval_of(pause: &Pause, path: &CallPath) -> bool {
    matches!(&pause.subject, Subject::Call { path: of, .. } if of == path)
        && matches!(&pause.state, PauseState::Decided(decided) if decided.decision.name().starts_with("approve"))
}
