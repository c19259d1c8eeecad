//! From events of a session to frames of a stream.

use holdpoint_core::event::{RunEnd, RunEvent};
use holdpoint_core::ids::{PauseId, RunId, SessionId};
use holdpoint_core::pause::{DecidedPause, PauseState};
use holdpoint_core::text::visible;
use holdpoint_core::tool::{Allowance, Outcome, ToolKind};
use holdpoint_runtime::ports::model::Delta;
use holdpoint_runtime::use_cases::WatchItem;

use super::to_wire;
use super::wire;
use super::wire::{Call, Delta as DeltaData, DeltaKind, Event, EventData, Guardrail};
use crate::problem::Problem;
use crate::sse::Frame;

/// The frame of one thing that a watcher sees.
pub(super) fn frame(session: &SessionId, item: &WatchItem) -> Frame {
    match item {
        WatchItem::Event { seq, run, at, event } => {
            let data = Event {
                seq: *seq,
                kind: event.name(),
                session_id: session.to_string(),
                run_id: run.to_string(),
                at: at.to_string(),
                data: data(*run, *at, event),
            };
            Frame::json(&data).event(event.name()).id(*seq)
        }
        WatchItem::Delta { run, frame, delta } => Frame::json(&spoken(*run, frame.to_string(), delta)).event("delta"),
    }
}

/// The last frame of a server that stops: the client comes back and goes on where it was.
pub(super) fn farewell() -> Vec<Frame> {
    vec![Frame::json(&serde_json::json!({"code": "stopping"})).event("server.stopping").retry(2_000)]
}

/// The frame of trouble in the middle of a stream, whose status was sent long ago.
pub(super) fn trouble(problem: &Problem) -> Frame {
    Frame::json(&problem.to_json()).event("error")
}

fn spoken(run: RunId, path: String, delta: &Delta) -> DeltaData {
    let run_id = run.to_string();
    let of = |kind, text: &String| DeltaData { run_id, path, kind, text: text.clone(), tool_call_id: None, tool: None };
    match delta {
        Delta::Text(text) => of(DeltaKind::Text, text),
        Delta::Thinking(text) => of(DeltaKind::Thinking, text),
        Delta::Arguments { id, tool, text } => {
            DeltaData { tool_call_id: Some(id.clone()), tool: Some(tool.clone()), ..of(DeltaKind::Arguments, text) }
        }
    }
}

