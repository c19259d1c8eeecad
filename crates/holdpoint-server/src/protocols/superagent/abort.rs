//! `POST /chat/abort`: ends what an agent does in a session, held or under way.

use axum::Json;
use axum::extract::{Request, State};
use holdpoint_core::refusal::Refusal;
use holdpoint_runtime::RunError;

use super::standing::{Standing, find};
use super::wire::{AbortAnswer, AbortStatus};
use super::{body, from_wire, refuse};
use crate::access::{Action, Caller};
use crate::app::App;
use crate::problem::Problem;

pub(super) async fn abort(
    State(app): State<App>,
    caller: Caller,
    request: Request,
) -> Result<Json<AbortAnswer>, Problem> {
    from_wire::no_parameters(request.uri())?;
    let place = from_wire::abort(&body::read(&app, request).await?)?;
    caller.check(Action::CancelRun)?;
    let (_, conversation) = find(&app, &place).await?;
    let is_within_reach = conversation.is_within_reach(&caller, Action::CancelRun);
    let run = match conversation.standing {
        _ if !is_within_reach => return Err(refuse::session_not_found()),
        Standing::Held(held) => Some(held.run.id()),
        Standing::Moving(run) => Some(run.id()),
        Standing::Idle { overdue, .. } => overdue,
    };
    let status = match run {
        None => AbortStatus::NoActiveLoop,
        Some(run) => match app.runtime().cancel_run(run, caller.actor, "aborted by the client").await {
            Ok(_) => AbortStatus::Aborted,
            // It came to its end a moment before.
            Err(RunError::Refused(Refusal::RunFinished(_))) => AbortStatus::NoActiveLoop,
            Err(error) => return Err(error.into()),
        },
    };
    Ok(Json(AbortAnswer { status }))
}
