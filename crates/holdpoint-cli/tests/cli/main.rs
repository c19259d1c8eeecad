//! The program as it is used: real processes, real files, real sockets, and a real terminal for what asks a person.
#![cfg(unix)]
#![allow(clippy::unwrap_used)]

mod blocks;
mod check;
mod closed;
mod databases;
mod deploy;
mod files;
mod guides;
mod logs;
mod mail;
mod others;
mod postgres;
mod redis;
mod remote;
mod retention;
mod serve;
mod slack;
mod terminal;
mod world;
