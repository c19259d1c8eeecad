//! The page that Prometheus reads.

use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use holdpoint_runtime::ports::store::{PauseCursor, PauseFilter, PauseRow};
use http::header;
use prometheus_client::encoding::text::encode;
use tokio::time::Instant;

use super::{KINDS, Kind, Metrics};
use crate::access::{Action, Caller};
use crate::app::App;
use crate::limits::Query;
use crate::problem::Problem;

/// How long a count of the inbox holds.
const FRESH: Duration = Duration::from_secs(5);

/// How many open pauses are counted at most.
const COUNTED_MAX: usize = 10_000;

pub(crate) fn router() -> Router<App> {
    Router::new().route("/metrics", get(metrics))
}

/// Metrics in the text format of Prometheus.
///
/// At most 10,000 open pauses are counted.
#[utoipa::path(
    get,
    path = "/metrics",
    tag = "health",
    operation_id = "read_metrics",
    responses((status = 200, description = "Metrics.", content_type = "application/openmetrics-text", body = String))
)]
pub(crate) async fn metrics(State(app): State<App>, caller: Caller, query: Query) -> Result<Response, Problem> {
    caller.check(Action::ReadMetrics)?;
    query.only(&[])?;
    let metrics = app.metrics();
    metrics.count_inbox(&app).await?;
    metrics.0.streams.set(i64::try_from(app.streams().open()).unwrap_or(i64::MAX));
    let runtime = app.runtime();
    metrics.0.other_instances.set(i64::try_from(runtime.instances_elsewhere()).unwrap_or(i64::MAX));
    metrics.0.news_dropped.inner().store(runtime.news_dropped(), Ordering::Relaxed);
    let mut text = String::new();
    encode(&mut text, &metrics.0.registry).map_err(|_| Problem::internal("metrics that cannot be written"))?;
    let format = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Ok(([(header::CONTENT_TYPE, format)], text).into_response())
}

impl Metrics {
    /// Counts what is open, unless it was counted a moment ago. The store knows best: other processes open pauses too.
    async fn count_inbox(&self, app: &App) -> Result<(), Problem> {
        let mut counted_at = self.0.inbox.lock().await;
        if counted_at.is_some_and(|at| at.elapsed() < FRESH) {
            return Ok(());
        }
        let rows = open_pauses(app).await?;
        for kind in KINDS {
            let count = rows.iter().filter(|row| row.kind == kind).count();
            let gauge = self.0.open_pauses.get_or_create_owned(&Kind { kind: kind.name() });
            gauge.set(i64::try_from(count).unwrap_or(i64::MAX));
        }
        let now = app.runtime().store().now();
        let oldest = rows.iter().map(|row| now.since(row.opened_at).as_secs()).max().unwrap_or(0);
        self.0.oldest_pause_seconds.set(i64::try_from(oldest).unwrap_or(i64::MAX));
        *counted_at = Some(Instant::now());
        Ok(())
    }
}

async fn open_pauses(app: &App) -> Result<Vec<PauseRow>, Problem> {
    let mut filter = PauseFilter { limit: PauseFilter::LIMIT_MAX, ..PauseFilter::open() };
    let mut rows: Vec<PauseRow> = Vec::new();
    loop {
        let page = app.runtime().list_pauses(&filter).await?;
        let next: Option<PauseCursor> = page.next;
        rows.extend(page.pauses.into_iter().map(|summary| summary.row));
        match next {
            Some(next) if rows.len() < COUNTED_MAX => filter.after = Some(next),
            _ => return Ok(rows),
        }
    }
}
