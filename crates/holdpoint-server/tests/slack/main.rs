//! Slack: a real server with an SQLite file, the outbox that sends, and Slack's Web API played on loopback with its limits;
//! people who click are requests over TCP, signed as Slack signs them.
#![allow(clippy::unwrap_used)] // Clippy allows it in tests and not in what they call.

mod agents;
#[allow(dead_code, unused_imports, reason = "shared with other tests, which use more of it")]
#[path = "../common/mod.rs"]
mod common;
mod world;

mod asking;
mod deciding;
mod hostile;
mod modals;
mod outages;
mod races;
mod strangers;
mod who;
