//! The description of the API: what the handlers say of themselves, and what can happen to every request.

use serde::Serialize;
use utoipa::openapi::content::ContentBuilder;
use utoipa::openapi::path::{Operation, PathItem};
use utoipa::openapi::security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{HeaderBuilder, OpenApi, Ref, RefOr, Response, ResponseBuilder};
use utoipa::{Modify, OpenApi as DeriveOpenApi, ToSchema};

use super::wire;
use crate::protocols::blocks::describe;

/// The description, before the routes are added.
#[derive(DeriveOpenApi)]
#[openapi(
    info(
        title = "holdpoint",
        description = "Stops AI agents at the point where a person must look. Errors are problem documents (RFC 9457) with a stable `code`. Ids are opaque, times are RFC 3339.",
        license(name = "Apache-2.0 OR MIT", identifier = "Apache-2.0 OR MIT"),
    ),
    paths(crate::health::alive, crate::health::ready, crate::metrics::scrape::metrics),
    components(schemas(
        Problem,
        wire::PauseFilterStatus,
        wire::Event,
        wire::Delta,
        wire::CallbackBody,
        describe::Error,
        describe::ErrorBody,
    )),
    modifiers(&Credentials),
    security(("bearer" = []), ("api_key" = []), ()),
    tags(
        (name = "agents", description = "Which agents are served."),
        (name = "runs", description = "One execution of an agent, from message to outcome."),
        (name = "sessions", description = "Conversations, what was said in them, and what happens there."),
        (name = "pauses", description = "Questions to people: held calls, questions, confirmations, calls in doubt."),
        (name = "rules", description = "Standing rules that people made with a decision."),
        (name = "audit", description = "Every decision, hash-chained."),
        (name = "requests", description = "Approval as a service, for agents that run elsewhere."),
        (name = "health", description = "Whether the server is alive and ready."),
    )
)]
pub(super) struct Api;

/// What went wrong: an RFC 9457 document.
#[derive(Serialize, ToSchema)]
#[allow(dead_code, reason = "describes what `problem` writes")]
struct Problem {
    /// The page of the code.
    #[serde(rename = "type")]
    kind: String,
    /// What it is, in a few words.
    title: String,
    /// The status.
    #[schema(minimum = 400, maximum = 599)]
    status: u16,
    /// A stable name: match on this.
    #[schema(example = "already_decided")]
    code: String,
    /// What is wrong and what to do, for people.
    detail: String,
    /// The field or parameter that is wrong, where it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<String>,
}

struct Credentials;

impl Modify for Credentials {
    fn modify(&self, openapi: &mut OpenApi) {
        let components = openapi.components.get_or_insert_default();
        let bearer = HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .description(Some("An API key (hpk_…) or a token of the configured identity provider. Not asked for on loopback without credentials."))
            .build();
        components.add_security_scheme("bearer", SecurityScheme::Http(bearer));
        let key = ApiKey::Header(ApiKeyValue::with_description("X-API-Key", "An API key (hpk_…)."));
        components.add_security_scheme("api_key", SecurityScheme::ApiKey(key));
    }
}

/// What may happen to a request, whatever it asks for.
const ALWAYS: [(&str, &str); 9] = [
    ("400", "The request cannot be read: a parameter, a header or the body is not as it must be."),
    ("401", "No credential was sent, or none that holds."),
    ("403", "The caller may not do this; or the request comes from another web page."),
    ("404", "There is no such thing, or none that the caller may see."),
    ("414", "The address is too long."),
    ("421", "The Host header names another server."),
    ("429", "Too many requests or streams: wait as long as Retry-After says."),
    ("500", "The server made a mistake, or what is stored cannot be read."),
    ("503", "The store or the identity provider is out of order: try again."),
];

/// What may happen to a request with a body.
const WITH_BODY: [(&str, &str); 5] = [
    ("408", "The body did not arrive in time."),
    ("409", "The state has moved on: already decided, expired, withdrawn, or a run is under way."),
    ("413", "The body is too large."),
    ("415", "The body is not JSON."),
    ("422", "The request can be read and does not fit: what it is about takes something else."),
];

/// Adds to every operation what may happen to every request.
pub(crate) fn complete(mut api: OpenApi) -> OpenApi {
    for item in api.paths.paths.values_mut() {
        for operation in operations(item) {
            let streams = operation.responses.responses.values().any(can_stream);
            let has_body = operation.request_body.is_some();
            let problems = ALWAYS.iter().chain(WITH_BODY.iter().filter(|_| has_body));
            let not_acceptable = [("406", "None of the accepted formats can be given.")];
            for (status, description) in problems.chain(not_acceptable.iter().filter(|_| streams)) {
                let response = || RefOr::T(problem(status, description));
                operation.responses.responses.entry((*status).to_owned()).or_insert_with(response);
            }
        }
    }
    api
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    [&mut item.get, &mut item.post, &mut item.delete, &mut item.put, &mut item.patch].into_iter().flatten()
}

fn can_stream(response: &RefOr<Response>) -> bool {
    matches!(response, RefOr::T(response) if response.content.contains_key("text/event-stream"))
}

fn problem(status: &str, description: &str) -> Response {
    let schema = RefOr::Ref(Ref::from_schema_name("Problem"));
    let content = ContentBuilder::new().schema(Some(schema)).build();
    let response = ResponseBuilder::new().description(description).content("application/problem+json", content);
    let header = |text: &str| HeaderBuilder::new().description(Some(text)).build();
    match status {
        "401" => response.header("WWW-Authenticate", header("How to authenticate.")).build(),
        "429" | "503" => response.header("Retry-After", header("After how many seconds to try again.")).build(),
        _ => response.build(),
    }
}
