//! Durable stores. Each is a folder with the same files, passes the one conformance suite of `holdpoint-testkit`, and
//! is chosen by a feature of its own. What they all obey is written down at the memory store of `holdpoint-runtime`.

#[cfg(any(feature = "postgres", feature = "redis", feature = "sqlite"))]
mod admit;
#[cfg(any(feature = "postgres", feature = "redis"))]
mod bus;
#[cfg(any(feature = "postgres", feature = "redis"))]
mod clock;
#[cfg(any(feature = "postgres", feature = "redis", feature = "sqlite"))]
mod faults;
#[cfg(any(feature = "postgres", feature = "redis"))]
mod lease_moves;
#[cfg(any(feature = "postgres", feature = "redis", feature = "sqlite"))]
mod outbox;
#[cfg(feature = "postgres")]
pub mod postgres;
#[cfg(any(feature = "postgres", feature = "redis"))]
mod questions;
#[cfg(any(feature = "postgres", feature = "redis", feature = "sqlite"))]
mod raw;
#[cfg(feature = "redis")]
pub mod redis;
#[cfg(any(feature = "postgres", feature = "redis"))]
mod rule_changes;
#[cfg(feature = "sqlite")]
pub mod sqlite;
#[cfg(any(feature = "postgres", feature = "redis"))]
mod together;
#[cfg(any(feature = "postgres", feature = "redis"))]
mod turns;
