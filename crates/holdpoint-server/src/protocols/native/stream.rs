//! Streams: a run up to its first stop, and a session for ever.

use std::time::Duration;

use axum::extract::State;
use axum::response::Response;
use holdpoint_core::ids::{RunId, SessionId};
use holdpoint_runtime::RunError;
use holdpoint_runtime::use_cases::{WatchItem, WatchSession};
use http::HeaderMap;

use super::dossier::Dossier;
use super::path::Named;
use super::rest::rests;
use super::wire::StreamFrame;
use super::{frames, from_wire, sessions, to_wire};
use crate::access::{Action, Caller, Identity};
use crate::app::App;
use crate::drive::Starting;
use crate::limits::{Query, StreamPermit};
use crate::problem::Problem;
use crate::sse::{self, Frame, Gone, Writer};

/// How often the store is asked for what other processes wrote.
const GLANCE: Duration = Duration::from_secs(2);

/// How often a stream tries again when the store is out of order before it ends.
const TRIES_MAX: u32 = 15;

/// Everything that happens in a run that starts, up to its first stop.
pub(super) fn run(app: &App, permit: StreamPermit, mut starting: Starting) -> Response {
    let runtime = app.runtime().clone();
    sse::stream(app, permit, frames::farewell(), move |writer| async move {
        loop {
            match starting.next().await {
                Ok(Some(item)) if run_of(&item) == starting.run => {
                    writer.send(frames::frame(&starting.session, &item)).await?;
                }
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(problem) => return writer.send(frames::trouble(&problem)).await,
            }
        }
        let last = match Dossier::read(&runtime, starting.run).await {
            Ok(dossier) => Frame::json(&to_wire::run(&dossier)).event("run.stopped"),
            Err(error) => frames::trouble(&error.into()),
        };
        writer.send(last).await
    })
}

/// Everything that has happened in a run, and what still does up to its next stop.
pub(super) fn run_again(app: &App, permit: StreamPermit, run: RunId, session: &SessionId) -> Response {
    let (runtime, session) = (app.runtime().clone(), session.clone());
    sse::stream(app, permit, frames::farewell(), move |writer| async move {
        let mut watch = runtime.watch_run(&session, run);
        loop {
            // Read before the rest is sent: whatever made the run rest is among what is sent then.
            let told = async {
                let dossier = Dossier::read(&runtime, run).await?;
                Ok::<_, RunError>((dossier, watch.caught_up().await?))
            };
            let (dossier, items) = match told.await {
                Ok(told) => told,
                Err(error) => return writer.send(frames::trouble(&error.into())).await,
            };
            for item in items.iter().filter(|item| run_of(item) == run) {
                writer.send(frames::frame(&session, item)).await?;
            }
            if rests(&dossier) {
                return writer.send(Frame::json(&to_wire::run(&dossier)).event("run.stopped")).await;
            }
            tokio::select! {
                item = watch.next() => match item {
                    Ok(item) if run_of(&item) == run => writer.send(frames::frame(&session, &item)).await?,
                    Ok(_) => {}
                    Err(error) => return writer.send(frames::trouble(&error.into())).await,
                },
                () = tokio::time::sleep(GLANCE) => {}
            }
        }
    })
}

fn run_of(item: &WatchItem) -> RunId {
    match item {
        WatchItem::Event { run, .. } | WatchItem::Delta { run, .. } => *run,
    }
}

/// The events of a session as server-sent events: each once, in order, without a gap.
///
/// A frame's `id` is the number of the event, and `Last-Event-ID` goes on behind it; without it the stream begins with
/// the first event. Frames `delta` are words of a model that is still speaking: they have no id, and are not repeated.
/// The stream stays open until the client or the server ends it.
#[utoipa::path(
    get,
    path = "/api/v1/sessions/{id}/events",
    tag = "sessions",
    operation_id = "watch_session",
    params(
        ("id" = String, Path, description = "The session."),
        ("after" = Option<u64>, Query, description = "Only events after this number, for clients that cannot send the header."),
        ("Last-Event-ID" = Option<String>, Header, description = "The number of the last event that was seen.", pattern = "^[0-9]{1,19}$"),
    ),
    responses((status = 200, description = "A stream.", content_type = "text/event-stream", body = StreamFrame))
)]
pub(super) async fn session(
    State(app): State<App>,
    caller: Caller,
    query: Query,
    headers: HeaderMap,
    Named(id): Named<SessionId>,
) -> Result<Response, Problem> {
    caller.check(Action::ReadRun)?;
    from_wire::wants_stream(&headers)?;
    let after = query.only(&["after"])?.number("after", 0..=i64::MAX as u64)?;
    let last = from_wire::last_event_id(&headers)?.or(after).unwrap_or(0);
    sessions::check_visible(&app, &caller, &id).await?;
    let permit = app.streams().take(&caller.actor)?;
    let identity = Identity::shown(app.access(), &headers).await?;
    let watch = app.runtime().watch_session(&id, last.saturating_add(1));
    // Instances with a bus between them are told, and the runtime itself looks for what they were not told.
    let store = app.runtime().store();
    let must_glance = store.durability().is_shared && store.bus().is_none();
    Ok(sse::watch(&app, permit, identity, frames::farewell(), move |writer| follow(writer, id, watch, must_glance)))
}

/// Writes what happens, for as long as somebody reads.
async fn follow(writer: Writer, session: SessionId, mut watch: WatchSession, must_glance: bool) -> Result<(), Gone> {
    // Headers alone do not reach a client through every proxy: something must follow them.
    writer.send(Frame::comment("watching")).await?;
    let mut failures = 0;
    loop {
        let seen = tokio::select! {
            item = watch.next() => item.map(|item| vec![item]),
            () = tokio::time::sleep(GLANCE), if must_glance => watch.caught_up().await,
        };
        match seen {
            Ok(items) => {
                failures = 0;
                for item in items {
                    writer.send(frames::frame(&session, &item)).await?;
                }
            }
            Err(error) if failures < TRIES_MAX => {
                failures += 1;
                tracing::debug!(%error, "a stream waits for the store");
                tokio::time::sleep(GLANCE).await;
            }
            Err(error) => return writer.send(frames::trouble(&error.into())).await,
        }
    }
}
