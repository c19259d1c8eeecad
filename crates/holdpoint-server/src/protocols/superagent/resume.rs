//! `POST /chat/resume`: a filled-in form decides what is held, and the answer is what follows.

use axum::extract::{Request, State};
use axum::response::Response;
use holdpoint_core::decision::DecisionInput;
use holdpoint_core::ids::RunId;
use holdpoint_core::pause::PauseState;
use holdpoint_core::refusal::Refusal;
use holdpoint_runtime::RunError;
use holdpoint_runtime::use_cases::Decided;

use super::answer::{self, Answer};
use super::follow::Follow;
use super::frames::Narrator;
use super::refuse::Settled;
use super::standing::{Conversation, Held, Standing, find};
use super::{VIA, body, from_wire, refuse, to_wire};
use crate::access::{Action, Caller};
use crate::agents::ServedAgent;
use crate::app::App;
use crate::problem::Problem;
use crate::protocols::driving::Driving;
use crate::protocols::native::decide::{check_may_decide, names};

pub(super) async fn resume(State(app): State<App>, caller: Caller, request: Request) -> Result<Response, Problem> {
    from_wire::accept(request.headers())?;
    let mode = from_wire::mode(request.headers(), request.uri())?;
    let asked = from_wire::resume(&body::read(&app, request).await?)?;
    let (agent, conversation) = find(&app, &asked.place).await?;
    let held = held(&caller, conversation, &agent)?;
    check_checkpoint(&held, &agent, &asked)?;
    let answers = answer::decisions(&to_wire::form(&held, &agent), &asked.input)?;
    check_rights(&app, &caller, &held, &answers)?;
    let permit = app.streams().take(&caller.actor)?;
    // Watching begins before the decision, so that nothing falls in between.
    let watch = app.runtime().watch_session(&asked.place.session, held.next_seq);
    let run = held.run.id();
    decide(&app, &caller, &held, answers).await?;
    let driver = app.clone();
    let drive = app.tasks().spawn(async move { driver.drive(run).await });
    let follow = Follow {
        narrator: Narrator::new(held.run, agent.clone()),
        app,
        caller,
        agent,
        session: asked.place.session,
        watch,
        seen: [].into(),
        drive: Driving::UnderWay(drive),
    };
    Ok(follow.respond(mode, permit))
}

/// What is held of this agent in this session, if the caller may know of it.
fn held(caller: &Caller, conversation: Conversation, agent: &ServedAgent) -> Result<Held, Problem> {
    let is_within_reach = conversation.is_within_reach(caller, Action::ReadPause);
    match conversation.standing {
        _ if !is_within_reach => Err(refuse::session_not_found()),
        Standing::Held(held) => Ok(*held),
        standing if agent.interrupt.is_none() && standing.settled() == Settled::Never => {
            Err(refuse::interrupt_not_supported(&agent.name))
        }
        standing => Err(refuse::no_pending_interrupt(standing.settled())),
    }
}

fn check_checkpoint(held: &Held, agent: &ServedAgent, asked: &from_wire::ResumeRequest) -> Result<(), Problem> {
    let now = to_wire::checkpoint(held, agent, &asked.place.session);
    match &asked.checkpoint {
        Some(seen) if *seen != now => Err(refuse::stale_checkpoint(&now)),
        _ => Ok(()),
    }
}

/// Whether the caller may make every one of these decisions.
fn check_rights(app: &App, caller: &Caller, held: &Held, answers: &[Answer]) -> Result<(), Problem> {
    answers.iter().try_for_each(|answer| {
        let pause = held.run.pause(answer.pause)?;
        check_may_decide(app, caller, &held.run, pause, &answer.decision, false)
    })
}

/// Records the decisions, all of them or none: of many who resume at once, the first goes on, and the others have lost.
async fn decide(app: &App, caller: &Caller, held: &Held, answers: Vec<Answer>) -> Result<(), Problem> {
    let input = |answer: Answer| {
        let groups = names(caller, held.run.pause(answer.pause)?);
        Ok(DecisionInput {
            via: Some(VIA.to_owned()),
            groups,
            seen: answer.seen,
            ..DecisionInput::new(answer.pause, answer.decision, caller.actor.clone())
        })
    };
    let inputs = answers.into_iter().map(input).collect::<Result<Vec<_>, Refusal>>()?;
    match app.runtime().decide_pauses(inputs).await {
        Ok(decided) if decided.iter().any(|decided| !decided.is_repeat) => Ok(()),
        // All of it was recorded before, in the very same words.
        Ok(decided) => Err(refuse::no_pending_interrupt(decided.first().map_or(Settled::Never, settled))),
        Err(error) => Err(overtaken(app, held.run.id(), error).await?),
    }
}

/// What somebody else did first; an error that says nothing of the kind stays one.
async fn overtaken(app: &App, run: RunId, error: RunError) -> Result<Problem, Problem> {
    let settled = match error {
        RunError::Refused(Refusal::AlreadyDecided { at, .. }) => Settled::Decided(at),
        RunError::Refused(Refusal::Expired { at, .. }) => Settled::Expired(at),
        RunError::Refused(Refusal::Withdrawn { .. }) => Settled::Never,
        error => return Err(error.into()),
    };
    let is_held = !app.runtime().read_run(run).await?.open_pauses().is_empty();
    Ok(if is_held { refuse::partly_settled() } else { refuse::no_pending_interrupt(settled) })
}

fn settled(decided: &Decided) -> Settled {
    match &decided.pause.state {
        PauseState::Decided(decided) => Settled::Decided(decided.at),
        _ => Settled::Never,
    }
}
