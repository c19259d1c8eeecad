//! Decisions on PostgreSQL beside what `pgbench` commits on the same server: one row for each transaction, over as many
//! connections, everything flushed before it is acknowledged.

use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use holdpoint_stores::postgres::{PostgresOptions, PostgresStore};
use holdpoint_testkit::servers;

use super::{DECIDERS, Round, Rounds, clones, decide, fresh, tell};
use crate::workload;

const TABLE: &str = "CREATE TABLE commits (id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, body TEXT NOT NULL)";

/// About as many bytes as a decision's entry has.
const SCRIPT: &str = "INSERT INTO commits (body) VALUES (repeat('x', 80));\n";

pub(crate) fn postgres(options: &Rounds) -> Result<()> {
    let server = servers::postgres().map_err(anyhow::Error::msg)?;
    let tokio = tokio::runtime::Runtime::new()?;
    let mut rounds = Vec::new();
    for number in 1..=options.rounds {
        eprintln!("round {number} of {}", options.rounds);
        // The limit stands on both sides of the measurement, so that both see the same machine.
        let mut measured = None;
        let before = limit(&tokio, &server.address)?;
        tokio.block_on(async {
            measured = Some(measure(&server.address, options.decisions).await?);
            anyhow::Ok(())
        })?;
        let after = limit(&tokio, &server.address)?;
        let measured = measured.context("nothing was measured")?;
        rounds.push(Round {
            per_second: measured.per_second,
            limit: (before + after) / 2.0,
            latencies_ms: measured.latencies_ms,
        });
    }
    tell("decisions", "pgbench", &rounds);
    Ok(())
}

async fn measure(server: &str, decisions: usize) -> Result<super::Decided> {
    let address = clones::schema(server, "holdpoint_bench").await?;
    let open = || {
        let mut options = PostgresOptions::default();
        options.writers_max = DECIDERS;
        PostgresStore::open_with(&address, options)
    };
    let paused = {
        let (runner, agent) = (workload::runner(Arc::new(open().await?)), workload::agent()?);
        workload::pause(&runner, &agent).await?
    };
    let client = clones::connect(&address).await?;
    let pauses = clones::copy(&client, &paused, 0x0198_0001, decisions).await?;
    client.batch_execute("ANALYZE").await?;
    let runtime = fresh(Arc::new(open().await?));
    // Warm: connections are there and statements prepared.
    let (warm, rest) = pauses.split_at(decisions / 20);
    decide(&runtime, warm.to_vec(), DECIDERS).await?;
    let decided = decide(&runtime, rest.to_vec(), DECIDERS).await?;
    let written: i64 = client.query_one("SELECT count(*) FROM audit", &[]).await?.get(0);
    anyhow::ensure!(written == i64::try_from(decisions)?, "{written} decisions are written down of {decisions}");
    Ok(decided)
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
