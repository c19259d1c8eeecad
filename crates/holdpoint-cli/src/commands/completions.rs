//! `holdpoint completions`: what a shell needs to complete commands and flags.

use anyhow::Result;
use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::args::Cli;
use crate::exit::Exit;
use crate::render;

/// Prints completions for a shell.
///
/// # Errors
/// None.
pub fn run(shell: Shell) -> Result<Exit> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "holdpoint", &mut text);
    render::print(&String::from_utf8_lossy(&text));
    Ok(Exit::Done)
}
