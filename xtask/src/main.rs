//! The project's own commands, run as `cargo xtask <command>`. They only call other tools, in the right order and with
//! the right flags, so that a person and CI run the same thing.

mod cargo;
mod commands;
mod features;
mod licences;
mod links;
mod root;
mod stage;
mod system;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match commands::run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}
