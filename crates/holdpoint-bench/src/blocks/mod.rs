//! The blocks protocol under load: idle sockets by the thousand, and readers that come and go.

mod idle;
mod page;
mod server;
mod soak;

pub(crate) use idle::{Idle, check as idle, measure as idle_sockets};
pub(crate) use server::child;
pub(crate) use soak::{Options as SoakOptions, run as soak};
