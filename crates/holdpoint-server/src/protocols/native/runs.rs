//! Runs: started, read, listed, ended.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use holdpoint_core::event::RunStarted;
use holdpoint_core::ids::{AgentId, RunId, SessionId};
use holdpoint_core::message::Content;
use holdpoint_core::refusal::Refusal;
use holdpoint_runtime::ports::store::{RunFilter, RunStatus, RunSummary};
use holdpoint_runtime::use_cases::StartRun;
use holdpoint_runtime::{DriveOptions, Runtime};
use http::{HeaderMap, HeaderValue, StatusCode, header};

use super::agents::no_such_agent;
use super::dossier::Dossier;
use super::from_wire::{self, Wants};
use super::path::{Named, unknown};
use super::rest::{Wait, rests};
use super::wire::StreamFrame;
use super::{cursor, idempotency, stream, to_wire, wire};
use crate::access::{Action, Caller, Reach};
use crate::app::App;
use crate::limits::{JsonBody, OptionalJsonBody, Query};
use crate::problem::{Code, Problem};

/// Starts a run.
///
/// The run is stored before the answer is given. Without `wait` the answer comes at once; with it, when a person must
/// look, when the run is over, or when the time is up. A client that takes `text/event-stream` gets everything that
/// happens up to that stop instead; its last frame is `run.stopped` with the run. Under an `Idempotency-Key` the same
/// request starts one run however often it is sent.
#[utoipa::path(
    post,
    path = "/api/v1/runs",
    tag = "runs",
    operation_id = "start_run",
    params(
        ("wait" = Option<u64>, Query, description = "How many seconds to wait for the first pause or the end.", minimum = 0, maximum = 60),
        ("Idempotency-Key" = Option<String>, Header, description = "The caller\'s own name of the request.", min_length = 1, max_length = 255, pattern = "^[!-~]([ -~]*[!-~])?$"),
    ),
    request_body = wire::StartRun,
    responses(
        (status = 201, description = "The run has started.", content(
            (wire::Run = "application/json"), (StreamFrame = "text/event-stream"))),
        (status = 200, description = "The run that was started under the same key before; or a stream.", content(
            (wire::Run = "application/json"), (StreamFrame = "text/event-stream"))),
    )
)]
pub(super) async fn start(
    State(app): State<App>,
    caller: Caller,
    query: Query,
    headers: HeaderMap,
    JsonBody(body): JsonBody<wire::StartRun>,
) -> Result<Response, Problem> {
    caller.check(Action::StartRun)?;
    let wants = from_wire::wants(&headers)?;
    let wait = Wait::read(&app, &caller, &query.only(&["wait"])?)?;
    let key = from_wire::idempotency_key(&headers)?;
    let start = read_start(&app, &caller, body, key.as_deref())?;
    let (Some(run), Some(session)) = (start.run, start.session.clone()) else {
        return Err(Problem::internal("a start without a name"));
    };
    let asked = Asked { agent: start.graph.root().clone(), session, input: start.content.clone() };
    if key.is_some()
        && let Some(before) = idempotency::started(app.runtime(), run).await?
    {
        return repeat(&app, &caller, run, &asked, &before, (wants, wait)).await;
    }
    let permit = match wants {
        Wants::Stream => Some(app.streams().take(&caller.actor)?),
        Wants::Json => None,
    };
    let mut starting = app.start(start);
    if let Err(problem) = starting.begun().await {
        // The same request may have come twice at the same time, and the other one was faster.
        return match idempotency::started(app.runtime(), run).await? {
            Some(before) if key.is_some() => repeat(&app, &caller, run, &asked, &before, (wants, wait)).await,
            _ => Err(problem),
        };
    }
    // Two different requests may have come under one key at the same time: what was stored is the one that counts.
    if key.is_some()
        && let Some(stored) = idempotency::started(app.runtime(), run).await?
    {
        asked.check(&stored)?;
    }
    match permit {
        Some(permit) => Ok(stream::run(&app, permit, starting)),
        None => {
            let dossier = settle(&app, run, wait).await?;
            let place = HeaderValue::from_str(&format!("/api/v1/runs/{run}"))
                .map_err(|_| Problem::internal("a run id that is no header"))?;
            Ok((StatusCode::CREATED, [(header::LOCATION, place)], Json(to_wire::run(&dossier))).into_response())
        }
    }
}

