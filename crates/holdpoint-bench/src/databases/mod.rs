//! Decisions on PostgreSQL and Redis, each beside the same server's own limit in the same run, and a million paused runs.
//!
//! The servers are private ones, started for the purpose with their ordinary settings; one that is there already can be
//! named in the environment, as for the tests.

mod clones;
mod million;
mod postgres;
mod redis;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use anyhow::Result;
use holdpoint::{ActorId, Decision, PauseId, Runner, Store};
use holdpoint_core::decision::DecisionInput;
use holdpoint_runtime::Runtime;

use crate::workload;

pub(crate) use self::million::million;
pub(crate) use self::postgres::postgres;
pub(crate) use self::redis::redis;

/// How many decide at once, and how many connections the limit has.
const DECIDERS: usize = 64;

/// How many paused runs an instance surely remembers.
const REMEMBERED: usize = 2_000;

/// How many decisions a round has, and how many rounds there are.
pub(crate) struct Rounds {
    pub(crate) rounds: usize,
    pub(crate) decisions: usize,
}

impl Rounds {
    pub(crate) const USUAL: Self = Self { rounds: 5, decisions: 4_000 };
    /// So many as are remembered at once, and more often: a round is over in a tenth of a second.
    pub(crate) const SHORT: Self = Self { rounds: 25, decisions: REMEMBERED };

    pub(crate) fn read(rounds: &str, decisions: &str) -> Result<Self> {
        Ok(Self { rounds: rounds.parse()?, decisions: decisions.parse()? })
    }
}

/// What one round gave.
struct Round {
    per_second: f64,
    limit: f64,
    /// From asking to acknowledged, sorted, in milliseconds.
    latencies_ms: Vec<f64>,
}

impl Round {
    /// A round between two measurements of the limit.
    fn new(decided: Decided, before: f64, after: f64) -> Self {
        let Decided { per_second, latencies_ms } = decided;
        Self { per_second, limit: (before + after) / 2.0, latencies_ms }
    }
}

/// How fast decisions were acknowledged.
struct Decided {
    per_second: f64,
    latencies_ms: Vec<f64>,
}

/// An instance that has not seen any of the runs: whatever it decides, it reads first.
fn fresh(store: Arc<dyn Store>) -> Runtime {
    workload::runner(store).runtime().clone()
}

/// Starts so many runs that pause, in the order in which their pauses opened.
async fn pause(runner: &Runner, count: usize) -> Result<Vec<PauseId>> {
    let agent = workload::agent()?;
    let tasks: Vec<_> = (0..DECIDERS)
        .map(|lane| {
            let (runner, agent) = (runner.clone(), agent.clone());
            tokio::spawn(async move {
                let mut pauses = Vec::new();
                for _ in (lane..count).step_by(DECIDERS) {
                    let paused = workload::pause(&runner, &agent).await?;
                    pauses.extend(paused.pauses().first().map(|open| open.pause.id));
                }
                anyhow::Ok(pauses)
            })
        })
        .collect();
    let mut pauses = Vec::new();
    for task in tasks {
        pauses.extend(task.await??);
    }
    anyhow::ensure!(pauses.len() == count, "only {} of {count} paused", pauses.len());
    pauses.sort();
    Ok(pauses)
}

/// Pauses runs and approves them where they paused, as many at a time as an instance remembers. Only deciding is measured.
async fn decide_here(runner: &Runner, count: usize) -> Result<Decided> {
    let (mut seconds, mut latencies_ms) = (0.0, Vec::with_capacity(count));
    for from in (0..count).step_by(REMEMBERED) {
        let pauses = pause(runner, REMEMBERED.min(count - from)).await?;
        let part = decide(runner.runtime(), pauses, DECIDERS).await?;
        seconds += part.latencies_ms.len() as f64 / part.per_second;
        latencies_ms.extend(part.latencies_ms);
    }
    latencies_ms.sort_by(f64::total_cmp);
    Ok(Decided { per_second: count as f64 / seconds, latencies_ms })
}

/// Approves every pause, so many at once. A decision counts when it is acknowledged as durable.
async fn decide(runtime: &Runtime, pauses: Vec<PauseId>, at_once: usize) -> Result<Decided> {
    let (pauses, next) = (Arc::new(pauses), Arc::new(AtomicUsize::new(0)));
    let by = ActorId::new("ana")?;
    let began = Instant::now();
    let tasks: Vec<_> = (0..at_once)
        .map(|_| {
            let (runtime, pauses, next, by) = (runtime.clone(), pauses.clone(), next.clone(), by.clone());
            tokio::spawn(async move {
                let mut latencies = Vec::new();
                while let Some(pause) = pauses.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let asked = Instant::now();
                    let input = DecisionInput::new(*pause, Decision::Approve, by.clone());
                    let decided = runtime.decide_pause(input).await?;
                    anyhow::ensure!(!decided.is_repeat, "{pause} was decided before");
                    latencies.push(asked.elapsed().as_secs_f64() * 1e3);
                }
                anyhow::Ok(latencies)
            })
        })
        .collect();
    let mut latencies_ms = Vec::with_capacity(pauses.len());
    for task in tasks {
        latencies_ms.extend(task.await??);
    }
    let per_second = pauses.len() as f64 / began.elapsed().as_secs_f64();
    latencies_ms.sort_by(f64::total_cmp);
    Ok(Decided { per_second, latencies_ms })
}

/// Prints each round, and the middle of them.
fn tell(what: &str, limit: &str, rounds: &[Round]) {
    let line = |name: &str, per_second: f64, limit_per_second: f64, p50: f64, p99: f64| {
        println!(
            "{name:<12} {what} {per_second:>8.0}/s   {limit} {limit_per_second:>8.0}/s   ratio {:.2}   \
             p50 {p50:.2} ms   p99 {p99:.2} ms",
            per_second / limit_per_second
        );
    };
    for (number, round) in (1..).zip(rounds) {
        let (p50, p99) = (quantile(&round.latencies_ms, 0.5), quantile(&round.latencies_ms, 0.99));
        line(&format!("round {number}"), round.per_second, round.limit, p50, p99);
    }
    let middle = |of: &dyn Fn(&Round) -> f64| median(rounds.iter().map(of).collect());
    println!(
        "{:<12} {what} {:>8.0}/s   {limit} {:>8.0}/s   ratio {:.2}   (at least 0.50 is wanted)",
        "middle",
        middle(&|round| round.per_second),
        middle(&|round| round.limit),
        middle(&|round| round.per_second / round.limit)
    );
}

fn quantile(sorted: &[f64], part: f64) -> f64 {
    let index = (sorted.len() as f64 * part) as usize;
    sorted.get(index.min(sorted.len().saturating_sub(1))).copied().unwrap_or(f64::NAN)
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    quantile(&figures, 0.5)
}
