//! The stored form of a run: entries of events, written once and readable for ever.
//!
//! An entry is what one atomic append wrote. Its body names the format it was written in; what is newer than this
//! program knows is refused, never guessed at. A file for each format ever written lies in `fixtures/records/`.

mod check;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::event::RunEvent;
use crate::refusal::Refusal;
use crate::time::Timestamp;

pub use check::replay;

/// The format that is written; older ones are read.
pub const FORMAT: u64 = 1;

/// What one atomic append wrote to a run's journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Counts the run's entries from one.
    pub revision: u64,
    /// The session's number of the entry's first event; the others follow without a gap.
    pub seq: u64,
    /// The session's number of the pauses that the entry opens, shared by all of them.
    pub pause_group: Option<u64>,
    /// When it was written, by the store's clock.
    pub at: Timestamp,
    /// What happened, in order.
    pub events: Arc<[RunEvent]>,
}

impl Entry {
    /// The entry's events with the time that they happened at, as a run folds them.
    pub fn timed(&self) -> impl Iterator<Item = (&RunEvent, Timestamp)> {
        self.events.iter().map(|event| (event, self.at))
    }
}

#[derive(Serialize)]
struct BodyOut<'a> {
    v: u64,
    events: &'a [RunEvent],
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BodyIn {
    #[serde(rename = "v")]
    _format: u64,
    events: Vec<RunEvent>,
}

#[derive(Deserialize)]
struct Version {
    v: Option<u64>,
}

/// The stored bytes of an entry's events.
pub fn encode(events: &[RunEvent]) -> Vec<u8> {
    // Serialising our own types to memory cannot fail: every map key is a string and no float is involved.
    serde_json::to_vec(&BodyOut { v: FORMAT, events }).expect("events have a JSON form")
}

/// The events in stored bytes.
///
/// # Errors
/// A format that is newer than this program knows, or bytes that are no entry.
pub fn decode(bytes: &[u8]) -> Result<Vec<RunEvent>, Refusal> {
    match serde_json::from_slice::<BodyIn>(bytes) {
        Ok(body) if body._format == FORMAT => Ok(body.events),
        first => {
            let version: Version = serde_json::from_slice(bytes)
                .map_err(|error| Refusal::NotAState(format!("an entry has no readable format number: {error}")))?;
            check_format(version.v)?;
            first
                .map(|body| body.events)
                .map_err(|error| Refusal::StateCorrupt(format!("an entry is not readable: {error}")))
        }
    }
}

/// Refuses a format that is missing or newer than this program knows.
///
/// # Errors
/// As said.
pub fn check_format(found: Option<u64>) -> Result<(), Refusal> {
    match found {
        None => Err(Refusal::NotAState("a format number is missing".to_owned())),
        Some(0) => Err(Refusal::NotAState("there is no format 0".to_owned())),
        Some(found) if found > FORMAT => Err(Refusal::FormatNewer { found, newest: FORMAT }),
        Some(_) => Ok(()),
    }
}
