//! Somebody decides a pause.

use axum::Json;
use axum::extract::State;
use holdpoint_core::decision::{Decision, DecisionInput, Manner};
use holdpoint_core::ids::PauseId;
use holdpoint_core::pause::{DecidedPause, Pause, PauseKind, PauseState, Subject};
use holdpoint_core::refusal::Refusal;
use holdpoint_core::run::Run;
use holdpoint_runtime::RunError;
use http::HeaderMap;

use super::dossier::Dossier;
use super::path::Named;
use super::rest::{Wait, rests};
use super::{VIA, edited, from_wire, idempotency, pauses, to_wire, wire};
use crate::access::{Action, Caller};
use crate::app::App;
use crate::limits::{JsonBody, Query};
use crate::problem::{Code, Problem};

/// Decides a pause.
///
/// The decision is durable when the answer is given, and the run goes on by itself. The first decision counts: a later
/// one is told who decided, when and how, with 409. The same `Idempotency-Key` from the same caller gets the first
/// answer again. Unknown fields are refused, as are fields that do not belong to the decision.
#[utoipa::path(
    post,
    path = "/api/v1/pauses/{id}/decide",
    tag = "pauses",
    operation_id = "decide_pause",
    params(
        ("id" = String, Path, description = "The pause."),
        ("wait" = Option<u64>, Query, description = "How many seconds to wait for what follows.", minimum = 0, maximum = 60),
        ("Idempotency-Key" = Option<String>, Header, description = "The caller\'s own name of the request.", min_length = 1, max_length = 255, pattern = "^[!-~]([ -~]*[!-~])?$"),
    ),
    request_body = wire::DecideBody,
    responses((status = 200, description = "The pause as it now is.", body = wire::DecidedPause))
)]
pub(super) async fn decide(
    State(app): State<App>,
    caller: Caller,
    query: Query,
    headers: HeaderMap,
    Named(id): Named<PauseId>,
    JsonBody(body): JsonBody<wire::DecideBody>,
) -> Result<Json<wire::DecidedPause>, Problem> {
    caller.check(Action::ReadPause)?;
    let wait = Wait::read(&app, &caller, &query.only(&["wait"])?)?;
    let key = from_wire::idempotency_key(&headers)?;
    let given = from_wire::decision(body)?;
    let dossier = pauses::visible(&app, &caller, id).await?;
    let pause = dossier.run.pause(id)?;
    check_may_decide(&app, &caller, &dossier.run, pause, &given.decision, given.rule.is_some())?;
    check_edit(&app, &dossier.run, pause, &given.decision).await?;
    let input = DecisionInput {
        via: Some(VIA.to_owned()),
        groups: names(&caller, pause),
        request: key.clone(),
        seen: given.seen,
        rule: given.rule,
        ..DecisionInput::new(id, given.decision, caller.actor.clone())
    };
    record(&app, &caller, input, key.as_deref()).await?;
    app.go_on(id.run);
    let (after, followed) = match wait {
        Some(wait) => (wait.until(&app, id.run, rests).await?, true),
        None => (Dossier::read(app.runtime(), id.run).await?, false),
    };
    let run = followed.then(|| to_wire::run(&after));
    Ok(Json(wire::DecidedPause { pause: pauses::shown(&after, id)?, run }))
}

/// Records a decision. One that was made before is an error, unless this is the same request once more.
pub(crate) async fn record(app: &App, caller: &Caller, input: DecisionInput, key: Option<&str>) -> Result<(), Problem> {
    let (id, decision) = (input.pause, input.decision.clone());
    match app.runtime().decide_pause(input).await {
        // A vote that was cast before, or a decision that was made before: by whom, and under which key?
        Ok(decided) if decided.is_repeat => match &decided.pause.state {
            PauseState::Decided(first) if first.manner == Manner::Superseded => Err(superseded(first)),
            PauseState::Decided(first)
                if key.is_some() && first.request.as_deref() == key && first.by == caller.actor =>
            {
                Ok(())
            }
            PauseState::Decided(first) => Err(Refusal::AlreadyDecided {
                pause: id,
                outcome: first.decision.name(),
                by: first.by.clone(),
                at: first.at,
            }
            .into()),
            _ => Ok(()),
        },
        Ok(_) => Ok(()),
        Err(error) if matches!(error.refusal(), Some(Refusal::AlreadyDecided { .. })) => {
            let run = app.runtime().read_run(id.run).await?;
            if let Ok(PauseState::Decided(first)) = run.pause(id).map(|pause| &pause.state)
                && first.manner == Manner::Superseded
            {
                return Err(superseded(first));
            }
            let is_reused = key.is_some() && was_decided_under(&run, id, caller, key, &decision);
            Err(if is_reused { idempotency::reused() } else { error.into() })
        }
        Err(error) => Err(error.into()),
    }
}

