//! Commands that talk to a running server: its inbox, single decisions, sessions, the record of decisions.

mod audit;
mod decide;
mod inbox;
mod pause;
mod sessions;

pub use audit::audit;
pub use decide::{answer, approve, deny};
pub use inbox::inbox;
pub use sessions::sessions;
