//! A request that is sent again under the same key is the same request: the run's name follows from caller and key.

use holdpoint_core::ids::{ActorId, RunId};

use crate::problem::{Code, Problem};
use crate::protocols::named;

pub(super) use crate::protocols::named::started;

/// The name of the run that this caller starts under this key.
pub(super) fn run_id(caller: &ActorId, key: &str) -> RunId {
    named::run_id("holdpoint idempotent start", caller, key)
}

/// The key stands for another request.
pub(super) fn reused() -> Problem {
    Problem::new(
        Code::IDEMPOTENCY_KEY_REUSED,
        "this Idempotency-Key was sent with another request before: use a new key for a new request",
    )
}