/// What was asked for, to be held against what was asked under the same key before.
struct Asked {
    agent: AgentId,
    session: SessionId,
    input: Content,
}

impl Asked {
    fn check(&self, stored: &RunStarted) -> Result<(), Problem> {
        let is_same = (&stored.agent.id, &stored.session, &stored.input) == (&self.agent, &self.session, &self.input);
        if is_same { Ok(()) } else { Err(idempotency::reused()) }
    }
}

/// The answer to a request that was made before.
async fn repeat(
    app: &App,
    caller: &Caller,
    run: RunId,
    asked: &Asked,
    before: &RunStarted,
    (wants, wait): (Wants, Option<Wait>),
) -> Result<Response, Problem> {
    asked.check(before)?;
    if wants == Wants::Stream {
        return Ok(stream::run_again(app, app.streams().take(&caller.actor)?, run, &before.session));
    }
    let dossier = settle(app, run, wait).await?;
    Ok(Json(to_wire::run(&dossier)).into_response())
}

async fn settle(app: &App, run: RunId, wait: Option<Wait>) -> Result<Dossier, Problem> {
    match wait {
        Some(wait) => wait.until(app, run, rests).await,
        None => Ok(Dossier::read(app.runtime(), run).await?),
    }
}

fn read_start(app: &App, caller: &Caller, body: wire::StartRun, key: Option<&str>) -> Result<StartRun, Problem> {
    let agent = app.agents().find(&body.agent_id).ok_or_else(no_such_agent)?;
    if body.input.trim().is_empty() {
        return Err(Problem::new(Code::INVALID_REQUEST, "input: say what is asked of the agent").at("input"));
    }
    let bad_session = |bad: holdpoint_core::ids::BadId| {
        Problem::new(Code::INVALID_REQUEST, format!("session_id: {bad}")).at("session_id")
    };
    let session = body.session_id.map(SessionId::new).transpose().map_err(bad_session)?;
    let run = key.map_or_else(|| app.runtime().name_run(), |key| idempotency::run_id(&caller.actor, key));
    Ok(StartRun {
        graph: agent.graph.clone(),
        content: Content::Text(body.input),
        session: Some(session.unwrap_or_else(|| Runtime::own_session(run))),
        turns_max: agent.turns_max.or(app.runtime().settings().turns_max),
        by: caller.actor.clone(),
        options: DriveOptions::default(),
        // Others' sessions are out of reach for those who see only their own.
        only_owner: caller.reach(Action::ReadRun) != Reach::All,
        run: Some(run),
    })
}

/// One run as it stands.
#[utoipa::path(
    get,
    path = "/api/v1/runs/{id}",
    tag = "runs",
    operation_id = "read_run",
    params(
        ("id" = String, Path, description = "The run."),
        ("wait" = Option<u64>, Query, description = "How many seconds to wait for a pause or the end.", minimum = 0, maximum = 60),
    ),
    responses((status = 200, description = "The run.", body = wire::Run))
)]
pub(super) async fn read(
    State(app): State<App>,
    caller: Caller,
    query: Query,
    Named(id): Named<RunId>,
) -> Result<Json<wire::Run>, Problem> {
    caller.check(Action::ReadRun)?;
    let params = query.only(&["wait"])?;
    let dossier = visible(&app, &caller, Action::ReadRun, id).await?;
    match Wait::read(&app, &caller, &params)? {
        Some(wait) => Ok(Json(to_wire::run(&wait.until(&app, id, rests).await?))),
        None => Ok(Json(to_wire::run(&dossier))),
    }
}