/// Somebody sent a newer message instead of deciding.
fn superseded(first: &DecidedPause) -> Problem {
    Problem::new(Code::SUPERSEDED, "a newer message took the place of this pause: look for a new one")
        .with("outcome", "superseded")
        .with("decided_by", first.by.to_string())
        .with("decided_at", first.at.to_string())
}

/// Whether the same caller decided something else under the same key.
fn was_decided_under(run: &Run, id: PauseId, caller: &Caller, key: Option<&str>, decision: &Decision) -> bool {
    match run.pause(id).map(|pause| &pause.state) {
        Ok(PauseState::Decided(first)) => {
            first.by == caller.actor && first.request.as_deref() == key && first.decision != *decision
        }
        _ => false,
    }
}

/// The names under which the caller decides. The person at the machine acts for everybody.
pub(crate) fn names(caller: &Caller, pause: &Pause) -> Vec<String> {
    if caller.is_solo { pause.terms.approvers.clone() } else { caller.approver_names() }
}

/// Whether the caller may decide this at all, and whether they may as the one who asked for the call.
pub(crate) fn check_may_decide(
    app: &App,
    caller: &Caller,
    run: &Run,
    pause: &Pause,
    decision: &Decision,
    makes_rule: bool,
) -> Result<(), Problem> {
    let action = action(pause.kind, decision);
    for action in [Some(action), makes_rule.then_some(Action::MakeRule)].into_iter().flatten() {
        caller.check(action)?;
        if !caller.sees(action, run.started_by()) {
            return Err(Problem::new(Code::FORBIDDEN, "you may decide only about runs of your own"));
        }
    }
    match action == Action::Approve && !app.access().may_approve_for(caller, run.started_by()) {
        true => Err(Problem::new(
            Code::SELF_APPROVAL,
            "you started this run, so somebody else must approve its calls; you may still deny them",
        )),
        false => Ok(()),
    }
}

/// Whether edited arguments may take the place of those that an open pause holds: as far as a person would be shown the
/// same again, and as the tool's schema and policy say. The schema is looked at once more with the decision, by whatever
/// door it comes.
pub(crate) async fn check_edit(app: &App, run: &Run, pause: &Pause, decision: &Decision) -> Result<(), RunError> {
    let Decision::ApproveEdited { arguments } = decision else { return Ok(()) };
    let Subject::Call { path, .. } = &pause.subject else { return Ok(()) };
    if !pause.is_open() {
        return Ok(());
    }
    let held = run.call(path).map(|call| &call.arguments);
    edited::check(pause.id, arguments, held)?;
    match app.graph_of(pause.id.run).await {
        Ok(graph) => app.runtime().check_edit_by_policy(pause.id, arguments, &graph).await,
        // Nothing runs without the agent: whoever brings it back has the policy asked.
        Err(RunError::Refused(Refusal::AgentMissing(_))) => Ok(()),
        Err(error) => Err(error),
    }
}

/// What a decision is to the access rules: letting something happen needs more than answering or stopping it.
fn action(kind: PauseKind, decision: &Decision) -> Action {
    match (kind, decision) {
        (PauseKind::Question | PauseKind::Confirmation, _) => Action::Answer,
        (PauseKind::Approval | PauseKind::InDoubt, Decision::Deny { .. } | Decision::Abandon) => Action::Answer,
        (PauseKind::Approval | PauseKind::InDoubt, _) => Action::Approve,
    }
}
