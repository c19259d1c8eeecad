//! `cargo xtask bench`: the benchmarks, always in release. What they measure is the bench crate's own business.

use anyhow::Result;

use crate::cargo::{Cargo, Directory};
use crate::stage::{Stage, run_in_order};

pub(super) fn run(arguments: &[String]) -> Result<()> {
    // The caller's directory, so that `--json FILE` means the file the caller thinks of.
    let bench = Cargo::new("run --release -p holdpoint-bench --").arguments(arguments).directory(Directory::Callers);
    run_in_order("bench", vec![Stage::cargo("bench", bench)])
}