/// Ends a run. Open pauses are withdrawn; a tool that runs is told, and what it did is still recorded.
#[utoipa::path(
    post,
    path = "/api/v1/runs/{id}/cancel",
    tag = "runs",
    operation_id = "cancel_run",
    params(("id" = String, Path, description = "The run.")),
    request_body = Option<wire::CancelRun>,
    responses((status = 200, description = "The run, which is over.", body = wire::Run))
)]
pub(super) async fn cancel(
    State(app): State<App>,
    caller: Caller,
    query: Query,
    Named(id): Named<RunId>,
    OptionalJsonBody(body): OptionalJsonBody<wire::CancelRun>,
) -> Result<Json<wire::Run>, Problem> {
    caller.check(Action::CancelRun)?;
    query.only(&[])?;
    visible(&app, &caller, Action::CancelRun, id).await?;
    let reason = from_wire::reason(body, &caller.actor);
    app.cancel_run(id, caller.actor, reason, None).await?;
    Ok(Json(to_wire::run(&Dossier::read(app.runtime(), id).await?)))
}

/// The run, where the caller may know of it.
async fn visible(app: &App, caller: &Caller, action: Action, id: RunId) -> Result<Dossier, Problem> {
    let dossier = Dossier::read(app.runtime(), id).await.map_err(|error| match error.refusal() {
        Some(Refusal::RunNotFound(_)) => unknown::<RunId>(),
        _ => error.into(),
    })?;
    if caller.sees(action, dossier.run.started_by()) { Ok(dossier) } else { Err(unknown::<RunId>()) }
}

/// A page of runs, newest first.
#[utoipa::path(
    get,
    path = "/api/v1/runs",
    tag = "runs",
    operation_id = "list_runs",
    params(
        ("session" = Option<String>, Query, description = "Only of this session. Callers who see only their own are shown the runs of their own sessions."),
        ("agent" = Option<String>, Query, description = "Only those that began with this agent."),
        ("status" = Option<wire::RunListStatus>, Query, description = "Only those that stand so."),
        ("limit" = Option<u64>, Query, description = "At most so many.", minimum = 1, maximum = 200),
        ("cursor" = Option<String>, Query, description = "`next_cursor` of the page before."),
    ),
    responses((status = 200, description = "A page of runs.", body = wire::RunList))
)]
pub(super) async fn list(State(app): State<App>, caller: Caller, query: Query) -> Result<Json<wire::RunList>, Problem> {
    let reach = caller.check(Action::ReadRun)?;
    let params = query.only(&["session", "agent", "status", "limit", "cursor"])?;
    let session: Option<SessionId> = params.parsed("session")?;
    if let Some(session) = &session {
        super::sessions::check_visible(&app, &caller, session).await?;
    }
    let owner = (reach != Reach::All).then(|| caller.actor.clone());
    let status = match params.text("status") {
        None => None,
        Some("running") => Some(RunStatus::Working),
        Some("paused") => Some(RunStatus::Waiting),
        Some("finished") => Some(RunStatus::Finished),
        Some(_) => {
            let detail = "status: running, paused or finished expected";
            return Err(Problem::new(Code::INVALID_PARAMETER, detail).at("status"));
        }
    };
    let agent: Option<AgentId> = params.parsed("agent")?;
    let filters = format!("{session:?} {owner:?} {agent:?} {status:?}");
    let after = params.text("cursor").map(|text| cursor::read("runs", &filters, text)).transpose()?;
    let after =
        after.map(|place| place.parse::<RunId>()).transpose().map_err(|_| Problem::internal("a cursor of ours"))?;
    let limit = params.limit()?;
    let page = app.runtime().list_runs(&RunFilter { session, owner, agent, status, after, limit }).await?;
    let next_cursor = page.next.map(|run| cursor::write("runs", &filters, &run.to_string()));
    Ok(Json(wire::RunList { runs: page.runs.iter().map(summary).collect(), next_cursor }))
}

pub(super) fn summary(row: &RunSummary) -> wire::RunSummary {
    wire::RunSummary {
        run_id: row.run.to_string(),
        session_id: row.session.to_string(),
        agent: row.agent.to_string(),
        status: match row.status {
            RunStatus::Working => wire::RunListStatus::Running,
            RunStatus::Waiting => wire::RunListStatus::Paused,
            RunStatus::Finished => wire::RunListStatus::Finished,
        },
        started_at: row.started_at.to_string(),
        last_at: row.last_at.to_string(),
    }
}
