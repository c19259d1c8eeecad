//! Content blocks over a WebSocket: a real server with an SQLite file and agents from files, a model and tools on loopback,
//! and clients over TCP.
#![allow(clippy::unwrap_used)] // Clippy allows it in tests and not in what they call.

mod agents;
mod client;
mod examples;
mod rebuilt;
mod sample_client;
mod stage;
#[allow(dead_code, reason = "shared with other tests, which use more of it")]
#[path = "../common/tool_server.rs"]
mod tool_server;

mod bad_inputs;
mod credentials;
mod deciders;
mod dialogs;
mod display;
mod doors;
mod exchange;
mod golden;
mod names;
mod reconnect;
mod repeats;
mod settings;
mod sockets;
