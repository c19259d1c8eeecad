//! The PostgreSQL store over a real server.
#![cfg(all(feature = "postgres", target_os = "linux"))]
#![expect(clippy::unwrap_used, reason = "the helpers of a test are part of it")]

mod conformance;
mod crash;
mod database;
mod killed;
mod lost;
mod opening;
mod tls;
mod together;
