//! The answer of `generate` and of decisions that want one: the run so far, put together from its journal.

use std::convert::Infallible;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream;
use holdpoint_core::record::Entry;
use holdpoint_core::run::Run;
use http::{HeaderValue, header};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::chunks::{Narrator, Stop, is_wait, usage};
use super::follow::Follow;
use super::history::messages;
use super::place::journal;
use super::wire::{Chunk, Payload};
use crate::app::App;
use crate::limits::StreamPermit;
use crate::problem::Problem;

/// A response whose head is sent at once and whose JSON follows when the run has come to its stop. A client that was
/// told of an error meanwhile would send its request again, so there is none; until then it reads blanks.
pub(super) fn respond(follow: Follow, permit: StreamPermit) -> Response {
    let app = follow.app.clone();
    let (run, name) = (follow.narrator.run().id(), follow.narrator.maker().clone());
    let (give, taken) = oneshot::channel();
    let task = app.clone();
    let stop = app.stopping();
    app.tasks().spawn(async move {
        let _permit = permit;
        let mut give = give;
        let answer = tokio::select! {
            problem = follow.wait() => read(&task, run, &name.run, problem).await,
            // Nobody reads it any more.
            () = give.closed() => return,
            () = stop.cancelled() => failed(&name.run, "stopping", "the server is stopping; the run goes on with its next start"),
        };
        // A client that went away has lost nothing: the answer can be asked for again.
        let _ = give.send(answer);
    });
    let heartbeat = app.limits().heartbeat;
    let body = stream::unfold(Some(taken), move |waiting| async move {
        let mut taken = waiting?;
        match tokio::time::timeout(heartbeat, &mut taken).await {
            Ok(answer) => Some((Ok::<_, Infallible>(Bytes::from(answer.unwrap_or_default().to_string())), None)),
            Err(_) => Some((Ok(Bytes::from_static(b"\n")), Some(taken))),
        }
    });
    let mut response = Response::new(Body::from_stream(body));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

async fn read(app: &App, run: holdpoint_core::ids::RunId, name: &str, problem: Option<Problem>) -> Value {
    let entries = match journal(app, run).await {
        Ok(entries) => entries.unwrap_or_default(),
        Err(problem) => return failed(name, problem.code(), problem.detail()),
    };
    let mut answer = of(run, &entries);
    if let Some(problem) = problem {
        answer["finishReason"] = json!("error");
        answer["error"] = json!({"message": problem.detail(), "code": problem.code()});
    }
    answer
}

fn failed(run: &str, code: &str, message: &str) -> Value {
    json!({"text": "", "usage": {}, "steps": [], "toolCalls": [], "toolResults": [], "messages": [],
        "finishReason": "error", "error": {"message": message, "code": code}, "runId": run})
}

/// The answer of a run as it stands.
fn of(id: holdpoint_core::ids::RunId, entries: &[Entry]) -> Value {
    let run = Run::fold(id, entries.iter().flat_map(Entry::timed));
    let mut narrator = Narrator::new(Run::new(id), id.to_string());
    let mut chunks: Vec<Chunk> =
        entries.iter().flat_map(Entry::timed).flat_map(|(event, at)| narrator.take(event, at)).collect();
    let stop = narrator.stop();
    chunks.extend(narrator.announce());
    let steps = steps(&chunks);
    let waits: Vec<&Chunk> = chunks.iter().filter(|chunk| is_wait(chunk)).collect();
    let is_held = stop == Some(Stop::Held) && !waits.is_empty();
    let cost = json!(usage(run.usage()));
    let mut answer = json!({
        "text": if is_held { String::new() } else { text(&chunks) },
        "usage": if is_held { json!({}) } else { cost.clone() },
        "totalUsage": cost,
        "steps": if is_held { Vec::new() } else { steps },
        "finishReason": finish_reason(&chunks, is_held),
        "warnings": [], "request": {}, "reasoning": [], "sources": [], "files": [],
        "toolCalls": of_kind(&chunks, &["tool-call"]),
        "toolResults": of_kind(&chunks, &["tool-result"]),
        "response": {"id": narrator.maker().message(1), "messages": []},
        "usedFallbackValue": false,
        "runId": narrator.maker().run,
        "messages": messages(&run, entries),
        "rememberedMessages": [],
    });
    if let (true, Some(first)) = (is_held, waits.first()) {
        let payload = json!(first.payload);
        answer["resumeSchema"] = payload["resumeSchema"].clone();
        answer["suspendPayload"] = payload;
        answer["suspendPayloads"] = waits.iter().map(|chunk| json!(chunk.payload)).collect();
    }
    if let Some(Payload::Error(error)) = chunks.iter().find(|chunk| chunk.kind == "error").map(|chunk| &chunk.payload) {
        answer["error"] = json!(error.error);
    }
    answer
}

fn finish_reason(chunks: &[Chunk], is_held: bool) -> Value {
    let finish = chunks.iter().rev().find(|chunk| chunk.kind == "finish").map(|chunk| &chunk.payload);
    match finish {
        _ if is_held => json!("suspended"),
        Some(Payload::StepFinish(finish)) => json!(finish.step_result.reason),
        _ => Value::Null,
    }
}

fn text(chunks: &[Chunk]) -> String {
    chunks
        .iter()
        .filter_map(|chunk| match &chunk.payload {
            Payload::Words(words) if chunk.kind == "text-delta" => Some(words.text.as_str()),
            _ => None,
        })
        .collect()
}

fn of_kind(chunks: &[Chunk], kinds: &[&str]) -> Vec<Value> {
    chunks.iter().filter(|chunk| kinds.contains(&chunk.kind)).map(|chunk| json!(chunk)).collect()
}

/// Each step with what was said and done in it.
fn steps(chunks: &[Chunk]) -> Vec<Value> {
    let ends: Vec<usize> = (0..chunks.len()).filter(|at| chunks[*at].kind == "step-finish").collect();
    let begins = std::iter::once(0).chain(ends.iter().map(|end| end + 1));
    let step = |(index, (begin, end)): (usize, (usize, usize))| {
        let part = &chunks[begin..=end];
        let (reason, cost) = match &chunks[end].payload {
            Payload::StepFinish(finish) => (finish.step_result.reason, json!(finish.usage)),
            _ => ("stop", Value::Null),
        };
        json!({
            "stepType": if index == 0 { "initial" } else { "tool-result" },
            "text": text(part),
            "toolCalls": of_kind(part, &["tool-call"]),
            "toolResults": of_kind(part, &["tool-result"]),
            "finishReason": reason,
            "usage": cost,
            "warnings": [], "sources": [], "files": [], "reasoning": [],
        })
    };
    begins.zip(ends.iter().copied()).enumerate().map(step).collect()
}
