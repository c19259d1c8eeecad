//! Sessions: who owns them, and how much happened in them.

use axum::Json;
use axum::extract::State;
use holdpoint_core::ids::SessionId;
use holdpoint_core::refusal::Refusal;
use holdpoint_runtime::ports::store::{RunFilter, SessionFilter, SessionRow};

use super::path::{Named, unknown};
use super::{cursor, runs, wire};
use crate::access::{Action, Caller, Reach};
use crate::app::App;
use crate::limits::Query;
use crate::problem::Problem;

/// How many runs a session is shown with.
const LATEST_RUNS: usize = 20;

/// A page of sessions, the one that began last first.
#[utoipa::path(
    get,
    path = "/api/v1/sessions",
    tag = "sessions",
    operation_id = "list_sessions",
    params(
        ("limit" = Option<u64>, Query, description = "At most so many.", minimum = 1, maximum = 200),
        ("cursor" = Option<String>, Query, description = "`next_cursor` of the page before."),
    ),
    responses((status = 200, description = "A page of sessions.", body = wire::SessionList))
)]
pub(super) async fn list(
    State(app): State<App>,
    caller: Caller,
    query: Query,
) -> Result<Json<wire::SessionList>, Problem> {
    let reach = caller.check(Action::ReadRun)?;
    let params = query.only(&["limit", "cursor"])?;
    let owner = (reach != Reach::All).then(|| caller.actor.clone());
    let filters = format!("{owner:?}");
    let after = params.text("cursor").map(|text| cursor::read("sessions", &filters, text)).transpose()?;
    let after = after.map(SessionId::new).transpose().map_err(|_| Problem::internal("a cursor of ours"))?;
    let page = app.runtime().list_sessions(&SessionFilter { owner, after, limit: params.limit()? }).await?;
    let next_cursor = page.next.map(|session| cursor::write("sessions", &filters, session.as_str()));
    Ok(Json(wire::SessionList { sessions: page.sessions.iter().map(session).collect(), next_cursor }))
}

/// One session, with its latest runs.
#[utoipa::path(
    get,
    path = "/api/v1/sessions/{id}",
    tag = "sessions",
    operation_id = "read_session",
    params(("id" = String, Path, description = "The session.")),
    responses((status = 200, description = "The session.", body = wire::SessionDetail))
)]
pub(super) async fn read(
    State(app): State<App>,
    caller: Caller,
    query: Query,
    Named(id): Named<SessionId>,
) -> Result<Json<wire::SessionDetail>, Problem> {
    caller.check(Action::ReadRun)?;
    query.only(&[])?;
    let row = visible(&app, &caller, &id).await?;
    let latest = RunFilter { session: Some(id), limit: LATEST_RUNS, ..RunFilter::default() };
    let page = app.runtime().list_runs(&latest).await?;
    let latest_runs = page.runs.iter().map(runs::summary).collect();
    Ok(Json(wire::SessionDetail { session: session(&row), latest_runs }))
}

/// The session, where the caller may know of it.
pub(super) async fn visible(app: &App, caller: &Caller, id: &SessionId) -> Result<SessionRow, Problem> {
    let row = app.runtime().session(id).await.map_err(|error| match error.refusal() {
        Some(Refusal::SessionNotFound(_)) => unknown::<SessionId>(),
        _ => error.into(),
    })?;
    if caller.sees(Action::ReadRun, Some(&row.owner)) { Ok(row) } else { Err(unknown::<SessionId>()) }
}

/// Refuses a session that the caller may not know of.
pub(crate) async fn check_visible(app: &App, caller: &Caller, id: &SessionId) -> Result<(), Problem> {
    visible(app, caller, id).await.map(|_| ())
}

fn session(row: &SessionRow) -> wire::Session {
    wire::Session {
        session_id: row.session.to_string(),
        owner: row.owner.to_string(),
        created_at: row.created_at.to_string(),
        last_at: row.last_at.to_string(),
        runs: row.runs,
        events: row.events,
    }
}
