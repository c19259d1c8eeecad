//! The native API: REST and server-sent events, described at `/openapi.json`.
//!
//! JSON, snake case, times as RFC 3339, ids as texts that say nothing. Every answer is a wire type; a handler parses,
//! calls one use case and renders.

mod agents;
mod audit;
mod cursor;
pub(crate) mod decide;
pub(crate) mod dossier;
mod edited;
mod frames;
mod from_wire;
mod history;
mod idempotency;
mod openapi;
mod path;
mod pauses;
mod requests;
mod rest;
mod rules;
mod runs;
mod sessions;
mod stream;
mod to_wire;
mod watch_inbox;
mod wire;

use holdpoint_core::pause::{PauseState, PauseView};
use holdpoint_core::run::Run;
use utoipa::OpenApi as _;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;
use crate::protocols::blocks;

/// Through which door decisions came, as they record it.
pub(crate) const VIA: &str = "native";

/// The routes, and their description.
pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::with_openapi(openapi::Api::openapi())
        .routes(routes!(agents::list))
        .routes(routes!(agents::read))
        .routes(routes!(runs::list, runs::start))
        .routes(routes!(runs::read))
        .routes(routes!(runs::cancel))
        .routes(routes!(sessions::list))
        .routes(routes!(sessions::read))
        .routes(routes!(history::read))
        .routes(routes!(blocks::history::read))
        .routes(routes!(blocks::http::events))
        .routes(routes!(blocks::http::command))
        .routes(routes!(stream::session))
        .routes(routes!(pauses::list))
        .routes(routes!(watch_inbox::watch))
        .routes(routes!(pauses::read))
        .routes(routes!(decide::decide))
        .routes(routes!(rules::list))
        .routes(routes!(rules::revoke))
        .routes(routes!(audit::list))
        .routes(routes!(audit::verify))
        .routes(routes!(requests::make))
        .routes(routes!(requests::read))
}

pub(crate) use openapi::complete;
pub(crate) use path::Named;
pub(crate) use requests::callback_body;
pub(crate) use sessions::check_visible;
pub(crate) use wire::Pause as PauseDocument;

/// A pause as the API shows it, for those who are told of it elsewhere.
pub(crate) fn pause_document(run: &Run, view: &PauseView, key: &str) -> PauseDocument {
    let expires_at = match &view.pause.state {
        PauseState::Open { expires_at } => *expires_at,
        _ => None,
    };
    to_wire::pause_of(run, view, key.to_owned(), expires_at)
}
