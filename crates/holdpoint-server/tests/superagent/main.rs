//! SuperAgent chat over TCP: a real server with an SQLite file, agents from YAML files, and a model that speaks the
//! OpenAI protocol on loopback.
#![allow(clippy::unwrap_used)] // Clippy allows it in tests and not in what they call.

mod agents;
#[allow(dead_code, unused_imports, reason = "shared with other tests, which use more of it")]
#[path = "../common/mod.rs"]
mod common;
mod world;

mod access;
mod bad_inputs;
mod golden;
mod kinds;
mod phrases;
mod resume;
mod streaming;
