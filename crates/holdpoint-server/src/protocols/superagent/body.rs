//! A request's body, within this protocol's bound.

use axum::extract::Request;
use bytes::Bytes;

use super::from_wire::BODY_BYTES_MAX;
use crate::app::App;
use crate::limits::{Limits, read_body, require_json};
use crate::problem::Problem;

/// The bytes of a body that is declared as JSON.
pub(super) async fn read(app: &App, request: Request) -> Result<Bytes, Problem> {
    require_json(request.headers())?;
    let bound = app.limits();
    let limits = Limits { body_bytes_max: bound.body_bytes_max.min(BODY_BYTES_MAX), ..bound.clone() };
    read_body(request.headers().clone(), request.into_body(), &limits).await
}
