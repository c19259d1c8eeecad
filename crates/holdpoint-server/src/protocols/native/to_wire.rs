//! From what is known to what is sent.

use holdpoint_core::decision::{Decision, Manner};
use holdpoint_core::event::RunEnd;
use holdpoint_core::pause::{PauseKind, PauseState, PauseView, Subject, questions};
use holdpoint_core::policy::OnTimeout;
use holdpoint_core::run::Run;
use holdpoint_core::step::Step;
use holdpoint_core::text::visible;
use holdpoint_core::time::Timestamp;
use holdpoint_core::tool::Effect;
use holdpoint_runtime::ports::store::{PauseRow, PauseStatus};

use super::dossier::{Dossier, PauseFile};
use super::wire;
use crate::agents::{Held, ServedAgent, ToolCard};
use crate::requests;

pub(super) fn agent_summary(agent: &ServedAgent) -> wire::AgentSummary {
    wire::AgentSummary {
        name: agent.name.clone(),
        description: agent.description.clone(),
        kind: agent.kind.clone(),
        version: agent.version.clone(),
        labels: agent.labels.clone(),
        demo: agent.demo.as_ref().map(|demo| wire::Demo { message: demo.message.clone(), shows: demo.shows.clone() }),
    }
}

pub(super) fn agent(agent: &ServedAgent) -> wire::Agent {
    wire::Agent { summary: agent_summary(agent), tools: agent.tools.iter().map(tool).collect() }
}

fn tool(card: &ToolCard) -> wire::Tool {
    wire::Tool {
        name: card.name.to_string(),
        agent: card.agent.to_string(),
        description: card.description.clone(),
        parameters: card.parameters.clone(),
        held: match card.held {
            Held::Never => wire::Held::Never,
            Held::Sometimes => wire::Held::Sometimes,
            Held::Always => wire::Held::Always,
        },
        effect: match card.effect {
            Effect::ReadOnly => wire::Effect::ReadOnly,
            Effect::Idempotent => wire::Effect::Idempotent,
            Effect::AtMostOnce => wire::Effect::AtMostOnce,
        },
    }
}

/// A run as it stands, with the pauses that are open.
pub(super) fn run(dossier: &Dossier) -> wire::Run {
    let run = &dossier.run;
    let (output, end) = run.end().map(end).unwrap_or_default();
    let usage = run.usage();
    wire::Run {
        run_id: run.id().to_string(),
        session_id: run.session().map(ToString::to_string).unwrap_or_default(),
        agent: run.agent().map(|agent| agent.id.to_string()).unwrap_or_default(),
        status: status(run),
        started_by: run.started_by().map(ToString::to_string),
        started_at: run.started_at().map(|at| at.to_string()),
        output,
        end,
        pauses: dossier.open().map(|file| pause(dossier, file)).collect(),
        usage: wire::Usage {
            requests: usage.requests,
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
        },
    }
}

/// What a run came to: its output, or why there is none.
pub(super) fn end(end: &RunEnd) -> (Option<String>, Option<wire::RunEnd>) {
    match end {
        RunEnd::Done(content) => (Some(content.to_text()), None),
        RunEnd::Failed { code, message } => {
            (None, Some(wire::RunEnd { code: code.clone(), message: visible(message), by: None }))
        }
        RunEnd::Cancelled { by, reason, .. } => {
            let (code, message) = ("cancelled".to_owned(), visible(reason));
            (None, Some(wire::RunEnd { code, message, by: Some(by.to_string()) }))
        }
    }
}

pub(super) fn status(run: &Run) -> wire::RunStatus {
    match run.next_step() {
        Step::Work(_) | Step::AwaitCalls => wire::RunStatus::Running,
        Step::AwaitDecisions { .. } => wire::RunStatus::Paused,
        Step::Finished(RunEnd::Done(_)) => wire::RunStatus::Done,
        Step::Finished(RunEnd::Failed { .. }) => wire::RunStatus::Failed,
        Step::Finished(RunEnd::Cancelled { .. }) => wire::RunStatus::Cancelled,
    }
}

/// A pause with what it was opened with, and how it stands now.
pub(super) fn pause(dossier: &Dossier, file: &PauseFile) -> wire::Pause {
    let session = dossier.run.session().map(ToString::to_string).unwrap_or_default();
    pause_of(&dossier.run, &file.view, format!("{session}_{}", file.group), file.expires_at)
}

/// A pause of a run, with the key that pauses opened together share, and until when it waits or waited.
pub(super) fn pause_of(run: &Run, view: &PauseView, key: String, expires_at: Option<Timestamp>) -> wire::Pause {
    let (pause, id) = (&view.pause, view.id());
    let session = run.session().map(ToString::to_string).unwrap_or_default();
    let path = match &pause.subject {
        Subject::Call { path, .. } => path,
        Subject::Words { frame, .. } => frame,
    };
    wire::Pause {
        id: id.to_string(),
        key,
        kind: kind(pause.kind),
        status: pause_status(&pause.state),
        session_id: session,
        run_id: id.run.to_string(),
        agent: view.agent.to_string(),
        path: path.to_string().split('/').filter(|place| !place.is_empty()).map(str::to_owned).collect(),
        tool: view.tool().map(ToString::to_string),
        tool_call_id: view.call.as_ref().map(|call| call.call_id.clone()),
        args: view.arguments().cloned(),
        args_text: view.arguments().map(|arguments| arguments.as_str().to_owned()),
        args_sha256: view.call.as_ref().map(|call| call.digest.to_string()),
        questions: asked(view),
        reason: reason(view),
        rule: pause.terms.rule.clone(),
        allowed_decisions: allowed(view),
        approvers: pause.terms.approvers.clone(),
        approvals_needed: pause.approvals_needed(),
        approvals: pause
            .approvals
            .iter()
            .map(|vote| wire::Vote { by: vote.by.to_string(), at: vote.at.to_string(), via: vote.via.clone() })
            .collect(),
        created_at: pause.opened_at.to_string(),
        expires_at: expires_at.map(|at| at.to_string()),
        on_timeout: match pause.terms.on_timeout {
            OnTimeout::Deny => wire::OnTimeout::Deny,
            OnTimeout::Approve => wire::OnTimeout::Approve,
        },
        request_id: requests::request_of(run).map(|request| request.to_string()),
        decision: decision(&pause.state),
        unreadable: false,
    }
}

