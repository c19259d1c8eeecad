//! What a model thinks before it speaks, kept as it is told, so that it can be recorded with the reply.
//!
//! Thoughts that come between its words, or between its calls, are told to those who watch and kept by nobody.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use holdpoint_core::run::limits::THINKING_BYTES_MAX;
use holdpoint_core::text::clamp;

use crate::ports::model::Delta;

/// The thoughts of one model call.
#[derive(Clone, Default)]
pub(super) struct Thoughts(Arc<Mutex<Kept>>);

#[derive(Default)]
struct Kept {
    text: String,
    /// Whether the model has begun to speak, or thought more than is kept.
    is_closed: bool,
}

impl Thoughts {
    /// Takes in a part of the reply.
    pub(super) fn hear(&self, delta: &Delta) {
        let mut kept = self.lock();
        match delta {
            _ if kept.is_closed => {}
            Delta::Thinking(more) => {
                let part = clamp(more, THINKING_BYTES_MAX - kept.text.len());
                kept.text.push_str(part);
                // What is kept is a beginning: nothing may follow the place where it was cut.
                kept.is_closed = part.len() < more.len();
            }
            Delta::Text(text) => kept.is_closed = !text.is_empty(),
            Delta::Arguments { .. } => kept.is_closed = true,
        }
    }

    /// All that was kept, once the model has replied.
    pub(super) fn take(&self) -> Option<String> {
        Some(std::mem::take(&mut self.lock().text)).filter(|text| !text.is_empty())
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(deltas: impl IntoIterator<Item = Delta>) -> Option<String> {
        let thoughts = Thoughts::default();
        deltas.into_iter().for_each(|delta| thoughts.hear(&delta));
        thoughts.take()
    }

    fn thinking(text: &str) -> Delta {
        Delta::Thinking(text.to_owned())
    }

    #[test]
    fn what_is_thought_before_the_first_word_is_kept() {
        let text = Delta::Text("It is".to_owned());
        assert_eq!(kept([thinking("hm, "), thinking("so"), text.clone(), thinking("late")]).as_deref(), Some("hm, so"));
        let empty = Delta::Text(String::new());
        assert_eq!(kept([thinking("a"), empty, thinking("b")]).as_deref(), Some("ab"));
        assert_eq!(kept([text, thinking("late")]), None);
    }

    #[test]
    fn what_is_thought_before_the_first_call_is_kept() {
        let arguments = Delta::Arguments { id: "1".to_owned(), tool: "t".to_owned(), text: String::new() };
        assert_eq!(kept([thinking("hm"), arguments, thinking("late")]).as_deref(), Some("hm"));
    }

    #[test]
    fn of_too_many_thoughts_a_beginning_is_kept_cut_between_characters() {
        let almost = "a".repeat(THINKING_BYTES_MAX - 1);
        let kept = kept([thinking(&almost), thinking("日"), thinking("b")]);
        assert_eq!(kept, Some(almost));
    }
}
