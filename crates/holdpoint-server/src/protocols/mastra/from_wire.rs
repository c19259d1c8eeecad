//! Requests as they come. What decides is read strictly; options that only shape a reply and that we do not have are
//! passed over, since clients send all of theirs.

mod messages;

use axum::extract::Request;
use holdpoint_core::ids::SessionId;
use holdpoint_core::json::{CanonicalJson, JsonProblem, Limits as JsonLimits};
use holdpoint_core::message::Content;
use serde_json::{Map, Value};

use super::follow::AtPause;
use super::refuse;
use super::resume_data::Given;
use crate::app::App;
use crate::limits::{read_body, require_json};
use crate::problem::{Code, Problem};

/// Bytes of a reason.
pub(super) const REASON_BYTES_MAX: usize = 8 << 10;

/// Characters of a name that a client chose.
const NAME_LENGTH_MAX: usize = 128;

/// Bytes of a tool call's id.
const CALL_BYTES_MAX: usize = 1_024;

/// How deep a body may be nested, and how many members it may have.
const DEPTH_MAX: usize = 64;
const MEMBERS_MAX: usize = 50_000;

/// What `stream` and `generate` are asked.
#[derive(Debug)]
pub(super) struct StartRequest {
    pub(super) content: Content,
    /// What the client wants the run to be called.
    pub(super) run: Option<String>,
    pub(super) thread: Option<SessionId>,
    pub(super) resource: Option<String>,
    pub(super) steps_max: Option<u32>,
    /// Whether a person must look at every call.
    pub(super) holds_every_call: bool,
    pub(super) at_pause: AtPause,
}

/// Which tool call of which run is meant, and what is said about it.
#[derive(Debug)]
pub(super) struct DecideRequest {
    pub(super) run: String,
    pub(super) call: Option<String>,
    pub(super) given: Given,
    pub(super) at_pause: AtPause,
}

/// What `send-tool-approval` is asked.
#[derive(Debug)]
pub(super) struct ApprovalRequest {
    pub(super) resource: String,
    pub(super) thread: SessionId,
    pub(super) call: String,
    pub(super) given: Given,
}

/// Which of the decisions a route makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verb {
    Approve,
    Decline,
    Resume,
}

/// A body that is a JSON object.
pub(super) struct Body(Map<String, Value>);

impl Body {
    /// Reads a body within the bounds of size, time and depth.
    pub(super) async fn read(app: &App, request: Request) -> Result<Self, Problem> {
        require_json(request.headers())?;
        let bytes = read_body(request.headers().clone(), request.into_body(), app.limits()).await?;
        let bad = |what: String| refuse::issue(refuse::INVALID_JSON, "body", what);
        let text = std::str::from_utf8(&bytes).map_err(|at| bad(format!("not UTF-8 at byte {}", at.valid_up_to())))?;
        if text.trim().is_empty() {
            return Err(bad("the body is empty: a JSON object expected".to_owned()));
        }
        let bytes_max = app.limits().body_bytes_max;
        let limits = JsonLimits { bytes_max, depth_max: DEPTH_MAX, members_max: MEMBERS_MAX };
        let json = CanonicalJson::parse_within(text, &limits).map_err(|problem| match problem {
            JsonProblem::TooLarge { .. } => {
                Problem::new(Code::PAYLOAD_TOO_LARGE, format!("a body may have {bytes_max} bytes: send less"))
            }
            problem => bad(problem.to_string()),
        })?;
        match json.to_value() {
            Value::Object(members) => Ok(Self(members)),
            _ => Err(refuse::invalid_type("body", "a JSON object")),
        }
    }

    /// A start.
    pub(super) fn start(&self) -> Result<StartRequest, Problem> {
        let memory = self.memory()?;
        let thread = memory.thread.map(|(field, name)| thread(field, &name)).transpose()?;
        Ok(StartRequest {
            content: messages::read(self.0.get("messages"), thread.is_some())?,
            run: self.given("runId").map(|value| run_name("runId", value)).transpose()?,
            thread,
            resource: memory.resource.map(|(field, name)| resource(field, name)).transpose()?,
            steps_max: self.steps_max()?,
            holds_every_call: self.flag("requireToolApproval")?,
            at_pause: self.at_pause()?,
        })
    }

