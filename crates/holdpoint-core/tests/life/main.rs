//! A script for each turn that a run's life can take. The modules are the stations of that life, in order.

#![allow(clippy::unwrap_used)]

#[path = "../common/mod.rs"]
mod common;

mod start;
#[rustfmt::skip]
mod model_reply;
mod screen;
#[rustfmt::skip]
mod decide;
#[rustfmt::skip]
mod votes;
mod together;
#[rustfmt::skip]
mod supersede;
mod deadlines;
mod questions;
#[rustfmt::skip]
mod confirmations;
mod rules;
mod tool_outcome;
#[rustfmt::skip]
mod in_doubt;
mod agents;
mod staged;
#[rustfmt::skip]
mod guardrails;
mod finish;
#[rustfmt::skip]
mod cancel;
