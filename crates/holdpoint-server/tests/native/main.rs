//! The native API over TCP: a real server with an SQLite file, and agents on a scripted model.
#![allow(clippy::unwrap_used)] // Clippy allows it in tests and not in what they call.

mod agents;
mod world;

mod access;
mod audit_and_rules;
mod bounds;
mod decide;
mod door;
mod errors;
mod health;
mod idempotency;
mod inbox;
mod jwt;
mod notices;
mod openapi;
mod pages;
mod requests;
mod restart;
mod runs;
mod sessions;
mod start;
mod streams;
