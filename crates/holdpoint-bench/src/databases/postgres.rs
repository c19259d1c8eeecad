//! Decisions on PostgreSQL beside what `pgbench` commits on the same server: one row for each transaction, over as many
//! connections, everything flushed before it is acknowledged.

use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use holdpoint::{PauseId, Runner};
use holdpoint_stores::postgres::{PostgresOptions, PostgresStore};
use holdpoint_testkit::servers;

use super::{DECIDERS, Decided, Round, Rounds, clones, decide, decide_here, fresh, pause, tell};
use crate::workload;

const TABLE: &str = "CREATE TABLE commits (id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, body TEXT NOT NULL)";

/// About as many bytes as a decision's entry has.
const SCRIPT: &str = "INSERT INTO commits (body) VALUES (repeat('x', 80));\n";

pub(crate) fn postgres(options: &Rounds) -> Result<()> {
    let server = servers::postgres().map_err(anyhow::Error::msg)?;
    let tokio = tokio::runtime::Runtime::new()?;
    let (mut here, mut elsewhere) = (Vec::new(), Vec::new());
    for number in 1..=options.rounds {
        eprintln!("round {number} of {}", options.rounds);
        // The limit stands on both sides of a measurement, so that both see the same machine.
        let paused = tokio.block_on(Paused::new(&server.address, options.decisions))?;
        let before = limit(&tokio, &server.address)?;
        let warm = tokio.block_on(paused.decide_here())?;
        let between = limit(&tokio, &server.address)?;
        let cold = tokio.block_on(paused.decide_elsewhere())?;
        let after = limit(&tokio, &server.address)?;
        here.push(Round::new(warm, before, between));
        elsewhere.push(Round::new(cold, between, after));
    }
    tell("decisions where they paused", "pgbench", &here);
    tell("decisions elsewhere", "pgbench", &elsewhere);
    Ok(())
}

/// Runs that paused in one instance.
struct Paused {
    address: String,
    runner: Runner,
    cold: Vec<PauseId>,
}

impl Paused {
    async fn new(server: &str, decisions: usize) -> Result<Self> {
        let address = clones::schema(server, "holdpoint_bench").await?;
        let runner = workload::runner(Arc::new(open(&address).await?));
        // Connections are there and statements prepared.
        decide_here(&runner, decisions / 20).await?;
        let cold = pause(&runner, decisions).await?;
        clones::connect(&address).await?.batch_execute("ANALYZE").await?;
        Ok(Self { address, runner, cold })
    }

    async fn decide_here(&self) -> Result<Decided> {
        self.check(decide_here(&self.runner, self.cold.len()).await?).await
    }

    async fn decide_elsewhere(&self) -> Result<Decided> {
        let runtime = fresh(Arc::new(open(&self.address).await?));
        // Warm as far as connections and statements go.
        let (first, rest) = self.cold.split_at(self.cold.len() / 20);
        decide(&runtime, first.to_vec(), DECIDERS).await?;
        self.check(decide(&runtime, rest.to_vec(), DECIDERS).await?).await
    }

    /// What was acknowledged is written down.
    async fn check(&self, decided: Decided) -> Result<Decided> {
        let client = clones::connect(&self.address).await?;
        let written: i64 = client.query_one("SELECT count(*) FROM audit", &[]).await?.get(0);
        let least = i64::try_from(decided.latencies_ms.len())?;
        anyhow::ensure!(written >= least, "{written} decisions are written down of {least}");
        Ok(decided)
    }
}

async fn open(address: &str) -> Result<PostgresStore> {
    let mut options = PostgresOptions::default();
    options.writers_max = DECIDERS;
    Ok(PostgresStore::open_with(address, options).await?)
}

/// How many rows a second the server commits one by one.
fn limit(tokio: &tokio::runtime::Runtime, server: &str) -> Result<f64> {
    let address = tokio.block_on(async {
        let address = clones::schema(server, "holdpoint_limit").await?;
        let client = clones::connect(&address).await?;
        client.batch_execute(TABLE).await?;
        anyhow::Ok(address)
    })?;
    let folder = tempfile::tempdir()?;
    let script = folder.path().join("commit.sql");
    std::fs::write(&script, SCRIPT)?;
    let seconds = Duration::from_secs(4).as_secs().to_string();
    let clients = DECIDERS.to_string();
    let mut pgbench = Command::new("pgbench");
    pgbench.args(["--no-vacuum", "--client", &clients, "--jobs", "2", "--protocol", "prepared", "--time", &seconds]);
    let output = pgbench.arg("--file").arg(&script).arg(&address).output().context("pgbench cannot be started")?;
    let said = String::from_utf8_lossy(&output.stdout);
    anyhow::ensure!(output.status.success(), "pgbench: {}", String::from_utf8_lossy(&output.stderr));
    let rate = said.lines().find_map(|line| line.strip_prefix("tps = ")?.split(' ').next()?.parse().ok());
    rate.with_context(|| format!("pgbench told no rate: {said}"))
}
