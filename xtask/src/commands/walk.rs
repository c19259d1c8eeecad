//! `cargo xtask walk`: the random walks through the core, many more of them than the tests do.

use anyhow::{Context, Result};

use super::unknown_argument;
use crate::cargo::Cargo;
use crate::stage::{Stage, run_in_order};

const SEEDS_UNLESS_TOLD: u64 = 100_000;

pub(super) fn run(arguments: &[String]) -> Result<()> {
    let walk = Walk::from_arguments(arguments)?;
    run_in_order("walk", vec![Stage::cargo("random walks", walk.command())])
}

#[derive(Debug, PartialEq, Eq)]
struct Walk {
    seeds: u64,
    from: Option<u64>,
}

impl Walk {
    fn from_arguments(arguments: &[String]) -> Result<Self> {
        let mut walk = Self { seeds: SEEDS_UNLESS_TOLD, from: None };
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            let mut number = || number_after(argument, arguments.next());
            match argument.as_str() {
                "--seeds" => walk.seeds = number()?,
                "--from" => walk.from = Some(number()?),
                other => return Err(unknown_argument("walk", other)),
            }
        }
        Ok(walk)
    }

    fn command(&self) -> Cargo {
        let walk = Cargo::new("test --release -p holdpoint-core --test random_walk")
            .environment("HOLDPOINT_WALK_SEEDS", self.seeds);
        match self.from {
            Some(seed) => walk.environment("HOLDPOINT_WALK_FROM", seed),
            None => walk,
        }
    }
}

fn number_after(argument: &str, value: Option<&String>) -> Result<u64> {
    let value = value.with_context(|| format!("{argument} needs a number"))?;
    value.parse().with_context(|| format!("{argument} needs a number, not `{value}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(arguments: &str, command: &str) {
        let arguments: Vec<String> = arguments.split_whitespace().map(str::to_owned).collect();
        let read = match Walk::from_arguments(&arguments) {
            Ok(walk) => walk.command().to_string(),
            Err(error) => error.to_string(),
        };
        assert_eq!(read, command);
    }

    #[test]
    fn a_failing_seed_is_replayed_by_its_number() {
        check(
            "--from 4711 --seeds 1",
            "HOLDPOINT_WALK_SEEDS=1 HOLDPOINT_WALK_FROM=4711 \
             cargo test --release -p holdpoint-core --test random_walk",
        );
    }

    #[test]
    fn the_long_walk_needs_no_arguments() {
        check("", "HOLDPOINT_WALK_SEEDS=100000 cargo test --release -p holdpoint-core --test random_walk");
    }

    #[test]
    fn a_wrong_argument_is_refused() {
        check("--seeds", "--seeds needs a number");
        check("--seeds many", "--seeds needs a number, not `many`");
        check("--sedes 5", "`--sedes` is not an argument of `cargo xtask walk`; see `cargo xtask help`");
    }
}
