//! Durable stores. Each is a folder with the same files, passes the one conformance suite of `holdpoint-testkit`, and
//! is chosen by a feature of its own. What they all obey is written down at the memory store of `holdpoint-runtime`.

#[cfg(feature = "sqlite")]
mod admit;
#[cfg(feature = "sqlite")]
pub mod sqlite;