/// A pause of a run whose journal cannot be read: what its row says. Nobody can decide it as it is.
pub(super) fn unreadable_pause(row: &PauseRow) -> wire::Pause {
    wire::Pause {
        id: row.id.to_string(),
        key: format!("{}_{}", row.session, row.group),
        kind: kind(row.kind),
        status: row_status(row.status),
        session_id: row.session.to_string(),
        run_id: row.id.run.to_string(),
        agent: row.agent.to_string(),
        path: Vec::new(),
        tool: row.tool.as_ref().map(ToString::to_string),
        tool_call_id: None,
        args: None,
        args_text: None,
        args_sha256: None,
        questions: None,
        reason: None,
        rule: None,
        allowed_decisions: Vec::new(),
        approvers: Vec::new(),
        approvals_needed: 1,
        approvals: Vec::new(),
        created_at: row.opened_at.to_string(),
        expires_at: row.expires_at.map(|at| at.to_string()),
        on_timeout: wire::OnTimeout::Deny,
        request_id: None,
        decision: None,
        unreadable: true,
    }
}

fn row_status(status: PauseStatus) -> wire::PauseStatus {
    match status {
        PauseStatus::Open => wire::PauseStatus::Open,
        PauseStatus::Decided => wire::PauseStatus::Decided,
        PauseStatus::Expired => wire::PauseStatus::Expired,
        PauseStatus::Withdrawn => wire::PauseStatus::Withdrawn,
    }
}

fn kind(kind: PauseKind) -> wire::PauseKind {
    match kind {
        PauseKind::Approval => wire::PauseKind::Approval,
        PauseKind::Question => wire::PauseKind::Question,
        PauseKind::Confirmation => wire::PauseKind::Confirmation,
        PauseKind::InDoubt => wire::PauseKind::InDoubt,
    }
}

fn pause_status(state: &PauseState) -> wire::PauseStatus {
    match state {
        PauseState::Open { .. } => wire::PauseStatus::Open,
        PauseState::Decided(decided) if decided.manner == Manner::Superseded => wire::PauseStatus::Superseded,
        PauseState::Decided(_) => wire::PauseStatus::Decided,
        PauseState::Expired { .. } => wire::PauseStatus::Expired,
        PauseState::Withdrawn { .. } => wire::PauseStatus::Withdrawn,
    }
}

fn reason(view: &PauseView) -> Option<String> {
    let words = match &view.pause.subject {
        Subject::Words { text, .. } => Some(text),
        Subject::Call { .. } => None,
    };
    words.or(view.pause.reason.as_ref()).map(|text| visible(text))
}

fn asked(view: &PauseView) -> Option<Vec<wire::Question>> {
    if view.kind() != PauseKind::Question {
        return None;
    }
    let asked = questions(view.arguments()?).ok()?;
    let option = |option: holdpoint_core::pause::QuestionOption| wire::QuestionOption {
        label: option.label,
        description: option.description,
        input: option.input,
    };
    Some(
        asked
            .into_iter()
            .map(|question| wire::Question {
                question: question.question,
                header: question.header,
                options: question.options.into_iter().map(option).collect(),
                multi_select: question.multi_select,
            })
            .collect(),
    )
}

/// What answers a pause of this kind, as long as it is open.
fn allowed(view: &PauseView) -> Vec<wire::DecisionType> {
    if !view.pause.is_open() {
        return Vec::new();
    }
    let takes_edits = view.pause.terms.takes_one();
    let all = view.kind().allowed_decisions().iter().filter_map(|name| decision_type(name));
    all.filter(|kind| takes_edits || *kind != wire::DecisionType::ApproveEdited).collect()
}

fn decision_type(name: &str) -> Option<wire::DecisionType> {
    use wire::DecisionType as Type;
    Some(match name {
        "approve" => Type::Approve,
        "approve_edited" => Type::ApproveEdited,
        "deny" => Type::Deny,
        "respond" => Type::Respond,
        "answer" => Type::Answer,
        "happened" => Type::Happened,
        "run_again" => Type::RunAgain,
        "abandon" => Type::Abandon,
        _ => return None,
    })
}

pub(super) fn decision(state: &PauseState) -> Option<wire::Decision> {
    let PauseState::Decided(decided) = state else { return None };
    let mut told = wire::Decision {
        kind: decision_type(decided.decision.name())?,
        by: decided.by.to_string(),
        at: decided.at.to_string(),
        via: decided.via.clone(),
        message: None,
        args: None,
        content: None,
        answers: None,
    };
    match &decided.decision {
        Decision::Approve | Decision::RunAgain | Decision::Abandon => {}
        Decision::ApproveEdited { arguments } => told.args = Some(arguments.clone()),
        Decision::Deny { message } => told.message.clone_from(message),
        Decision::Respond { content } => told.content = Some(content.clone()),
        Decision::Answer { answers } => told.answers = Some(answers.clone()),
        Decision::Happened { result } => told.content = Some(result.to_text()),
    }
    Some(told)
}
