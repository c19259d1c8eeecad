//! Measures pause → decide → resume → done, durably, beside the limits of the machine in the same run.
//!
//! Every figure is a ratio to a limit measured here and now: a machine's speed changes from hour to hour, a ratio in
//! one run does not. `cargo xtask bench` runs it; `--quick` for a short look, `--json FILE` for the figures.

mod bare;
mod blocks;
mod chance;
mod cold;
mod counting;
mod cycle;
mod databases;
mod first_byte;
#[cfg(target_os = "linux")]
mod instances;
mod paused;
mod report;
mod workload;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use crate::report::Report;

/// The same as the server's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        // What the bench starts as processes of their own.
        ["child-nothing"] => Ok(()),
        ["child-resume", db, run] => cold::resume_one(Path::new(db), run),
        ["child-paused", db, runs] => paused::child(Path::new(db), runs.parse()?),
        ["child-serve", folder, model] => blocks::child(Path::new(folder), model),
        ["profile", seconds] => cycle::profile(Duration::from_secs(seconds.parse()?)),
        ["postgres"] => databases::postgres(&databases::Rounds::USUAL),
        ["postgres", rounds, decisions] => databases::postgres(&databases::Rounds::read(rounds, decisions)?),
        ["redis"] => databases::redis(&databases::Rounds::SHORT),
        ["redis", rounds, decisions] => databases::redis(&databases::Rounds::read(rounds, decisions)?),
        ["million"] => databases::million(1_000_000),
        ["million", runs] => databases::million(runs.parse()?),
        ["idle", sockets] => blocks::idle(sockets.parse()?),
        ["soak", readers, seconds, seed] => blocks::soak(&blocks::SoakOptions {
            readers: readers.parse()?,
            duration: Duration::from_secs(seconds.parse()?),
            seed: seed.parse()?,
        }),
        #[cfg(target_os = "linux")]
        ["child-instance", words @ ..] => instances::child(words),
        #[cfg(target_os = "linux")]
        ["instances", words @ ..] => instances::run(words),
        options => bench(&Options::read(options)?),
    }
}

/// How much is measured.
struct Options {
    seconds: Duration,
    paused_runs: usize,
    disk_runs: usize,
    cold_runs: usize,
    first_bytes: usize,
    sockets: usize,
    rounds: usize,
    json: Option<PathBuf>,
}

impl Options {
    fn read(args: &[&str]) -> Result<Self> {
        let mut options = Self {
            seconds: Duration::from_secs(3),
            paused_runs: 100_000,
            disk_runs: 10_000,
            cold_runs: 20,
            first_bytes: 200,
            sockets: 15_000,
            rounds: 3,
            json: None,
        };
        let mut rest = args.iter();
        while let Some(arg) = rest.next() {
            match *arg {
                "--quick" => {
                    options = Self {
                        seconds: Duration::from_millis(700),
                        paused_runs: 5_000,
                        disk_runs: 2_000,
                        cold_runs: 5,
                        first_bytes: 30,
                        sockets: 1_000,
                        rounds: 1,
                        json: options.json,
                    };
                }
                "--json" => options.json = Some(rest.next().context("--json takes a file")?.into()),
                other => bail!("unknown option {other}; there are --quick and --json FILE"),
            }
        }
        Ok(options)
    }
}

fn bench(options: &Options) -> Result<()> {
    let mut report = Report::default();
    let footprint = cycle::footprint()?;
    report.footprint(&footprint);
    for round in 1..=options.rounds {
        for concurrency in [1, 64, 1_024] {
            eprintln!("round {round} of {}: {concurrency} at once", options.rounds);
            // The limit and the measurement stand side by side, so that both see the same machine.
            let before = bare::cycles(&footprint, concurrency, options.seconds / 2)?;
            let measured = cycle::measure(concurrency, options.seconds)?;
            let after = bare::cycles(&footprint, concurrency, options.seconds / 2)?;
            report.cycles(concurrency, measured, (before + after) / 2.0);
        }
    }
    eprintln!("{} paused runs on disk", options.disk_runs);
    report.disk(paused::bytes_per_run(options.disk_runs)?);
    eprintln!("{} paused runs in memory", options.paused_runs);
    report.memory(options.paused_runs, paused::memory(options.paused_runs)?);
    eprintln!("{} fresh processes", options.cold_runs);
    report.cold(cold::measure(options.cold_runs)?);
    eprintln!("{} first tokens through the server", options.first_bytes);
    report.first_byte(first_byte::measure(options.first_bytes)?);
    eprintln!("{} idle sockets", options.sockets);
    report.idle(blocks::idle_sockets(options.sockets)?);
    println!("{}", report.table());
    if let Some(path) = &options.json {
        std::fs::write(path, report.json()).with_context(|| format!("{} cannot be written", path.display()))?;
    }
    Ok(())
}
