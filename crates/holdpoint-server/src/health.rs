//! Whether the server is alive, and whether it can do its work. Both are told to anybody, and say nothing else.

use std::time::Duration;

use axum::extract::State;
use axum::routing::get;
use axum::{Json, Router};
use holdpoint_runtime::ports::store::{PauseFilter, StoreFault, StoreFaultKind};
use holdpoint_runtime::{Fault, RunError};
use serde::Serialize;
use tokio::sync::Mutex;
use tokio::time::Instant;
use utoipa::ToSchema;

use crate::app::App;
use crate::problem::{Code, Problem};

/// How long an answer of the store holds: anybody may ask, and none of them can make the store busy.
const FRESH: Duration = Duration::from_secs(1);

/// How long the store may take.
const PATIENCE: Duration = Duration::from_secs(2);

/// When the store last answered.
#[derive(Default)]
pub(crate) struct LastAnswer(Mutex<Option<Instant>>);

/// The routes.
pub(crate) fn router() -> Router<App> {
    Router::new().route("/healthz", get(alive)).route("/readyz", get(ready))
}

/// The server is alive.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Alive {
    /// Always `ok`.
    status: &'static str,
}

/// The server can do its work.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Ready {
    /// Always `ready`.
    status: &'static str,
    /// Which of several servers over one store this one is: the name by which it holds runs.
    instance: String,
    /// The store that was reached.
    store: StoreState,
}

/// What the store promises.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct StoreState {
    /// Its name.
    name: &'static str,
    /// Whether what was acknowledged survives a crash.
    survives_crash: bool,
    /// Whether several servers may share it.
    is_shared: bool,
    /// The settings that the promise rests on.
    settings: String,
}

/// Whether the server is alive.
#[utoipa::path(
    get,
    path = "/healthz",
    tag = "health",
    operation_id = "healthz",
    security(()),
    responses((status = 200, description = "It is.", body = Alive))
)]
pub(crate) async fn alive() -> Json<Alive> {
    Json(Alive { status: "ok" })
}

/// Whether the server can do its work: its store answers, and it is not stopping.
#[utoipa::path(
    get,
    path = "/readyz",
    tag = "health",
    operation_id = "readyz",
    security(()),
    responses((status = 200, description = "It can.", body = Ready))
)]
pub(crate) async fn ready(State(app): State<App>) -> Result<Json<Ready>, Problem> {
    if app.stopping().is_cancelled() {
        return Err(Problem::new(Code::STOPPING, "the server is stopping: ask another one").retry_after(5));
    }
    check_store(&app).await?;
    let durability = app.runtime().store().durability();
    Ok(Json(Ready {
        status: "ready",
        instance: app.runtime().settings().owner.clone(),
        store: StoreState {
            name: durability.store,
            survives_crash: durability.survives_crash,
            is_shared: durability.is_shared,
            settings: durability.settings,
        },
    }))
}

async fn check_store(app: &App) -> Result<(), Problem> {
    let mut answered_at = app.last_answer().0.lock().await;
    if answered_at.is_some_and(|at| at.elapsed() < FRESH) {
        return Ok(());
    }
    let filter = PauseFilter { limit: 1, ..PauseFilter::open() };
    let asking = app.runtime().store().list_pauses(&filter);
    let late = |_| StoreFault::new("answer in time", StoreFaultKind::Unavailable);
    tokio::time::timeout(PATIENCE, asking)
        .await
        .map_err(late)
        .and_then(|answered| answered)
        .map_err(|fault| RunError::Fault(Fault::Store(fault)))?;
    *answered_at = Some(Instant::now());
    Ok(())
}
