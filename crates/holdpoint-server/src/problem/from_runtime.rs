//! One table from what use cases say to statuses. Nothing else maps them.

use holdpoint_core::Refusal;
use holdpoint_runtime::ports::store::StoreFaultKind;
use holdpoint_runtime::{Fault, RunError};
use http::StatusCode;

use super::Problem;

/// The status and title that a refusal's or fault's code is told with.
pub fn status_of(code: &str) -> (StatusCode, &'static str) {
    match code {
        "not_found" => (StatusCode::NOT_FOUND, "There is no such thing"),
        "session_not_found" => (StatusCode::NOT_FOUND, "There is no such session"),
        "already_decided" => (StatusCode::CONFLICT, "The pause was already decided"),
        "expired" => (StatusCode::CONFLICT, "The pause has expired"),
        "withdrawn" => (StatusCode::CONFLICT, "The question no longer arises"),
        "stale_view" => (StatusCode::CONFLICT, "Other arguments are held than were seen"),
        "out_of_turn" => (StatusCode::CONFLICT, "The run is not in the state for this"),
        "run_finished" => (StatusCode::CONFLICT, "The run is over"),
        "run_active" => (StatusCode::CONFLICT, "The agent has a run under way in the session"),
        "run_busy" => (StatusCode::CONFLICT, "Another process moves the run"),
        "agent_changed" => (StatusCode::CONFLICT, "The agent changed while its run was paused"),
        "agent_missing" => (StatusCode::CONFLICT, "An agent that the run needs is not here"),
        "tool_missing" => (StatusCode::CONFLICT, "A tool that the run needs is not here"),
        "not_an_approver" => (StatusCode::FORBIDDEN, "The caller may not decide this pause"),
        "decision_not_allowed" => (StatusCode::UNPROCESSABLE_ENTITY, "The decision does not answer this pause"),
        "invalid_answers" => (StatusCode::UNPROCESSABLE_ENTITY, "The answers do not fit the questions"),
        "invalid_arguments" => (StatusCode::UNPROCESSABLE_ENTITY, "The arguments are not accepted"),
        "number_out_of_range" => (StatusCode::UNPROCESSABLE_ENTITY, "A number cannot be kept exactly"),
        "invalid_definition" => (StatusCode::UNPROCESSABLE_ENTITY, "The definition is not valid"),
        "invalid_rule" => (StatusCode::UNPROCESSABLE_ENTITY, "The rule is not accepted"),
        "over_limit" => (StatusCode::UNPROCESSABLE_ENTITY, "Something is too long or too many"),
        "contended" => (StatusCode::SERVICE_UNAVAILABLE, "Too many write to the run at once"),
        "run_left" => (StatusCode::SERVICE_UNAVAILABLE, "The process that moved the run stops"),
        "model_unavailable" => (StatusCode::SERVICE_UNAVAILABLE, "The model gave no reply"),
        "store_full" => (StatusCode::SERVICE_UNAVAILABLE, "The store has no room left"),
        "store_unavailable" => (StatusCode::SERVICE_UNAVAILABLE, "The store is not available"),
        "store_unknown" => (StatusCode::SERVICE_UNAVAILABLE, "Whether it was written is not known"),
        // Trying again does not help: an operator must look.
        _ => (StatusCode::INTERNAL_SERVER_ERROR, "The server cannot go on here"),
    }
}

/// How long a client waits before it tries again after a fault.
const RETRY_SECONDS: u64 = 2;

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        let (status, title) = status_of(refusal.code());
        let problem = Self::told(status, refusal.code(), title, refusal.to_string());
        match refusal {
            Refusal::AlreadyDecided { outcome, by, at, .. } => {
                problem.with("outcome", outcome).with("decided_by", by.to_string()).with("decided_at", at.to_string())
            }
            Refusal::Expired { at, .. } => settled_by_nobody(problem, "expired", at),
            Refusal::Withdrawn { at, .. } => settled_by_nobody(problem, "withdrawn", at),
            Refusal::StaleView { held, .. } => problem.with("args_sha256", held.to_string()),
            Refusal::DecisionNotAllowed { allowed, .. } => problem.with("allowed_decisions", allowed.to_vec()),
            Refusal::OverLimit { limit, found, .. } => problem.with("limit", limit).with("found", found),
            Refusal::RunActive { run, .. } => problem.with("run_id", run.to_string()),
            Refusal::RunBusy { until, .. } => problem.with("until", until.to_string()).retry_after(RETRY_SECONDS),
            _ => problem,
        }
    }
}

fn settled_by_nobody(problem: Problem, outcome: &'static str, at: holdpoint_core::time::Timestamp) -> Problem {
    problem.with("outcome", outcome).with("decided_by", serde_json::Value::Null).with("decided_at", at.to_string())
}

impl From<Fault> for Problem {
    fn from(fault: Fault) -> Self {
        let (status, title) = status_of(fault.code());
        match &fault {
            Fault::Left { run } => tracing::debug!(run.id = %run, "a run is left to whoever is next"),
            _ => tracing::warn!(code = fault.code(), error = &fault as &dyn std::error::Error, "the world failed"),
        }
        // Only the kind of disorder is told. A store's or model's own words may name files, addresses or queries.
        let detail = match &fault {
            Fault::Store(fault) if fault.kind == StoreFaultKind::Unknown => format!(
                "the store could not {}: {}; read it before you try again, or send the same decision again, which is no \
                 error if it was recorded",
                fault.doing, fault.kind
            ),
            Fault::Store(fault) => format!("the store could not {}: {}", fault.doing, fault.kind),
            Fault::Model { run, .. } => format!("run {run} could not go on: its model gave no reply"),
            other => other.to_string(),
        };
        let problem = Self::told(status, fault.code(), title, detail);
        if status == StatusCode::SERVICE_UNAVAILABLE { problem.retry_after(RETRY_SECONDS) } else { problem }
    }
}

impl From<RunError> for Problem {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Refused(refusal) => refusal.into(),
            RunError::Fault(fault) => fault.into(),
        }
    }
}
