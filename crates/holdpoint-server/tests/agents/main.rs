//! Agents from files, run for real: over the memory store, with scripted models and programs of this machine.
#![allow(clippy::unwrap_used)]

mod bench;
mod build;
mod demo;
mod pipeline;
mod policy;
mod reload;
mod versions;
