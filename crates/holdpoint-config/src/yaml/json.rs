//! A part of a file as JSON.

use serde_json::Map;

use super::{Node, Value};

impl Node {
    /// The value as JSON. Keys are unique, since the parser refuses others.
    pub(crate) fn to_json(&self) -> serde_json::Value {
        match &self.value {
            Value::Null => serde_json::Value::Null,
            Value::Bool(value) => serde_json::Value::Bool(*value),
            Value::Number(number) => serde_json::Value::Number(number.clone()),
            Value::Text(text) => serde_json::Value::String(text.clone()),
            Value::List(items) => items.iter().map(Self::to_json).collect(),
            Value::Mapping(entries) => {
                let members = entries.iter().map(|entry| (entry.key.clone(), entry.value.to_json()));
                serde_json::Value::Object(members.collect::<Map<_, _>>())
            }
        }
    }

    /// The value that a JSON pointer leads to, or the last one on the way.
    pub(crate) fn at_pointer(&self, pointer: &str) -> &Node {
        let mut node = self;
        for step in pointer.split('/').skip(1) {
            let step = step.replace("~1", "/").replace("~0", "~");
            let next = match &node.value {
                Value::List(items) => step.parse().ok().and_then(|index: usize| items.get(index)),
                _ => node.get(&step),
            };
            match next {
                Some(next) => node = next,
                None => break,
            }
        }
        node
    }
}
