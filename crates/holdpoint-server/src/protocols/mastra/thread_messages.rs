//! `memory/threads/…/messages`: what was said in a thread, and what waits there.

use axum::Json;
use axum::extract::{Path, State};
use holdpoint_core::ids::SessionId;
use holdpoint_core::record::Entry;
use holdpoint_core::refusal::Refusal;
use holdpoint_core::run::Run;
use holdpoint_runtime::RunError;
use holdpoint_runtime::ports::store::RunFilter;
use serde_json::{Value, json};

use super::origin::Origin;
use super::place::{journal, root};
use super::suspended_runs::{Given, Parameters};
use super::{history, refuse};
use crate::access::{Action, Caller};
use crate::app::App;
use crate::problem::Problem;

/// Messages on a page, where nobody says, and at most.
const PER_PAGE: usize = 40;
const PER_PAGE_MAX: usize = 1_000;

/// How many of a thread's newest runs are told.
const RUNS_MAX: usize = 500;

pub(super) async fn list(
    State(app): State<App>,
    caller: Caller,
    Path(thread): Path<String>,
    query: Parameters,
) -> Result<Json<Value>, Problem> {
    caller.check(Action::ReadRun)?;
    let given = Given::read(query)?;
    let session = SessionId::new(&thread).map_err(|_| refuse::thread_not_found())?;
    check_visible(&app, &caller, &session).await?;
    let per_page = match given.text("perPage") {
        // All of them, as far as that goes.
        Some("false") => PER_PAGE_MAX,
        _ => given.per_page(PER_PAGE, PER_PAGE_MAX)?,
    };
    let page = given.number("page", 0)?;
    let agent = given.text("agentId").map(root).transpose()?;
    let messages = messages(&app, &session, agent, given.text("resourceId")).await?;
    let total = messages.len();
    let skip = page.saturating_mul(per_page);
    let shown: Vec<Value> = messages.into_iter().skip(skip).take(per_page).collect();
    let has_more = skip.saturating_add(shown.len()) < total;
    Ok(Json(json!({
        "messages": shown, "total": total, "page": page, "perPage": per_page, "hasMore": has_more, "uiMessages": null,
    })))
}

async fn check_visible(app: &App, caller: &Caller, session: &SessionId) -> Result<(), Problem> {
    match app.runtime().session(session).await {
        Ok(row) if caller.sees(Action::ReadRun, Some(&row.owner)) => Ok(()),
        Ok(_) | Err(RunError::Refused(Refusal::SessionNotFound(_))) => Err(refuse::thread_not_found()),
        Err(error) => Err(error.into()),
    }
}

/// The messages of a thread, oldest first.
async fn messages(
    app: &App,
    session: &SessionId,
    agent: Option<holdpoint_core::ids::AgentId>,
    resource: Option<&str>,
) -> Result<Vec<Value>, Problem> {
    let filter = RunFilter { session: Some(session.clone()), agent, limit: RUNS_MAX, ..RunFilter::default() };
    let runs = app.runtime().list_runs(&filter).await?.runs;
    let mut messages = Vec::new();
    for row in runs.iter().rev() {
        let Some(entries) = journal(app, row.run).await? else { continue };
        let run = Run::fold(row.run, entries.iter().flat_map(Entry::timed));
        let kept_for = Origin::of(&run).resource;
        if resource.is_none_or(|asked| kept_for.is_none_or(|of| of == asked)) {
            messages.extend(history::messages(&run, &entries));
        }
    }
    Ok(messages)
}
