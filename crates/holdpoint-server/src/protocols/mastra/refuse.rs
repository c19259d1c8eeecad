//! Every refusal of this protocol, and the form in which its clients read one: `{"error": sentence, …}`.

use axum::Json;
use axum::response::{IntoResponse as _, Response};
use holdpoint_core::text::{clamp, visible};
use holdpoint_core::time::Timestamp;
use http::{StatusCode, header};
use serde_json::{Value, json};

use crate::problem::{Code, Problem};

macro_rules! codes {
    ($($constant:ident = $name:literal, $status:ident, $title:literal;)*) => {
        $(pub(super) const $constant: Code = Code { name: $name, status: StatusCode::$status, title: $title };)*

        /// The codes of this protocol's own; `docs/protocols/mastra.md` lists them.
        #[cfg(test)]
        const ALL: &[Code] = &[$($constant),*];
    };
}

codes! {
    AMBIGUOUS_TARGET = "ambiguous_target", CONFLICT, "Several tool calls wait";
    CONTROL_CHARACTER = "control_character", BAD_REQUEST, "A text holds control characters";
    DECIDED_OTHERWISE = "already_decided", CONFLICT, "The tool call was decided otherwise";
    EXPIRED = "expired", GONE, "The tool call has expired";
    INVALID_JSON = "invalid_json", BAD_REQUEST, "The body is not valid JSON";
    INVALID_RESUME_DATA = "invalid_resume_data", BAD_REQUEST, "The data does not answer what waits";
    INVALID_RUN_ID = "invalid_run_id", BAD_REQUEST, "The run id is not valid";
    INVALID_TYPE = "invalid_type", BAD_REQUEST, "A member is of another type";
    MISSING_FIELD = "missing_field", BAD_REQUEST, "A member is missing";
    RUN_ID_TAKEN = "run_id_taken", CONFLICT, "The run id stands for another run";
    RUN_NOT_FOUND = "run_not_found", NOT_FOUND, "There is no such run";
    RUN_NOT_SUSPENDED = "run_not_suspended", CONFLICT, "The run waits for nothing";
    THREAD_BUSY = "thread_busy", CONFLICT, "The agent has a run under way in the thread";
    THREAD_NOT_FOUND = "thread_not_found", NOT_FOUND, "There is no such thread";
    TOO_LONG = "too_long", BAD_REQUEST, "A text is too long";
    TOOL_CHANGED = "tool_changed", CONFLICT, "The tool is no longer what was shown";
    TOOL_CALL_NOT_SUSPENDED = "tool_call_not_suspended", CONFLICT, "The tool call does not wait";
    UNEXPECTED_FIELD = "unexpected_field", BAD_REQUEST, "A member does not belong here";
    WITHDRAWN = "withdrawn", CONFLICT, "The question no longer arises";
}

/// At most this much of what a client sent is said back to it.
const ECHO_BYTES_MAX: usize = 64;

/// What a client sent, as far as it may be said back.
pub(super) fn echo(text: &str) -> String {
    visible(clamp(text, ECHO_BYTES_MAX)).replace(['\n', '\t'], " ")
}

/// Something in the body is wrong, at this place.
pub(super) fn issue(code: Code, field: &str, message: impl Into<String>) -> Problem {
    let issue = json!({"field": field, "message": message.into()});
    Problem::new(code, "Invalid request body").with("issues", json!([issue]))
}

pub(super) fn missing(field: &str) -> Problem {
    issue(MISSING_FIELD, field, format!("{field} is required"))
}

pub(super) fn invalid_type(field: &str, expected: &str) -> Problem {
    issue(INVALID_TYPE, field, format!("expected {expected}"))
}

pub(super) fn unexpected(field: &str, why: &str) -> Problem {
    issue(UNEXPECTED_FIELD, field, why)
}

/// A parameter of the address is wrong.
pub(super) fn parameter(name: &str, expected: &str) -> Problem {
    let issue = json!({"field": name, "message": format!("expected {expected}")});
    Problem::new(Code::INVALID_PARAMETER, "Invalid query parameters").with("issues", json!([issue]))
}

pub(super) fn agent_not_found(name: &str) -> Problem {
    Problem::new(Code::AGENT_NOT_FOUND, format!("Agent with id {} not found", echo(name)))
}

/// There is none, it is of another agent, or the caller may not know of it: all in the same words.
pub(super) fn run_not_found() -> Problem {
    Problem::new(RUN_NOT_FOUND, "there is no such run of this agent, or none that you may see")
}

pub(super) fn thread_not_found() -> Problem {
    Problem::new(THREAD_NOT_FOUND, "there is no such thread, or none that you may see")
}

pub(super) fn run_id_taken() -> Problem {
    Problem::new(RUN_ID_TAKEN, "this runId stands for another run: choose a new one, or none")
}

