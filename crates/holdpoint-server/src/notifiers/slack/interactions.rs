//! What people click. The request is believed first, then read, then mapped to somebody who may decide; then the same is
//! done as for everybody else. Slack waits three seconds for the answer, so that everything that needs Slack again, and the
//! run itself, goes on behind it.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use holdpoint_core::time::Timestamp;
use http::{HeaderMap, StatusCode};
use serde_json::json;

use super::act::{Answer, press, send_off};
use super::payload::{self, Author, Payload};
use super::{Slack, modal};
use crate::access::Caller;
use crate::app::App;
use crate::limits::{Limits, read_body};
use crate::problem::{Code, Problem};

/// The largest request: a click carries the whole message with it.
const BODY_BYTES_MAX: usize = 512 << 10;

/// Slack gives up after three seconds.
const ANSWER_WITHIN: Duration = Duration::from_millis(2_500);

/// The route; nothing where no channel is configured.
pub(crate) fn router(app: &App) -> Router<App> {
    match app.has_slack() {
        true => Router::new().route("/api/v1/slack/{destination}/interactions", post(take)),
        false => Router::new(),
    }
}

async fn take(
    State(app): State<App>,
    destination: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let slack = destination.ok().and_then(|Path(name)| app.slack(&name)).ok_or_else(no_such_route)?;
    let body_bytes_max = BODY_BYTES_MAX.min(app.limits().body_bytes_max);
    let limits = Limits { body_bytes_max, ..app.limits().clone() };
    let body = read_body(headers.clone(), body, &limits).await?;
    slack.believe(&headers, &body, app.runtime().store().now())?;
    let payload = payload::read(&headers, &body)?;
    let Some(author) = payload.author() else { return Ok(StatusCode::OK.into_response()) };
    match slack.caller(&author)? {
        Some(caller) => {
            app.rate().take(&caller.actor)?;
            act(app, slack, caller, payload).await
        }
        None => {
            app.rate().take(&author.as_actor())?;
            Ok(turn_away(&app, &slack, &author, &payload))
        }
    }
}

fn no_such_route() -> Problem {
    Problem::new(Code::ROUTE_NOT_FOUND, "there is no such address here: /docs lists those there are")
}

impl Slack {
    /// Refuses what Slack did not sign for this app, just now and for the first time.
    fn believe(&self, headers: &HeaderMap, body: &[u8], now: Timestamp) -> Result<(), Problem> {
        self.signatures.check(headers, body, now).map_err(|reason| {
            tracing::warn!(destination = %self.destination(), %reason, "a request to Slack's address is not believed");
            Problem::new(Code::UNAUTHENTICATED, "the request is not one that Slack signed just now for this app")
        })
    }

    /// As whom somebody decides; `None` for a stranger of a workspace that is known here.
    fn caller(&self, author: &Author<'_>) -> Result<Option<Caller>, Problem> {
        let is_app = self.app_id.as_deref().is_none_or(|app| app == author.app);
        let team = author.team().filter(|team| is_app && self.people.knows_team(team));
        let Some(team) = team else {
            tracing::warn!(
                destination = %self.destination(),
                slack.user = author.user,
                slack.team = author.team(),
                slack.app = author.app,
                "a click from another workspace or app was refused"
            );
            return Err(Problem::new(Code::FORBIDDEN, "nobody of this workspace and app may decide here"));
        };
        Ok(self.people.caller(team, author.user).cloned())
    }
}

/// Tells a stranger why nothing happened.
fn turn_away(app: &App, slack: &Arc<Slack>, author: &Author<'_>, payload: &Payload) -> Response {
    tracing::warn!(
        destination = %slack.destination(),
        slack.user = author.user,
        slack.team = author.team(),
        "somebody who is not among the people of a Slack channel clicked; nothing was decided"
    );
    let told = "You are not among the people who may decide here, so nothing was decided. Whoever runs holdpoint can add \
                your Slack user to them.";
    match payload {
        Payload::BlockActions(taken) => {
            slack.whisper(app, &taken.container.channel_id, author.user, told.to_owned());
            StatusCode::OK.into_response()
        }
        _ => answer_of(Answer::Say(told.to_owned())),
    }
}

/// Does it in a task of its own: who hangs up, or is late, changes nothing.
async fn act(app: App, slack: Arc<Slack>, caller: Caller, payload: Payload) -> Result<Response, Problem> {
    let is_modal = matches!(payload, Payload::ViewSubmission(_));
    let tasks = app.tasks().clone();
    let task = tasks.spawn(async move {
        match payload {
            Payload::BlockActions(taken) => press(&app, &slack, &caller, taken).await,
            Payload::ViewSubmission(sent) => send_off(&app, &slack, &caller, sent).await,
            Payload::Other => Answer::Done,
        }
    });
    match tokio::time::timeout(ANSWER_WITHIN, task).await {
        Ok(Ok(Answer::Refused(problem))) => Err(problem),
        Ok(Ok(answer)) => Ok(answer_of(answer)),
        Ok(Err(_)) => Err(Problem::internal("the task of a click panicked")),
        // It is still being done, and the message will tell.
        Err(_) if is_modal => {
            Ok(answer_of(Answer::Say("This takes longer than usual. The message will tell.".to_owned())))
        }
        Err(_) => Ok(answer_of(Answer::Done)),
    }
}

fn answer_of(answer: Answer) -> Response {
    let body = match answer {
        Answer::Done => return StatusCode::OK.into_response(),
        Answer::Say(said) => json!({"response_action": "update", "view": modal::told(&said)}),
        Answer::Correct(errors) => json!({"response_action": "errors", "errors": errors}),
        Answer::Refused(problem) => return problem.into_response(),
    };
    axum::Json(body).into_response()
}
