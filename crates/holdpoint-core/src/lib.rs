//! What a run is, and nothing else: inputs go in, events come out.
//!
//! The crate has no async, clock, randomness or IO. [`Run`] is the machine: [`Run::handle`] says what an input leads
//! to, [`Run::apply`] takes a committed event as fact, [`Run::next_step`] reads from the state what must be done next.

pub mod agent;
pub mod audit;
pub mod decision;
pub mod event;
pub mod ids;
pub mod input;
pub mod json;
pub mod message;
pub mod pause;
pub mod policy;
pub mod record;
pub mod refusal;
pub mod run;
pub mod step;
pub mod text;
pub mod time;
pub mod tool;

pub use refusal::Refusal;
pub use run::Run;
