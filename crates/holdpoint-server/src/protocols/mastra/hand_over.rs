//! A message into a thread in which a run of the agent is not over. The agent's `on_message_while_held` says what becomes
//! of it: refused, kept for the model until somebody decided, or taken instead of the decision.

use holdpoint_core::event::RunEvent;
use holdpoint_core::ids::{RunId, SessionId};
use holdpoint_core::input::SupersedeInput;
use holdpoint_core::message::Content;
use holdpoint_core::pause::{Pause, PauseState};
use holdpoint_core::record::Entry;
use holdpoint_core::refusal::Refusal;
use holdpoint_core::run::Run;
use holdpoint_core::time::Timestamp;
use holdpoint_runtime::RunError;

use super::from_wire::StartRequest;
use super::place::{Place, journal};
use super::start::runs_in;
use super::{VIA, calls, origin, refuse};
use crate::access::{Action, Caller};
use crate::agents::{ServedAgent, WhileHeld};
use crate::app::App;
use crate::problem::Problem;

/// How many of a thread's newest runs are asked whether a message was handed to them before.
const RUNS_MAX: usize = 20;

/// Pauses that are settled at once, where their time is up.
const DUE_MAX: usize = 1_024;

/// How a run got a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Manner {
    /// It waited, or moves: somebody may be speaking in it.
    Queued,
    /// What waited was closed.
    Superseded,
}

/// Gives a message to the run that is in its way, as the agent's settings say, and tells where what follows begins. `None`
/// where that run is over meanwhile: the thread is free.
pub(super) async fn hand_over(
    app: &App,
    caller: &Caller,
    agent: &ServedAgent,
    asked: &StartRequest,
    run: RunId,
) -> Result<Option<(Place, Manner)>, Problem> {
    let active = app.runtime().read_run(run).await?;
    if !caller.sees(Action::ReadRun, active.started_by()) {
        return Err(refuse::thread_not_found());
    }
    let active = settle_overdue(app, active).await?;
    if active.end().is_some() {
        return Ok(None);
    }
    let busy = || refuse::thread_busy(&origin::run_name(&active), &calls::waiting_names(&active));
    let is_held = active.pauses().iter().any(|pause| pause.is_open());
    let (request, by) = (asked.run.clone(), caller.actor.clone());
    let (given, manner) = match (agent.on_message_while_held, is_held) {
        (WhileHeld::Refuse, _) => return Err(busy()),
        // A run that was begun without it cannot promise that a person looks at every call.
        _ if asked.holds_every_call && !active.holds_every_call() => {
            return Err(refuse::cannot_hold_every_call(&origin::run_name(&active)));
        }
        (WhileHeld::Supersede, true) => {
            let message = SupersedeInput { content: asked.content.clone(), by, via: Some(VIA.to_owned()), request };
            (app.runtime().supersede(run, message).await, Manner::Superseded)
        }
        (WhileHeld::Queue | WhileHeld::Supersede, _) => {
            (app.runtime().stage_input_as(run, asked.content.clone(), by, request).await, Manner::Queued)
        }
    };
    match given {
        Ok(_) => {}
        Err(RunError::Refused(Refusal::RunFinished(_))) => return Ok(None),
        // It makes no more model calls that could see the message.
        Err(RunError::Refused(Refusal::OutOfTurn { .. })) => return Err(busy()),
        Err(error) => return Err(error.into()),
    }
    let entries = journal(app, run).await?.ok_or_else(refuse::run_not_found)?;
    match entries.iter().rev().find(|entry| staged(entry, caller, asked.run.as_deref()).is_some()) {
        Some(entry) => Ok(Some((Place::entry(run, &entries, entry.revision)?, manner))),
        None => Err(Problem::internal("a message that is not in the journal")),
    }
}

/// Where a message is that was handed over before under the same name; another message of that name is refused.
pub(super) async fn handed_before(
    app: &App,
    caller: &Caller,
    agent: &ServedAgent,
    asked: &StartRequest,
) -> Result<Option<Place>, Problem> {
    let (Some(name), Some(thread)) = (asked.run.as_deref(), &asked.thread) else { return Ok(None) };
    if agent.on_message_while_held == WhileHeld::Refuse {
        return Ok(None);
    }
    for run in newest(app, agent, thread).await? {
        let Some(entries) = journal(app, run).await? else { continue };
        let found = entries.iter().find_map(|entry| Some((entry.revision, staged(entry, caller, Some(name))?)));
        match found {
            Some((_, content)) if *content != asked.content => return Err(refuse::run_id_taken()),
            Some((revision, _)) => return Ok(Some(Place::entry(run, &entries, revision)?)),
            None => {}
        }
    }
    Ok(None)
}

async fn newest(app: &App, agent: &ServedAgent, thread: &SessionId) -> Result<Vec<RunId>, Problem> {
    runs_in(app, &agent.name, thread, RUNS_MAX).await
}

/// The message of this caller that was staged in this write under this name.
fn staged<'a>(entry: &'a Entry, caller: &Caller, name: Option<&str>) -> Option<&'a Content> {
    entry.events.iter().find_map(|event| match event {
        RunEvent::InputStaged(staged) if staged.by == caller.actor && staged.request.as_deref() == name => {
            Some(&staged.content)
        }
        _ => None,
    })
}

/// The run as it stands once deadlines are written down that have passed. What only waited for that goes on.
async fn settle_overdue(app: &App, run: Run) -> Result<Run, Problem> {
    let now = app.runtime().store().now();
    if !run.pauses().iter().any(|pause| is_overdue(pause, now)) {
        return Ok(run);
    }
    while !app.runtime().expire_pauses(DUE_MAX).await?.is_empty() {}
    app.go_on(run.id());
    Ok(app.runtime().read_run(run.id()).await?)
}

fn is_overdue(pause: &Pause, now: Timestamp) -> bool {
    matches!(pause.state, PauseState::Open { expires_at: Some(end) } if end <= now)
}
