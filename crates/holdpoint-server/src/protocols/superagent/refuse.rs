//! Every refusal of this protocol, and the form in which its clients read one: `{"error": sentence, "code": …}`.

use axum::Json;
use axum::response::{IntoResponse as _, Response};
use holdpoint_core::ids::RunId;
use holdpoint_core::pause::Question;
use holdpoint_core::text::{clamp, visible};
use holdpoint_core::time::Timestamp;
use http::{HeaderValue, StatusCode, header};

use super::form::Field;
use super::wire::{ErrorBody, FieldType};
use crate::problem::{Code, Problem};

macro_rules! codes {
    ($($constant:ident = $name:literal, $status:ident, $title:literal;)*) => {
        $(const $constant: Code = Code { name: $name, status: StatusCode::$status, title: $title };)*

        /// The codes of this protocol's own; `docs/protocols/superagent.md` lists them.
        #[cfg(test)]
        pub(super) const ALL: &[Code] = &[$($constant),*];
    };
}

codes! {
    CONTROL_CHARACTER = "control_character", BAD_REQUEST, "A text holds control characters";
    DUPLICATE_PARAMETER = "duplicate_parameter", BAD_REQUEST, "A parameter is given twice";
    EMPTY_BODY = "empty_body", BAD_REQUEST, "The body is empty";
    EMPTY_MESSAGE = "empty_message", BAD_REQUEST, "The message is empty";
    INTERRUPT_NOT_SUPPORTED = "interrupt_not_supported", NOT_FOUND, "The agent cannot be interrupted";
    INTERRUPT_PENDING = "interrupt_pending", CONFLICT, "The session waits for a decision";
    INVALID_ENCODING = "invalid_encoding", BAD_REQUEST, "The address is not encoded as it must be";
    INVALID_INPUT = "invalid_input", BAD_REQUEST, "A field is of another type";
    INVALID_OPTION = "invalid_option", BAD_REQUEST, "The choice is not among the options";
    INVALID_SESSION_ID = "invalid_session_id", BAD_REQUEST, "The session id is not valid";
    INVALID_TYPE = "invalid_type", BAD_REQUEST, "A member is of another type";
    MISSING_FIELD = "missing_field", BAD_REQUEST, "A member is missing";
    MISSING_INPUT = "missing_input", BAD_REQUEST, "A required field is missing";
    NO_PENDING_INTERRUPT = "no_pending_interrupt", CONFLICT, "Nothing waits in the session";
    RUN_IN_PROGRESS = "run_in_progress", CONFLICT, "A run is under way in the session";
    SESSION_NOT_FOUND = "session_not_found", NOT_FOUND, "There is no such session";
    TOO_LONG = "too_long", BAD_REQUEST, "A text is too long";
    UNKNOWN_FIELD = "unknown_field", BAD_REQUEST, "A member is not known";
    UNKNOWN_INPUT = "unknown_input", BAD_REQUEST, "A field was not asked for";
    UNKNOWN_PARAMETER = "unknown_parameter", BAD_REQUEST, "A parameter is not known";
}

/// At most this much of what a client sent is said back to it.
const ECHO_BYTES_MAX: usize = 64;

/// What a client sent, as far as it may be said back.
pub(super) fn echo(text: &str) -> String {
    visible(clamp(text, ECHO_BYTES_MAX)).replace(['\n', '\t'], " ")
}

// What is wrong with a body.

pub(super) fn empty_body(members: &[&str]) -> Problem {
    Problem::new(EMPTY_BODY, format!("the body is empty; send a JSON object with {}", members.join(", ")))
}

pub(super) fn invalid_json(what: impl std::fmt::Display) -> Problem {
    Problem::new(Code::INVALID_JSON, format!("the body is not valid JSON: {what}"))
}

pub(super) fn too_large(limit: usize) -> Problem {
    Problem::new(Code::PAYLOAD_TOO_LARGE, format!("the body is too large: at most {limit} bytes are taken"))
        .with("limit", limit)
}

pub(super) fn missing_fields(names: &[&str]) -> Problem {
    let verb = if names.len() == 1 { "is" } else { "are" };
    Problem::new(MISSING_FIELD, format!("{} {verb} required", names.join(" and "))).at(names.join(","))
}

