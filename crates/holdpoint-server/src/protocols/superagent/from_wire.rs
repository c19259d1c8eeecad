//! Requests as they come, read strictly: what is missing, misspelt, given twice or of another type is refused by name.

use std::collections::BTreeMap;

use bytes::Bytes;
use holdpoint_core::ids::SessionId;
use holdpoint_core::json::{CanonicalJson, JsonProblem, Limits as JsonLimits};
use http::{HeaderMap, Uri, header};
use serde_json::{Map, Value};

use super::frames::Mode;
use super::refuse;
use crate::problem::Problem;

/// Bytes of a body.
pub(super) const BODY_BYTES_MAX: usize = 256 << 10;

/// Characters of a session's name.
const SESSION_LENGTH_MAX: usize = 128;

/// What `chat/stream` is asked.
#[derive(Debug, PartialEq)]
pub(super) struct StreamRequest {
    /// `None` means the only agent there is.
    pub(super) agent: Option<String>,
    pub(super) session: SessionId,
    pub(super) message: String,
}

/// What `chat/resume` is asked.
#[derive(Debug, PartialEq)]
pub(super) struct ResumeRequest {
    pub(super) place: Place,
    pub(super) input: Map<String, Value>,
    /// What the client was shown, where it says so: another form that waits meanwhile is then not answered by mistake.
    pub(super) checkpoint: Option<String>,
}

/// An agent in a session.
#[derive(Debug, PartialEq)]
pub(super) struct Place {
    pub(super) agent: String,
    pub(super) session: SessionId,
}

pub(super) fn stream(body: &Bytes) -> Result<StreamRequest, Problem> {
    let members = Members::read(body, &["agent_id", "session_id", "message"])?;
    let agent = members.text("agent_id")?.filter(|agent| !agent.is_empty()).map(str::to_owned);
    let session = session(members.text("session_id")?.unwrap_or("default"))?;
    let message = members.text("message")?.ok_or_else(|| refuse::missing_fields(&["message"]))?;
    if message.trim().is_empty() {
        return Err(refuse::empty_message());
    }
    Ok(StreamRequest { agent, session, message: message.to_owned() })
}

pub(super) fn resume(body: &Bytes) -> Result<ResumeRequest, Problem> {
    let members = Members::read(body, &["agent_id", "session_id", "input", "checkpoint_id"])?;
    let place = place(members.text("agent_id")?, members.text("session_id")?)?;
    let checkpoint = members.text("checkpoint_id")?.map(str::to_owned);
    match members.0.get("input") {
        Some(Value::Object(input)) => Ok(ResumeRequest { place, input: input.clone(), checkpoint }),
        Some(_) => Err(refuse::invalid_type("input", "an object such as {\"confirm\": true}")),
        None => Err(refuse::missing_fields(&["input"])),
    }
}

pub(super) fn abort(body: &Bytes) -> Result<Place, Problem> {
    let members = Members::read(body, &["agent_id", "session_id"])?;
    place(members.text("agent_id")?, members.text("session_id")?)
}

pub(super) fn interrupt_state(uri: &Uri) -> Result<Place, Problem> {
    let parameters = parameters(uri, &["agent_id", "session_id"])?;
    let given = |name| parameters.get(name).map(String::as_str);
    place(given("agent_id"), given("session_id"))
}

/// Which agent in which session; all that is missing is named at once.
fn place(agent: Option<&str>, named: Option<&str>) -> Result<Place, Problem> {
    let agent = agent.filter(|agent| !agent.is_empty());
    match (agent, named) {
        (Some(agent), Some(named)) => Ok(Place { agent: agent.to_owned(), session: session(named)? }),
        (None, None) => Err(refuse::missing_fields(&["agent_id", "session_id"])),
        (None, Some(_)) => Err(refuse::missing_fields(&["agent_id"])),
        (Some(_), None) => Err(refuse::missing_fields(&["session_id"])),
    }
}

/// A session's name, as this protocol takes it: one that stands for itself in an address and in a file.
fn session(name: &str) -> Result<SessionId, Problem> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b':' | b'-');
    let fits = (1..=SESSION_LENGTH_MAX).contains(&name.len()) && name.bytes().all(is_plain) && !name.contains("..");
    if !fits {
        return Err(refuse::invalid_session_id());
    }
    SessionId::new(name).map_err(|_| refuse::invalid_session_id())
}

