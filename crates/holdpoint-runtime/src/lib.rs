//! Moves runs: use cases are the only way in, the driver does what the core says is next, ports are what it stands on.

pub mod agent;
pub mod context;
pub mod guardrail;
pub mod memory;
pub mod ports;
