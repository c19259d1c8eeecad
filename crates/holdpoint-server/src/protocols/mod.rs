//! Wire protocols. Each is a folder of translation (`wire`, `from_wire`, `to_wire`, handlers) and nothing else;
//! what two of them need stands beside the folders.

pub mod blocks;
mod driving;
pub mod mastra;
mod named;
pub mod native;
pub mod superagent;
