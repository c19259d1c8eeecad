//! A fresh process that loads one stored run and finishes it, beside a process that does nothing.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::Result;

use crate::workload;

/// Milliseconds from spawn to exit.
pub(crate) struct Cold {
    pub(crate) finish_ms: Vec<f64>,
    pub(crate) nothing_ms: Vec<f64>,
}

pub(crate) fn measure(runs: usize) -> Result<Cold> {
    let folder = tempfile::tempdir_in(".")?;
    let path = folder.path().join("cold.db");
    let ids = tokio::runtime::Runtime::new()?.block_on(async {
        let (runner, agent) = (workload::runner(workload::sqlite(&path)?), workload::agent()?);
        let mut ids = Vec::new();
        for _ in 0..runs {
            let paused = workload::pause(&runner, &agent).await?;
            runner.approve(&paused.pauses()[0]).await?;
            ids.push(paused.run_id().to_string());
        }
        anyhow::Ok(ids)
    })?;
    let program = std::env::current_exe()?;
    let mut cold = Cold { finish_ms: Vec::new(), nothing_ms: Vec::new() };
    for id in ids {
        cold.nothing_ms.push(time(Command::new(&program).arg("child-nothing"))?);
        cold.finish_ms.push(time(Command::new(&program).arg("child-resume").arg(&path).arg(&id))?);
    }
    cold.finish_ms.sort_by(f64::total_cmp);
    cold.nothing_ms.sort_by(f64::total_cmp);
    Ok(cold)
}

fn time(command: &mut Command) -> Result<f64> {
    let began = Instant::now();
    let output = command.output()?;
    anyhow::ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(began.elapsed().as_secs_f64() * 1e3)
}

/// What the fresh process does.
pub(crate) fn resume_one(path: &Path, run: &str) -> Result<()> {
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    tokio.block_on(async {
        let (runner, agent) = (workload::runner(workload::sqlite(path)?), workload::agent()?);
        let done = runner.resume(&agent, run.parse()?).await?;
        anyhow::ensure!(done.output().is_some(), "the run did not end: {done:?}");
        Ok(())
    })
}
