//! What a model has said and no stored reply accounts for yet.

use holdpoint_core::run::limits::REPLY_BYTES_MAX;
use holdpoint_runtime::ports::model::Delta;

/// A reply that is being spoken. A model may be asked again before its last reply is written down, and may begin twice: so
/// there can be more than one reply in it, or parts of replies that nobody will ever store.
#[derive(Debug, Default)]
pub(super) struct Draft {
    said: Vec<Said>,
    bytes: usize,
}

/// Words or thoughts, in the order in which they came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Said {
    Thought(String),
    Word(String),
}

impl Draft {
    /// Hears more. What no reply can be long enough for is not kept.
    pub(super) fn hear(&mut self, delta: &Delta) {
        let (text, is_thought) = match delta {
            Delta::Text(text) => (text, false),
            Delta::Thinking(text) => (text, true),
            _ => return,
        };
        self.bytes = self.bytes.saturating_add(text.len());
        if text.is_empty() || self.bytes > REPLY_BYTES_MAX {
            return;
        }
        match (self.said.last_mut(), is_thought) {
            (Some(Said::Thought(said)), true) | (Some(Said::Word(said)), false) => said.push_str(text),
            (_, true) => self.said.push(Said::Thought(text.clone())),
            (_, false) => self.said.push(Said::Word(text.clone())),
        }
    }

    /// The thoughts that came before the first word.
    pub(super) fn thinking(&self) -> &str {
        match self.said.first() {
            Some(Said::Thought(thinking)) => thinking,
            Some(Said::Word(_)) | None => "",
        }
    }

    /// The words, as long as no thoughts come in between.
    pub(super) fn text(&self) -> &str {
        match self.said.as_slice() {
            [Said::Word(text), ..] | [Said::Thought(_), Said::Word(text), ..] => text,
            _ => "",
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.said.is_empty()
    }

    /// Takes a stored reply out, so that what was said beyond it is left: that is of the next reply. Says whether the reply
    /// is what was said; where it is not, nothing changes.
    pub(super) fn account(&mut self, thinking: &str, text: &str) -> bool {
        let parts = [Said::Thought(thinking.to_owned()), Said::Word(text.to_owned())];
        let mut rest = self.said.clone();
        for part in parts.iter().filter(|part| !part.text().is_empty()) {
            let beyond = match (rest.first(), part) {
                (Some(Said::Thought(said)), Said::Thought(part)) => said.strip_prefix(part.as_str()).map(str::to_owned),
                (Some(Said::Word(said)), Said::Word(part)) => said.strip_prefix(part.as_str()).map(str::to_owned),
                _ => None,
            };
            match (beyond, rest.first_mut()) {
                (Some(beyond), _) if beyond.is_empty() => drop(rest.remove(0)),
                (Some(beyond), Some(Said::Thought(said) | Said::Word(said))) => *said = beyond,
                _ => return false,
            }
        }
        self.bytes = rest.iter().map(|said| said.text().len()).sum();
        self.said = rest;
        true
    }
}

impl Said {
    fn text(&self) -> &str {
        match self {
            Self::Thought(text) | Self::Word(text) => text,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draft(said: &[Delta]) -> Draft {
        let mut draft = Draft::default();
        said.iter().for_each(|delta| draft.hear(delta));
        draft
    }

    fn word(text: &str) -> Delta {
        Delta::Text(text.to_owned())
    }

    fn thought(text: &str) -> Delta {
        Delta::Thinking(text.to_owned())
    }

    #[test]
    fn thoughts_after_the_first_word_are_not_shown() {
        let draft = draft(&[thought("a"), thought("b"), word("c"), thought("d"), word("e")]);
        assert_eq!((draft.thinking(), draft.text()), ("ab", "c"));
    }

    #[test]
    fn what_was_said_beyond_a_reply_is_of_the_next_one() {
        let mut both = draft(&[thought("hm"), word("one"), thought("so"), word("two")]);
        assert!(both.account("hm", "one"));
        assert_eq!((both.thinking(), both.text()), ("so", "two"));
        let mut running_on = draft(&[word("one"), word("two")]);
        assert!(running_on.account("", "one"));
        assert_eq!(running_on.text(), "two");
        let mut exact = draft(&[word("one")]);
        assert!(exact.account("", "one"));
        assert!(exact.is_empty());
    }

    #[test]
    fn a_reply_that_is_not_what_was_said_is_not_taken_out() {
        for (thinking, text) in [("", "other"), ("hm", ""), ("hm", "one"), ("", "one and more")] {
            let mut said = draft(&[word("one")]);
            assert!(!said.account(thinking, text), "{thinking:?} {text:?}");
            assert_eq!(said.text(), "one");
        }
    }

    #[test]
    fn no_more_is_kept_than_a_reply_can_be_long() {
        let mut said = draft(&[word(&"x".repeat(REPLY_BYTES_MAX))]);
        said.hear(&word("y"));
        assert_eq!(said.text().len(), REPLY_BYTES_MAX);
    }
}
