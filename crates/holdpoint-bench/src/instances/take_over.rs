//! The trial of take-over: an instance dies, or stands still, in the middle of a tool. Another one goes on when the lease
//! is over, not before; and what the first one still says is not listened to.

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use holdpoint::store::{Lease, LoadedRun, Store};
use holdpoint::{RunEvent, Timestamp};

use super::agents::{Agent, SLOW_PAYER, SLOW_REPEATER};
use super::api::{Client, Reply, is_over, text};
use super::child::Setup;
use super::cluster::Cluster;
use super::options::Options;

/// How long a lease lasts.
const LEASE: Duration = Duration::from_secs(2);

/// How long anything may take. It ends as soon as it happens.
const PATIENCE: Duration = Duration::from_secs(60);

pub(super) async fn run(options: &Options) -> Result<()> {
    println!("replay with: take-over {options}");
    let setup = Setup { database: options.database, clients: 2, lease: LEASE, is_careless: false };
    let cluster = Cluster::start(setup).await?;
    let trial = Trial { store: cluster.store().await?, cluster };
    let repeated = trial.a_call_that_may_be_repeated_is_repeated_elsewhere().await?;
    println!("repeated elsewhere {repeated:?} after the lease of the dead instance was over");
    let asked = trial.a_call_that_may_not_is_asked_about_elsewhere().await?;
    println!("asked about elsewhere {asked:?} after the lease of the dead instance was over");
    let fenced = trial.what_comes_too_late_is_not_listened_to().await?;
    println!("taken over from one that stood still {fenced:?} after its lease was over");
    Ok(())
}

struct Trial {
    store: Arc<dyn Store>,
    cluster: Arc<Cluster>,
}

impl Trial {
    async fn a_call_that_may_be_repeated_is_repeated_elsewhere(&self) -> Result<Duration> {
        let (run, effects) = (self.begin(SLOW_REPEATER).await?, &self.cluster.effects);
        self.cluster.kill(0).await?;
        let lease = self.lease(&run).await?;
        in_time("the call is repeated", effects.wait_for(&run, 2)).await??;
        effects.let_go();
        self.wait_for(&run, 1, "the run is over", is_over).await?;
        ensure!(effects.of_run(&run) == [2], "the call came under several keys: {:?}", effects.of_run(&run));
        let loaded = self.load(&run).await?;
        let names = ["call.started", "call.released", "call.started", "call.answered", "run.finished"];
        check_order(&loaded, &names)?;
        self.cluster.clone().begin(0).await?;
        effects.hold();
        after(&loaded, &lease, |event| matches!(event, RunEvent::CallReleased(_)))
    }

    async fn a_call_that_may_not_is_asked_about_elsewhere(&self) -> Result<Duration> {
        let (run, effects) = (self.begin(SLOW_PAYER).await?, &self.cluster.effects);
        self.cluster.kill(0).await?;
        let lease = self.lease(&run).await?;
        let paused = self.wait_for(&run, 1, "somebody is asked", |run| run["status"] == "paused").await?;
        let pause = &paused["pauses"][0];
        ensure!(pause["kind"] == "in_doubt", "somebody was asked something else: {pause}");
        match Client::new(0).settle_doubt(&self.cluster, 2, &text(pause, "id"), true).await {
            Reply::Told(()) => {}
            other => bail!("the answer was not taken: {other:?}"),
        }
        self.wait_for(&run, 1, "the run is over", is_over).await?;
        ensure!(effects.of_run(&run) == [1], "the call happened again: {:?}", effects.of_run(&run));
        let loaded = self.load(&run).await?;
        check_order(&loaded, &["call.started", "pause.opened", "pause.decided", "call.answered", "run.finished"])?;
        self.cluster.clone().begin(0).await?;
        after(&loaded, &lease, |event| matches!(event, RunEvent::PauseOpened(_)))
    }