/// A message into a thread in which a run of the agent waits or is under way.
pub(super) fn thread_busy(run: &str, waiting: &[String]) -> Problem {
    let what = match waiting {
        [] => "is under way".to_owned(),
        ids => format!("waits for a decision about {}", ids.join(", ")),
    };
    let detail = format!("run {run} of this agent {what} in this thread: let it come to its end first");
    Problem::new(THREAD_BUSY, detail).with("runId", run).with("waiting", waiting.to_vec())
}

/// The same for a message that wants more than the run under way can promise.
pub(super) fn cannot_hold_every_call(run: &str) -> Problem {
    let detail = format!(
        "run {run} of this agent is under way in this thread without requireToolApproval: let it come to its end first"
    );
    Problem::new(THREAD_BUSY, detail).with("runId", run).with("waiting", json!([]))
}

/// What was shown cannot run any more. Nothing was decided.
pub(super) fn tool_changed(call: &str) -> Problem {
    let call = echo(call);
    let detail = format!(
        "the tool of call {call}, or the agent that has it, is no longer what was shown: nothing was decided, and it \
         can only be declined until an operator brings that version back"
    );
    Problem::new(TOOL_CHANGED, detail).with("waiting", json!([call]))
}

/// What was approved is asked about once more, since its tool changed.
pub(super) fn asked_again(call: &str, waiting: &[String]) -> Problem {
    let detail = format!(
        "the tool of call {} changed after it was shown, and it did not run; waiting: {}",
        echo(call),
        waiting.join(", ")
    );
    Problem::new(TOOL_CHANGED, detail).with("waiting", waiting.to_vec())
}

pub(super) fn run_not_suspended(state: &str) -> Problem {
    Problem::new(RUN_NOT_SUSPENDED, format!("the run is {state}, and no tool call waits")).with("waiting", json!([]))
}

pub(super) fn tool_call_not_suspended(id: &str, waiting: &[String]) -> Problem {
    let now = if waiting.is_empty() { "nothing".to_owned() } else { waiting.join(", ") };
    let detail = format!("tool call {} is not waiting; waiting: {now}", echo(id));
    Problem::new(TOOL_CALL_NOT_SUSPENDED, detail).with("waiting", waiting.to_vec())
}

pub(super) fn ambiguous_target(waiting: &[String]) -> Problem {
    let detail = format!("{} tool calls wait, so toolCallId must name one: {}", waiting.len(), waiting.join(", "));
    Problem::new(AMBIGUOUS_TARGET, detail).with("waiting", waiting.to_vec())
}

/// Somebody decided something else before.
pub(super) fn decided_otherwise(call: &str, outcome: &str, by: &str, at: Timestamp) -> Problem {
    let detail = format!("tool call {} was decided before: {outcome} by {by} at {at}", echo(call));
    Problem::new(DECIDED_OTHERWISE, detail)
        .with("outcome", outcome)
        .with("decidedBy", by)
        .with("decidedAt", at.to_string())
}

pub(super) fn expired(call: &str, at: Timestamp) -> Problem {
    let detail = format!("tool call {} expired at {at}, and did not run", echo(call));
    Problem::new(EXPIRED, detail).with("expiredAt", at.to_string())
}

pub(super) fn withdrawn(call: &str, at: Timestamp) -> Problem {
    let detail = format!("tool call {} was withdrawn at {at}, and did not run", echo(call));
    Problem::new(WITHDRAWN, detail).with("withdrawnAt", at.to_string())
}

pub(super) fn invalid_resume_data(message: impl Into<String>) -> Problem {
    issue(INVALID_RESUME_DATA, "resumeData", message)
}

/// A problem in this protocol's own form. Whatever answers in another form goes through as it is.
pub(crate) fn render(response: Response) -> Response {
    let Some(problem) = response.extensions().get::<Problem>().cloned() else { return response };
    let mut body = problem.to_json();
    if let Value::Object(members) = &mut body {
        for name in ["type", "title", "status", "detail"] {
            members.remove(name);
        }
        members.insert("error".to_owned(), Value::String(problem.detail().to_owned()));
    }
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
        let page = include_str!("../../../../../docs/protocols/mastra.md");
        for code in ALL {
            let row = format!("| {} | `{}` |", code.status.as_u16(), code.name);
            assert!(page.lines().any(|line| line.starts_with(&row)), "{} is not listed as {row}", code.name);
        }
    }

    #[test]
    fn a_problem_reads_as_clients_of_this_protocol_read_errors() {
        let body = |problem: Problem| {
            let response = render(problem.into_response());
            (response.status().as_u16(), response.headers()[header::CONTENT_TYPE].to_str().unwrap().to_owned())
        };
        assert_eq!(body(missing("runId")), (400, "application/json".to_owned()));
        assert_eq!(body(expired("c", Timestamp::from_millis(0))), (410, "application/json".to_owned()));
    }
}
