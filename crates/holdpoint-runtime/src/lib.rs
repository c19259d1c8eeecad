//! Moves runs: use cases are the only way in, the driver does what the core says is next, ports are what it stands on.

pub mod agent;
pub mod context;
mod driver;
pub mod fault;
pub mod guardrail;
mod hub;
mod in_doubt;
mod log;
pub mod memory;
pub mod notices;
pub mod ports;
mod projection;
mod recent;
mod runtime;
pub mod settings;
mod tell;
pub mod use_cases;
pub mod worker;

pub use driver::DriveOptions;
pub use fault::{Fault, RunError};
pub use runtime::{Runtime, RuntimeBuilder};
