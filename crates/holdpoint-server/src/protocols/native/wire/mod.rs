//! Messages exactly as the native API spells them: no logic, no domain types besides JSON that keeps its text.

mod agents;
mod decisions;
mod events;
mod lists;
mod pauses;
mod requests;
mod runs;

pub(crate) use agents::*;
pub(crate) use decisions::*;
pub(crate) use events::*;
pub(crate) use lists::*;
pub(crate) use pauses::*;
pub(crate) use requests::*;
pub(crate) use runs::*;
