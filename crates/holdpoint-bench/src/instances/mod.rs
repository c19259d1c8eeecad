//! Several instances over one database, while instances are killed, held up and cut off, and the database itself dies:
//! does everybody see the same, does every deadline fire once, and do runs go on elsewhere?
//!
//! `linear` lets clients decide, cancel and read pauses through all instances at once, and checks what they were told
//! against a pause that does one thing at a time. `deadlines` lets time run out while instances come and go.
//! `take-over` ends an instance in the middle of a tool. All of it happens in processes of their own, over a database
//! server of their own; what is random comes from a seed.

mod agents;
mod api;
mod careless;
mod child;
mod client;
mod cluster;
mod deadlines;
mod effects;
mod http;
mod journal;
mod linear;
mod nemesis;
mod options;
mod table;
mod take_over;
mod verdict;

use anyhow::{Result, bail};

pub(crate) use child::child;

use options::Options;

/// Runs one of the trials.
pub(crate) fn run(args: &[&str]) -> Result<()> {
    let Some((trial, rest)) = args.split_first() else { bail!("which trial? linear, deadlines or take-over") };
    let options = Options::read(rest)?;
    let tokio = tokio::runtime::Runtime::new()?;
    match *trial {
        "linear" => tokio.block_on(linear::run(&options)),
        "deadlines" => tokio.block_on(deadlines::run(&options)),
        "take-over" => tokio.block_on(take_over::run(&options)),
        other => bail!("{other} is no trial; there are linear, deadlines and take-over"),
    }
}
