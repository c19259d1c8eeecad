//! Each request: counted by its route, timed, and logged by its id. Neither address nor body is logged.

use std::time::Instant;

use ::http::{HeaderValue, Method};
use axum::extract::{MatchedPath, Request as HttpRequest, State};
use axum::middleware::Next;
use axum::response::Response;
use tracing::Instrument as _;
use uuid::Uuid;

use super::{Fault, Request, Route};
use crate::app::App;
use crate::problem::Problem;

/// Counts a request, times it, and gives it an id.
pub(crate) async fn observe(State(app): State<App>, request: HttpRequest, next: Next) -> Response {
    let began = Instant::now();
    let method = name(request.method());
    // The route's pattern, never the address that was asked for.
    let path = request.extensions().get::<MatchedPath>().map_or("unmatched", MatchedPath::as_str).to_owned();
    let id = Uuid::now_v7().simple().to_string();
    let span = tracing::info_span!("http_request", request.id = %id, method, path);
    let mut response = next.run(request).instrument(span.clone()).await;
    let (status, took) = (response.status().as_u16(), began.elapsed());
    let counted = &app.metrics().0;
    counted.request_seconds.get_or_create(&Route { path: path.clone() }).observe(took.as_secs_f64());
    counted.requests.get_or_create(&Request { method, path, status }).inc();
    let code = response.extensions().get::<Problem>().map(Problem::code);
    if let Some(code) = code.filter(|code| code.starts_with("store_")) {
        counted.store_faults.get_or_create(&Fault { code }).inc();
    }
    span.in_scope(|| {
        let millis = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        match status {
            500.. => tracing::warn!(status, code, millis, "answered"),
            _ => tracing::debug!(status, code, millis, "answered"),
        }
    });
    if let Ok(id) = HeaderValue::from_str(&id) {
        response.headers_mut().insert("x-request-id", id);
    }
    response
}

fn name(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::POST => "POST",
        Method::DELETE => "DELETE",
        Method::HEAD => "HEAD",
        _ => "other",
    }
}
