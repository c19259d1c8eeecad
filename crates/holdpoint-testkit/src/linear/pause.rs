//! A pause as its clients see it: a register that is written once.

use std::collections::BTreeMap;

use super::history::History;
use super::search::Model;

/// A pause: open until somebody decides it, its time is up or its run is cancelled; then the same for ever.
#[derive(Debug, Clone, Copy)]
pub struct PauseModel;

/// How a pause stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PauseStands {
    /// It waits.
    Open,
    /// Somebody decided.
    Decided(Winner),
    /// Nobody did in time.
    Expired,
    /// Its run was cancelled.
    Withdrawn,
}

/// Whose decision counts, and what it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Winner {
    /// The client. Each decides a pause once; the same request may be sent again.
    pub client: u32,
    /// What it decided.
    pub choice: Choice,
}

/// What can be decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Choice {
    /// The call runs.
    Approve,
    /// The call does not run.
    Deny,
}

/// What is asked of a pause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PauseCall {
    /// Somebody decides.
    Decide(Winner),
    /// Somebody cancels its run.
    Cancel,
    /// Its time is up: from then on it may expire, and nobody answers for it.
    Expire,
    /// Somebody looks.
    Read,
}

/// What a client is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PauseAnswer {
    /// To a decision: it counts, and the pause was shown with it.
    Won,
    /// To a decision: it does not count, because the pause stands like this.
    Lost(PauseStands),
    /// To a cancellation: the run is over now, or was before. Either way nobody can decide any more.
    Over,
    /// To a look.
    Saw(PauseStands),
}

impl Model for PauseModel {
    type State = PauseStands;
    type Call = PauseCall;
    type Answer = PauseAnswer;

    fn first() -> PauseStands {
        PauseStands::Open
    }

    fn after(state: &PauseStands, call: &PauseCall, answer: Option<&PauseAnswer>) -> Option<PauseStands> {
        let is_open = *state == PauseStands::Open;
        let after = match (call, is_open) {
            (PauseCall::Decide(winner), true) => PauseStands::Decided(*winner),
            (PauseCall::Cancel, true) => PauseStands::Withdrawn,
            (PauseCall::Expire, true) => PauseStands::Expired,
            (PauseCall::Read, true) | (_, false) => *state,
        };
        let makes_sense = match (call, answer) {
            (_, None) => true,
            // A request that is sent again is told the same: it may have counted the first time.
            (PauseCall::Decide(winner), Some(PauseAnswer::Won)) => after == PauseStands::Decided(*winner),
            (PauseCall::Decide(winner), Some(PauseAnswer::Lost(stands))) => {
                !is_open && after == *stands && after != PauseStands::Decided(*winner)
            }
            (PauseCall::Cancel, Some(PauseAnswer::Over)) => true,
            (PauseCall::Read, Some(PauseAnswer::Saw(stands))) => after == *stands,
            _ => false,
        };
        makes_sense.then_some(after)
    }
}

/// The first two clients who were told that the pause ended differently, in words.
///
/// Said apart from [`super::check`], which finds it too: it is what people look for first.
pub fn disagreement(history: &History<PauseCall, PauseAnswer>) -> Option<String> {
    let mut told: BTreeMap<PauseStands, &super::Operation<PauseCall, PauseAnswer>> = BTreeMap::new();
    for operation in history {
        let stands = match (&operation.call, operation.answer()) {
            (PauseCall::Decide(winner), Some(PauseAnswer::Won)) => PauseStands::Decided(*winner),
            (_, Some(PauseAnswer::Lost(stands) | PauseAnswer::Saw(stands))) => *stands,
            _ => continue,
        };
        if stands != PauseStands::Open {
            told.entry(stands).or_insert(operation);
        }
    }
    let mut ends = told.into_iter();
    let ((one, first), (other, second)) = (ends.next()?, ends.next()?);
    Some(format!("it is {one:?} and {other:?}:\n{first}\n{second}"))
}
