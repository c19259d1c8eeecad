//! The form of a fixture: a run's id and its entries, one to a line, each body exactly as a store keeps it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use holdpoint_core::Refusal;
use holdpoint_core::ids::RunId;
use holdpoint_core::record::{self, Entry};
use holdpoint_core::time::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shelf {
    pub run: RunId,
    entries: Vec<StoredEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredEntry {
    revision: u64,
    seq: u64,
    pause_group: Option<u64>,
    at: Timestamp,
    /// The stored bytes. Where they are no JSON, a text that has them.
    body: Box<RawValue>,
}

impl Shelf {
    pub fn read(file: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(&bytes(file))
    }

    pub fn of(run: RunId, entries: &[Entry]) -> Self {
        let stored = |entry: &Entry| StoredEntry {
            revision: entry.revision,
            seq: entry.seq,
            pause_group: entry.pause_group,
            at: entry.at,
            body: RawValue::from_string(String::from_utf8(record::encode(&entry.events)).unwrap()).unwrap(),
        };
        Self { run, entries: entries.iter().map(stored).collect() }
    }

    /// The bodies as a store would hand them out.
    pub fn bodies(&self) -> impl Iterator<Item = String> {
        self.entries.iter().map(|entry| {
            let text = entry.body.get();
            if text.starts_with('"') { serde_json::from_str(text).unwrap() } else { text.to_owned() }
        })
    }

    pub fn entries(&self) -> Result<Vec<Entry>, Refusal> {
        let read = |(stored, body): (&StoredEntry, String)| {
            Ok(Entry {
                revision: stored.revision,
                seq: stored.seq,
                pause_group: stored.pause_group,
                at: stored.at,
                events: Arc::from(record::decode(body.as_bytes())?),
            })
        };
        self.entries.iter().zip(self.bodies()).map(read).collect()
    }

    pub fn to_text(&self) -> String {
        let lines: Vec<String> = self
            .entries
            .iter()
            .map(|entry| {
                let group = entry.pause_group.map_or("null".to_owned(), |group| group.to_string());
                let (revision, seq, at) = (entry.revision, entry.seq, entry.at.as_millis());
                let body = entry.body.get();
                format!(r#"{{"revision":{revision},"seq":{seq},"pause_group":{group},"at":{at},"body":{body}}}"#)
            })
            .collect();
        format!("{{\"run\":\"{}\",\"entries\":[\n{}\n]}}\n", self.run, lines.join(",\n"))
    }
}

pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/records")
}

pub fn bytes(file: &str) -> Vec<u8> {
    std::fs::read(folder().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// Every fixture there is, by its path in the folder.
pub fn files() -> Vec<String> {
    let mut files = Vec::new();
    for inner in std::fs::read_dir(folder()).unwrap().map(Result::unwrap).filter(|entry| entry.path().is_dir()) {
        for file in std::fs::read_dir(inner.path()).unwrap().map(Result::unwrap) {
            let names = (inner.file_name(), file.file_name());
            files.push(format!("{}/{}", names.0.to_str().unwrap(), names.1.to_str().unwrap()));
        }
    }
    files
}