    /// A decision about a call.
    pub(super) fn decide(&self, verb: Verb) -> Result<DecideRequest, Problem> {
        let run = run_name("runId", self.0.get("runId").ok_or_else(|| refuse::missing("runId"))?)?;
        let call = self.0.get("toolCallId").map(|value| call_name("toolCallId", value)).transpose()?;
        Ok(DecideRequest { run, call, given: self.given_with(verb)?, at_pause: self.at_pause()? })
    }

    fn given_with(&self, verb: Verb) -> Result<Given, Problem> {
        let edits = ["args", "arguments", "input", "editedArgs", "editedArguments"];
        if let Some(name) = edits.into_iter().find(|name| self.0.contains_key(*name)) {
            return Err(refuse::unexpected(name, "arguments cannot be changed here: what was shown is what runs"));
        }
        match verb {
            Verb::Approve => {
                match ["reason", "info", "resumeData", "approved"].into_iter().find(|name| self.contradicts(name)) {
                    Some(name) => Err(refuse::unexpected(name, "it does not go with an approval")),
                    None => Ok(Given::Approve),
                }
            }
            Verb::Decline => match ["resumeData", "approved"].into_iter().find(|name| self.denies(name)) {
                Some(name) => Err(refuse::unexpected(name, "it does not go with a refusal")),
                None => Ok(Given::Decline { reason: self.reason()? }),
            },
            Verb::Resume => match self.0.get("resumeData") {
                Some(data) => Ok(Given::Data(data.clone())),
                None => Err(refuse::missing("resumeData")),
            },
        }
    }

    /// Whether a member says something else than an approval does.
    fn contradicts(&self, name: &str) -> bool {
        self.given(name).is_some_and(|value| name != "approved" || *value != Value::Bool(true))
    }

    /// Whether a member says something else than a refusal does.
    fn denies(&self, name: &str) -> bool {
        self.given(name).is_some_and(|value| name != "approved" || *value != Value::Bool(false))
    }

    /// An approval for a thread.
    pub(super) fn approval(&self) -> Result<ApprovalRequest, Problem> {
        let required = |name: &str| self.0.get(name).ok_or_else(|| refuse::missing(name));
        let resource_id = text("resourceId", required("resourceId")?)?;
        let thread_id = text("threadId", required("threadId")?)?;
        let given = match (required("approved")?, self.given("resumeData")) {
            (Value::Bool(true), None) => self.given_with(Verb::Approve)?,
            (Value::Bool(true), Some(data)) => Given::Data(data.clone()),
            (Value::Bool(false), None) => self.given_with(Verb::Decline)?,
            (Value::Bool(false), Some(_)) => {
                return Err(refuse::unexpected("resumeData", "it does not go with approved: false"));
            }
            _ => return Err(refuse::invalid_type("approved", "true or false")),
        };
        Ok(ApprovalRequest {
            resource: resource("resourceId", resource_id.to_owned())?,
            thread: thread("threadId", thread_id)?,
            call: call_name("toolCallId", required("toolCallId")?)?,
            given,
        })
    }

