//! Why a command was turned away, in this protocol's codes. Nothing was changed by one that was.

use axum::Json;
use axum::response::{IntoResponse, Response};
use holdpoint_core::Refusal;
use holdpoint_core::ids::ActorId;
use holdpoint_core::text::{clamp, visible};
use holdpoint_core::time::Timestamp;
use holdpoint_runtime::RunError;
use http::StatusCode;
use serde_json::{Value, json};

use super::wire::control::{Control, Trouble};
use crate::problem::{Code as ProblemCode, Problem};

/// The protocol's codes, in the order of its page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Code {
    BadJson,
    BadCommand,
    UnknownAgent,
    UnknownSession,
    UnknownApprovalKey,
    AlreadyDecided,
    Expired,
    NotAllowed,
    BadDecisions,
    BadAnswers,
    InvalidArgs,
    SessionBusy,
    TooLarge,
    Overloaded,
    Internal,
}

impl Code {
    /// Its name, as the wire spells it, and the status that a plain request is told it with.
    fn row(self) -> (&'static str, StatusCode) {
        match self {
            Self::BadJson => ("bad_json", StatusCode::BAD_REQUEST),
            Self::BadCommand => ("bad_command", StatusCode::BAD_REQUEST),
            Self::UnknownAgent => ("unknown_agent", StatusCode::NOT_FOUND),
            Self::UnknownSession => ("unknown_session", StatusCode::NOT_FOUND),
            Self::UnknownApprovalKey => ("unknown_approval_key", StatusCode::NOT_FOUND),
            Self::AlreadyDecided => ("already_decided", StatusCode::CONFLICT),
            Self::Expired => ("expired", StatusCode::CONFLICT),
            Self::NotAllowed => ("not_allowed", StatusCode::FORBIDDEN),
            Self::BadDecisions => ("bad_decisions", StatusCode::UNPROCESSABLE_ENTITY),
            Self::BadAnswers => ("bad_answers", StatusCode::UNPROCESSABLE_ENTITY),
            Self::InvalidArgs => ("invalid_args", StatusCode::UNPROCESSABLE_ENTITY),
            Self::SessionBusy => ("session_busy", StatusCode::CONFLICT),
            Self::TooLarge => ("too_large", StatusCode::PAYLOAD_TOO_LARGE),
            Self::Overloaded => ("overloaded", StatusCode::SERVICE_UNAVAILABLE),
            Self::Internal => ("internal", StatusCode::INTERNAL_SERVER_ERROR),
        }
    }

    pub(super) fn name(self) -> &'static str {
        self.row().0
    }
}

/// Why a command was turned away.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Refused {
    pub(super) code: Code,
    pub(super) message: String,
    pub(super) details: Option<Value>,
}

impl Refused {
    pub(super) fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), details: None }
    }

    pub(super) fn with(mut self, details: Value) -> Self {
        self.details = Some(details);
        self
    }

    /// Adds how each action of a request ended, where they did not end alike.
    pub(super) fn of_several(mut self, outcomes: impl Iterator<Item = &'static str>) -> Self {
        let outcomes: Vec<&str> = outcomes.collect();
        if outcomes.windows(2).any(|pair| pair[0] != pair[1]) {
            self.message = format!("{} (each of them: {})", self.message, outcomes.join(", "));
            if let Some(details) = self.details.as_mut().and_then(Value::as_object_mut) {
                details.insert("outcomes".to_owned(), json!(outcomes));
            }
        }
        self
    }

    /// As a connection is told.
    pub(super) fn told(self, request_id: Option<String>) -> Control {
        let error = Trouble { code: self.code.name(), message: self.message, details: self.details };
        Control::Error { error, request_id }
    }

    /// As a plain request is told.
    pub(super) fn respond(self, request_id: Option<String>) -> Response {
        let status = self.code.row().1;
        (status, Json(self.told(request_id))).into_response()
    }
}

pub(super) fn bad_command(message: impl Into<String>) -> Refused {
    Refused::new(Code::BadCommand, message)
}

pub(super) fn bad_decisions(message: impl Into<String>) -> Refused {
    Refused::new(Code::BadDecisions, message)
}

pub(super) fn bad_answers(message: impl Into<String>) -> Refused {
    Refused::new(Code::BadAnswers, message)
}

pub(super) fn unknown_agent() -> Refused {
    Refused::new(Code::UnknownAgent, "there is no such agent: GET /api/v1/agents lists those there are")
}

/// There is none, or none that the caller may know of: both are told in the same words.
pub(super) fn unknown_session() -> Refused {
    Refused::new(Code::UnknownSession, "there is no such session, or none that you may see")
}

/// There is none, or none that the caller may know of: both are told in the same words.
pub(super) fn unknown_approval_key() -> Refused {
    Refused::new(Code::UnknownApprovalKey, "this session has no approval_request of this key")
}

/// A name stands for another command.
pub(super) fn request_id_reused() -> Refused {
    bad_command("this request_id was sent with another command before: use a new one for a new command")
}

/// Somebody was first.
pub(super) fn already_decided(outcome: &str, by: Option<&ActorId>, at: Timestamp) -> Refused {
    let message = match by {
        Some(by) => format!("this was decided before: {outcome} by {by} at {at}"),
        None => format!("this is no longer open: {outcome} at {at}"),
    };
    Refused::new(Code::AlreadyDecided, message).with(settled(outcome, by, at))
}

