//! What paused runs cost: bytes on disk, and memory in a process that has paused many.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::workload;

/// Bytes of file per paused run.
pub(crate) fn bytes_per_run(runs: usize) -> Result<f64> {
    let folder = tempfile::tempdir_in(".")?;
    let path = folder.path().join("disk.db");
    pause_many(&path, runs)?;
    Ok(std::fs::metadata(&path)?.len() as f64 / runs as f64)
}

/// Memory over an empty process, in MiB, of a process that paused so many runs.
pub(crate) fn memory(runs: usize) -> Result<f64> {
    let folder = tempfile::tempdir_in(".")?;
    let path = folder.path().join("memory.db");
    let output =
        Command::new(std::env::current_exe()?).arg("child-paused").arg(&path).arg(runs.to_string()).output()?;
    anyhow::ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?.trim().parse()?)
}

/// Pauses runs and prints how much memory the process grew by, against itself before the first run.
pub(crate) fn child(path: &Path, runs: usize) -> Result<()> {
    let empty = resident_mib("self")?;
    let tokio = tokio::runtime::Runtime::new()?;
    let grown = tokio.block_on(async {
        let (runner, agent) = (workload::runner(workload::sqlite(path)?), workload::agent()?);
        pause_all(&runner, &agent, runs).await?;
        anyhow::Ok(resident_mib("self")? - empty)
    })?;
    println!("{grown:.1}");
    Ok(())
}

fn pause_many(path: &Path, runs: usize) -> Result<()> {
    tokio::runtime::Runtime::new()?.block_on(async {
        let (runner, agent) = (workload::runner(workload::sqlite(path)?), workload::agent()?);
        pause_all(&runner, &agent, runs).await
    })
}

async fn pause_all(runner: &holdpoint::Runner, agent: &holdpoint::Agent, runs: usize) -> Result<()> {
    let lanes = 64;
    let tasks: Vec<_> = (0..lanes)
        .map(|lane| {
            let (runner, agent) = (runner.clone(), agent.clone());
            tokio::spawn(async move {
                for _ in (lane..runs).step_by(lanes) {
                    workload::pause(&runner, &agent).await?;
                }
                anyhow::Ok(())
            })
        })
        .collect();
    for task in tasks {
        task.await??;
    }
    Ok(())
}

/// How much memory a process holds, by its id or `self`.
pub(crate) fn resident_mib(process: &str) -> Result<f64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).context("a process without VmRSS")?;
    let kib: f64 = line.split_whitespace().nth(1).context("VmRSS has no figure")?.parse()?;
    Ok(kib / 1024.0)
}
