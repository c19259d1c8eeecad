//! The same protocol without a socket: events as server-sent events, and commands as plain requests.

use axum::extract::{Path, Request, State};
use axum::response::{IntoResponse as _, Response};
use axum::{Json, extract};
use holdpoint_core::ids::SessionId;
use http::HeaderMap;

use super::commands::{self, Answer, Order};
use super::describe;
use super::from_wire::{self, Asked, Command};
use super::refuse::{Refused, bad_command, unknown_session};
use super::standing::Standing;
use super::subscription::{Subscription, subscribed};
use super::wire::control::Control;
use super::wire::events::Event;
use crate::access::{Action, Caller, Identity};
use crate::app::App;
use crate::limits::{Query, read_body, require_json};
use crate::problem::{Code, Problem};
use crate::sse::{self, Frame, Gone, Writer};

/// Events of a session as server-sent events, after `Last-Event-ID` or `?after=`; without either, all of them.
///
/// A durable event has its number as `id`. The first frame is `subscribed`.
#[utoipa::path(
    get,
    path = "/api/v1/sessions/{id}/blocks",
    tag = "sessions",
    operation_id = "watch_blocks",
    params(
        ("id" = String, Path, description = "The session."),
        ("after" = Option<u64>, Query, description = "Only events after this number, for clients that cannot send the header."),
        ("Last-Event-ID" = Option<String>, Header, description = "The number of the last event that was seen.", pattern = "^[0-9]{1,19}$"),
    ),
    responses(
        (status = 200, description = "A stream.", content_type = "text/event-stream", body = describe::Event),
        describe::Refusals,
    )
)]
pub(crate) async fn events(
    State(app): State<App>,
    caller: Caller,
    query: Query,
    headers: HeaderMap,
    Path(session): Path<String>,
) -> Result<Response, Response> {
    let told = |refused: Refused| refused.respond(None);
    let session = named(&session).map_err(told)?;
    let after = cursor(&query, &headers).map_err(Problem::into_response)?;
    caller.check(Action::ReadRun).map_err(|problem| told(problem.into()))?;
    let standing = Standing::read(&app, &caller, Action::ReadRun, &session).await.map_err(told)?;
    let permit = app.streams().take(&caller.actor).map_err(|problem| told(problem.into()))?;
    let first = Frame::json(&subscribed(&session, &standing, None));
    let subscription = Subscription::new(&app, &session, standing, Some(after));
    let identity = Identity::shown(app.access(), &headers).await.map_err(Problem::into_response)?;
    Ok(sse::watch(&app, permit, identity, Vec::new(), move |writer| follow(writer, first, subscription)))
}

async fn follow(writer: Writer, first: Frame, mut subscription: Subscription) -> Result<(), Gone> {
    writer.send(first).await?;
    loop {
        match subscription.next().await {
            Ok(events) => {
                for event in &events {
                    writer.send(frame(event)).await?;
                }
            }
            Err(error) => return writer.send(Frame::json(&Refused::from(error).told(None))).await,
        }
    }
}

fn frame(event: &Event) -> Frame {
    let frame = Frame::json(event);
    match &event.number {
        // A browser comes back with the last id it read.
        Some(number) if !number.provisional => frame.id(number.seq),
        _ => frame,
    }
}

/// The number of the last event that was seen.
fn cursor(query: &Query, headers: &HeaderMap) -> Result<u64, Problem> {
    let after = query.only(&["after"])?.number("after", 0..=i64::MAX as u64)?;
    let invalid = || Problem::new(Code::INVALID_HEADER, "Last-Event-ID: the number of an event expected");
    let mut given = headers.get_all("last-event-id").iter();
    let last = match (given.next(), given.next()) {
        (None, _) => None,
        (Some(value), None) => {
            let text = value.to_str().map_err(|_| invalid())?;
            Some(from_wire::event_id(text).map_err(|_| invalid())?)
        }
        (Some(_), Some(_)) => return Err(invalid()),
    };
    Ok(last.or(after).unwrap_or(0))
}

/// Carries out one command, and answers with the event that it led to. `subscribe` is what the stream is for.
#[utoipa::path(
    post,
    path = "/api/v1/sessions/{id}/commands",
    tag = "sessions",
    operation_id = "send_command",
    params(("id" = String, Path, description = "The session.")),
    request_body = describe::Command,
    responses(
        (status = 200, description = "The event that answers the command.", body = describe::Event),
        describe::CommandRefusals,
    )
)]
pub(crate) async fn command(
    State(app): State<App>,
    caller: Caller,
    query: Query,
    Path(session): Path<String>,
    request: extract::Request,
) -> Response {
    match read(&app, &query, &session, request).await {
        Ok(Asked { request_id, command }) => {
            let answered = match command {
                Ok(command) => answer(&app, &caller, request_id.clone(), command).await,
                Err(refused) => Err(refused),
            };
            match answered {
                Ok(Answer::Event(event)) => Json(*event).into_response(),
                Ok(Answer::Control(control)) => Json(control).into_response(),
                Err(refused) => refused.respond(request_id),
            }
        }
        Err(response) => response,
    }
}

async fn read(app: &App, query: &Query, session: &str, request: Request) -> Result<Asked, Response> {
    let session = named(session).map_err(|refused| refused.respond(None))?;
    let bytes = async {
        query.only(&[])?;
        require_json(request.headers())?;
        read_body(request.headers().clone(), request.into_body(), app.limits()).await
    };
    let bytes = bytes.await.map_err(|problem| match problem.status() {
        http::StatusCode::PAYLOAD_TOO_LARGE => Refused::from(problem).respond(None),
        _ => problem.into_response(),
    })?;
    match std::str::from_utf8(&bytes) {
        Ok(text) => Ok(from_wire::command(text, Some(&session))),
        Err(_) => Err(Refused::new(super::refuse::Code::BadJson, "the command is not UTF-8").respond(None)),
    }
}

async fn answer(app: &App, caller: &Caller, request_id: Option<String>, command: Command) -> Result<Answer, Refused> {
    if matches!(command, Command::Ping) {
        return Ok(Answer::Control(Control::Pong { request_id }));
    }
    let order = Order::of(app, caller, request_id.as_deref(), command);
    let order =
        order.ok_or_else(|| bad_command("this command is for a connection: open the stream of events instead"))?;
    let done = commands::carry_out(app, caller, request_id.as_deref(), order).await?;
    done.answer(app, request_id).await
}

/// What cannot be the name of a session names none.
fn named(session: &str) -> Result<SessionId, Refused> {
    SessionId::new(session).map_err(|_| unknown_session())
}
