//! Very many paused runs in PostgreSQL: how long a page of the inbox and a decision take, and a fresh instance until it
//! is ready. Most are of one agent; a few, opened last of all, are of another: whoever asks for these must not pass over
//! the rest.

use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context as _, Result};
use holdpoint::store::{PauseCursor, PauseFilter};
use holdpoint::{Agent, PauseId, RunOutcome, Runner, Runtime, Timestamp};
use holdpoint_stores::postgres::PostgresStore;
use holdpoint_testkit::servers;

use super::{DECIDERS, clones, decide, fresh, quantile};
use crate::workload;

/// How many pages of each kind are asked for.
const PAGES: usize = 300;
/// How many runs are decided and driven to their end, to show that they are real.
const DRIVEN: usize = 100;
/// How far apart pauses that are decided one after the other stand: a prime, so that each comes once.
const STRIDE: usize = 7_919;
/// One run in so many is of the other agent.
const RARE: usize = 1_000;

pub(crate) fn million(count: usize) -> Result<()> {
    let server = servers::postgres().map_err(anyhow::Error::msg)?;
    tokio::runtime::Runtime::new()?.block_on(async {
        let address = clones::schema(&server.address, "holdpoint_million").await?;
        let made = make(&address, count).await?;
        let (ready_ms, runner) = ready(&address).await?;
        println!("{:<44} {ready_ms:>8.0} ms", "an instance opened, first page, first sweep");
        drive(&runner, &made).await?;
        println!("{:<44} {DRIVEN:>8}", "runs decided and driven to their end");
        pages(runner.runtime(), &made).await?;
        decisions(&address, &made).await?;
        clones::connect(&server.address).await?.batch_execute("DROP SCHEMA holdpoint_million CASCADE").await?;
        Ok(())
    })
}

/// What there is.
struct Made {
    common: Vec<PauseId>,
    rare: Vec<PauseId>,
    first_opened_at: Timestamp,
}

async fn make(address: &str, count: usize) -> Result<Made> {
    let began = Instant::now();
    let runner = workload::runner(Arc::new(PostgresStore::open(address).await?));
    let common = workload::pause(&runner, &workload::agent()?).await?;
    let rare = workload::pause(&runner, &workload::other_agent()?).await?;
    let client = clones::connect(address).await?;
    let made = Made {
        first_opened_at: opened_at(&common)?,
        common: clones::copy(&client, &common, 0x0198_0001, count - count / RARE).await?,
        rare: clones::copy(&client, &rare, 0x0198_0002, count / RARE).await?,
    };
    // Behind all the others.
    let late = i64::try_from(count)?;
    client.execute("UPDATE pause SET opened_at = opened_at + $1 WHERE agent = 'auditor'", &[&late]).await?;
    client.batch_execute("VACUUM ANALYZE").await?;
    println!("{:<44} {:>8.0} s", format!("{count} paused runs made"), began.elapsed().as_secs_f64());
    Ok(made)
}

fn opened_at(paused: &RunOutcome) -> Result<Timestamp> {
    Ok(paused.pauses().first().context("the run did not pause")?.pause.opened_at)
}

/// Opens an instance and waits until it has answered a page and looked for work.
async fn ready(address: &str) -> Result<(f64, Runner)> {
    let began = Instant::now();
    let runner = workload::runner(Arc::new(PostgresStore::open(address).await?));
    let page = runner.list_pauses(&PauseFilter::open()).await?;
    anyhow::ensure!(page.pauses.len() == 100, "the first page has {} rows", page.pauses.len());
    let swept = runner.worker(&agents()?)?.sweep().await?;
    anyhow::ensure!(swept.is_idle(), "there was something to do: {swept:?}");
    Ok((began.elapsed().as_secs_f64() * 1e3, runner))
}

fn agents() -> Result<[Agent; 2]> {
    Ok([workload::agent()?, workload::other_agent()?])
}