/// A missing `agent_id` where the server has several agents, or none.
pub(super) fn agent_needed<'a>(agents: impl Iterator<Item = &'a str>) -> Problem {
    let known: Vec<String> = agents.take(16).map(echo).collect();
    Problem::new(MISSING_FIELD, format!("agent_id is required; agents here: {}", known.join(", "))).at("agent_id")
}

pub(super) fn invalid_type(name: &str, expected: &str) -> Problem {
    Problem::new(INVALID_TYPE, format!("{name} must be {expected}")).at(name)
}

pub(super) fn unknown_field(name: &str, known: &[&str]) -> Problem {
    Problem::new(UNKNOWN_FIELD, format!("unknown field \"{}\"; fields: {}", echo(name), known.join(", ")))
}

pub(super) fn empty_message() -> Problem {
    Problem::new(EMPTY_MESSAGE, "message must not be empty").at("message")
}

pub(super) fn invalid_session_id() -> Problem {
    Problem::new(INVALID_SESSION_ID, "session_id must be 1 to 128 of A-Z a-z 0-9 . _ : - without \"..\"")
        .at("session_id")
}

// What is wrong with an address.

pub(super) fn duplicate_parameter(name: &str) -> Problem {
    Problem::new(DUPLICATE_PARAMETER, format!("parameter \"{}\" is given twice; give it once", echo(name)))
}

pub(super) fn unknown_parameter(name: &str, known: &[&str]) -> Problem {
    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    Problem::new(UNKNOWN_PARAMETER, format!("unknown parameter \"{}\"; parameters here: {known}", echo(name)))
}

pub(super) fn invalid_encoding() -> Problem {
    Problem::new(INVALID_ENCODING, "the query must be UTF-8 with two hexadecimal digits after each percent sign")
}

pub(super) fn not_acceptable() -> Problem {
    Problem::new(Code::NOT_ACCEPTABLE, "this address sends text/event-stream; accept that")
}

pub(super) fn method_not_allowed(allowed: &'static str) -> Problem {
    Problem::new(Code::METHOD_NOT_ALLOWED, format!("this address takes {allowed}"))
        .header(header::ALLOW, HeaderValue::from_static(allowed))
}

// What is wrong with the session or the agent.

pub(super) fn agent_not_found(name: &str) -> Problem {
    let detail = format!("there is no agent \"{}\"; GET /api/v1/agents lists them", echo(name));
    Problem::new(Code::AGENT_NOT_FOUND, detail)
}

pub(super) fn interrupt_not_supported(agent: &str) -> Problem {
    let detail = format!("agent \"{}\" has no interrupt section and nothing of it waits", echo(agent));
    Problem::new(INTERRUPT_NOT_SUPPORTED, detail)
}

pub(super) fn session_not_found() -> Problem {
    Problem::new(SESSION_NOT_FOUND, "there is no such session, or it is not yours; use another session_id")
}

pub(super) fn interrupt_pending(key: &str) -> Problem {
    let detail = format!(
        "this session waits for a decision about {key}: resume it with POST /api/v1/chat/resume, or end it with POST /api/v1/chat/abort"
    );
    Problem::new(INTERRUPT_PENDING, detail).with("approval_key", key)
}

pub(super) fn run_in_progress(run: RunId) -> Problem {
    let detail = format!("run {run} is under way in this session: wait for it, or end it with POST /api/v1/chat/abort");
    Problem::new(RUN_IN_PROGRESS, detail).with("run_id", run.to_string())
}

/// Why nothing waits in a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Settled {
    Never,
    Decided(Timestamp),
    Expired(Timestamp),
}

pub(super) fn no_pending_interrupt(settled: Settled) -> Problem {
    let (reason, detail) = match settled {
        Settled::Never => ("none", "nothing waits in this session for this agent; send a message first".to_owned()),
        Settled::Decided(at) => ("already_resumed", format!("this session was resumed at {at}; follow its stream")),
        Settled::Expired(at) => ("expired", format!("what waited in this session expired at {at}; start again")),
    };
    Problem::new(NO_PENDING_INTERRUPT, detail).with("reason", reason)
}