/// Nobody was in time.
pub(super) fn expired(at: Timestamp) -> Refused {
    let message = format!("the time to decide this was up at {at}");
    Refused::new(Code::Expired, message).with(settled("expired", None, at))
}

fn settled(outcome: &str, by: Option<&ActorId>, at: Timestamp) -> Value {
    json!({"outcome": outcome, "decided_by": by.map(ToString::to_string), "decided_at": at.to_string()})
}

/// Something waits in the session.
pub(super) fn held(approval_key: &str) -> Refused {
    let message = format!("{approval_key} waits for a decision in this session: decide it, or cancel the run");
    Refused::new(Code::SessionBusy, message).with(json!({"approval_key": approval_key}))
}

/// Something is under way in the session.
pub(super) fn busy() -> Refused {
    Refused::new(Code::SessionBusy, "the agent is at work in this session: wait for it, or cancel the run")
}

/// What a client sent, in a message: short, and nothing in it hides.
pub(super) fn echo(text: &str) -> String {
    visible(clamp(text, 64)).replace('\n', "⏎")
}

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        let code = match &refusal {
            Refusal::AlreadyDecided { outcome, by, at, .. } => return already_decided(outcome, Some(by), *at),
            Refusal::Expired { at, .. } => return expired(*at),
            Refusal::Withdrawn { at, .. } => return already_decided("withdrawn", None, *at),
            Refusal::SessionNotFound(_) => return unknown_session(),
            Refusal::PauseNotFound(_) | Refusal::RunNotFound(_) => return unknown_approval_key(),
            Refusal::RunActive { .. } | Refusal::RunBusy { .. } => return busy(),
            Refusal::StaleView { .. } => Code::BadDecisions,
            Refusal::DecisionNotAllowed { .. } | Refusal::EditOfSeveral { .. } | Refusal::NotAnApprover { .. } => {
                Code::NotAllowed
            }
            Refusal::NumberOutOfRange { .. } => {
                let reason = json!({"reason": refusal.code()});
                return Self::new(Code::InvalidArgs, refusal.to_string()).with(reason);
            }
            Refusal::InvalidArguments { .. } => Code::InvalidArgs,
            Refusal::InvalidAnswers { .. } => Code::BadAnswers,
            Refusal::OverLimit { .. } => Code::TooLarge,
            _ => return Problem::from(refusal).into(),
        };
        Self::new(code, refusal.to_string())
    }
}

impl From<RunError> for Refused {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Refused(refusal) => refusal.into(),
            RunError::Fault(fault) => Problem::from(fault).into(),
        }
    }
}

impl From<Problem> for Refused {
    fn from(problem: Problem) -> Self {
        let is = |code: ProblemCode| problem.code() == code.name;
        let code = match problem.status() {
            _ if is(ProblemCode::INVALID_JSON) => Code::BadJson,
            _ if problem.code() == "session_not_found" => return unknown_session(),
            StatusCode::FORBIDDEN | StatusCode::UNAUTHORIZED => Code::NotAllowed,
            StatusCode::PAYLOAD_TOO_LARGE => Code::TooLarge,
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => Code::Overloaded,
            StatusCode::CONFLICT => Code::SessionBusy,
            status if status.is_client_error() => Code::BadCommand,
            _ => Code::Internal,
        };
        Self::new(code, problem.detail().replace("the body", "the command"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Code; 15] = [
        Code::BadJson,
        Code::BadCommand,
        Code::UnknownAgent,
        Code::UnknownSession,
        Code::UnknownApprovalKey,
        Code::AlreadyDecided,
        Code::Expired,
        Code::NotAllowed,
        Code::BadDecisions,
        Code::BadAnswers,
        Code::InvalidArgs,
        Code::SessionBusy,
        Code::TooLarge,
        Code::Overloaded,
        Code::Internal,
    ];

    #[test]
    fn every_code_is_on_the_protocols_page() {
        let page = include_str!("../../../../../docs/protocols/blocks.md");
        for code in ALL {
            assert!(page.contains(&format!("`{}`", code.name())), "{} is not listed", code.name());
        }
    }

    #[test]
    fn who_comes_too_late_is_told_who_was_first() {
        let by = ActorId::new("ana").unwrap();
        let refused = already_decided("approve", Some(&by), Timestamp::from_millis(0));
        let told = serde_json::to_value(refused.told(Some("c1".to_owned()))).unwrap();
        assert_eq!(
            told,
            json!({"type": "error", "request_id": "c1", "error": {
                "code": "already_decided",
                "message": "this was decided before: approve by ana at 1970-01-01T00:00:00.000Z",
                "details": {"outcome": "approve", "decided_by": "ana", "decided_at": "1970-01-01T00:00:00.000Z"},
            }})
        );
    }

    #[test]
    fn what_the_layers_say_is_said_in_this_protocols_codes() {
        let of = |code: ProblemCode| Refused::from(Problem::new(code, "…")).code;
        assert_eq!(of(ProblemCode::RATE_LIMITED), Code::Overloaded);
        assert_eq!(of(ProblemCode::SELF_APPROVAL), Code::NotAllowed);
        assert_eq!(of(ProblemCode::INVALID_REQUEST), Code::BadCommand);
        assert_eq!(of(ProblemCode::PAYLOAD_TOO_LARGE), Code::TooLarge);
        assert_eq!(of(ProblemCode::INTERNAL), Code::Internal);
        assert_eq!(
            Refused::from(Problem::from(Refusal::RunFinished("run_0198c0ffee007000800000000000beef".parse().unwrap())))
                .code,
            Code::SessionBusy
        );
    }
}
