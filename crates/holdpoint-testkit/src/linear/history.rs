//! What clients asked of one thing, when, and what they were told.

use std::fmt::{self, Debug, Write as _};

/// What one client asked, from when it was asked until the answer was there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation<C, A> {
    /// Who asked, for people who read about it.
    pub client: u32,
    /// What was asked.
    pub call: C,
    /// When, in any unit that only grows.
    pub began: u64,
    /// What came of it.
    pub end: End<A>,
}

/// What came of an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End<A> {
    /// The answer.
    Told {
        /// When it was there.
        at: u64,
        /// What it was.
        answer: A,
    },
    /// No answer came, or none that says what happened: it may have happened at any time since, or never.
    Unknown,
}

/// What was asked of one thing, in any order.
pub type History<C, A> = [Operation<C, A>];

impl<C, A> Operation<C, A> {
    /// When the answer was there; an operation without one never ends.
    pub fn ended(&self) -> u64 {
        match self.end {
            End::Told { at, .. } => at,
            End::Unknown => u64::MAX,
        }
    }

    /// The answer, where there is one.
    pub fn answer(&self) -> Option<&A> {
        match &self.end {
            End::Told { answer, .. } => Some(answer),
            End::Unknown => None,
        }
    }
}

impl<C: Debug, A: Debug> fmt::Display for Operation<C, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>12} ", self.began)?;
        match &self.end {
            End::Told { at, answer } => {
                write!(f, "to {at:>12}  client {:>3}  {:?} -> {answer:?}", self.client, self.call)
            }
            End::Unknown => write!(f, "to            ?  client {:>3}  {:?} -> nobody knows", self.client, self.call),
        }
    }
}

/// A history as text, an operation a line, in the order in which they began.
pub(super) fn text<C: Debug, A: Debug>(history: &History<C, A>) -> String {
    let mut order: Vec<&Operation<C, A>> = history.iter().collect();
    order.sort_by_key(|operation| operation.began);
    order.into_iter().fold(String::new(), |mut text, operation| {
        let _ = writeln!(text, "{operation}");
        text
    })
}
