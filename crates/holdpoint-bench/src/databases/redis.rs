//! Decisions on Redis with `appendfsync always`, beside how often the same server sets a key through a script: over as
//! many connections, one at a time on each.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use holdpoint_stores::redis::{RedisOptions, RedisStore};
use holdpoint_testkit::servers::OwnServer;
use redis::{Client, Script};
use tokio::sync::Barrier;

use super::{DECIDERS, Round, Rounds, decide, decide_here, fresh, pause, tell};
use crate::workload;

/// How long the limit is measured, before and after each round: not much longer than what it stands beside, since the
/// machine's own speed changes from second to second.
const LIMIT_LASTS: Duration = Duration::from_secs(1);

/// How often each connection of the limit sets a key before it counts.
const LIMIT_WARMS_UP: u64 = 100;

pub(crate) fn redis(options: &Rounds) -> Result<()> {
    // Of its own: nobody else's data is in the way, and none is lost.
    let server = OwnServer::redis().map_err(anyhow::Error::msg)?;
    tokio::runtime::Runtime::new()?.block_on(async {
        stop_rewriting(server.address()).await?;
        let (mut here, mut elsewhere) = (Vec::new(), Vec::new());
        for number in 1..=options.rounds {
            eprintln!("round {number} of {}", options.rounds);
            let store = || open(server.address(), number);
            let runner = workload::runner(store().await?);
            // The server and its client have done this before.
            decide_here(&runner, options.decisions / 20).await?;
            let cold = pause(&runner, options.decisions).await?;
            let before = limit(server.address()).await?;
            let warm = decide_here(&runner, options.decisions).await?;
            let between = limit(server.address()).await?;
            let elsewhere_runtime = fresh(store().await?);
            let (first, rest) = cold.split_at(cold.len() / 20);
            decide(&elsewhere_runtime, first.to_vec(), DECIDERS).await?;
            let cold = decide(&elsewhere_runtime, rest.to_vec(), DECIDERS).await?;
            let after = limit(server.address()).await?;
            here.push(Round::new(warm, before, between));
            elsewhere.push(Round::new(cold, between, after));
        }
        tell("decisions where they paused", "SET by script", &here);
        tell("decisions elsewhere", "SET by script", &elsewhere);
        Ok(())
    })
}

/// The server rewrites its log now and then, which would fall into some measurements and not into others.
async fn stop_rewriting(address: &str) -> Result<()> {
    let mut connection = Client::open(address)?.get_multiplexed_async_connection().await?;
    let mut command = redis::cmd("CONFIG");
    command.arg("SET").arg("auto-aof-rewrite-percentage").arg(0);
    Ok(command.query_async(&mut connection).await?)
}

/// A store with keys of its own.
async fn open(address: &str, number: usize) -> Result<Arc<RedisStore>> {
    let mut options = RedisOptions::default();
    options.prefix = format!("holdpoint-bench-{number}");
    let store = Arc::new(RedisStore::open_with(address, options).await?);
    anyhow::ensure!(
        holdpoint::Store::durability(&*store).survives_crash,
        "the server does not flush before it answers"
    );
    Ok(store)
}

/// How often a second the server sets a key through a script. All are connected and have done it before the time begins.
async fn limit(address: &str) -> Result<f64> {
    let client = Client::open(address)?;
    let value = "x".repeat(80);
    let ready = Arc::new(Barrier::new(DECIDERS));
    let mut tasks = Vec::new();
    for lane in 0..DECIDERS {
        let mut connection = client.get_multiplexed_async_connection().await?;
        let (value, ready) = (value.clone(), ready.clone());
        tasks.push(tokio::spawn(async move {
            let script = Script::new("return redis.call('SET', KEYS[1], ARGV[1])");
            let mut set = async |number: u64| {
                script.key(format!("limit:{lane}:{number}")).arg(&value).invoke_async::<()>(&mut connection).await
            };
            for number in 0..LIMIT_WARMS_UP {
                set(number).await?;
            }
            ready.wait().await;
            let began = Instant::now();
            let mut sets: u64 = 0;
            while began.elapsed() < LIMIT_LASTS {
                set(LIMIT_WARMS_UP + sets).await?;
                sets += 1;
            }
            anyhow::Ok((sets, began.elapsed()))
        }));
    }
    let (mut sets, mut lasted) = (0, Duration::ZERO);
    for task in tasks {
        let (its, elapsed) = task.await??;
        sets += its;
        lasted = lasted.max(elapsed);
    }
    Ok(sets as f64 / lasted.as_secs_f64())
}
