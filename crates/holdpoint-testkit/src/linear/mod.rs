//! Whether what clients were told can have happened one thing after the other.
//!
//! Clients note what they asked, when, and what they were told ([`History`]). A [`Model`] says what a single thing does
//! that does one operation at a time. [`check`] looks for an order of the operations in which the model gives every
//! answer that was given, and in which no operation comes before one that had ended when it began. Where there is none,
//! what was tested is not linearizable.
//!
//! Things that do not touch each other are checked each on their own, which keeps the search short. [`PauseModel`] is a
//! pause: open until it is decided, expires or is withdrawn, and the same for ever after.

mod history;
mod pause;
mod search;

#[cfg(test)]
mod tests;

pub use history::{End, History, Operation};
pub use pause::{Choice, PauseAnswer, PauseCall, PauseModel, PauseStands, Winner, disagreement};
pub use search::{Model, Verdict, check};
