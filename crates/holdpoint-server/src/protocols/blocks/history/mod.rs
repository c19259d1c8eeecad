//! What was said and done in a session, as a page that is loaded anew shows it: folded from the facts of the stream.

mod fold;
mod message;
mod request;
#[cfg(test)]
pub(super) mod testing;
#[cfg(test)]
mod tests;

use axum::Json;
use axum::extract::State;
use holdpoint_core::ids::SessionId;

use super::kept::fold as fold_journal;
use super::projection::Projection;
use crate::access::{Action, Caller};
use crate::app::App;
use crate::limits::Query;
use crate::problem::Problem;
use crate::protocols::native::{Named, check_visible};
use fold::History;

pub use message::Message;

/// Messages that a history is told with; of a longer session the oldest runs are left out.
const MESSAGES_MAX: usize = 10_000;

/// What was said and done in a session, oldest first, with open and settled requests to people.
#[utoipa::path(
    get,
    path = "/api/v1/sessions/{id}/history",
    tag = "sessions",
    operation_id = "read_history",
    params(("id" = String, Path, description = "The session.")),
    responses((status = 200, description = "The messages, oldest first.", body = Vec<Message>))
)]
pub(crate) async fn read(
    State(app): State<App>,
    caller: Caller,
    query: Query,
    Named(session): Named<SessionId>,
) -> Result<Json<Vec<Message>>, Problem> {
    caller.check(Action::ReadRun)?;
    query.only(&[])?;
    check_visible(&app, &caller, &session).await?;
    let stored = app.runtime().session(&session).await?.events;
    let mut projection = Projection::new(session.clone());
    let mut history = History::default();
    let now = app.runtime().store().now();
    fold_journal(&app, &session, 0, stored, |agent, item| {
        if let Some((run, agent)) = agent {
            projection.learn(run, agent);
        }
        for mut fact in projection.take(item) {
            fact.stamp(now);
            history.take(fact);
        }
    })
    .await?;
    Ok(Json(history.into_messages(MESSAGES_MAX)))
}
