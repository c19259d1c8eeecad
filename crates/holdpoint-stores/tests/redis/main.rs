//! The Redis store over a real server.
#![cfg(all(feature = "redis", target_os = "linux"))]
#![expect(clippy::unwrap_used, reason = "the helpers of a test are part of it")]

mod bus;
mod conformance;
mod database;
#[path = "../databases/mod.rs"]
mod databases;
mod doubt;
#[path = "../instances/mod.rs"]
mod instances;
mod lost;
mod opening;
mod pauses;
