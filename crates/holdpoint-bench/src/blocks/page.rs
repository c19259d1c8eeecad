//! What a reader has rebuilt of a session: every numbered event once, and every block whole.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

/// A reader's page.
#[derive(Debug, Default, Clone, PartialEq)]
pub(super) struct Page {
    /// Numbered events, as they came. Block events without what only a live reader sees.
    events: BTreeMap<u64, Value>,
    /// By message and index: the block's start and all of its deltas, up to its stop.
    blocks: BTreeMap<(String, u64), Block>,
    /// The last number that was told of something stored.
    stored: u64,
}

#[derive(Debug, Clone, PartialEq)]
struct Block {
    start: Value,
    said: String,
    is_whole: bool,
    /// The number that made it whole.
    seq: u64,
}

impl Page {
    /// The last number seen.
    pub(super) fn head(&self) -> u64 {
        self.events.last_key_value().map_or(0, |(seq, _)| *seq)
    }

    /// Whether the session's `runs`-th message is over.
    pub(super) fn is_over(&self, runs: usize) -> bool {
        self.events.values().filter(|event| event["type"] == "message_stop").count() >= runs
    }

    /// The first thing that the pages do not share, in words.
    pub(super) fn difference(&self, other: &Self) -> Option<String> {
        let heads = (self.head(), other.head());
        if heads.0 != heads.1 {
            return Some(format!("the last numbers are {} and {}", heads.0, heads.1));
        }
        let event = self.events.iter().find(|(seq, event)| other.events.get(seq) != Some(event));
        if let Some((seq, event)) = event {
            return Some(format!("{event} and {:?}", other.events.get(seq)));
        }
        let mut places = self.blocks.keys().chain(other.blocks.keys());
        let place = places.find(|place| self.blocks.get(place) != other.blocks.get(place))?;
        Some(format!("block {place:?} is {:?} and {:?}", self.blocks.get(place), other.blocks.get(place)))
    }

    /// Forgets what only a connection that is gone could have completed.
    pub(super) fn reconnect(&mut self) {
        self.go_back(self.stored);
    }

    fn go_back(&mut self, after: u64) {
        self.events.retain(|seq, _| *seq <= after);
        self.blocks.retain(|_, block| block.is_whole && block.seq <= after);
        self.stored = after;
    }

    /// Takes one event in.
    ///
    /// # Errors
    /// A number was skipped or came twice, or a delta has no block.
    pub(super) fn take(&mut self, event: &Value) -> Result<()> {
        let kind = event["type"].as_str().context("an event without a type")?;
        if kind == "rewind" {
            let after = event["after"].as_u64().context("a rewind without a number")?;
            self.go_back(after);
            return Ok(());
        }
        let seq = event["seq"].as_u64();
        if let Some(seq) = seq {
            ensure!(seq == self.head() + 1, "number {seq} came after {}: {event}", self.head());
            self.events.insert(seq, told(event));
            if event.get("provisional").is_none() {
                self.stored = seq;
            }
        }
        let Some(index) = event["index"].as_u64() else { return Ok(()) };
        let place = (event["message_id"].as_str().unwrap_or_default().to_owned(), index);
        match kind {
            "content_block_start" => {
                let start = told(event)["content_block"].take();
                // A start that has a number says all there is.
                let (is_whole, seq) = (seq.is_some(), seq.unwrap_or(0));
                self.blocks.insert(place, Block { start, said: String::new(), is_whole, seq });
            }
            "content_block_delta" => {
                let block = self.blocks.get_mut(&place).with_context(|| format!("a delta without a start: {event}"))?;
                match ["text", "thinking", "partial_json"].iter().find_map(|name| event["delta"][name].as_str()) {
                    Some(more) => block.said.push_str(more),
                    None => block.said.push_str(&event["delta"].to_string()),
                }
            }
            "content_block_stop" => {
                let block = self.blocks.get_mut(&place).with_context(|| format!("a stop without a start: {event}"))?;
                block.is_whole = true;
                block.seq = seq.unwrap_or(block.seq);
            }
            _ => {}
        }
        Ok(())
    }
}

/// The event without what depends on who reads it and when.
fn told(event: &Value) -> Value {
    let mut told = event.clone();
    if let Some(fields) = told.as_object_mut() {
        fields.remove("request_id");
        fields.remove("provisional");
        if let Some(pause) = fields.get_mut("content_block").and_then(|block| block["pause"].as_object_mut()) {
            pause.remove("server_time");
        }
    }
    told
}
