//! `cargo xtask linear`: the long trials of several instances over one database, in release.

use anyhow::{Context, Result, bail};

use super::unknown_argument;
use crate::cargo::Cargo;
use crate::stage::{Stage, run_in_order};
use crate::system::{DATABASES, Need};

/// What finds a race in a store that does not compare: a control needs no more.
const CONTROL_OPERATIONS: u64 = 3_000;

pub(super) fn run(arguments: &[String]) -> Result<()> {
    let trials = Trials::from_arguments(arguments)?;
    let mut stages = vec![Stage::new("machine", || DATABASES.iter().try_for_each(Need::meet))];
    stages.extend(trials.commands().into_iter().map(|(name, words)| {
        let line = format!("run --release -p holdpoint-bench -- instances {words}");
        Stage::cargo(name, Cargo::new(&line))
    }));
    run_in_order("linear", stages)
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Trials {
    /// One of the stores; both unless told.
    store: Option<&'static str>,
    operations: Option<u64>,
    deadlines: Option<u64>,
    seed: Option<u64>,
    /// Only what must fail.
    only_control: bool,
}

impl Trials {
    fn from_arguments(arguments: &[String]) -> Result<Self> {
        let mut trials = Self::default();
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().with_context(|| format!("{argument} needs a value"));
            let mut number = || -> Result<Option<u64>> {
                let value = value()?;
                Ok(Some(value.parse().with_context(|| format!("{argument} needs a number, not `{value}`"))?))
            };
            match argument.as_str() {
                "--operations" => trials.operations = number()?,
                "--deadlines" => trials.deadlines = number()?,
                "--seed" => trials.seed = number()?,
                "--store" => trials.store = Some(store(value()?)?),
                "--control" => trials.only_control = true,
                other => return Err(unknown_argument("linear", other)),
            }
        }
        Ok(trials)
    }

    /// The trials, each by its name and what the bench is told.
    fn commands(&self) -> Vec<(&'static str, String)> {
        let stores = self.store.map_or(vec!["postgres", "redis"], |store| vec![store]);
        stores.into_iter().flat_map(|store| self.of_store(store)).collect()
    }

    fn of_store(&self, store: &str) -> Vec<(&'static str, String)> {
        let word = |name: &str, value: Option<u64>| value.map(|value| format!(" {name} {value}")).unwrap_or_default();
        let common = format!("--store {store}{}", word("--seed", self.seed));
        let control = self.operations.unwrap_or(CONTROL_OPERATIONS).min(CONTROL_OPERATIONS);
        let control = ("control", format!("linear {common} --operations {control} --control"));
        if self.only_control {
            return vec![control];
        }
        vec![
            control,
            ("linear", format!("linear {common}{}", word("--operations", self.operations))),
            ("deadlines", format!("deadlines {common}{}", word("--deadlines", self.deadlines))),
            ("take-over", format!("take-over {common}")),
        ]
    }
}

fn store(name: &str) -> Result<&'static str> {
    match name {
        "postgres" => Ok("postgres"),
        "redis" => Ok("redis"),
        other => bail!("--store is postgres or redis, not `{other}`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(arguments: &str, expected: &[&str]) {
        let arguments: Vec<String> = arguments.split_whitespace().map(str::to_owned).collect();
        let read = match Trials::from_arguments(&arguments) {
            Ok(trials) => trials.commands().into_iter().map(|(_, words)| words).collect(),
            Err(error) => vec![error.to_string()],
        };
        assert_eq!(read, expected);
    }

    #[test]
    fn a_trial_is_replayed_by_its_seed() {
        check(
            "--store redis --operations 500 --deadlines 70 --seed 7",
            &[
                "linear --store redis --seed 7 --operations 500 --control",
                "linear --store redis --seed 7 --operations 500",
                "deadlines --store redis --seed 7 --deadlines 70",
                "take-over --store redis --seed 7",
            ],
        );
    }

    #[test]
    fn both_stores_are_tried_unless_told() {
        check(
            "--control",
            &[
                "linear --store postgres --operations 3000 --control",
                "linear --store redis --operations 3000 --control",
            ],
        );
    }

    #[test]
    fn a_wrong_argument_is_refused() {
        check("--store sqlite", &["--store is postgres or redis, not `sqlite`"]);
        check("--seed", &["--seed needs a value"]);
        check("--operations many", &["--operations needs a number, not `many`"]);
        check("--opreations 5", &["`--opreations` is not an argument of `cargo xtask linear`; see `cargo xtask help`"]);
    }
}