/// How the client wants to be told: `X-A2UI: true` or `?a2ui=true`. Any other value counts as no.
pub(super) fn mode(headers: &HeaderMap, uri: &Uri) -> Result<Mode, Problem> {
    let asks = parameters(uri, &["a2ui"])?.get("a2ui").is_some_and(|value| value == "true");
    let says = headers.get("x-a2ui").is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"true"));
    Ok(if asks || says { Mode::A2ui } else { Mode::Legacy })
}

/// No parameters at all.
pub(super) fn no_parameters(uri: &Uri) -> Result<(), Problem> {
    parameters(uri, &[]).map(|_| ())
}

/// Refuses a client that takes neither a stream nor the JSON in which errors come.
pub(super) fn accept(headers: &HeaderMap) -> Result<(), Problem> {
    let mut given = headers.get_all(header::ACCEPT).iter().peekable();
    if given.peek().is_none() {
        return Ok(());
    }
    let takes = |range: &str| {
        let essence = range.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        matches!(essence.as_str(), "*/*" | "text/*" | "text/event-stream" | "application/*" | "application/json")
    };
    match given.filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(',')).any(takes) {
        true => Ok(()),
        false => Err(refuse::not_acceptable()),
    }
}

/// The members of a body that is a JSON object. A member that is null counts as not given.
struct Members(Map<String, Value>);

impl Members {
    fn read(body: &Bytes, known: &[&str]) -> Result<Self, Problem> {
        if body.iter().all(u8::is_ascii_whitespace) {
            return Err(refuse::empty_body(known));
        }
        let text = std::str::from_utf8(body)
            .map_err(|bad| refuse::invalid_json(format_args!("invalid UTF-8 at byte {}", bad.valid_up_to())))?;
        let limits = JsonLimits { bytes_max: BODY_BYTES_MAX, depth_max: 32, members_max: 10_000 };
        let json = CanonicalJson::parse_within(text, &limits).map_err(|problem| not_json(text, &problem))?;
        let Value::Object(mut members) = json.to_value() else {
            return Err(refuse::invalid_type("the body", "a JSON object"));
        };
        if let Some(name) = members.keys().find(|name| !known.contains(&name.as_str())) {
            return Err(refuse::unknown_field(name, known));
        }
        let is_input_null = members.get("input").is_some_and(Value::is_null);
        members.retain(|_, value| !value.is_null());
        if is_input_null {
            return Err(refuse::invalid_type("input", "an object such as {\"confirm\": true}"));
        }
        Ok(Self(members))
    }

    fn text(&self, name: &str) -> Result<Option<&str>, Problem> {
        match self.0.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(refuse::invalid_type(name, "a string")),
        }
    }
}

/// What is wrong with the JSON, by line and column where there is a place.
fn not_json(text: &str, problem: &JsonProblem) -> Problem {
    let offset = match problem {
        JsonProblem::TooLarge { bytes_max, .. } => return refuse::too_large(*bytes_max),
        JsonProblem::Syntax { offset, .. } | JsonProblem::DuplicateKey { offset } | JsonProblem::Number { offset } => {
            *offset
        }
        _ => return refuse::invalid_json(problem),
    };
    let before = text.get(..offset).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    match problem {
        JsonProblem::DuplicateKey { .. } => {
            refuse::invalid_json(format_args!("a key is given twice, at line {line}, column {column}"))
        }
        JsonProblem::Syntax { expected, .. } => {
            refuse::invalid_json(format_args!("expected {expected} at line {line}, column {column}"))
        }
        _ => refuse::invalid_json(format_args!("a number is too large or too long, at line {line}, column {column}")),
    }
}

/// The parameters of an address: each once, each known, each readable.
fn parameters(uri: &Uri, known: &[&str]) -> Result<BTreeMap<String, String>, Problem> {
    let mut parameters = BTreeMap::new();
    for pair in uri.query().unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let name = decode(name).ok_or_else(refuse::invalid_encoding)?;
        let value = decode(value).ok_or_else(refuse::invalid_encoding)?;
        if !known.contains(&name.as_str()) {
            return Err(refuse::unknown_parameter(&name, known));
        }
        if parameters.insert(name.clone(), value).is_some() {
            return Err(refuse::duplicate_parameter(&name));
        }
    }
    Ok(parameters)
}

fn decode(text: &str) -> Option<String> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let mut decoded = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        decoded.push(match byte {
            b'%' => digit(bytes.next()?)? << 4 | digit(bytes.next()?)?,
            b'+' => b' ',
            byte => byte,
        });
    }
    String::from_utf8(decoded).ok()
}

#[cfg(test)]
mod tests;
