//! What the library promises, as its user sees it.
#![allow(clippy::unwrap_used)] // All of it is a test.

#[path = "../common/mod.rs"]
mod common;

mod agent_source;
mod attacks;
mod error_pages;
#[cfg(feature = "sqlite")]
mod guarantees;
mod leaving;
mod looking_later;
mod overtaken;
mod readme;
mod smoke;
mod terms;
#[cfg(feature = "sqlite")]
mod together;
mod watching;
mod weaknesses;
