//! The layers in front of every route: first the door, then who it is, then how fast.

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use http::{HeaderValue, Method, StatusCode, header};

use crate::app::App;
use crate::problem::{Code, Problem};

/// Refuses what is not meant for this server before anything else is looked at.
pub(crate) async fn guard_door(State(app): State<App>, request: Request, next: Next) -> Result<Response, Problem> {
    let max = app.limits().uri_bytes_max;
    let length = request.uri().path_and_query().map_or(0, |target| target.as_str().len());
    if length > max {
        let detail = format!("an address may have {max} bytes, and this has {length}: send long values in the body");
        return Err(Problem::new(Code::URI_TOO_LONG, detail).with("limit", max));
    }
    let door = app.access().door();
    door.check(request.method(), request.uri(), request.headers())?;
    match door.trusted_origin(request.headers()) {
        None => Ok(next.run(request).await),
        Some(origin) if is_preflight(&request) => Ok(share(preflight(), origin)),
        Some(origin) => Ok(share(next.run(request).await, origin)),
    }
}

/// Whether a browser asks if a page may send what it is about to.
fn is_preflight(request: &Request) -> bool {
    *request.method() == Method::OPTIONS && request.headers().contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
}

fn preflight() -> Response {
    let headers = [
        (header::ACCESS_CONTROL_ALLOW_METHODS, "GET, POST, DELETE"),
        (
            header::ACCESS_CONTROL_ALLOW_HEADERS,
            "Authorization, Content-Type, Idempotency-Key, Last-Event-ID, X-A2UI, X-API-Key, X-Mastra-Client-Type, \
             X-Mastra-Dev-Playground",
        ),
        (header::ACCESS_CONTROL_MAX_AGE, "600"),
    ];
    (StatusCode::NO_CONTENT, headers).into_response()
}

/// Lets a page that the operator trusts read the answer. Cookies are never part of it: there are none.
fn share(mut response: Response, origin: HeaderValue) -> Response {
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    let exposed = HeaderValue::from_static("Location, Retry-After, X-Request-Id");
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
    headers.append(header::VARY, HeaderValue::from_static("Origin"));
    response
}

/// Finds out who calls, and hands it to the route. Too fast a caller gets no further.
pub(crate) async fn authenticate(
    State(app): State<App>,
    mut request: Request,
    next: Next,
) -> Result<Response, Problem> {
    let caller = app.access().caller(request.headers()).await?;
    app.rate().take(&caller.actor)?;
    request.extensions_mut().insert(caller);
    Ok(next.run(request).await)
}
