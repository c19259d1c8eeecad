//! `cargo xtask crash`: the crash matrix in full, with the parts that are too long for every test run.

use anyhow::Result;

use super::unknown_argument;
use crate::cargo::{Cargo, has_subcommand};
use crate::stage::{Stage, run_in_order};

pub(super) fn run(arguments: &[String]) -> Result<()> {
    if let Some(argument) = arguments.first() {
        return Err(unknown_argument("crash", argument));
    }
    let matrix = if has_subcommand("nextest") {
        Cargo::new("nextest run --release -p holdpoint --test crash_matrix --run-ignored all")
    } else {
        Cargo::new("test --release -p holdpoint --test crash_matrix -- --include-ignored")
    };
    run_in_order("crash", vec![Stage::cargo("crash matrix", matrix)])
}
