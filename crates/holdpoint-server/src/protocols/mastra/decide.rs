//! Decisions about calls, by their ids: recorded first, then the answer is what follows.

use axum::extract::{Path, Request, State};
use axum::response::Response;
use holdpoint_core::decision::{Decision, DecisionInput};
use holdpoint_core::pause::PauseState;
use holdpoint_core::refusal::Refusal;
use holdpoint_core::run::Run;
use holdpoint_runtime::RunError;

use super::calls::{self, Named};
use super::follow::{AtPause, Follow};
use super::from_wire::{Body, DecideRequest, Verb};
use super::place::{Place, run_of};
use super::resume_data::{Given, decision};
use super::{VIA, answer, changed, origin, refuse};
use crate::access::{Action, Caller};
use crate::app::App;
use crate::problem::Problem;
use crate::protocols::native::decide::{check_may_decide, names};

pub(super) async fn approve(app: State<App>, caller: Caller, agent: Path<String>, request: Request) -> Answer {
    stream(app, caller, agent, request, Verb::Approve).await
}

pub(super) async fn decline(app: State<App>, caller: Caller, agent: Path<String>, request: Request) -> Answer {
    stream(app, caller, agent, request, Verb::Decline).await
}

pub(super) async fn resume_stream(app: State<App>, caller: Caller, agent: Path<String>, request: Request) -> Answer {
    stream(app, caller, agent, request, Verb::Resume).await
}

pub(super) async fn approve_generate(app: State<App>, caller: Caller, agent: Path<String>, request: Request) -> Answer {
    generate(app, caller, agent, request, Verb::Approve).await
}

pub(super) async fn decline_generate(app: State<App>, caller: Caller, agent: Path<String>, request: Request) -> Answer {
    generate(app, caller, agent, request, Verb::Decline).await
}

type Answer = Result<Response, Problem>;

async fn stream(
    State(app): State<App>,
    caller: Caller,
    Path(agent): Path<String>,
    request: Request,
    verb: Verb,
) -> Answer {
    let permit = app.streams().take(&caller.actor)?;
    Ok(follow(app, caller, &agent, request, verb).await?.respond(permit))
}

async fn generate(
    State(app): State<App>,
    caller: Caller,
    Path(agent): Path<String>,
    request: Request,
    verb: Verb,
) -> Answer {
    let permit = app.streams().take(&caller.actor)?;
    let mut follow = follow(app, caller, &agent, request, verb).await?;
    follow.at_pause = AtPause::End;
    Ok(answer::respond(follow, permit))
}

async fn follow(app: App, caller: Caller, agent: &str, request: Request, verb: Verb) -> Result<Follow, Problem> {
    caller.check(Action::ReadPause)?;
    let DecideRequest { run, call, given, at_pause } = Body::read(&app, request).await?.decide(verb)?;
    let run = run_of(&app, &caller, agent, origin::run_id(&run)).await?;
    let named = meant(&run, call.as_deref())?;
    let is_repeat = record(&app, &caller, &run, &named, &given).await?;
    let place = Place::decision(&app, named.view.id(), &caller.actor).await?;
    let mut follow = place.follow(app.clone(), caller, is_repeat, at_pause);
    changed::check_asked_again(&app, &named, &mut follow).await?;
    Ok(follow)
}

/// The question that is meant: by name, or the only one that waits.
fn meant(run: &Run, call: Option<&str>) -> Result<Named, Problem> {
    let waiting = calls::waiting_names(run);
    match (call, &waiting[..]) {
        (Some(name), _) => calls::all(run)
            .into_iter()
            .find(|named| named.name == name)
            .ok_or_else(|| refuse::tool_call_not_suspended(name, &waiting)),
        (None, [_]) => calls::waiting(run).pop().ok_or_else(|| not_suspended(run)),
        (None, []) => calls::all(run).pop().ok_or_else(|| not_suspended(run)),
        (None, several) => Err(refuse::ambiguous_target(several)),
    }
}

fn not_suspended(run: &Run) -> Problem {
    refuse::run_not_suspended(if run.end().is_some() { "over" } else { "under way" })
}

/// Records a decision; says whether the same one was recorded before.
pub(super) async fn record(
    app: &App,
    caller: &Caller,
    run: &Run,
    named: &Named,
    given: &Given,
) -> Result<bool, Problem> {
    let (id, pause) = (named.view.id(), &named.view.pause);
    let decision = decision(named, given)?;
    check_may_decide(app, caller, run, pause, &decision, false)?;
    changed::check(app, run, named, &decision).await?;
    let input = DecisionInput {
        via: Some(VIA.to_owned()),
        groups: names(caller, pause),
        ..DecisionInput::new(id, decision.clone(), caller.actor.clone())
    };
    match app.runtime().decide_pause(input).await {
        Ok(decided) => Ok(decided.is_repeat),
        Err(RunError::Refused(Refusal::AlreadyDecided { outcome, by, at, .. })) => {
            match is_same_refusal(app, run, named, &decision).await? {
                true => Ok(true),
                false => Err(refuse::decided_otherwise(&named.name, outcome, by.as_str(), at)),
            }
        }
        Err(RunError::Refused(Refusal::Expired { at, .. })) => Err(refuse::expired(&named.name, at)),
        Err(RunError::Refused(Refusal::Withdrawn { at, .. })) => Err(refuse::withdrawn(&named.name, at)),
        Err(RunError::Refused(Refusal::InvalidAnswers { problem, .. })) => Err(refuse::invalid_resume_data(problem)),
        Err(error) => Err(error.into()),
    }
}

/// A no is a no, whatever its reason: the first one stands.
async fn is_same_refusal(app: &App, run: &Run, named: &Named, decision: &Decision) -> Result<bool, Problem> {
    if !matches!(decision, Decision::Deny { .. }) {
        return Ok(false);
    }
    let now = app.runtime().read_run(run.id()).await?;
    let state = now.pause(named.view.id()).map(|pause| pause.state.clone());
    Ok(matches!(state, Ok(PauseState::Decided(first)) if matches!(first.decision, Decision::Deny { .. })))
}
