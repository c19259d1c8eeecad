//! A pause outlives the process that opened it.
//!
//! ```text
//! cargo run -p holdpoint --example survive_restart                       # all three, each as a process of its own
//! cargo run -p holdpoint --example survive_restart -- runs.db start      # runs until it pauses, then exits
//! cargo run -p holdpoint --example survive_restart -- runs.db approve    # somebody else, later: decides
//! cargo run -p holdpoint --example survive_restart -- runs.db finish     # a worker goes on where the run stopped
//! ```
//!
//! The three processes share an SQLite file and nothing else. What was acknowledged is in the file, synced to disk. The
//! one that approves needs neither the agent nor the model: a decision is about what was shown, and is only recorded.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use anyhow::{Context as _, Result, bail, ensure};
use holdpoint::text::visible;
use holdpoint::{Agent, PauseFilter, Reply, RunOutcome, Runner, ScriptedModel, SqliteStore, SystemClock};
use serde_json::json;

/// Deletes a backup for good.
#[holdpoint::tool(needs_approval)]
async fn delete_backup(name: String) -> String {
    println!("  tool: deleting {name}");
    format!("{name} is gone")
}

fn agent() -> Result<Agent> {
    Ok(Agent::builder("Janitor").instructions("Keep the disk tidy.").tool(delete_backup()).build()?)
}

fn runner(file: &Path) -> Result<Runner> {
    let store = SqliteStore::open(file, SystemClock::shared())?;
    let model = ScriptedModel::new([
        Reply::call("delete_backup", json!({"name": "2019.tar"})),
        Reply::text("The old backup is gone."),
    ]);
    Ok(Runner::builder().store(Arc::new(store)).model(Arc::new(model)).build())
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => all_three(),
        [file, "start"] => start(file.as_ref()).await,
        [file, "approve"] => approve(file.as_ref()).await,
        [file, "finish"] => finish(file.as_ref()).await,
        _ => bail!("usage: survive_restart [FILE start|approve|finish]"),
    }
}

fn all_three() -> Result<()> {
    let folder = tempfile::tempdir()?;
    for part in ["start", "approve", "finish"] {
        let status = Command::new(std::env::current_exe()?).arg(folder.path().join("runs.db")).arg(part).status()?;
        ensure!(status.success(), "{part} ended with {status}");
    }
    Ok(())
}

async fn start(file: &Path) -> Result<()> {
    let outcome = runner(file)?.run(&agent()?, "The disk is full.").session("disk").await?;
    println!("start: process {} leaves {} pause(s) behind", std::process::id(), outcome.pauses().len());
    Ok(())
}

/// The inbox lists what waits, whichever process opened it.
async fn approve(file: &Path) -> Result<()> {
    let runner = runner(file)?;
    let page = runner.list_pauses(&PauseFilter::open()).await?;
    for waiting in page.pauses {
        let pause = runner.pause(waiting.row.id).await?;
        let call = pause.call.as_ref().context("a held call")?;
        println!("approve: process {} sees {} {}", std::process::id(), call.tool, visible(call.arguments.as_str()));
        runner.approve(&pause).by("ana").await?;
    }
    Ok(())
}

/// A worker looks for runs that have something to do and that nobody moves.
async fn finish(file: &Path) -> Result<()> {
    let runner = runner(file)?;
    let sweep = runner.worker(&[agent()?])?.sweep().await?;
    for run in sweep.driven {
        let outcome = RunOutcome::of(&runner.read(run).await?);
        let text = outcome.text().context("the run is done")?;
        println!("finish: process {} says: {}", std::process::id(), visible(&text));
    }
    Ok(())
}