/// The client was shown another form than the one that waits now.
pub(super) fn stale_checkpoint(held: &str) -> Problem {
    let detail = format!("checkpoint {held} waits now, and not the one that was answered; look at it again");
    Problem::new(NO_PENDING_INTERRUPT, detail).with("reason", "stale")
}

/// Part of what the form asks was settled by somebody else, or by a deadline, before it was sent; the rest still waits.
pub(super) fn partly_settled() -> Problem {
    let detail = "part of this was settled meanwhile, and none of your answers was recorded; look at the rest again";
    Problem::new(NO_PENDING_INTERRUPT, detail).with("reason", "stale")
}

// What is wrong with a filled-in form.

pub(super) fn missing_input(field: &Field) -> Problem {
    Problem::new(MISSING_INPUT, format!("input.{} is required ({})", field.name, kind(field))).at(path(field))
}

pub(super) fn invalid_input(field: &Field) -> Problem {
    let expected = match field.kind {
        FieldType::Confirm => "true or false (a JSON boolean)",
        FieldType::Select | FieldType::Text => "a string",
    };
    Problem::new(INVALID_INPUT, format!("input.{} must be {expected}", field.name)).at(path(field))
}

pub(super) fn invalid_option(field: &Field) -> Problem {
    let options: Vec<String> = field.options.iter().map(|choice| echo(&choice.shown)).collect();
    one_of(field, &options)
}

pub(super) fn invalid_options(field: &Field, question: &Question) -> Problem {
    let options: Vec<String> = question.options.iter().map(|option| echo(&option.label)).collect();
    one_of(field, &options)
}

fn one_of(field: &Field, options: &[String]) -> Problem {
    Problem::new(INVALID_OPTION, format!("input.{} must be one of: {}", field.name, options.join(", "))).at(path(field))
}

pub(super) fn unknown_input(name: &str, known: &[&str]) -> Problem {
    Problem::new(UNKNOWN_INPUT, format!("\"{}\" is not asked for; fields: {}", echo(name), known.join(", ")))
}

pub(super) fn too_long(field: &Field, limit: usize) -> Problem {
    Problem::new(TOO_LONG, format!("input.{} is limited to {limit} bytes", field.name)).at(path(field))
}

pub(super) fn control_character(field: &Field) -> Problem {
    let detail = format!("input.{} holds control characters; only line breaks and tabs are taken", field.name);
    Problem::new(CONTROL_CHARACTER, detail).at(path(field))
}

pub(super) fn result_without_happening(field: &Field) -> Problem {
    Problem::new(INVALID_INPUT, format!("input.{} goes only with the choice happened", field.name)).at(path(field))
}

fn kind(field: &Field) -> &'static str {
    match field.kind {
        FieldType::Confirm => "confirm",
        FieldType::Select => "select",
        FieldType::Text => "text",
    }
}

fn path(field: &Field) -> String {
    format!("input.{}", field.name)
}

/// A problem in this protocol's own form. Whatever answers in another form goes through as it is.
pub(crate) fn render(response: Response) -> Response {
    let Some(problem) = response.extensions().get::<Problem>().cloned() else { return response };
    let member = |name| problem.member(name).and_then(|value| value.as_str()).map(str::to_owned);
    let body = ErrorBody {
        error: problem.detail().to_owned(),
        code: problem.code().to_owned(),
        reason: member("reason"),
        approval_key: member("approval_key"),
        retryable: None,
    };
    let mut rendered = (problem.status(), Json(body)).into_response();
    for (name, value) in response.headers() {
        if name != header::CONTENT_TYPE && name != header::CONTENT_LENGTH {
            rendered.headers_mut().insert(name.clone(), value.clone());
        }
    }
    rendered
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_on_the_protocols_page() {
        let page = include_str!("../../../../../docs/protocols/superagent.md");
        for code in ALL {
            let row = page.lines().find(|line| line.contains(&format!("`{}`", code.name)));
            let row = row.unwrap_or_else(|| panic!("{} is not listed", code.name));
            assert!(row.starts_with(&format!("| {}", code.status.as_u16())), "{} is listed as {row}", code.name);
        }
    }
}
