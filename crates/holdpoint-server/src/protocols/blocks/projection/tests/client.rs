//! What a client that keeps to the protocol has in hand, built from events.

use serde_json::{Value, json};

use super::super::super::wire::events::Event;
use super::super::testing;

/// A session as a client shows it.
#[derive(Debug, Default, Clone)]
pub(super) struct Client {
    items: Vec<Item>,
    pub(super) cursor: u64,
    pub(super) rewinds: usize,
}

#[derive(Debug, Clone)]
struct Item {
    seq: Option<u64>,
    is_open: bool,
    shown: Value,
}

impl Client {
    pub(super) fn take_all(&mut self, events: &[Event]) {
        events.iter().for_each(|event| self.take(&testing::json(event)));
    }

    fn take(&mut self, event: &Value) {
        let seq = event.get("seq").map(|seq| seq.as_u64().unwrap());
        if let Some(seq) = seq {
            assert_eq!(seq, self.cursor + 1, "a gap or a repeat at {event}");
            assert_eq!(event["event_id"], format!("{seq:010}"));
            self.cursor = seq;
        }
        match event["type"].as_str().unwrap() {
            "content_block_start" => {
                let place = place(event);
                self.items.retain(|item| !(item.is_open && item.shown["place"] == place));
                let block = event["content_block"].clone();
                self.items.push(Item {
                    seq,
                    is_open: true,
                    shown: json!({"place": place, "block": block, "told": {}}),
                });
            }
            "content_block_delta" => {
                let told = &mut self.open(event).shown["told"];
                for (name, value) in event["delta"].as_object().unwrap() {
                    match (told[name].as_str(), value.as_str()) {
                        (Some(before), Some(more)) if name != "type" => told[name] = json!(format!("{before}{more}")),
                        _ => told[name] = value.clone(),
                    }
                }
            }
            "content_block_stop" => {
                let item = self.open(event);
                item.is_open = false;
                item.seq = item.seq.or(seq);
                assert!(item.seq.is_some(), "a whole block has a number: {event}");
            }
            "rewind" => {
                self.rewinds += 1;
                self.cursor = event["after"].as_u64().unwrap();
                let cursor = self.cursor;
                self.items.retain(|item| item.seq.is_some_and(|seq| seq <= cursor));
            }
            "message_delta" => {}
            _ => {
                let mut shown = event.clone();
                shown.as_object_mut().unwrap().remove("provisional");
                self.items.push(Item { seq, is_open: false, shown });
            }
        }
    }

    fn open(&mut self, event: &Value) -> &mut Item {
        let place = place(event);
        let found = self.items.iter_mut().find(|item| item.is_open && item.shown["place"] == place);
        found.unwrap_or_else(|| panic!("{event} is about a block that is not open"))
    }

    /// What is durable up to a number, in order.
    pub(super) fn up_to(&self, seq: u64) -> Vec<(u64, Value)> {
        let numbered = self.items.iter().filter_map(|item| item.seq.map(|number| (number, item.shown.clone())));
        let mut list: Vec<(u64, Value)> = numbered.filter(|(number, _)| *number <= seq).collect();
        list.sort_by_key(|(number, _)| *number);
        list
    }

    /// The same client as it was when it had seen so much and its connection broke.
    pub(super) fn cut(&self, seq: u64) -> Self {
        let is_kept = |item: &&Item| item.seq.is_some_and(|number| number <= seq);
        let items = self.items.iter().filter(is_kept).map(|item| Item { is_open: false, ..item.clone() });
        Self { items: items.collect(), cursor: seq, rewinds: 0 }
    }

    /// What is shown of a block that is not whole.
    pub(super) fn drafts(&self) -> Vec<String> {
        let open = self.items.iter().filter(|item| item.is_open && item.seq.is_none());
        open.map(|item| {
            let told = &item.shown["told"];
            told["text"].as_str().or(told["thinking"].as_str()).unwrap_or_default().to_owned()
        })
        .collect()
    }
}

fn place(event: &Value) -> Value {
    json!([event["message_id"], event["index"]])
}
