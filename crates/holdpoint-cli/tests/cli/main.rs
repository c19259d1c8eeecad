//! The program as it is used: real processes, real files, real sockets, and a real terminal for what asks a person.
#![cfg(unix)]
#![allow(clippy::unwrap_used)]

mod blocks;
mod check;
mod closed;
mod files;
mod guides;
mod logs;
mod others;
mod remote;
mod serve;
mod terminal;
mod world;
