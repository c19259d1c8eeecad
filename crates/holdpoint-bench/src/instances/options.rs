//! Which database, and how much is done.

use std::fmt;

use anyhow::{Context as _, Result, bail};

/// Which database the instances share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Database {
    Postgres,
    Redis,
}

impl Database {
    pub(super) fn named(name: &str) -> Result<Self> {
        match name {
            "postgres" => Ok(Self::Postgres),
            "redis" => Ok(Self::Redis),
            other => bail!("{other} is no store here; there are postgres and redis"),
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Postgres => "postgres",
            Self::Redis => "redis",
        }
    }
}

/// How much is done.
#[derive(Debug, Clone)]
pub(super) struct Options {
    pub(super) database: Database,
    pub(super) seed: u64,
    /// Operations whose answers are known, at least.
    pub(super) operations: u64,
    pub(super) clients: u32,
    /// Pauses that are open at once.
    pub(super) pauses: usize,
    /// Deadlines that are waited for.
    pub(super) deadlines: usize,
    /// How often each kind of fault happens, at least.
    pub(super) faults_min: u64,
    /// Whether the instances write without looking at what was written since they read.
    pub(super) is_control: bool,
}

impl Options {
    pub(super) fn read(args: &[&str]) -> Result<Self> {
        let mut options = Self {
            database: Database::Postgres,
            seed: any_seed(),
            operations: 100_000,
            clients: 50,
            pauses: 300,
            deadlines: 10_000,
            faults_min: 3,
            is_control: false,
        };
        let mut rest = args.iter();
        while let Some(arg) = rest.next() {
            let mut value = || rest.next().with_context(|| format!("{arg} takes a value"));
            match *arg {
                "--store" => options.database = Database::named(value()?)?,
                "--seed" => options.seed = value()?.parse()?,
                "--operations" => options.operations = value()?.parse()?,
                "--clients" => options.clients = value()?.parse()?,
                "--pauses" => options.pauses = value()?.parse()?,
                "--deadlines" => options.deadlines = value()?.parse()?,
                "--faults" => options.faults_min = value()?.parse()?,
                "--control" => options.is_control = true,
                other => bail!("unknown option {other}"),
            }
        }
        // Which clients have decided a pause is kept as a bit for each.
        anyhow::ensure!((2..=64).contains(&options.clients), "there are 2 to 64 clients");
        Ok(options)
    }
}

impl fmt::Display for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { database, seed, operations, clients, pauses, deadlines, faults_min, is_control } = self;
        write!(f, "--store {} --seed {seed} --operations {operations} --clients {clients} ", database.name())?;
        write!(f, "--pauses {pauses} --deadlines {deadlines} --faults {faults_min}")?;
        if *is_control { write!(f, " --control") } else { Ok(()) }
    }
}

/// A seed that was not there before. It is printed, so that a run can be repeated.
fn any_seed() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    (now.as_secs() ^ u64::from(std::process::id())) & 0xffff_ffff
}
