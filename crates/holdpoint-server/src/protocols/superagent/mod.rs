//! SuperAgent chat: a message in, a stream out, and a form where a person must look.
//!
//! `docs/protocols/superagent.md` is for those who use it. Where we go beyond the protocol or differ from it:
//!
//! - A pause of any kind becomes a form, not only a confirmation that the model's words ask for.
//! - Words are streamed while they are read for confirmations; they are not held back until the reply is complete.
//! - Errors carry a stable `code` beside the sentence. Unknown members and parameters are refused, not passed over.
//! - A message into a session that waits for a decision is refused, where it would otherwise be forgotten.
//! - A resume may name the `checkpoint_id` that its client was shown; another one that waits meanwhile is not answered.
//! - A frame `code_block` comes after a complete block of code, whose text was streamed as well; its delta is empty.

mod answer;
mod body;
mod form;
mod frames;
mod from_wire;
mod refuse;
mod to_wire;
mod wire;
mod words;

mod follow;
mod standing;

mod abort;
mod agents;
mod interrupt_state;
mod resume;
mod stream;

#[cfg(test)]
mod testing;

use axum::Router;
use axum::routing::{get, post};

use crate::app::App;
use crate::problem::Problem;

pub(crate) use refuse::render;

/// The list of agents, for where the native API does not give it.
pub fn agents() -> Router<App> {
    Router::new().route("/agents", get(agents::agents).fallback(only_get))
}

/// The routes under `/chat`; the server mounts them under `/api/v1` and `/api/v2`.
pub fn router() -> Router<App> {
    Router::new()
        .route("/chat/stream", post(stream::stream).fallback(only_post))
        .route("/chat/resume", post(resume::resume).fallback(only_post))
        .route("/chat/interrupt_state", get(interrupt_state::interrupt_state).fallback(only_get))
        .route("/chat/abort", post(abort::abort).fallback(only_post))
}

async fn only_post() -> Problem {
    refuse::method_not_allowed("POST")
}

async fn only_get() -> Problem {
    refuse::method_not_allowed("GET,HEAD")
}

/// Through which door decisions came, as they record it.
const VIA: &str = "superagent";
