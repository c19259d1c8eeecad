//! The state as a JSON document: the run's journal, the definitions it goes on with, and no secrets.

use std::collections::BTreeMap;
use std::sync::Arc;

use holdpoint_core::event::RunEvent;
use holdpoint_core::ids::RunId;
use holdpoint_core::json::{CanonicalJson, Digest, Limits};
use holdpoint_core::message::Item;
use holdpoint_core::record::{Entry, FORMAT, check_format, replay};
use holdpoint_core::refusal::Refusal;
use holdpoint_core::time::Timestamp;
use holdpoint_runtime::agent::Agent;
use serde::{Deserialize, Serialize};

use crate::state::{RunState, StateKey};

/// The largest document that is read.
const BYTES_MAX: usize = 64 << 20;

/// What a document is marked with.
const KIND: &str = "holdpoint.run";

/// What else goes into the document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Include {
    /// Nothing else.
    Nothing,
    /// The key for tracing: it is then in clear in whatever keeps the document.
    TracingKey,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    kind: String,
    format: u64,
    run: RunId,
    entries: Vec<StoredEntry>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    definitions: BTreeMap<Digest, CanonicalJson>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    history: Vec<Arc<Item>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tracing_key: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    signature: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredEntry {
    at: Timestamp,
    events: Arc<[RunEvent]>,
}

#[derive(Deserialize)]
struct Mark {
    kind: Option<String>,
    format: Option<u64>,
}

impl RunState {
    /// The state as JSON, without secrets. Signed where the runner has a key.
    pub fn to_json(&self) -> String {
        self.to_json_with(Include::Nothing)
    }

    /// The state as JSON, with what is asked for.
    pub fn to_json_with(&self, include: Include) -> String {
        self.write(include, self.key.as_ref())
    }

    /// The state as JSON, signed with this key.
    pub fn to_json_signed(&self, key: &StateKey) -> String {
        self.write(Include::Nothing, Some(key))
    }

    fn write(&self, include: Include, key: Option<&StateKey>) -> String {
        let mut document = Document {
            kind: KIND.to_owned(),
            format: FORMAT,
            run: self.run.id(),
            entries: self
                .entries
                .iter()
                .map(|entry| StoredEntry { at: entry.at, events: entry.events.clone() })
                .collect(),
            definitions: self.definitions.iter().filter_map(definition).collect(),
            history: self.history.clone(),
            tracing_key: self.tracing_key.clone().filter(|_| include == Include::TracingKey),
            signature: None,
        };
        document.signature = key.map(|key| key.sign(canonical(&document).as_bytes()));
        serde_json::to_string(&document).expect("a state has a JSON form: its map keys are strings")
    }

    pub(crate) fn read(agent: &Agent, json: &str, key: Option<&StateKey>) -> Result<Self, Refusal> {
        if json.len() > BYTES_MAX {
            return Err(Refusal::OverLimit { what: "bytes in a state document", limit: BYTES_MAX, found: json.len() });
        }
        let mark: Mark = serde_json::from_str(json).map_err(|error| Refusal::NotAState(error.to_string()))?;
        if mark.kind.as_deref() != Some(KIND) {
            return Err(Refusal::NotAState(format!("a document of kind {KIND:?} expected")));
        }
        check_format(mark.format)?;
        let mut document: Document =
            serde_json::from_str(json).map_err(|error| Refusal::StateCorrupt(error.to_string()))?;
        let signature = document.signature.take();
        if let Some(key) = key {
            let signature = signature.ok_or(Refusal::StateTampered)?;
            key.verify(canonical(&document).as_bytes(), &signature)?;
        }
        Self::from_document(agent, document, key)
    }

    fn from_document(agent: &Agent, document: Document, key: Option<&StateKey>) -> Result<Self, Refusal> {
        let entries = number(document.entries);
        let run = replay(document.run, &entries)?;
        let mut definitions = Vec::new();
        for (digest, definition) in document.definitions {
            if definition.digest() != digest {
                return Err(Refusal::StateCorrupt("a definition does not have the digest it stands under".to_owned()));
            }
            definitions.push((digest, Arc::from(definition.as_bytes())));
        }
        let state = Self {
            run,
            entries,
            graph: agent.graph()?,
            definitions,
            history: document.history,
            given: None,
            tracing_key: document.tracing_key,
            key: key.cloned(),
            by: holdpoint_core::ids::ActorId::local(),
        };
        state.check_graph()?;
        Ok(state)
    }
}

fn definition((digest, bytes): &(Digest, Arc<[u8]>)) -> Option<(Digest, CanonicalJson)> {
    let text = std::str::from_utf8(bytes).ok()?;
    Some((*digest, CanonicalJson::parse_within(text, &Limits::WIDEST).ok()?))
}

/// What is signed: the document without its signature, in a form that no re-formatting changes.
fn canonical(document: &Document) -> String {
    let text = serde_json::to_string(document).expect("a state has a JSON form: its map keys are strings");
    CanonicalJson::parse_within(&text, &Limits::WIDEST).map_or(text, |json| json.as_str().to_owned())
}

fn number(stored: Vec<StoredEntry>) -> Vec<Entry> {
    let mut seq = 1;
    let mut entries = Vec::with_capacity(stored.len());
    for (revision, entry) in (1..).zip(stored) {
        let next = seq + entry.events.len() as u64;
        entries.push(Entry { revision, seq, pause_group: None, at: entry.at, events: entry.events });
        seq = next;
    }
    entries
}
