//! Three instances, each with a road of its own to one database; all of it can be made to fail.

use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, bail};
use holdpoint::store::Store;
use holdpoint_testkit::servers::{OwnServer, Proxy};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::agents;
use super::child::{self, Setup};
use super::effects::Effects;
use super::options::Database;

/// How many instances there are.
pub(super) const INSTANCES: usize = 3;

/// How long an instance may take to start; the database may be away for a part of it.
const START_MAX: Duration = Duration::from_secs(90);

/// The instances and their database.
pub(super) struct Cluster {
    pub(super) effects: Effects,
    pub(super) setup: Setup,
    instances: Vec<Instance>,
    database: Mutex<OwnServer>,
    folder: TempDir,
}

struct Instance {
    road: Proxy,
    /// The database by way of the road.
    database: String,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    process: Option<Process>,
    address: Option<SocketAddr>,
}

struct Process {
    child: Child,
    /// The instance runs until nobody holds this any more.
    until_dropped: ChildStdin,
}

impl Cluster {
    /// Starts the database and the instances over it.
    pub(super) async fn start(setup: Setup) -> Result<Arc<Self>> {
        let kind = setup.database;
        let database = tokio::task::spawn_blocking(move || match kind {
            Database::Postgres => OwnServer::postgres(),
            Database::Redis => OwnServer::redis(),
        });
        let database = database.await?.map_err(|why| anyhow!("{}: {why}", kind.name()))?;
        let effects = Effects::start().await?;
        let folder = tempfile::tempdir()?;
        agents::write(folder.path(), &effects.url())?;
        let mut instances = Vec::new();
        for _ in 0..INSTANCES {
            let road = Proxy::to(database.socket()).await;
            let way = database.by_way_of(road.address);
            instances.push(Instance { road, database: way, state: Mutex::default() });
        }
        let cluster = Arc::new(Self { effects, setup, instances, database: Mutex::new(database), folder });
        // At once: whoever comes first makes the tables, and the others find them.
        let starts: Vec<_> = (0..INSTANCES).map(|number| cluster.clone().begin(number)).collect();
        for start in starts {
            start.await?;
        }
        Ok(cluster)
    }

    /// Where an instance listens; one that is down is asked where it was.
    pub(super) fn address(&self, number: usize) -> SocketAddr {
        self.instances[number].state().address.unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], 1)))
    }

    /// What is stored, past every instance.
    pub(super) async fn store(&self) -> Result<Arc<dyn Store>> {
        let address = self.database().address().to_owned();
        child::open(self.setup.database, &address).await
    }

    /// Starts an instance, and waits until it answers.
    pub(super) fn begin(self: Arc<Self>, number: usize) -> impl Future<Output = Result<()>> {
        let starting = tokio::task::spawn_blocking(move || self.begin_now(number));
        async move { starting.await? }
    }

    fn begin_now(&self, number: usize) -> Result<()> {
        let begin = Instant::now();
        let log = self.log(number);
        while begin.elapsed() < START_MAX {
            let mut command = Command::new(std::env::current_exe()?);
            command.arg("child-instance").args(self.setup.words()).arg(self.folder.path());
            command.arg(&self.instances[number].database).stdin(Stdio::piped()).stdout(Stdio::piped());
            let mut child = command.stderr(append_to(&log)?).spawn()?;
            let until_dropped = child.stdin.take().context("an instance has no input")?;
            let mut line = String::new();
            BufReader::new(child.stdout.take().context("an instance has no output")?).read_line(&mut line)?;
            if let Ok(address) = line.trim().parse() {
                let process = Some(Process { child, until_dropped });
                *self.instances[number].state() = State { process, address: Some(address) };
                return Ok(());
            }
            // The database is not there yet, as a rule.
            child.wait()?;
            std::thread::sleep(Duration::from_millis(200));
        }
        bail!("instance {number} does not start: {}", std::fs::read_to_string(log).unwrap_or_default())
    }

    fn log(&self, number: usize) -> PathBuf {
        self.folder.path().join(format!("instance-{number}.log"))
    }

    /// What instances said that did not end well.
    pub(super) fn logs(&self) -> String {
        (0..INSTANCES).filter_map(|number| std::fs::read_to_string(self.log(number)).ok()).collect()
    }

    /// Kills an instance, whatever it is doing.
    pub(super) async fn kill(self: &Arc<Self>, number: usize) -> Result<()> {
        let cluster = self.clone();
        let killing = tokio::task::spawn_blocking(move || {
            let Some(mut process) = cluster.instances[number].state().process.take() else { return Ok(()) };
            process.child.kill()?;
            process.child.wait().map(drop)
        });
        Ok(killing.await??)
    }

    /// Stops an instance in good order.
    pub(super) async fn stop(self: &Arc<Self>, number: usize) -> Result<()> {
        let cluster = self.clone();
        let stopping = tokio::task::spawn_blocking(move || {
            let Some(mut process) = cluster.instances[number].state().process.take() else { return Ok(()) };
            drop(process.until_dropped);
            process.child.wait().map(drop)
        });
        Ok(stopping.await??)
    }

    /// Lets an instance stand still, as if its machine did.
    pub(super) fn freeze(&self, number: usize) -> Result<()> {
        self.signal(number, Signal::STOP)
    }

    /// Lets it go on.
    pub(super) fn thaw(&self, number: usize) -> Result<()> {
        self.signal(number, Signal::CONT)
    }

    fn signal(&self, number: usize, signal: Signal) -> Result<()> {
        match &self.instances[number].state().process {
            Some(process) => Ok(kill_process(Pid::from_child(&process.child), signal)?),
            None => Ok(()),
        }
    }

    /// Cuts an instance off from the database.
    pub(super) fn cut(&self, number: usize) {
        self.instances[number].road.cut();
    }

    /// Connects it again.
    pub(super) fn mend(&self, number: usize) {
        self.instances[number].road.mend();
    }

    /// Lets the database die, and starts it again after a while.
    pub(super) async fn restart_database(self: &Arc<Self>, after: Duration) -> Result<()> {
        let cluster = self.clone();
        let restarting = tokio::task::spawn_blocking(move || {
            let mut database = cluster.database();
            database.crash()?;
            std::thread::sleep(after);
            database.start()
        });
        restarting.await?.map_err(|why| anyhow!("the database: {why}"))
    }

    fn database(&self) -> MutexGuard<'_, OwnServer> {
        self.database.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Instance {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for instance in &self.instances {
            if let Some(process) = &mut instance.state().process {
                let _ = process.child.kill();
                let _ = process.child.wait();
            }
        }
    }
}

fn append_to(path: &std::path::Path) -> Result<File> {
    Ok(OpenOptions::new().create(true).append(true).open(path)?)
}
