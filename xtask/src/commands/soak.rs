//! `cargo xtask soak`: many readers of one session are dropped and come back at random, for longer than the tests do. Each
//! must end with the same page.

use std::process;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};

use super::unknown_argument;
use crate::cargo::Cargo;
use crate::stage::{Stage, run_in_order};

const READERS_UNLESS_TOLD: u64 = 1_000;
const SECONDS_UNLESS_TOLD: u64 = 600;

pub(super) fn run(arguments: &[String]) -> Result<()> {
    let soak = Soak::from_arguments(arguments)?;
    let Soak { readers, seconds, seed } = soak;
    println!("    replay with: cargo xtask soak --readers {readers} --seconds {seconds} --seed {seed}");
    run_in_order("soak", vec![Stage::cargo("readers that come and go", soak.command())])
}

#[derive(Debug, PartialEq, Eq)]
struct Soak {
    readers: u64,
    seconds: u64,
    seed: u64,
}

impl Soak {
    fn from_arguments(arguments: &[String]) -> Result<Self> {
        let mut soak = Self { readers: READERS_UNLESS_TOLD, seconds: SECONDS_UNLESS_TOLD, seed: any_seed() };
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            let mut number = || -> Result<u64> {
                let value = arguments.next().with_context(|| format!("{argument} needs a number"))?;
                value.parse().with_context(|| format!("{argument} needs a number, not `{value}`"))
            };
            match argument.as_str() {
                "--readers" => soak.readers = number()?,
                "--seconds" => soak.seconds = number()?,
                "--seed" => soak.seed = number()?,
                other => return Err(unknown_argument("soak", other)),
            }
        }
        Ok(soak)
    }

    fn command(&self) -> Cargo {
        let arguments = [self.readers, self.seconds, self.seed].map(|number| number.to_string());
        Cargo::new("run --release -p holdpoint-bench -- soak").arguments(&arguments)
    }
}

/// A seed that was not there before. It is printed, so that a run can be repeated.
fn any_seed() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    (now.as_secs() ^ u64::from(process::id())) & 0xffff_ffff
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(arguments: &str, command: &str) {
        let arguments: Vec<String> = arguments.split_whitespace().map(str::to_owned).collect();
        let read = match Soak::from_arguments(&arguments) {
            Ok(soak) => soak.command().to_string(),
            Err(error) => error.to_string(),
        };
        assert_eq!(read, command);
    }

    #[test]
    fn a_soak_is_replayed_by_its_seed() {
        check("--seed 7", "cargo run --release -p holdpoint-bench -- soak 1000 600 7");
        check("--readers 50 --seconds 5 --seed 1", "cargo run --release -p holdpoint-bench -- soak 50 5 1");
    }

    #[test]
    fn a_wrong_argument_is_refused() {
        check("--seed", "--seed needs a number");
        check("--seconds long", "--seconds needs a number, not `long`");
        check("--reader 5", "`--reader` is not an argument of `cargo xtask soak`; see `cargo xtask help`");
    }
}
