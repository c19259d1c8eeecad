//! The trial of deadlines: thousands of pauses run out of time while instances come and go. Each expires once, and none
//! of them early by the database's clock.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use futures_util::stream::{self, StreamExt as _};
use holdpoint::store::{PauseFilter, Store};
use holdpoint_testkit::linear::PauseStands;
use tokio_util::sync::CancellationToken;

use super::agents::{HASTY, PATIENT};
use super::api::{Client, Reply, Started};
use super::child::Setup;
use super::cluster::{Cluster, INSTANCES};
use super::journal::Journal;
use super::nemesis::{Fault, Nemesis};
use super::options::Options;
use crate::chance::Chance;

const STARTERS: u32 = 16;
const LEASE: Duration = Duration::from_secs(2);

/// How long the last ones may take once nothing goes wrong any more.
const LATE_MAX: Duration = Duration::from_secs(60);

pub(super) async fn run(options: &Options) -> Result<()> {
    println!("replay with: deadlines {options}");
    let setup = Setup { database: options.database, clients: STARTERS, lease: LEASE, is_careless: false };
    let cluster = Cluster::start(setup).await?;
    let stop = CancellationToken::new();
    let nemesis = Nemesis::new(cluster.clone(), &Fault::RESTARTS);
    let inflicting = tokio::spawn(nemesis.clone().play(options.seed, stop.clone()));
    let begin = Instant::now();
    let runs = start_all(options, &cluster).await?;
    // Restarts go on until enough of them happened, and while the last ones run out of time.
    tokio::time::sleep(Duration::from_secs(3)).await;
    while !nemesis.has_done(options.faults_min) {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    stop.cancel();
    inflicting.await??;
    let store = cluster.store().await?;
    wait_until_none_is_open(store.as_ref()).await?;
    let took = begin.elapsed();
    let late = check(&cluster, store, &runs).await?;
    let faults = nemesis.happened();
    println!("{} deadlines in {took:.1?}, each once and none early; restarts {faults:?}; {late}", runs.len());
    Ok(())
}

/// Starts as many runs as there are deadlines, each once, wherever somebody answers.
async fn start_all(options: &Options, cluster: &Arc<Cluster>) -> Result<Vec<String>> {
    let next = Arc::new(AtomicUsize::new(0));
    let starters: Vec<_> = (0..STARTERS)
        .map(|number| tokio::spawn(start_some(number, options.clone(), cluster.clone(), next.clone())))
        .collect();
    let mut runs = Vec::new();
    for starter in starters {
        runs.extend(starter.await??);
    }
    runs.sort();
    runs.dedup();
    ensure!(runs.len() == options.deadlines, "{} names started {} runs", options.deadlines, runs.len());
    Ok(runs)
}

async fn start_some(
    number: u32,
    options: Options,
    cluster: Arc<Cluster>,
    next: Arc<AtomicUsize>,
) -> Result<Vec<String>> {
    let (mut chance, mut client) = (Chance::new(options.seed, number as usize), Client::new(number));
    let mut runs = Vec::new();
    loop {
        let index = next.fetch_add(1, Ordering::Relaxed);
        if index >= options.deadlines {
            return Ok(runs);
        }
        if index > 0 && index.is_multiple_of(1_000) {
            eprintln!("{index} of {} runs started", options.deadlines);
        }
        let (agent, name) = (if chance.percent(50) { HASTY } else { PATIENT }, format!("deadline {index}"));
        let give_up = Instant::now() + Duration::from_secs(120);
        loop {
            let instance = chance.below(INSTANCES as u64) as usize;
            match client.start(&cluster, instance, agent, &name).await {
                Reply::Told(Started::Waiting(waiting)) => break runs.push(waiting.run),
                Reply::Told(Started::Over(run)) => break runs.push(run),
                Reply::Wrong(why) => bail!("{why}"),
                Reply::NotDone | Reply::Unknown if Instant::now() > give_up => bail!("{name} does not start"),
                Reply::NotDone | Reply::Unknown => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
    }
}

async fn wait_until_none_is_open(store: &dyn Store) -> Result<()> {
    let give_up = Instant::now() + LATE_MAX;
    loop {
        let open = store.list_pauses(&PauseFilter { limit: 1, ..PauseFilter::open() }).await?;
        match open.first() {
            None => return Ok(()),
            Some(row) if Instant::now() > give_up => bail!("{} is still open {LATE_MAX:?} after the end", row.id),
            Some(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

/// Every journal has one expiry, after its deadline by the database's clock; says how much after.
async fn check(cluster: &Cluster, store: Arc<dyn Store>, runs: &[String]) -> Result<String> {
    let load = |run: &String| {
        let (run, store) = (run.clone(), store.clone());
        async move {
            let id = run.parse().map_err(|_| anyhow::anyhow!("{run} is no run"))?;
            let loaded = store.load(id, 0).await?.with_context(|| format!("run {run} is gone"))?;
            anyhow::Ok((run, Journal::read(&loaded)))
        }
    };
    let mut journals = stream::iter(runs.iter().map(load)).buffer_unordered(8);
    let (mut late, mut ends) = (Vec::new(), BTreeMap::new());
    while let Some(read) = journals.next().await {
        let (run, journal) = read?;
        let flaws = journal.flaws();
        ensure!(flaws.is_empty(), "run {run}: {flaws:?}");
        let [(PauseStands::Expired, at)] = journal.ends[..] else {
            bail!("run {run} did not expire once: {journal:?}");
        };
        let expires_at = journal.expires_at.with_context(|| format!("run {run} has no deadline"))?;
        late.push(at.since(expires_at));
        *ends.entry(journal.finishes).or_insert(0) += 1;
        ensure!(journal.starts == 0, "run {run} did what nobody approved: {journal:?}");
    }
    ensure!(cluster.effects.by_run().is_empty(), "there were effects that nobody approved");
    late.sort();
    let at = |part: f64| late.get((late.len() as f64 * part) as usize).or(late.last()).copied().unwrap_or_default();
    Ok(format!("late p50 {:?}, p99 {:?}, most {:?}; ended {ends:?}", at(0.5), at(0.99), at(1.0)))
}
