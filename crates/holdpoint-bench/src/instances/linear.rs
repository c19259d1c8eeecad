//! The trial of linearizability: clients decide, cancel and read pauses through all instances while things go wrong, and
//! what they were told must be what a single pause could have told them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use futures_util::stream::{self, StreamExt as _};
use holdpoint_testkit::linear::PauseCall;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::api::{Client, Reply, is_over, text};
use super::child::Setup;
use super::client;
use super::cluster::{Cluster, INSTANCES};
use super::nemesis::{Fault, Nemesis};
use super::options::Options;
use super::table::{Live, Table};
use super::verdict::{self, Found};

/// How many clients start runs beside those that decide.
const STARTERS: u32 = 12;

/// How long a lease lasts: short, so that an instance that stands still loses what it moved.
const LEASE: Duration = Duration::from_secs(1);

/// How long the trial may take before it is given up.
const TIME_MAX: Duration = Duration::from_secs(40 * 60);

/// How long runs may take to come to their end once nothing goes wrong any more.
const DRAIN_MAX: Duration = Duration::from_secs(120);

pub(super) async fn run(options: &Options) -> Result<()> {
    println!("replay with: linear {options}");
    let setup = Setup {
        database: options.database,
        clients: options.clients + STARTERS,
        lease: LEASE,
        is_careless: options.is_control,
    };
    let cluster = Cluster::start(setup).await?;
    let table = Arc::new(Table::new(options.pauses));
    let trial = Trial { options: options.clone(), cluster: cluster.clone(), table: table.clone() };
    let played = trial.play().await?;
    if options.is_control {
        return played.judge_control(&verdict::of_clients(&table));
    }
    trial.drain().await?;
    let mut found = verdict::of_clients(&table);
    verdict::of_store(&cluster, &table, &mut found).await?;
    let logs = cluster.logs();
    if logs.contains("panicked") {
        found.violations.push(format!("an instance panicked:\n{logs}"));
    }
    played.judge(options, &table, &found)
}

struct Trial {
    options: Options,
    cluster: Arc<Cluster>,
    table: Arc<Table>,
}

/// How many pauses must have been open at once, on average. A short trial is over before all of them ever were.
fn open_min(options: &Options) -> usize {
    match options.pauses {
        short @ 0..300 => short / 3,
        long => long * 2 / 3,
    }
}

/// What happened while it was played.
struct Played {
    took: Duration,
    /// How many pauses were open at once, on average.
    open: usize,
    faults: Vec<(Fault, u64)>,
}

