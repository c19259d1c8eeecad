//! `send-tool-approval`: a decision about a call in a thread. What follows is read elsewhere.

use axum::Json;
use axum::extract::{Path, Request, State};
use http::StatusCode;
use serde_json::{Value, json};

use super::from_wire::{ApprovalRequest, Body};
use super::origin::{self, Origin};
use super::place::run_of;
use super::start::runs_in;
use super::{calls, decide, refuse};
use crate::access::{Action, Caller};
use crate::app::App;
use crate::problem::Problem;

/// How many of a thread's runs are looked through.
const RUNS_MAX: usize = 50;

pub(super) async fn send(
    State(app): State<App>,
    caller: Caller,
    Path(agent): Path<String>,
    request: Request,
) -> Result<Json<Value>, Problem> {
    caller.check(Action::ReadPause)?;
    let ApprovalRequest { resource, thread, call, given } = Body::read(&app, request).await?.approval()?;
    let runs = runs_in(&app, &agent, &thread, RUNS_MAX).await?;
    if runs.is_empty() {
        let is_agent = app.agents().find(&agent).is_some();
        return Err(if is_agent { refuse::thread_not_found() } else { refuse::agent_not_found(&agent) });
    }
    let mut waiting = Vec::new();
    let mut is_seen = false;
    for id in runs {
        // A run that the caller may not know of, or that is kept for somebody else, is not there.
        let run = match run_of(&app, &caller, &agent, id).await {
            Ok(run) => run,
            Err(problem) if problem.status() == StatusCode::NOT_FOUND => continue,
            Err(problem) => return Err(problem),
        };
        if Origin::of(&run).resource.is_some_and(|of| of != resource) {
            continue;
        }
        is_seen = true;
        if let Some(named) = calls::all(&run).into_iter().find(|named| named.name == call) {
            decide::record(&app, &caller, &run, &named, &given).await?;
            app.go_on(id);
            return Ok(Json(json!({"accepted": true, "runId": origin::run_name(&run), "toolCallId": call})));
        }
        waiting.extend(calls::waiting_names(&run));
    }
    Err(if is_seen { refuse::tool_call_not_suspended(&call, &waiting) } else { refuse::thread_not_found() })
}
