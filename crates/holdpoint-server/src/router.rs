//! Everything that is served, and the layers in front of it, outermost first.

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state, map_response};
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use tower_http::catch_panic::CatchPanicLayer;

use crate::access::{authenticate, guard_door};
use crate::app::App;
use crate::notifiers::slack;
use crate::problem::{Code, Problem};
use crate::protocols::{blocks, mastra, native, superagent};
use crate::{health, metrics, pages};

/// Everything that is served.
pub fn router(app: App) -> Router {
    let (native, api) = native::router().split_for_parts();
    let chat = superagent::router();
    let inside = native
        .nest("/api/v1", chat.clone())
        .nest("/api/v2", chat.merge(superagent::agents()))
        .merge(mastra::router(app.mastra_prefix()))
        .merge(metrics::router())
        .route_layer(from_fn_with_state(app.clone(), authenticate));
    // Slack shows no credential and comes through no door of ours: its requests are signed, and checked where they are taken.
    let signed = slack::router(&app).layer(map_response(name_method_problem));
    inside
        .merge(blocks::socket())
        .merge(health::router())
        .merge(pages::router(native::complete(api)))
        .fallback(no_such_route)
        .layer(from_fn_with_state(app.clone(), within_time))
        .layer(map_response(name_method_problem))
        .layer(from_fn_with_state(app.clone(), guard_door))
        .merge(signed)
        .layer(CatchPanicLayer::custom(panicked))
        .layer(from_fn_with_state(app.clone(), speak))
        .layer(from_fn_with_state(app.clone(), metrics::observe))
        .layer(map_response(harden))
        .with_state(app)
}

/// Gives up on an answer that does not begin in time, since a store or a disk hangs. What was stored stays stored.
async fn within_time(State(app): State<App>, request: Request, next: Next) -> Result<Response, Problem> {
    let patience = app.limits().wait_max + app.limits().answer_timeout;
    tokio::time::timeout(patience, next.run(request)).await.map_err(|_| {
        let detail = "the answer took too long, and whether it was done is not known: read before trying again";
        Problem::new(Code::TIMED_OUT, detail).retry_after(5)
    })
}

async fn no_such_route() -> Problem {
    Problem::new(Code::ROUTE_NOT_FOUND, "there is no such address here: /docs lists those there are")
}

/// The router answers an unknown method with a bare 405, to which it adds `Allow` later; clients get a document.
async fn name_method_problem(response: Response) -> Response {
    let is_told = response.extensions().get::<Problem>().is_some();
    match response.status() {
        StatusCode::METHOD_NOT_ALLOWED if !is_told => {
            let detail = "this address takes other methods: the header Allow names them";
            Problem::new(Code::METHOD_NOT_ALLOWED, detail).into_response()
        }
        _ => response,
    }
}

/// What the layers refuse is told in the words of the protocol that was spoken.
async fn speak(State(app): State<App>, request: Request, next: Next) -> Response {
    let path = request.uri().path();
    let is_chat = path.starts_with("/api/v1/chat/") || path.starts_with("/api/v2/");
    let is_mastra = app.mastra_prefix().is_before(path);
    let response = next.run(request).await;
    match (is_chat, is_mastra) {
        (true, _) => superagent::render(response),
        (false, true) => mastra::render(response),
        (false, false) => response,
    }
}

fn panicked(_: Box<dyn std::any::Any + Send>) -> Response {
    Problem::internal("a handler panicked").into_response()
}

/// What every response says to browsers.
async fn harden(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert("cross-origin-resource-policy", HeaderValue::from_static("same-origin"));
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}