async fn drive(runner: &Runner, made: &Made) -> Result<()> {
    let agents = agents()?;
    let some = |pauses: &[PauseId]| pauses.iter().step_by(pauses.len() / (DRIVEN / 2)).copied().collect::<Vec<_>>();
    for (agent, pauses) in agents.iter().zip([some(&made.common), some(&made.rare)]) {
        for pause in &pauses[..DRIVEN / 2] {
            runner.approve(*pause).by("ana").await?;
            let done = runner.resume(agent, pause.run).await?;
            anyhow::ensure!(done.output().is_some(), "{} did not end: {done:?}", pause.run);
        }
    }
    Ok(())
}

async fn pages(runtime: &Runtime, made: &Made) -> Result<()> {
    let agent = |name: &str| anyhow::Ok(PauseFilter { agent: Some(name.parse()?), ..PauseFilter::open() });
    let tool = |name: &str| anyhow::Ok(PauseFilter { tool: Some(name.parse()?), ..PauseFilter::open() });
    let after = |filter: PauseFilter, index: usize| {
        let place = index * (made.common.len() / PAGES);
        let opened_at = Timestamp::from_millis(made.first_opened_at.as_millis() + place as i64);
        PauseFilter { after: Some(PauseCursor { opened_at, id: made.common[place] }), ..filter }
    };
    let session = |index: usize| PauseFilter {
        session: Some(Runtime::own_session(made.common[index].run)),
        ..PauseFilter::open()
    };
    let all = |filter: PauseFilter| PauseFilter { status: None, ..filter };
    time("inbox: the first page", runtime, |_| Ok(PauseFilter::open())).await?;
    time("inbox: a page somewhere", runtime, |index| Ok(after(PauseFilter::open(), index))).await?;
    time("inbox: of any state, somewhere", runtime, |index| Ok(all(after(PauseFilter::open(), index)))).await?;
    time("inbox: of the agent that most are of", runtime, |index| Ok(after(agent("payer")?, index))).await?;
    time("inbox: of an agent that few are of", runtime, |_| agent("auditor")).await?;
    time("inbox: of the tool that most are of", runtime, |index| Ok(after(tool("send_payment")?, index))).await?;
    time("inbox: of a tool that few are of", runtime, |_| tool("close_books")).await?;
    time("inbox: of a session", runtime, |index| Ok(session(index))).await
}

async fn time(what: &str, runtime: &Runtime, filter: impl Fn(usize) -> Result<PauseFilter>) -> Result<()> {
    let mut latencies_ms = Vec::new();
    for index in 0..PAGES {
        let filter = filter(index)?;
        let asked = Instant::now();
        let page = runtime.list_pauses(&filter).await?;
        latencies_ms.push(asked.elapsed().as_secs_f64() * 1e3);
        anyhow::ensure!(filter.session.is_some() || !page.pauses.is_empty(), "an empty page: {filter:?}");
    }
    latencies_ms.sort_by(f64::total_cmp);
    tell(what, &latencies_ms);
    Ok(())
}

fn tell(what: &str, latencies_ms: &[f64]) {
    let (p50, p99) = (quantile(latencies_ms, 0.5), quantile(latencies_ms, 0.99));
    println!("{what:<44} p50 {p50:>8.2} ms   p99 {p99:>8.2} ms   (below 100 ms is wanted)");
}

/// Decides pauses all over the place: one after the other, then many at once.
async fn decisions(address: &str, made: &Made) -> Result<()> {
    let runtime = fresh(Arc::new(PostgresStore::open(address).await?));
    // Each place once, in no order; those that were driven are left out.
    let (count, driven) = (made.common.len(), made.common.len() / (DRIVEN / 2));
    let places = (0..count).map(|index| index * STRIDE % count).filter(|place| place % driven != 0);
    let mut pauses = places.map(|place| made.common[place]);
    let few: Vec<PauseId> = pauses.by_ref().take((count / 50).min(1_000)).collect();
    tell("a decision", &decide(&runtime, few, 1).await?.latencies_ms);
    let many: Vec<PauseId> = pauses.take((count / 20).min(20_000)).collect();
    tell("a decision, 64 at once", &decide(&runtime, many, DECIDERS).await?.latencies_ms);
    Ok(())
}