    /// A member, where it is there and not null.
    fn given(&self, name: &str) -> Option<&Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    /// The reason of a refusal; `info` is another name for it.
    fn reason(&self) -> Result<Option<String>, Problem> {
        let read = |name: &'static str| -> Result<Option<&str>, Problem> {
            let reason = self.given(name).map(|value| text(name, value)).transpose()?;
            reason.map_or(Ok(()), |reason| check_text(name, reason, REASON_BYTES_MAX))?;
            Ok(reason)
        };
        match (read("reason")?, read("info")?) {
            (Some(reason), Some(info)) if reason != info => {
                Err(refuse::unexpected("info", "it is another name for reason: give one of them"))
            }
            (reason, info) => Ok(reason.or(info).map(str::to_owned)),
        }
    }

    /// The most model calls that the run may make.
    fn steps_max(&self) -> Result<Option<u32>, Problem> {
        let Some(value) = self.given("maxSteps") else { return Ok(None) };
        let steps = value
            .as_u64()
            .filter(|steps| *steps >= 1)
            .ok_or_else(|| refuse::invalid_type("maxSteps", "a whole number from 1"))?;
        Ok(Some(u32::try_from(steps).unwrap_or(u32::MAX)))
    }

    fn flag(&self, name: &'static str) -> Result<bool, Problem> {
        match self.given(name) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(_) => Err(refuse::invalid_type(name, "true or false")),
        }
    }

    fn at_pause(&self) -> Result<AtPause, Problem> {
        Ok(if self.flag("holdOpen")? { AtPause::Stay } else { AtPause::End })
    }

    /// Thread and resource, under `memory` or beside it.
    fn memory(&self) -> Result<Memory, Problem> {
        let memory = match self.given("memory") {
            None => None,
            Some(Value::Object(members)) => Some(members),
            Some(_) => return Err(refuse::invalid_type("memory", "an object with thread and resource")),
        };
        let inner = |name: &str| memory.and_then(|members| members.get(name)).filter(|value| !value.is_null());
        let thread = match (inner("thread"), self.given("threadId")) {
            (Some(Value::Object(thread)), _) => match thread.get("id") {
                Some(id) => Some(("memory.thread.id", text("memory.thread.id", id)?)),
                None => return Err(refuse::missing("memory.thread.id")),
            },
            (Some(thread), _) => Some(("memory.thread", text("memory.thread", thread)?)),
            (None, Some(thread)) => Some(("threadId", text("threadId", thread)?)),
            (None, None) => None,
        };
        let resource = match (inner("resource"), self.given("resourceId")) {
            (Some(resource), _) => Some(("memory.resource", text("memory.resource", resource)?.to_owned())),
            (None, Some(resource)) => Some(("resourceId", text("resourceId", resource)?.to_owned())),
            (None, None) => None,
        };
        Ok(Memory { thread: thread.map(|(field, name)| (field, name.to_owned())), resource })
    }
}

/// The conversation that a start belongs to: each name with the field that it stands in.
struct Memory {
    thread: Option<(&'static str, String)>,
    resource: Option<(&'static str, String)>,
}

/// A text, or what is wrong with it by the name of its field.
fn text<'a>(field: &str, value: &'a Value) -> Result<&'a str, Problem> {
    value.as_str().ok_or_else(|| refuse::invalid_type(field, "a string"))
}

/// Refuses a text that is too long, or in which something hides.
pub(super) fn check_text(field: &str, text: &str, bytes_max: usize) -> Result<(), Problem> {
    if text.len() > bytes_max {
        return Err(refuse::issue(refuse::TOO_LONG, field, format!("at most {bytes_max} bytes are taken")));
    }
    match text.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\r' | '\t')) {
        true => Err(refuse::issue(refuse::CONTROL_CHARACTER, field, "only line breaks and tabs are taken")),
        false => Ok(()),
    }
}

/// A run's name: one that stands for itself in an address and in a file.
fn run_name(field: &str, value: &Value) -> Result<String, Problem> {
    let name = value.as_str().unwrap_or_default();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b':' | b'-');
    let fits = (1..=NAME_LENGTH_MAX).contains(&name.len()) && name.bytes().all(is_plain) && !name.contains("..");
    match fits {
        true => Ok(name.to_owned()),
        false => {
            let expected = format!("expected a text of 1 to {NAME_LENGTH_MAX} of A-Z a-z 0-9 . _ : - without \"..\"");
            Err(refuse::issue(refuse::INVALID_RUN_ID, field, expected))
        }
    }
}

fn call_name(field: &str, value: &Value) -> Result<String, Problem> {
    match value.as_str() {
        Some(name) if !name.is_empty() && name.len() <= CALL_BYTES_MAX => Ok(name.to_owned()),
        _ => Err(refuse::invalid_type(field, &format!("a text of 1 to {CALL_BYTES_MAX} bytes: omit it or give one"))),
    }
}

pub(super) fn thread(field: &str, name: &str) -> Result<SessionId, Problem> {
    SessionId::new(name).map_err(|_| refuse::invalid_type(field, "a text of 1 to 256 printable bytes"))
}

fn resource(field: &str, name: String) -> Result<String, Problem> {
    // The same characters as a thread's name.
    thread(field, &name).map(|_| name)
}

#[cfg(test)]
mod tests;
