//! Thoughts that led to tool calls. Anthropic wants them back, signed, beside the calls, as long as thinking is on. They
//! are kept in memory only, and only so many: a request whose thoughts are gone is sent without thinking.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;

/// Thoughts by the first call that they led to. Clones share what they keep.
#[derive(Clone, Default)]
pub(crate) struct Thoughts(Arc<Mutex<Kept>>);

#[derive(Default)]
struct Kept {
    by_call: HashMap<String, Arc<[Value]>>,
    /// Oldest first, with their sizes.
    order: VecDeque<(String, usize)>,
    bytes: usize,
}

const BYTES_MAX: usize = 32 << 20;
const COUNT_MAX: usize = 10_000;

impl Thoughts {
    /// Keeps the blocks that led to a call; the oldest go when there are too many.
    pub(crate) fn keep(&self, call_id: &str, blocks: Vec<Value>) {
        let size = blocks.iter().map(|block| block.to_string().len()).sum::<usize>() + call_id.len();
        if blocks.is_empty() || size > BYTES_MAX {
            return;
        }
        let mut kept = self.kept();
        if kept.by_call.insert(call_id.to_owned(), blocks.into()).is_none() {
            kept.order.push_back((call_id.to_owned(), size));
            kept.bytes += size;
        }
        while kept.bytes > BYTES_MAX || kept.order.len() > COUNT_MAX {
            let Some((oldest, size)) = kept.order.pop_front() else { break };
            kept.by_call.remove(&oldest);
            kept.bytes -= size;
        }
    }

    /// The blocks that led to a call.
    pub(crate) fn of(&self, call_id: &str) -> Option<Arc<[Value]>> {
        self.kept().by_call.get(call_id).cloned()
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Thoughts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Thoughts").field("count", &self.kept().order.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_oldest_thoughts_go_first() {
        let thoughts = Thoughts::default();
        thoughts.keep("empty", vec![]);
        assert_eq!(thoughts.of("empty"), None);
        for number in 0..COUNT_MAX + 3 {
            thoughts.keep(&format!("call_{number}"), vec![json!(number)]);
        }
        assert_eq!(thoughts.of("call_2"), None);
        assert_eq!(thoughts.of("call_3").as_deref(), Some(&[json!(3)][..]));
        let large = "x".repeat(BYTES_MAX / 2);
        thoughts.keep("large", vec![json!(large)]);
        thoughts.keep("larger", vec![json!(large)]);
        assert_eq!(thoughts.of("large"), None);
        assert!(thoughts.of("larger").is_some());
        thoughts.keep("too large", vec![json!("x".repeat(BYTES_MAX))]);
        assert_eq!(thoughts.of("too large"), None);
        assert!(thoughts.of("larger").is_some());
    }
}
