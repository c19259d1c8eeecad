//! Commands that talk to a running server: whether it is ready, its inbox, single decisions, sessions, the record of
//! decisions.

mod audit;
mod decide;
mod inbox;
mod pause;
mod ready;
mod sessions;

pub use audit::audit;
pub use decide::{answer, approve, deny};
pub use inbox::inbox;
pub use ready::ready;
pub use sessions::sessions;