    async fn what_comes_too_late_is_not_listened_to(&self) -> Result<Duration> {
        let (run, effects) = (self.begin(SLOW_REPEATER).await?, &self.cluster.effects);
        self.cluster.freeze(0)?;
        let lease = self.lease(&run).await?;
        in_time("the call is repeated", effects.wait_for(&run, 2)).await??;
        effects.let_go();
        self.wait_for(&run, 1, "the run is over", is_over).await?;
        let before = self.load(&run).await?;
        // It gets the answer to its own call now. Once it has stopped in good order, it has said all that it has to say.
        self.cluster.thaw(0)?;
        self.wait_for(&run, 0, "it sees that the run is over", is_over).await?;
        self.cluster.stop(0).await?;
        let loaded = self.load(&run).await?;
        ensure!(loaded.revision == before.revision, "the instance that lost its lease wrote: {:?}", loaded.entries);
        check_order(&loaded, &["call.started", "call.released", "call.started", "call.answered", "run.finished"])?;
        after(&loaded, &lease, |event| matches!(event, RunEvent::CallReleased(_)))
    }

    /// Begins a run on the first instance, which is then in the middle of its call.
    async fn begin(&self, agent: Agent) -> Result<String> {
        let run = match Client::new(0).begin(&self.cluster, 0, agent).await {
            Reply::Told(run) => run,
            other => bail!("the run did not start: {other:?}"),
        };
        in_time("the call begins", self.cluster.effects.wait_for(&run, 1)).await??;
        Ok(run)
    }

    async fn load(&self, run: &str) -> Result<LoadedRun> {
        let id = run.parse().map_err(|_| anyhow::anyhow!("{run} is no run"))?;
        self.store.load(id, 0).await?.with_context(|| format!("run {run} is gone"))
    }

    /// The lease of the instance that is not there any more to renew it.
    async fn lease(&self, run: &str) -> Result<Lease> {
        let lease = self.load(run).await?.lease;
        lease.context("nobody moves the run, or its lease was over before anybody could look")
    }

    /// Waits until what an instance says of a run is so.
    async fn wait_for(
        &self,
        run: &str,
        instance: usize,
        what: &str,
        is_so: impl Fn(&serde_json::Value) -> bool,
    ) -> Result<serde_json::Value> {
        let mut client = Client::new(0);
        let looking = async {
            loop {
                match client.read_run(&self.cluster, instance, run).await {
                    Reply::Told(run) if is_so(&run) => return run,
                    _ => tokio::time::sleep(Duration::from_millis(20)).await,
                }
            }
        };
        in_time(what, looking).await
    }
}

async fn in_time<T>(what: &str, future: impl Future<Output = T>) -> Result<T> {
    let begin = Instant::now();
    tokio::time::timeout(PATIENCE, future).await.with_context(|| format!("not within {:?}: {what}", begin.elapsed()))
}

/// Events about the call, its pauses and the end, in the order in which they are stored.
fn check_order(run: &LoadedRun, expected: &[&str]) -> Result<()> {
    let events = run.entries.iter().flat_map(|entry| entry.events.iter());
    let is_told = |event: &&RunEvent| {
        let name = event.name();
        name != "call.allowed" && ["call.", "pause.", "run.finished"].iter().any(|begin| name.starts_with(begin))
    };
    let names: Vec<&str> = events.filter(is_told).map(RunEvent::name).collect();
    ensure!(names == expected, "stored is {names:?}, expected was {expected:?}");
    Ok(())
}

/// How long after the end of the lease something was stored, by the database's clock; never before it.
fn after(run: &LoadedRun, lease: &Lease, is_it: impl Fn(&RunEvent) -> bool) -> Result<Duration> {
    let found = run.entries.iter().find(|entry| entry.events.iter().any(&is_it));
    let at: Timestamp = found.context("it is not stored")?.at;
    ensure!(at >= lease.until, "it was stored at {at}, while the lease ran until {}", lease.until);
    Ok(at.since(lease.until))
}
