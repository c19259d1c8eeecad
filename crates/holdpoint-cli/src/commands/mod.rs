//! One file for each command.

mod check;
mod client;
mod completions;
mod doctor;
mod init;
mod prune;
mod remote;
mod run;
mod serve;

use anyhow::{Context as _, Result};

use crate::args::{Cli, SessionsTask, Task};
use crate::exit::Exit;
use crate::world::Which;

/// Does what the command line says.
///
/// # Errors
/// It could not be done; the error says why.
pub fn run(cli: Cli) -> Result<Exit> {
    let settings = &cli.settings;
    match cli.command.unwrap_or(Task::Serve) {
        Task::Serve => wait_for(serve::run(settings, Which::Configured)),
        Task::Demo => wait_for(serve::run(settings, Which::Demo)),
        Task::Init(args) => init::run(&args),
        Task::Check(args) => check::run(&args, settings),
        Task::Doctor(args) => wait_for(doctor::run(&args, settings)),
        Task::Ready(args) => wait_for(remote::ready(&args)),
        Task::Run(args) => wait_for(run::run(&args, settings)),
        Task::Inbox(args) => wait_for(remote::inbox(&args)),
        Task::Approve(args) => wait_for(remote::approve(&args)),
        Task::Deny(args) => wait_for(remote::deny(&args)),
        Task::Answer(args) => wait_for(remote::answer(&args)),
        Task::Sessions(args) => match &args.task {
            Some(SessionsTask::Prune(prune)) => wait_for(prune::run(prune, settings)),
            None => wait_for(remote::sessions(&args)),
        },
        Task::Audit(args) => wait_for(remote::audit(&args)),
        Task::Completions { shell } => completions::run(shell),
    }
}

fn wait_for(task: impl Future<Output = Result<Exit>>) -> Result<Exit> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.context("the machine gives no threads or timers")?;
    let exit = runtime.block_on(task);
    // A prompt that was left may still wait for a key.
    runtime.shutdown_background();
    exit
}
