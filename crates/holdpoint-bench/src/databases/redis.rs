//! Decisions on Redis with `appendfsync always`, beside how often the same server sets a key through a script: over as
//! many connections, one at a time on each.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use holdpoint::PauseId;
use holdpoint_stores::redis::{RedisOptions, RedisStore};
use holdpoint_testkit::servers;
use redis::{Client, Script};

use super::{DECIDERS, Decided, Round, Rounds, decide, fresh, tell};
use crate::workload;

/// How long the limit is measured, before and after each round.
const LIMIT_LASTS: Duration = Duration::from_secs(3);

pub(crate) fn redis(options: &Rounds) -> Result<()> {
    let server = servers::redis().map_err(anyhow::Error::msg)?;
    tokio::runtime::Runtime::new()?.block_on(async {
        let mut rounds = Vec::new();
        for number in 1..=options.rounds {
            eprintln!("round {number} of {}", options.rounds);
            let (runtime, pauses) = prepare(&server.address, options.decisions).await?;
            let before = limit(&server.address).await?;
            let Decided { per_second, latencies_ms } = decide(&runtime, pauses, DECIDERS).await?;
            let after = limit(&server.address).await?;
            rounds.push(Round { per_second, limit: (before + after) / 2.0, latencies_ms });
        }
        tell("decisions", "SET by script", &rounds);
        Ok(())
    })
}

/// Pauses runs, and gives an instance that has seen none of them.
async fn prepare(address: &str, decisions: usize) -> Result<(holdpoint_runtime::Runtime, Vec<PauseId>)> {
    let mut connection = Client::open(address)?.get_multiplexed_async_connection().await?;
    ::redis::cmd("FLUSHDB").query_async::<()>(&mut connection).await?;
    let mut options = RedisOptions::default();
    options.prefix = "holdpoint-bench".to_owned();
    let store = Arc::new(RedisStore::open_with(address, options.clone()).await?);
    anyhow::ensure!(
        holdpoint::Store::durability(&*store).survives_crash,
        "the server does not flush before it answers"
    );
    let (runner, agent) = (workload::runner(store), workload::agent()?);
    let tasks: Vec<_> = (0..DECIDERS)
        .map(|lane| {
            let (runner, agent) = (runner.clone(), agent.clone());
            tokio::spawn(async move {
                let mut pauses = Vec::new();
                for _ in (lane..decisions).step_by(DECIDERS) {
                    pauses.push(workload::pause(&runner, &agent).await?.pauses()[0].pause.id);
                }
                anyhow::Ok(pauses)
            })
        })
        .collect();
    let mut pauses = Vec::new();
    for task in tasks {
        pauses.extend(task.await??);
    }
    Ok((fresh(Arc::new(RedisStore::open_with(address, options).await?)), pauses))
}

/// How often a second the server sets a key through a script.
async fn limit(address: &str) -> Result<f64> {
    let client = Client::open(address)?;
    let value = "x".repeat(80);
    let began = Instant::now();
    let mut tasks = Vec::new();
    for lane in 0..DECIDERS {
        let mut connection = client.get_multiplexed_async_connection().await?;
        let value = value.clone();
        tasks.push(tokio::spawn(async move {
            let script = Script::new("return redis.call('SET', KEYS[1], ARGV[1])");
            let mut sets: u64 = 0;
            while began.elapsed() < LIMIT_LASTS {
                let key = format!("limit:{lane}:{sets}");
                script.key(key).arg(&value).invoke_async::<()>(&mut connection).await?;
                sets += 1;
            }
            anyhow::Ok(sets)
        }));
    }
    let mut sets = 0;
    for task in tasks {
        sets += task.await??;
    }
    Ok(sets as f64 / began.elapsed().as_secs_f64())
}