impl Trial {
    /// Lets clients work, and things go wrong, until enough was done.
    async fn play(&self) -> Result<Played> {
        let (stop_clients, stop_starters) = (CancellationToken::new(), CancellationToken::new());
        let mut tasks = JoinSet::new();
        let started = Arc::new(AtomicU64::new(0));
        let seed = self.options.seed;
        for number in self.options.clients..self.options.clients + STARTERS {
            let shared = (self.cluster.clone(), self.table.clone());
            tasks.spawn(client::renew(number, seed, shared, started.clone(), stop_starters.clone()));
        }
        let begin = Instant::now();
        while self.table.open() < self.options.pauses * 3 / 4 {
            ensure!(
                begin.elapsed() < DRAIN_MAX,
                "only {} pauses were opened: {:?}",
                self.table.open(),
                self.table.wrong()
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        for number in 0..self.options.clients {
            let (cluster, table) = (self.cluster.clone(), self.table.clone());
            tasks.spawn(client::play(number, seed, cluster, table, stop_clients.clone()));
        }
        let faults: &[Fault] = if self.options.is_control { &[] } else { &Fault::ALL };
        let nemesis = Nemesis::new(self.cluster.clone(), faults);
        let stop_nemesis = CancellationToken::new();
        let inflicting = match faults {
            [] => None,
            _ => Some(tokio::spawn(nemesis.clone().play(seed, stop_nemesis.clone()))),
        };
        let begin = Instant::now();
        let open = self.watch(&nemesis, begin).await;
        let took = begin.elapsed();
        stop_nemesis.cancel();
        if let Some(inflicting) = inflicting {
            inflicting.await??;
        }
        stop_clients.cancel();
        stop_starters.cancel();
        while let Some(ended) = tasks.join_next().await {
            ended?;
        }
        Ok(Played { took, open: open?, faults: nemesis.happened().into_iter().collect() })
    }

    /// Waits until enough was done, and says how many pauses were open on average.
    async fn watch(&self, nemesis: &Nemesis, begin: Instant) -> Result<usize> {
        let (mut looks, mut open, mut told) = (0, 0, Instant::now());
        loop {
            let known = self.table.counts.known.load(Ordering::Relaxed);
            let is_enough = known >= self.options.operations;
            let is_done = match self.options.is_control {
                // One violation is all that a control has to show.
                true => is_enough || !verdict::of_clients(&self.table).violations.is_empty(),
                false => {
                    is_enough
                        && nemesis.has_done(self.options.faults_min)
                        && shortage(&self.options, &verdict::of_clients(&self.table)).is_none()
                }
            };
            if is_done {
                return Ok(open / usize::max(looks, 1));
            }
            ensure!(begin.elapsed() < TIME_MAX, "only {known} operations in {TIME_MAX:?}");
            if told.elapsed() > Duration::from_secs(5) {
                told = Instant::now();
                let faults: u64 = nemesis.happened().values().sum();
                eprintln!("{known} of {} operations, {faults} faults, {:?}", self.options.operations, begin.elapsed());
            }
            (looks, open) = (looks + 1, open + self.table.open());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Lets every run come to its end or its open pause, and looks at every pause once more.
    async fn drain(&self) -> Result<()> {
        let all = self.table.all();
        eprintln!("{} runs come to their end", all.len());
        let give_up = Instant::now() + DRAIN_MAX;
        let settle = |(index, live): (usize, Arc<Live>)| async move {
            let mut client = Client::new(index as u32 % self.options.clients);
            self.settle(&mut client, index % INSTANCES, &live, give_up).await
        };
        let mut settling = stream::iter(all.into_iter().enumerate().map(settle)).buffer_unordered(16);
        while let Some(settled) = settling.next().await {
            settled?;
        }
        Ok(())
    }

    async fn settle(&self, client: &mut Client, instance: usize, live: &Live, give_up: Instant) -> Result<()> {
        loop {
            let reply = client.read_run(&self.cluster, instance, &live.run).await;
            if let Reply::Told(run) = &reply {
                let pause = &run["pauses"][0];
                if pause["kind"] == "in_doubt" {
                    let has_happened = !self.cluster.effects.of_run(&live.run).is_empty();
                    client.settle_doubt(&self.cluster, instance, &text(pause, "id"), has_happened).await;
                } else if is_over(run) || (run["status"] == "paused" && live.deadline.is_none()) {
                    break;
                }
            }
            if Instant::now() > give_up {
                bail!("run {} does not come to its end: {reply:?}", live.run);
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let began = self.table.now();
        let seen = client.read(&self.cluster, instance, &live.pause, Duration::from_secs(10)).await;
        ensure!(
            self.table.note(client.number, live, PauseCall::Read, began, seen),
            "pause {} cannot be looked at any more",
            live.pause
        );
        Ok(())
    }
}

impl Played {
    fn tell(&self, table: &Table, found: &Found) {
        let counts = &table.counts;
        let (known, unknown) = (counts.known.load(Ordering::Relaxed), counts.unknown.load(Ordering::Relaxed));
        println!(
            "{known} operations answered ({:.0} a second), {unknown} whose end nobody knows, {} that nobody took; \
             {} pauses, {} open at once, {} contended, {} losers; ends {:?}; {} effects; faults {:?}; {} checked",
            known as f64 / self.took.as_secs_f64(),
            counts.refused.load(Ordering::Relaxed),
            found.pauses,
            self.open,
            found.contended,
            found.losers,
            found.ends,
            found.effects,
            self.faults,
            found.operations,
        );
    }

    /// A trial in which too little happened has shown nothing.
    fn judge(&self, options: &Options, table: &Table, found: &Found) -> Result<()> {
        self.tell(table, found);
        if !found.violations.is_empty() {
            bail!("{} violations, such as:\n{}", found.violations.len(), first(&found.violations));
        }
        let counts = &table.counts;
        let count = |of: &AtomicU64| of.load(Ordering::Relaxed);
        // A short trial is one fault after the other, and a database that takes its time to start again leaves most of those
        // who ask meanwhile without an answer. It goes on until enough have one.
        let is_short = options.operations < 10_000;
        ensure!(
            is_short || count(&counts.known) >= count(&counts.unknown) + count(&counts.refused),
            "fewer than half of the operations succeeded"
        );
        ensure!(self.open >= open_min(options), "only {} pauses were open at once", self.open);
        if let Some(shortage) = shortage(options, found) {
            bail!("{shortage}");
        }
        ensure!(found.effects as usize >= share(options, 400), "only {} effects", found.effects);
        println!("no violation");
        Ok(())
    }

    /// The control has shown something only if it was found out.
    fn judge_control(&self, found: &Found) -> Result<()> {
        let race = found.violations.iter().find(|violation| violation.contains("what was told"));
        match race {
            Some(violation) => {
                println!("{} violations, as there must be, such as:\n{violation}", found.violations.len());
                Ok(())
            }
            None => bail!(
                "{} operations on {} pauses over a store that does not compare, and no violation was found: {}",
                found.operations,
                found.pauses,
                first(&found.violations)
            ),
        }
    }
}

/// What happened too seldom for the trial to show anything.
fn shortage(options: &Options, found: &Found) -> Option<String> {
    let ended = |end: &str| found.ends.get(end).copied().unwrap_or(0);
    let needed = [
        ("contended", found.contended, share(options, 200)),
        ("lost", found.losers, share(options, 50)),
        ("decided", ended("decided"), share(options, 100)),
        ("expired", ended("expired"), share(options, 1_000)),
        ("withdrawn", ended("withdrawn"), share(options, 1_000)),
    ];
    let (what, count, least) = needed.into_iter().find(|(_, count, least)| count < least)?;
    Some(format!("only {count} of {least} were {what}"))
}

/// One for each so many operations, and one at least.
fn share(options: &Options, part: u64) -> usize {
    usize::try_from(options.operations / part).unwrap_or(usize::MAX).max(1)
}

fn first(violations: &[String]) -> String {
    violations.iter().take(5).cloned().collect::<Vec<_>>().join("\n")
}
