//! What a client that keeps to the protocol has in hand: built from events, told live or told again.

use serde_json::{Value, json};

/// A session as a client shows it. Complains when the numbers of events have a gap or repeat.
#[derive(Debug, Default)]
pub struct Rebuilt {
    items: Vec<Item>,
    /// The number of the last event.
    last: u64,
    /// The number of the last event that is durable.
    cursor: u64,
    /// How often it was told to forget.
    pub rewinds: usize,
}

#[derive(Debug, Clone)]
struct Item {
    /// Set once it is durable.
    seq: Option<u64>,
    is_open: bool,
    shown: Value,
}

impl Rebuilt {
    /// Where to go on after a break: what was only provisional will be told again.
    pub fn cursor(&self) -> u64 {
        self.cursor
    }

    /// The connection broke: what is not stored yet will be told again, and what is stored is whole.
    pub fn reconnect(&mut self) {
        self.last = self.cursor;
        self.items.retain(|item| item.seq.is_some_and(|seq| seq <= self.cursor));
        self.items.iter_mut().for_each(|item| item.is_open = false);
    }

    /// Takes what the server told. What is no event of the session changes nothing.
    pub fn take(&mut self, event: &Value) {
        let seq = self.number(event);
        match event["type"].as_str().unwrap_or_default() {
            "content_block_start" => self.start(event, seq),
            "content_block_delta" => self.grow(event),
            "content_block_stop" => self.stop(event, seq),
            "rewind" => self.rewind(event["after"].as_u64().unwrap()),
            _ if seq.is_some() => self.items.push(Item { seq, is_open: false, shown: lasting(event) }),
            _ => {}
        }
    }

    /// Everything that is durable, by number.
    pub fn list(&self) -> Vec<Value> {
        let mut items: Vec<&Item> = self.items.iter().filter(|item| item.seq.is_some()).collect();
        items.sort_by_key(|item| item.seq);
        let list: Vec<Value> = items.iter().map(|item| json!([item.seq, item.shown])).collect();
        let open = self.items.iter().find(|item| item.is_open || item.seq.is_none());
        assert!(open.is_none(), "{open:?} was never told whole");
        list
    }

    /// Sees that another client has the same list in hand.
    #[track_caller]
    pub fn check_same(&self, other: &Self) {
        let (own, others) = (self.list(), other.list());
        let longer = own.len().max(others.len());
        let different = (0..longer).find(|place| own.get(*place) != others.get(*place));
        if let Some(place) = different {
            panic!("entry {place} differs:\n{:#?}\n{:#?}", own.get(place), others.get(place));
        }
    }

    /// How many runs have ended.
    pub fn ended(&self) -> usize {
        self.items.iter().filter(|item| item.shown["type"] == "message_stop").count()
    }

    /// The indexes of the blocks, in order.
    pub fn indexes(&self) -> Vec<u64> {
        self.items.iter().filter_map(|item| item.shown["place"][1].as_u64()).collect()
    }

    /// What was in hand when only events up to this number had come.
    pub fn up_to(&self, seq: u64) -> Self {
        let items = self.items.iter().filter(|item| item.seq.is_some_and(|number| number <= seq)).cloned();
        Self { items: items.collect(), last: seq, cursor: seq, rewinds: 0 }
    }

    #[track_caller]
    fn number(&mut self, event: &Value) -> Option<u64> {
        let seq = event.get("seq")?.as_u64().expect("a number");
        assert_eq!(seq, self.last + 1, "a gap or a repeat at {event}");
        assert_eq!(event["event_id"], format!("{seq:010}"), "{event}");
        self.last = seq;
        if event["provisional"] != true {
            self.cursor = seq;
        }
        Some(seq)
    }

    fn start(&mut self, event: &Value, seq: Option<u64>) {
        let is_same = |item: &Item| item.is_open && item.shown["place"] == place(event);
        self.items.retain(|item| !is_same(item));
        let mut block = event["content_block"].clone();
        // The server's time when it was told, not when it happened.
        if let Some(pause) = block.get_mut("pause").and_then(Value::as_object_mut) {
            pause.remove("server_time");
        }
        self.items.push(Item { seq, is_open: true, shown: json!({"place": place(event), "block": block}) });
    }

    fn grow(&mut self, event: &Value) {
        let item = self.open(event);
        let Some(delta) = event["delta"].as_object() else { panic!("no delta in {event}") };
        for (name, value) in delta {
            let told = &mut item.shown["told"];
            match (name.as_str(), value.as_str()) {
                ("type", _) => {}
                ("text" | "thinking" | "partial_json", Some(piece)) => {
                    let so_far = told[name].as_str().unwrap_or_default();
                    told[name] = json!(format!("{so_far}{piece}"));
                }
                _ => told[name] = value.clone(),
            }
        }
    }

    fn stop(&mut self, event: &Value, seq: Option<u64>) {
        let item = self.open(event);
        item.is_open = false;
        item.seq = item.seq.or(seq);
        assert!(item.seq.is_some(), "a block ended and has no number: {event}");
    }

    #[track_caller]
    fn open(&mut self, event: &Value) -> &mut Item {
        let place = place(event);
        let found = self.items.iter_mut().find(|item| item.is_open && item.shown["place"] == place);
        found.unwrap_or_else(|| panic!("{event} is about a block that is not open"))
    }

    fn rewind(&mut self, after: u64) {
        self.rewinds += 1;
        self.items.retain(|item| item.seq.is_some_and(|seq| seq <= after));
        (self.last, self.cursor) = (after, after);
    }
}

fn place(event: &Value) -> Value {
    json!([event["message_id"], event["index"]])
}

/// An event without what is said only to the one who asked, or before it is stored.
fn lasting(event: &Value) -> Value {
    let mut event = event.clone();
    if let Some(members) = event.as_object_mut() {
        members.remove("request_id");
        members.remove("provisional");
    }
    event
}
