//! Signed webhooks and mail: a real server with an SQLite file, the outbox that sends, and receivers on loopback that are
//! down, confused or hostile when a test tells them to be.
#![allow(clippy::unwrap_used)] // Clippy allows it in tests and not in what they call.

mod agents;
#[allow(dead_code, unused_imports, reason = "shared with other tests, which use more of it")]
#[path = "../common/mod.rs"]
mod common;
mod world;

mod email;
mod hostile;
mod links;
mod outages;
mod webhook;
