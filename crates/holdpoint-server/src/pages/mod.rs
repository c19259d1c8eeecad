//! Pages for people: what runs here and how to try it, and the description of the API. Everything they need is in this
//! program; they load nothing from elsewhere, and show text from models and tools as text.

use std::sync::Arc;

use axum::Router;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use http::{HeaderValue, StatusCode, header};
use utoipa::openapi::OpenApi;

use crate::app::App;

/// What a page may do: run its own script, wear its own style, talk to its own server, and be framed by nobody.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; \
                      frame-ancestors 'none'; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'";

/// The routes.
pub(crate) fn router(api: OpenApi) -> Router<App> {
    // It is the same for every request: written once.
    let document: Arc<str> = api.to_json().unwrap_or_else(|_| "{}".to_owned()).into();
    let json = |text: Arc<str>| file("application/json", text.to_string());
    Router::new()
        .route("/openapi.json", get(move || async move { json(document.clone()) }))
        .route("/", get(|| async { html(include_str!("index.html")) }))
        // The page of one pause, to which letters and messages link. It only shows it: a GET never decides.
        .route("/pauses/{pause}", get(|| async { html(include_str!("index.html")) }))
        .route("/docs", get(|| async { html(include_str!("docs.html")) }))
        .route("/favicon.ico", get(|| async { StatusCode::NO_CONTENT }))
        .route("/assets/index.js", get(|| async { script(include_str!("index.js")) }))
        .route("/assets/docs.js", get(|| async { script(include_str!("docs.js")) }))
        .route("/assets/page.css", get(|| async { file("text/css; charset=utf-8", include_str!("page.css")) }))
}

fn html(page: &'static str) -> Response {
    let mut response = file("text/html; charset=utf-8", page);
    response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    response.headers_mut().insert("cross-origin-opener-policy", HeaderValue::from_static("same-origin"));
    response
}

fn script(text: &'static str) -> Response {
    file("text/javascript; charset=utf-8", text)
}

fn file(kind: &'static str, text: impl Into<String>) -> Response {
    let headers = [(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, "no-cache")];
    (headers, text.into()).into_response()
}
