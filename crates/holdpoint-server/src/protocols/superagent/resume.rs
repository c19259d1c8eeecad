//! `POST /chat/resume`: a filled-in form decides what is held, and the answer is what follows.

use axum::extract::{Request, State};
use axum::response::Response;
use holdpoint_core::decision::DecisionInput;
use holdpoint_core::ids::RunId;
use holdpoint_core::pause::{Pause, PauseState};
use holdpoint_core::refusal::Refusal;
use holdpoint_runtime::RunError;

use super::answer::{self, Answer};
use super::follow::{Driving, Follow};
use super::frames::Narrator;
use super::refuse::Settled;
use super::standing::{Conversation, Held, Standing, find};
use super::{VIA, body, from_wire, refuse, to_wire};
use crate::access::{Action, Caller};
use crate::agents::ServedAgent;
use crate::app::App;
use crate::problem::Problem;
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

/// Records the decisions, one after the other and always in the same order: of many who resume at once, the one that
/// decides the first pause goes on, and the others have lost.
async fn decide(app: &App, caller: &Caller, held: &Held, answers: Vec<Answer>) -> Result<(), Problem> {
    let run = held.run.id();
    let (mut recorded, mut late) = (0, 0);
    for answer in answers {
        let input = DecisionInput {
            via: Some(VIA.to_owned()),
            groups: names(caller, held.run.pause(answer.pause)?),
            seen: answer.seen,
            ..DecisionInput::new(answer.pause, answer.decision, caller.actor.clone())
        };
        let lost = match app.runtime().decide_pause(input).await {
            Ok(decided) if !decided.is_repeat => None,
            Ok(decided) => Some(decided_at(&decided.pause)),
            Err(error) => Some(overtaken(error).inspect_err(|_| go_on_if(app, run, recorded))?),
        };
        match lost {
            None => recorded += 1,
            Some(settled) if recorded == 0 => return Err(refuse::no_pending_interrupt(settled)),
            Some(_) => late += 1,
        }
    }
    match late {
        0 => Ok(()),
        _ => {
            app.go_on(run);
            Err(refuse::partly_late())
        }
    }
}

/// What was recorded before an error counts: the run goes on with it.
fn go_on_if(app: &App, run: RunId, recorded: u32) {
    if recorded > 0 {
        app.go_on(run);
    }
}

/// What somebody else did first; an error that says nothing of the kind stays one.
fn overtaken(error: RunError) -> Result<Settled, Problem> {
    match error {
        RunError::Refused(Refusal::AlreadyDecided { at, .. }) => Ok(Settled::Decided(at)),
        RunError::Refused(Refusal::Expired { at, .. }) => Ok(Settled::Expired(at)),
        RunError::Refused(Refusal::Withdrawn { .. }) => Ok(Settled::Never),
        error => Err(error.into()),
    }
}

fn decided_at(pause: &Pause) -> Settled {
    match &pause.state {
        PauseState::Decided(decided) => Settled::Decided(decided.at),
        _ => Settled::Never,
    }
}
