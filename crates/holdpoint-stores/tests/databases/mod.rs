//! What every store over a database shows, whichever it is. Each test binary has a `database` module that says how its own
//! is opened, cut off and written to.

mod crash;
pub mod crowd;
mod elsewhere;
pub mod killed;
pub mod remote;
mod together;
