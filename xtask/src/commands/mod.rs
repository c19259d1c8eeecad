//! What can be asked for: one file per command.

mod api;
mod bench;
mod clients;
mod crash;
mod help;
mod linear;
mod pages;
mod soak;
mod test;
mod walk;

use anyhow::{Result, bail};

/// Runs the command that the first argument names, with the rest.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let Some((command, rest)) = arguments.split_first() else {
        return help::run();
    };
    match command.as_str() {
        "test" => test::run(rest),
        "walk" => walk::run(rest),
        "crash" => crash::run(rest),
        "linear" => linear::run(rest),
        "soak" => soak::run(rest),
        "api" => api::run(rest),
        "pages" => pages::run(rest),
        "clients" => clients::run(rest),
        "bench" => bench::run(rest),
        "help" | "--help" | "-h" => help::run(),
        other => bail!("`{other}` is not a command; `cargo xtask help` lists them"),
    }
}

/// The refusal of an argument that a command does not know.
fn unknown_argument(command: &str, argument: &str) -> anyhow::Error {
    anyhow::anyhow!("`{argument}` is not an argument of `cargo xtask {command}`; see `cargo xtask help`")
}
