//! Exchanges as they were captured, and what their runs and calls are called here.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};

/// One captured exchange.
pub struct Exchange {
    pub name: String,
    pub method: String,
    /// Without the prefix.
    pub path: String,
    pub body: Option<Value>,
    pub raw: Option<String>,
    pub status: u16,
    /// The chunks' types in order, each run of the same one once; empty for JSON.
    pub types: Vec<String>,
    pub chunks: Vec<Value>,
    pub json: Value,
}

pub fn read(name: &str) -> Exchange {
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
pub struct Names(pub BTreeMap<String, String>);

impl Names {
    /// Learns what the runs and calls of a capture are called here, in their order. What goes on from before may show
    /// other calls than were captured, so names that are known stay; where a run begins, all of them are new.
    pub fn learn(&mut self, captured: &Exchange, ours: &[Value]) {
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
            let begins = captured.types.first().is_some_and(|first| first == "start");
            for (theirs, ours) in of(&captured.chunks).into_iter().zip(of(ours)) {
                if begins || !self.0.contains_key(&theirs) {
                    self.0.insert(theirs, ours);
                }
            }
        }
    }

    pub fn translate(&self, value: &Value) -> Value {
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
