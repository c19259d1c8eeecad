//! The `holdpoint` binary: reads the command line, does what it says, and ends with a number that scripts can read.

// These macros panic where nobody reads any more; `out!` and `err!` do not.
#![deny(clippy::print_stdout, clippy::print_stderr)]

// First: the others print with its macro.
#[macro_use]
mod render;

mod args;
mod asked;
mod commands;
mod exit;
mod notifications;
mod prompt;
mod store;
mod world;

use std::process::ExitCode;

use clap::Parser as _;

use args::Cli;
use exit::Exit;

/// A server's threads allocate and free small things all the time, and for each other: here that costs less, and what was
/// freed is used again.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let cli = Cli::parse();
    // Both of TLS's providers may be in the program through others' choices; this one is meant.
    if rustls::crypto::aws_lc_rs::default_provider().install_default().is_err() {
        err!("error: a TLS provider was installed before the program's own");
        return Exit::Failed.into();
    }
    match commands::run(cli) {
        Ok(exit) => exit.into(),
        Err(error) => {
            err!("{} {}", console::style("error:").for_stderr().red().bold(), render::chain(&error));
            Exit::Failed.into()
        }
    }
}
