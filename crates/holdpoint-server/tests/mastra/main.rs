//! Mastra's protocol over TCP: a real server with an SQLite file, agents from YAML files, a model that speaks the OpenAI
//! protocol on loopback, and tools whose effects are counted outside of the server.
#![allow(clippy::unwrap_used)] // Clippy allows it in tests and not in what they call.

mod agents;
#[allow(dead_code, unused_imports, reason = "shared with other tests, which use more of it")]
#[path = "../common/mod.rs"]
mod common;
mod world;

mod access;
mod bad_inputs;
mod captured;
mod changed;
mod decisions;
mod generate;
mod once;
mod pages;
mod pauses;
mod rows;
mod threads;
mod while_held;
