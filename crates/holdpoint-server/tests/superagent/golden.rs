//! Every exchange that the protocol's own page prints, recorded in `fixtures/superagent/` and played back in both
//! versions. `UPDATE_FIXTURES=1` writes what the server says now; look at the difference before keeping it.

use std::path::{Path, PathBuf};

use holdpoint_testkit::model_server::Answer as Reply;
use serde_json::{Map, Value, json};

use crate::world::{Answer, World};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/superagent")
}

fn fixtures() -> Vec<PathBuf> {
    let files = std::fs::read_dir(folder()).unwrap().map(|file| file.unwrap().path());
    let mut files: Vec<PathBuf> = files.filter(|path| path.extension().is_some_and(|end| end == "json")).collect();
    files.sort();
    files
}

#[tokio::test]
async fn every_recorded_exchange_is_played_back_to_the_letter_in_both_versions() {
    let files = fixtures();
    assert!(files.len() >= 12, "{files:?}");
    for path in files {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).unwrap();
        let recorded: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        let played = play(&recorded, "/api/v1").await;
        if std::env::var_os("UPDATE_FIXTURES").is_some() {
            std::fs::write(&path, serde_json::to_string_pretty(&played).unwrap() + "\n").unwrap();
        } else {
            assert_eq!(pretty(&played), pretty(&recorded), "{name}");
        }
        assert_eq!(pretty(&play(&recorded, "/api/v2").await), pretty(&played), "{name} under /api/v2");
    }
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap()
}

/// Sends the recorded requests, and puts what is answered in place of what was.
async fn play(recorded: &Value, prefix: &str) -> Value {
    let world = World::start().await;
    for said in recorded["model"].as_array().unwrap() {
        world.model.push(reply(said));
    }
    let mut played = recorded.clone();
    for exchange in played["exchanges"].as_array_mut().unwrap() {
        let request = &exchange["request"];
        let path = request["path"].as_str().unwrap().replacen("/api/v1", prefix, 1);
        let mut sent = world.request(request["method"].as_str().unwrap(), &path);
        for (name, value) in request["headers"].as_object().into_iter().flatten() {
            sent = sent.header(name, value.as_str().unwrap());
        }
        if let Some(body) = request.get("body") {
            sent = sent.body(serde_json::to_vec(body).unwrap());
        }
        exchange["response"] = response(&Answer::to(sent).await);
    }
    played
}

/// What the model says: `tokens`, then `calls`.
fn reply(said: &Value) -> Reply {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let tokens = said["tokens"].as_array().into_iter().flatten().map(text);
    let calls = said["calls"].as_array().into_iter().flatten();
    calls.fold(Reply::tokens(tokens), |reply, call| {
        reply.and_call_as(text(&call["id"]), text(&call["tool"]), call["arguments"].to_string())
    })
}

fn response(answer: &Answer) -> Value {
    let told = ["content-type", "cache-control", "x-accel-buffering", "x-a2ui"];
    let header = |name: &str| Some((name.to_owned(), json!(answer.header(name)?)));
    let headers: Map<String, Value> = told.into_iter().filter_map(header).collect();
    let body = match answer.header("content-type") {
        // One text for each frame, as it stands between the blank lines.
        Some("text/event-stream") => json!(answer.body.split_terminator("\n\n").collect::<Vec<_>>()),
        _ => answer.json(),
    };
    json!({"status": answer.status, "headers": headers, "body": body})
}
