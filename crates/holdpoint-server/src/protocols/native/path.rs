//! Ids in addresses. What cannot be one names nothing, and nothing is what the client is told of.

use std::str::FromStr;

use axum::extract::{FromRequestParts, Path};
use holdpoint_core::ids::{PauseId, RuleId, RunId, SessionId};
use http::request::Parts;

use crate::problem::{Problem, status_of};
use crate::requests::RequestId;

/// The last variable part of an address, as the id that it must be.
pub(crate) struct Named<T>(pub(crate) T);

/// What an address can name.
pub(crate) trait Nameable: FromStr + Send {
    /// What it is called.
    const WHAT: &'static str;
    /// The code for one that is not known.
    const CODE: &'static str = "not_found";
}

impl Nameable for RunId {
    const WHAT: &'static str = "run";
}

impl Nameable for PauseId {
    const WHAT: &'static str = "pause";
}

impl Nameable for RuleId {
    const WHAT: &'static str = "rule";
}

impl Nameable for RequestId {
    const WHAT: &'static str = "request";
}

impl Nameable for SessionId {
    const WHAT: &'static str = "session";
    const CODE: &'static str = "session_not_found";
}

impl Nameable for String {
    const WHAT: &'static str = "agent";
}

impl<S: Sync + Send, T: Nameable> FromRequestParts<S> for Named<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let text = Path::<String>::from_request_parts(parts, state).await.map_err(|_| unknown::<T>())?;
        text.0.parse().map(Self).map_err(|_| unknown::<T>())
    }
}

/// There is no such thing, or the caller may not know of it: both are told in the same words.
pub(super) fn unknown<T: Nameable>() -> Problem {
    let (status, title) = status_of(T::CODE);
    Problem::of_code(status, T::CODE, title, format!("there is no such {}, or none that you may see", T::WHAT))
}
