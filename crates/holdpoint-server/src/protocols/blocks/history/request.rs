//! Requests to people in the history: open ones can be gone on with, settled ones show what became of them.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Value, json};

use super::super::wire::events::{ApprovalRequest, BlockDelta, RequestOutcome};
use super::message::{ActionRequest, Request};

/// A request that waits.
pub(super) fn asked(asked: ApprovalRequest, delta: Option<BlockDelta>) -> Request {
    let calls = asked.actions.into_iter().flatten().map(|action| ActionRequest {
        name: action.name,
        args: action.args.to_value(),
        tool_use_id: action.tool_use_id,
    });
    let questions = match delta {
        Some(BlockDelta::Questions(questions)) => questions.action_requests,
        _ => Vec::new(),
    };
    let questions = questions.into_iter().map(|question| ActionRequest {
        name: question.name,
        args: question.args.to_value(),
        tool_use_id: None,
    });
    Request {
        is_resolved: false,
        action_requests: calls.chain(questions).collect(),
        submitted_answers: None,
        submitted_decisions: None,
        outcome: None,
        approval_key: Some(asked.approval_key),
        pause: Some(value(&asked.pause)),
        subagent: asked.subagent.as_ref().map(value),
    }
}

/// The request is settled. Answers stand beside it and among the question's arguments.
pub(super) fn resolve(request: &mut Request, outcome: RequestOutcome, answers: Option<BTreeMap<String, String>>) {
    request.is_resolved = true;
    request.approval_key = None;
    request.pause = None;
    request.outcome = (outcome != RequestOutcome::Decided).then(|| outcome.name());
    if let (Some(answers), [question]) = (&answers, request.action_requests.as_mut_slice()) {
        question.args["answers"] = json!(answers);
    }
    request.submitted_answers = answers;
}

/// What the stream says, as it says it.
pub(super) fn value(said: &impl Serialize) -> Value {
    serde_json::to_value(said).unwrap_or_default()
}
