//! Wire protocols. Each is a folder of translation (`wire`, `from_wire`, `to_wire`, handlers) and nothing else.

pub mod blocks;
pub mod mastra;
pub mod native;
pub mod superagent;
