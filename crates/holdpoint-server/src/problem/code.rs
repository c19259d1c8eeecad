//! The server's own codes: what a client did that no run could answer for. Each has a page under `docs/errors/`.

use http::StatusCode;

/// A kind of trouble: a stable code, the status it is told with, and a title for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Code {
    /// The stable name.
    pub name: &'static str,
    /// The status that it is told with.
    pub status: StatusCode,
    /// What it is, in a few words that never change.
    pub title: &'static str,
}

macro_rules! codes {
    ($($(#[$doc:meta])* $constant:ident = $name:literal, $status:ident, $title:literal;)*) => {
        impl Code {
            $($(#[$doc])* pub const $constant: Self =
                Self { name: $name, status: StatusCode::$status, title: $title };)*

            /// Every code of the server's own.
            pub const ALL: &'static [Self] = &[$(Self::$constant),*];
        }
    };
}

codes! {
    /// No agent of that name.
    AGENT_NOT_FOUND = "agent_not_found", NOT_FOUND, "There is no such agent";
    /// The Host header names another server.
    BAD_HOST = "bad_host", MISDIRECTED_REQUEST, "The request is meant for another host";
    /// The request comes from another web page.
    BAD_ORIGIN = "bad_origin", FORBIDDEN, "Requests from other web pages are not accepted";
    /// The address to call back is not accepted.
    CALLBACK_REFUSED = "callback_refused", UNPROCESSABLE_ENTITY, "The callback address is not accepted";
    /// The caller may not do this.
    FORBIDDEN = "forbidden", FORBIDDEN, "The caller may not do this";
    /// An idempotency key came again with another request.
    IDEMPOTENCY_KEY_REUSED = "idempotency_key_reused", UNPROCESSABLE_ENTITY, "The idempotency key was used for another request";
    /// The server made a mistake.
    INTERNAL = "internal", INTERNAL_SERVER_ERROR, "The server made a mistake";
    /// A page's cursor is not one that the server gave out.
    INVALID_CURSOR = "invalid_cursor", BAD_REQUEST, "The cursor is not one that was given out";
    /// A header is not as it must be.
    INVALID_HEADER = "invalid_header", BAD_REQUEST, "A header is not valid";
    /// The body is not JSON, or not strictly so.
    INVALID_JSON = "invalid_json", BAD_REQUEST, "The body is not valid JSON";
    /// A parameter of the address is not as it must be.
    INVALID_PARAMETER = "invalid_parameter", BAD_REQUEST, "A parameter is not valid";
    /// The body is JSON and not of the right shape.
    INVALID_REQUEST = "invalid_request", BAD_REQUEST, "The body does not have the right shape";
    /// The identity provider's keys cannot be fetched.
    KEYS_UNAVAILABLE = "keys_unavailable", SERVICE_UNAVAILABLE, "The identity provider's keys cannot be fetched";
    /// The method is not one of this route's.
    METHOD_NOT_ALLOWED = "method_not_allowed", METHOD_NOT_ALLOWED, "The method is not one of this route's";
    /// None of the formats that the client takes can be given.
    NOT_ACCEPTABLE = "not_acceptable", NOT_ACCEPTABLE, "None of the accepted formats can be given";
    /// What would run was not shown whole where it was approved.
    NOT_FULLY_DISPLAYED = "not_fully_displayed", CONFLICT, "What would run was not shown whole";
    /// The body is larger than one may be.
    PAYLOAD_TOO_LARGE = "payload_too_large", PAYLOAD_TOO_LARGE, "The body is too large";
    /// More requests in a short time than one caller may make.
    RATE_LIMITED = "rate_limited", TOO_MANY_REQUESTS, "Too many requests";
    /// The body did not arrive in time.
    REQUEST_TIMEOUT = "request_timeout", REQUEST_TIMEOUT, "The request did not arrive in time";
    /// There is no such address.
    ROUTE_NOT_FOUND = "route_not_found", NOT_FOUND, "There is no such address";
    /// The caller started the run, and somebody else must approve its calls.
    SELF_APPROVAL = "self_approval", FORBIDDEN, "Somebody else must approve this";
    /// The server is stopping.
    STOPPING = "stopping", SERVICE_UNAVAILABLE, "The server is stopping";
    /// A newer message took the pause's place.
    SUPERSEDED = "superseded", CONFLICT, "A newer message took the pause's place";
    /// The answer took too long.
    TIMED_OUT = "timed_out", SERVICE_UNAVAILABLE, "The answer took too long";
    /// More streams at once than one caller may have.
    TOO_MANY_STREAMS = "too_many_streams", TOO_MANY_REQUESTS, "Too many streams at once";
    /// No credential, or none that holds.
    UNAUTHENTICATED = "unauthenticated", UNAUTHORIZED, "A valid credential is needed";
    /// The body is of another type than the route takes.
    UNSUPPORTED_MEDIA_TYPE = "unsupported_media_type", UNSUPPORTED_MEDIA_TYPE, "The body's type is not supported";
    /// The address is longer than one may be.
    URI_TOO_LONG = "uri_too_long", URI_TOO_LONG, "The address is too long";
}
