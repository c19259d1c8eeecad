//! Whole cycles through the library: pause → decide → resume → done, durable SQLite.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::counting::Counting;
use crate::workload;

/// What one cycle writes.
pub(crate) struct Footprint {
    /// The bytes of each commit that is waited for, in order.
    pub(crate) commits: Vec<usize>,
}

/// What was measured at one degree of concurrency.
pub(crate) struct Measured {
    pub(crate) cycles_per_second: f64,
    /// Decision to done, sorted, in microseconds.
    pub(crate) latencies_us: Vec<f64>,
}

/// Counts the commits that a cycle waits for, and their bytes.
pub(crate) fn footprint() -> Result<Footprint> {
    let folder = tempfile::tempdir_in(".")?;
    tokio::runtime::Runtime::new()?.block_on(async {
        let store = Counting::new(workload::sqlite(&folder.path().join("footprint.db"))?);
        let (runner, agent) = (workload::runner(store.clone()), workload::agent()?);
        // The first cycle also writes the agent's definition.
        let first = workload::pause(&runner, &agent).await?;
        workload::finish(&runner, &agent, &first).await?;
        store.take();
        let paused = workload::pause(&runner, &agent).await?;
        workload::finish(&runner, &agent, &paused).await?;
        Ok(Footprint { commits: store.take() })
    })
}

/// Runs cycles for a while, so many at once.
pub(crate) fn measure(concurrency: usize, duration: Duration) -> Result<Measured> {
    let folder = tempfile::tempdir_in(".")?;
    tokio::runtime::Runtime::new()?.block_on(async {
        let store = workload::sqlite(&folder.path().join("cycle.db"))?;
        let (runner, agent) = (workload::runner(store), workload::agent()?);
        // Warm: the definition is written, statements are prepared.
        let first = workload::pause(&runner, &agent).await?;
        workload::finish(&runner, &agent, &first).await?;

        let stop = Arc::new(AtomicBool::new(false));
        let done = Arc::new(AtomicU64::new(0));
        let began = Instant::now();
        let tasks: Vec<_> = (0..concurrency)
            .map(|_| {
                let (runner, agent, stop, done) = (runner.clone(), agent.clone(), stop.clone(), done.clone());
                tokio::spawn(async move {
                    let mut latencies = Vec::new();
                    while !stop.load(Ordering::Relaxed) {
                        let paused = workload::pause(&runner, &agent).await?;
                        let decided = Instant::now();
                        workload::finish(&runner, &agent, &paused).await?;
                        latencies.push(decided.elapsed().as_secs_f64() * 1e6);
                        done.fetch_add(1, Ordering::Relaxed);
                    }
                    anyhow::Ok(latencies)
                })
            })
            .collect();
        tokio::time::sleep(duration).await;
        let cycles_per_second = done.load(Ordering::Relaxed) as f64 / began.elapsed().as_secs_f64();
        stop.store(true, Ordering::Relaxed);
        let mut latencies_us = Vec::new();
        for task in tasks {
            latencies_us.extend(task.await??);
        }
        latencies_us.sort_by(f64::total_cmp);
        Ok(Measured { cycles_per_second, latencies_us })
    })
}

/// Runs cycles and nothing else, for a profiler to look at.
pub(crate) fn profile(duration: Duration) -> Result<()> {
    let measured = measure(64, duration)?;
    println!("{:.0} cycles/s", measured.cycles_per_second);
    Ok(())
}
