//! Approval as a service: ask, wait, act.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use holdpoint_core::event::RunStarted;
use holdpoint_core::ids::{AgentId, ToolName};
use holdpoint_core::message::Content;
use holdpoint_core::run::limits;
use http::{HeaderMap, HeaderValue, StatusCode, header};

use super::from_wire::{self, Wants};
use super::path::{Named, unknown};
use super::rest::Wait;
use super::wire::StreamFrame;
use super::wire::{Callback, CallbackBody, CallbackStatus, MakeRequest, Request, RequestStatus};
use super::{frames, idempotency, to_wire};
use crate::access::{Action, Caller};
use crate::app::App;
use crate::limits::{JsonBody, Query, StreamPermit};
use crate::problem::{Code, Problem};
use crate::requests::{Asked, Carried, Desk, Outcome, RequestFile, RequestId, Terms};
use crate::sse::{self, Frame};

/// How often the store is asked while a client waits for a request over a stream.
const GLANCE: Duration = Duration::from_secs(1);

/// The longest time that a request may wait.
const TIMEOUT_SECONDS_MAX: u64 = 31_536_000;

/// Asks for an approval.
///
/// Policies speak of requests as of every call; where none does, a person must look. With `wait` the answer comes when
/// the request is settled or the time is up. Under an `Idempotency-Key` the same request is made once however often it
/// is sent.
#[utoipa::path(
    post,
    path = "/api/v1/requests",
    tag = "requests",
    operation_id = "make_request",
    params(
        ("wait" = Option<u64>, Query, description = "How many seconds to wait for a decision.", minimum = 0, maximum = 60),
        ("Idempotency-Key" = Option<String>, Header, description = "The caller\'s own name of the request.", min_length = 1, max_length = 255, pattern = "^[!-~]([ -~]*[!-~])?$"),
    ),
    request_body = MakeRequest,
    responses(
        (status = 201, description = "The request waits, or a policy settled it.", body = Request),
        (status = 200, description = "The request that was made under the same key before.", body = Request),
    )
)]
pub(super) async fn make(
    State(app): State<App>,
    caller: Caller,
    query: Query,
    headers: HeaderMap,
    JsonBody(body): JsonBody<MakeRequest>,
) -> Result<Response, Problem> {
    caller.check(Action::MakeRequest)?;
    let wait = Wait::read(&app, &caller, &query.only(&["wait"])?)?;
    let key = from_wire::idempotency_key(&headers)?;
    let asked = read_body(&app, &caller, body, key.as_deref())?;
    let id = RequestId(asked.run);
    let same = Same::of(&asked)?;
    if key.is_some()
        && let Some(before) = idempotency::started(app.runtime(), id.0).await?
    {
        return repeat(&app, id, &same, &before, wait).await;
    }
    let mut starting = app.start(app.desk().start(asked)?);
    if let Err(problem) = starting.begun().await {
        return match idempotency::started(app.runtime(), id.0).await? {
            Some(before) if key.is_some() => repeat(&app, id, &same, &before, wait).await,
            _ => Err(problem),
        };
    }
    if key.is_some()
        && let Some(stored) = idempotency::started(app.runtime(), id.0).await?
    {
        same.check(&stored)?;
    }
    // Whether a person must look is known a moment after the start, and whoever asks wants to know it.
    while starting.next().await?.is_some() {}
    let place = HeaderValue::from_str(&format!("/api/v1/requests/{id}"))
        .map_err(|_| Problem::internal("a request id that is no header"))?;
    let file = settled(&app, id, wait).await?;
    Ok((StatusCode::CREATED, [(header::LOCATION, place)], Json(request(&file))).into_response())
}

/// What a request is known again by.
struct Same {
    agent: AgentId,
    input: Content,
    context: serde_json::Value,
}

impl Same {
    fn of(asked: &Asked) -> Result<Self, Problem> {
        let agent = AgentId::root(&asked.agent).map_err(|bad| invalid("agent", bad))?;
        let context = serde_json::to_value(Carried { holdpoint_request: asked.terms.clone() })
            .map_err(|_| Problem::internal("terms that have no JSON form"))?;
        Ok(Self { agent, input: Content::Json(asked.arguments.clone()), context })
    }
}