fn data(run: RunId, at: holdpoint_core::time::Timestamp, event: &RunEvent) -> EventData {
    let pause_id = |number: u32| PauseId { run, number }.to_string();
    match event {
        RunEvent::RunStarted(started) => EventData::Started {
            agent: started.agent.id.to_string(),
            input: started.input.to_text(),
            started_by: started.by.to_string(),
        },
        RunEvent::ModelReplied(replied) => EventData::Replied {
            path: replied.frame.to_string(),
            text: replied.text.clone(),
            calls: replied.calls.iter().map(call).collect(),
            usage: wire::Usage {
                requests: replied.usage.requests,
                input_tokens: replied.usage.input_tokens,
                output_tokens: replied.usage.output_tokens,
            },
        },
        RunEvent::ReplyRefused(refused) => EventData::Refused {
            path: refused.frame.to_string(),
            code: refused.code.clone(),
            message: visible(&refused.message),
        },
        RunEvent::GuardrailsRan(ran) => EventData::Guardrails {
            path: ran.at.to_string(),
            results: ran
                .results
                .iter()
                .map(|said| Guardrail { name: said.name.clone(), objection: said.objection.clone() })
                .collect(),
        },
        RunEvent::CallAllowed(allowed) => {
            EventData::Judged { path: allowed.call.to_string(), by: allowance(run, &allowed.by) }
        }
        RunEvent::CallDenied(denied) => EventData::Judged { path: denied.call.to_string(), by: denied.by.to_string() },
        RunEvent::PauseOpened(opened) => EventData::Opened {
            pause_id: pause_id(opened.number),
            kind: opened.kind.name(),
            path: opened.at.to_string(),
            args_sha256: opened.sha256.map(|digest| digest.to_string()),
            reason: opened.reason.as_deref().map(visible),
            expires_at: opened.expires_at.map(|at| at.to_string()),
        },
        RunEvent::PauseVoted(voted) => EventData::Voted { pause_id: pause_id(voted.number), by: voted.by.to_string() },
        RunEvent::PauseDecided(decided) => {
            let state = PauseState::Decided(DecidedPause {
                decision: decided.decision.clone(),
                by: decided.by.clone(),
                via: decided.via.clone(),
                request: decided.request.clone(),
                manner: decided.manner,
                at,
            });
            match to_wire::decision(&state) {
                Some(decision) => EventData::Decided { pause_id: pause_id(decided.number), decision },
                None => EventData::Nothing {},
            }
        }
        RunEvent::PauseExpired(expired) => EventData::Expired { pause_id: pause_id(expired.number) },
        RunEvent::PauseWithdrawn(withdrawn) => {
            EventData::Withdrawn { pause_id: pause_id(withdrawn.number), reason: visible(&withdrawn.reason) }
        }
        RunEvent::CallStarted(started) => EventData::Place { path: started.call.to_string() },
        RunEvent::CallReleased(released) => EventData::Place { path: released.call.to_string() },
        RunEvent::HandedOff(handed) => EventData::Place { path: handed.call.to_string() },
        RunEvent::CallAnswered(answered) => EventData::Answered {
            path: answered.call.to_string(),
            outcome: outcome(&answered.outcome),
            output: answered.outcome.to_output(&ToolKind::Function).to_text(),
        },
        RunEvent::InputStaged(staged) => {
            EventData::Staged { input: staged.content.to_text(), by: staged.by.to_string() }
        }
        RunEvent::RuleMade(rule) => EventData::Rule { rule_id: rule.id.to_string(), by: rule.author.to_string() },
        RunEvent::RuleRevoked(revoked) => {
            EventData::Rule { rule_id: revoked.rule.to_string(), by: revoked.by.to_string() }
        }
        RunEvent::AgentSet(set) => EventData::Agent { path: set.frame.to_string(), agent: set.agent.id.to_string() },
        RunEvent::RunFinished(end) => finished(end),
        // The application's own context is nobody else's; and what a newer core tells, an older wire has no words for.
        RunEvent::ContextSet(_) | _ => EventData::Nothing {},
    }
}

fn finished(end: &RunEnd) -> EventData {
    let (output, told) = to_wire::end(end);
    let status = match end {
        RunEnd::Done(_) => wire::RunStatus::Done,
        RunEnd::Failed { .. } => wire::RunStatus::Failed,
        RunEnd::Cancelled { .. } => wire::RunStatus::Cancelled,
    };
    EventData::Finished { status, output, end: told }
}

fn call(record: &holdpoint_core::tool::CallRecord) -> Call {
    Call {
        tool_call_id: record.call_id.clone(),
        tool: record.tool.to_string(),
        args: record.arguments.clone(),
        problem: record.problem.clone(),
    }
}

fn allowance(run: RunId, by: &Allowance) -> String {
    match by {
        Allowance::Policy => "policy".to_owned(),
        Allowance::Rule(rule) => rule.to_string(),
        Allowance::Decider(actor) => actor.to_string(),
        Allowance::Pause(number) => PauseId { run, number: *number }.to_string(),
    }
}

fn outcome(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Result(_) => "result",
        Outcome::Failure(_) => "failure",
        Outcome::Invalid(_) => "invalid",
        Outcome::Denied(_) => "denied",
        Outcome::Responded(_) => "responded",
        Outcome::Expired => "expired",
        Outcome::Withdrawn => "withdrawn",
        Outcome::Abandoned => "abandoned",
    }
}
