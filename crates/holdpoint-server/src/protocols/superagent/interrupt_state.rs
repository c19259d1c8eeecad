//! `GET /chat/interrupt_state`: what a session waits for. A session that is not the caller's waits for nothing.

use axum::Json;
use axum::extract::{Request, State};

use super::standing::{Standing, find};
use super::wire::InterruptAnswer;
use super::{from_wire, to_wire};
use crate::access::{Action, Caller};
use crate::app::App;
use crate::problem::Problem;

pub(super) async fn interrupt_state(
    State(app): State<App>,
    caller: Caller,
    request: Request,
) -> Result<Json<InterruptAnswer>, Problem> {
    let place = from_wire::interrupt_state(request.uri())?;
    caller.check(Action::ReadPause)?;
    let (agent, conversation) = find(&app, &place).await?;
    let is_seen = conversation.is_within_reach(&caller, Action::ReadPause);
    let state = match conversation.standing {
        Standing::Held(held) if is_seen => Some(to_wire::state(&held, &agent, &place.session)),
        _ => None,
    };
    Ok(Json(InterruptAnswer { interrupted: state.is_some(), state }))
}