impl Same {
    fn check(&self, stored: &RunStarted) -> Result<(), Problem> {
        let context = stored.context.as_ref().map(holdpoint_core::json::CanonicalJson::to_value);
        let is_same =
            stored.agent.id == self.agent && stored.input == self.input && context.as_ref() == Some(&self.context);
        if is_same { Ok(()) } else { Err(idempotency::reused()) }
    }
}

async fn repeat(
    app: &App,
    id: RequestId,
    same: &Same,
    before: &RunStarted,
    wait: Option<Wait>,
) -> Result<Response, Problem> {
    same.check(before)?;
    Ok(Json(request(&settled(app, id, wait).await?)).into_response())
}

fn invalid(field: &'static str, problem: impl std::fmt::Display) -> Problem {
    Problem::new(Code::INVALID_REQUEST, format!("{field}: {problem}")).at(field)
}

fn read_body(app: &App, caller: &Caller, body: MakeRequest, key: Option<&str>) -> Result<Asked, Problem> {
    AgentId::root(&body.agent).map_err(|bad| invalid("agent", bad))?;
    let tool = ToolName::new(&body.tool).map_err(|bad| invalid("tool", bad))?;
    if !Desk::takes(&tool) {
        return Err(invalid("tool", "names that begin with holdpoint. are the server's own"));
    }
    if !body.args.is_object() {
        return Err(invalid("args", "a JSON object expected"));
    }
    if body.context.as_ref().is_some_and(|text| text.len() > 2048) {
        return Err(invalid("context", "at most 2048 bytes expected"));
    }
    if !body.timeout_seconds.is_none_or(|seconds| (1..=TIMEOUT_SECONDS_MAX).contains(&seconds)) {
        return Err(invalid("timeout_seconds", format!("1 to {TIMEOUT_SECONDS_MAX} expected")));
    }
    let approvers = body.approvers;
    if approvers.as_ref().is_some_and(Vec::is_empty) {
        return Err(invalid("approvers", "nobody could decide: name somebody, or leave it out for everybody"));
    }
    let approvers = approvers.unwrap_or_default();
    let is_name = |name: &String| !name.is_empty() && name.len() <= limits::NAME_BYTES_MAX;
    if approvers.len() > limits::APPROVERS_MAX || !approvers.iter().all(is_name) {
        let (names, bytes) = (limits::APPROVERS_MAX, limits::NAME_BYTES_MAX);
        return Err(invalid("approvers", format!("at most {names} names of 1 to {bytes} bytes expected")));
    }
    if let Some(url) = &body.callback_url {
        check_callback(app, url)?;
    }
    let run = key.map_or_else(|| app.runtime().name_run(), |key| idempotency::run_id(&caller.actor, key));
    let terms = Terms {
        context: body.context,
        timeout_seconds: body.timeout_seconds,
        approvers,
        callback_url: body.callback_url,
    };
    Ok(Asked { agent: body.agent, tool, arguments: body.args, terms, by: caller.actor.clone(), run })
}

fn check_callback(app: &App, url: &str) -> Result<(), Problem> {
    let refuse = |detail: String| Problem::new(Code::CALLBACK_REFUSED, detail).at("callback_url");
    let callbacks = app.desk().callbacks().ok_or_else(|| {
        refuse("this server sends no callbacks: wait with GET, or let the operator configure a signing key".to_owned())
    })?;
    callbacks.check(url).map_err(refuse)
}

async fn settled(app: &App, id: RequestId, wait: Option<Wait>) -> Result<RequestFile, Problem> {
    if let Some(wait) = wait {
        let is_settled = |run: &super::dossier::Dossier| run.open().next().is_none();
        wait.until(app, id.0, is_settled).await?;
    }
    RequestFile::read(app.runtime(), id).await?.ok_or_else(unknown::<RequestId>)
}

/// A request, and what became of it.
///
/// With `wait` the answer comes when the request is settled or the time is up. A client that takes `text/event-stream`
/// gets a frame `request` with the request as it stands, and another one when it is settled, which is the last.
#[utoipa::path(
    get,
    path = "/api/v1/requests/{id}",
    tag = "requests",
    operation_id = "read_request",
    params(
        ("id" = String, Path, description = "The request."),
        ("wait" = Option<u64>, Query, description = "How many seconds to wait for a decision.", minimum = 0, maximum = 60),
    ),
    responses((status = 200, description = "The request.", content(
        (Request = "application/json"), (StreamFrame = "text/event-stream"))))
)]
pub(super) async fn read(
    State(app): State<App>,
    caller: Caller,
    query: Query,
    headers: HeaderMap,
    Named(id): Named<RequestId>,
) -> Result<Response, Problem> {
    caller.check(Action::ReadRequest)?;
    let wants = from_wire::wants(&headers)?;
    let params = query.only(&["wait"])?;
    let file = RequestFile::read(app.runtime(), id).await?.ok_or_else(unknown::<RequestId>)?;
    if !caller.sees(Action::ReadRequest, file.dossier.run.started_by()) {
        return Err(unknown::<RequestId>());
    }
    match wants {
        Wants::Stream => Ok(stream(&app, app.streams().take(&caller.actor)?, file)),
        Wants::Json => {
            let wait = Wait::read(&app, &caller, &params)?;
            Ok(Json(request(&settled(&app, id, wait).await?)).into_response())
        }
    }
}

fn stream(app: &App, permit: StreamPermit, file: RequestFile) -> Response {
    let runtime = app.runtime().clone();
    sse::stream(app, permit, frames::farewell(), move |writer| async move {
        let id = file.id;
        writer.send(Frame::json(&request(&file)).event("request")).await?;
        let Some(session) = file.dossier.run.session().cloned() else { return Ok(()) };
        let mut watch = runtime.watch_run(&session, id.0);
        let mut is_settled = file.is_settled();
        while !is_settled {
            tokio::select! {
                _ = watch.next() => {}
                () = tokio::time::sleep(GLANCE) => {}
            }
            match RequestFile::read(&runtime, id).await {
                Ok(Some(file)) if file.is_settled() => {
                    writer.send(Frame::json(&request(&file)).event("request")).await?;
                    is_settled = true;
                }
                Ok(Some(_)) => {}
                Ok(None) => return Ok(()),
                Err(error) => return writer.send(frames::trouble(&error.into())).await,
            }
        }
        Ok(())
    })
}

/// A request as it is sent.
pub(crate) fn request(file: &RequestFile) -> Request {
    let run = &file.dossier.run;
    let pause =
        file.pause.and_then(|pause| file.dossier.pause(pause)).map(|pause| to_wire::pause(&file.dossier, pause));
    Request {
        id: file.id.to_string(),
        status: match file.outcome {
            Outcome::Pending => RequestStatus::Pending,
            Outcome::Approved => RequestStatus::Approved,
            Outcome::Denied => RequestStatus::Denied,
            Outcome::Expired => RequestStatus::Expired,
            Outcome::Cancelled => RequestStatus::Cancelled,
            Outcome::Answered => RequestStatus::Answered,
        },
        agent: run.agent().map(|agent| agent.id.to_string()).unwrap_or_default(),
        tool: file.tool.to_string(),
        args: file.arguments.clone(),
        message: file.message.clone(),
        requested_by: run.started_by().map(ToString::to_string),
        created_at: run.started_at().map(|at| at.to_string()),
        decided_by: file.decided_by.clone(),
        decided_at: file.decided_at.map(|at| at.to_string()),
        pause,
        callback: file.callback.map(|callback| Callback {
            status: match (callback.is_delivered, callback.is_over) {
                (true, _) => CallbackStatus::Delivered,
                (false, true) => CallbackStatus::Failed,
                (false, false) => CallbackStatus::Pending,
            },
            attempts: callback.attempts,
            next_at: callback.next_at.map(|at| at.to_string()),
        }),
    }
}

/// What a callback says.
pub(crate) fn callback_body(file: &RequestFile, now: holdpoint_core::time::Timestamp) -> CallbackBody {
    CallbackBody { kind: "request.settled", timestamp: now.to_string(), data: request(file) }
}
