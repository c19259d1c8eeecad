//! `stream` and `generate`: a message starts a run, and the answer is what it says up to its next stop.

use std::collections::VecDeque;
use std::sync::Arc;

use axum::extract::{Path, Request, State};
use axum::response::Response;
use holdpoint_core::event::RunEvent;
use holdpoint_core::ids::{RunId, SessionId};
use holdpoint_core::refusal::Refusal;
use holdpoint_core::run::Run;
use holdpoint_runtime::ports::store::RunFilter;
use holdpoint_runtime::use_cases::{StartRun, WatchItem};
use holdpoint_runtime::{DriveOptions, RunError, Runtime};

use super::chunks::Narrator;
use super::follow::{AtPause, Follow};
use super::from_wire::{Body, StartRequest};
use super::hand_over::{Manner, hand_over, handed_before};
use super::origin::{self, Origin};
use super::place::{Place, journal, root};
use super::{VIA, answer, refuse};
use crate::access::{Action, Caller, Reach};
use crate::agents::ServedAgent;
use crate::app::App;
use crate::problem::Problem;
use crate::protocols::driving::{Drive, DriveEnd, Driving};

pub(super) async fn stream(
    State(app): State<App>,
    caller: Caller,
    Path(agent): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    let permit = app.streams().take(&caller.actor)?;
    Ok(begin(app, caller, &agent, request).await?.respond(permit))
}

pub(super) async fn generate(
    State(app): State<App>,
    caller: Caller,
    Path(agent): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    let permit = app.streams().take(&caller.actor)?;
    let mut follow = begin(app, caller, &agent, request).await?;
    follow.at_pause = AtPause::End;
    Ok(answer::respond(follow, permit))
}

/// How often a start is tried, where the run that was in its way came to its end meanwhile.
const TRIES_MAX: usize = 3;

/// Starts the run that is asked for; a run that was started under the same name before is followed from its beginning.
/// Where a run of the agent is under way in the thread, the agent's settings say what becomes of the message.
async fn begin(app: App, caller: Caller, agent: &str, request: Request) -> Result<Follow, Problem> {
    caller.check(Action::StartRun)?;
    let agent = app.agents().find(agent).ok_or_else(|| refuse::agent_not_found(agent))?;
    let asked = Body::read(&app, request).await?.start()?;
    let run = asked.run.as_deref().map_or_else(|| app.runtime().name_run(), origin::run_id);
    // The same request may come twice at the same time: the second waits, and finds what the first one stored.
    let _turn = match &asked.run {
        Some(name) => Some(app.blocks().names().turn(&caller.actor, &format!("{VIA} {name}")).await),
        None => None,
    };
    if let Some(place) = again(&app, &caller, run, &agent, &asked).await? {
        return Ok(place.follow(app, caller, true, asked.at_pause));
    }
    check_resource(&app, &caller, &asked).await?;
    let mut in_the_way = run;
    for _ in 0..TRIES_MAX {
        let start = start_of(&app, &caller, &agent, run, &asked)?;
        let error = match start_run(&app, start, run).await {
            Ok(begun) => return Ok(begun.follow(app, caller, asked.at_pause)),
            Err(error) => error,
        };
        // Another process may have been faster with the same request.
        if let Some(place) = again(&app, &caller, run, &agent, &asked).await? {
            return Ok(place.follow(app, caller, true, asked.at_pause));
        }
        let RunError::Refused(Refusal::RunActive { run: active, .. }) = error else { return Err(refused(error)) };
        in_the_way = active;
        if let Some((place, manner)) = hand_over(&app, &caller, &agent, &asked, active).await? {
            // The model may be speaking.
            return Ok(place.follow(app, caller, manner == Manner::Queued, asked.at_pause));
        }
    }
    Err(refuse::thread_busy(&in_the_way.to_string(), &[]))
}

/// The run of this name, where it is the one that is asked for once more. A run that is another one keeps its name.
async fn again(
    app: &App,
    caller: &Caller,
    run: RunId,
    agent: &ServedAgent,
    asked: &StartRequest,
) -> Result<Option<Place>, Problem> {
    if asked.run.is_none() {
        return Ok(None);
    }
    let Some(entries) = journal(app, run).await? else { return handed_before(app, caller, agent, asked).await };
    let started = entries.iter().flat_map(|entry| entry.events.iter()).find_map(|event| match event {
        RunEvent::RunStarted(started) => Some(started),
        _ => None,
    });
    let session = asked.thread.clone().unwrap_or_else(|| Runtime::own_session(run));
    let is_same = started.is_some_and(|started| {
        started.by == caller.actor
            && started.agent.id == *agent.graph.root()
            && started.session == session
            && started.input == asked.content
            && started.holds_every_call == asked.holds_every_call
    });
    if is_same { Place::start(app, run).await } else { Err(refuse::run_id_taken()) }
}

fn start_of(
    app: &App,
    caller: &Caller,
    agent: &Arc<ServedAgent>,
    run: RunId,
    asked: &StartRequest,
) -> Result<StartRun, Problem> {
    // Our own name of a run needs no second one.
    let named = asked.run.clone().filter(|name| *name != run.to_string());
    let origin = Origin { run: named, resource: asked.resource.clone() };
    // A client may ask for fewer steps than the operator allows, and not for more.
    let allowed = agent.turns_max.or(app.runtime().settings().turns_max);
    let turns_max = match (allowed, asked.steps_max) {
        (Some(allowed), Some(asked)) => Some(allowed.min(asked)),
        (allowed, asked) => allowed.or(asked),
    };
    Ok(StartRun {
        graph: agent.graph.clone(),
        content: asked.content.clone(),
        session: Some(asked.thread.clone().unwrap_or_else(|| Runtime::own_session(run))),
        turns_max,
        by: caller.actor.clone(),
        options: DriveOptions {
            context: origin.to_context()?,
            hold_every_call: asked.holds_every_call,
            commit_first: true,
            commit_before_models: true,
            ..DriveOptions::default()
        },
        only_owner: caller.reach(Action::ReadRun) != Reach::All,
        run: Some(run),
    })
}

/// Refuses a thread that is kept for somebody else: a program that acts for many names them as resources.
async fn check_resource(app: &App, caller: &Caller, asked: &StartRequest) -> Result<(), Problem> {
    let (Some(thread), Some(resource)) = (&asked.thread, &asked.resource) else { return Ok(()) };
    match resource_of(app, caller, thread).await? {
        Some(other) if other != *resource => Err(refuse::thread_not_found()),
        _ => Ok(()),
    }
}

/// How many of a thread's newest runs are asked for whom it is kept.
const KEPT_FOR_MAX: usize = 20;

/// For whom a thread is kept, if anybody said so.
async fn resource_of(app: &App, caller: &Caller, thread: &SessionId) -> Result<Option<String>, Problem> {
    let filter = RunFilter { session: Some(thread.clone()), limit: KEPT_FOR_MAX, ..RunFilter::default() };
    for row in app.runtime().list_runs(&filter).await?.runs {
        let run = app.runtime().read_run(row.run).await?;
        // Whose session it is not is told so when the run starts.
        let kept_for = Origin::of(&run).resource.filter(|_| caller.sees(Action::ReadRun, run.started_by()));
        if kept_for.is_some() {
            return Ok(kept_for);
        }
    }
    Ok(None)
}

/// A run that was durably started.
struct Begun {
    narrator: Narrator,
    watch: holdpoint_runtime::use_cases::WatchSession,
    seen: VecDeque<WatchItem>,
    drive: Driving,
}

impl Begun {
    fn follow(self, app: App, caller: Caller, at_pause: AtPause) -> Follow {
        let Self { narrator, watch, seen, drive } = self;
        Follow { app, caller, narrator, watch, seen, drive, at_pause }
    }
}

/// Starts a run in a task of its own, and waits until its start is durable: before that, an error is a status.
async fn start_run(app: &App, start: StartRun, run: RunId) -> Result<Begun, RunError> {
    let session = start.session.clone().unwrap_or_else(|| Runtime::own_session(run));
    // Watching begins before the start, so that nothing falls in between.
    let mut watch = app.runtime().watch_run(&session, run);
    let runtime = app.runtime().clone();
    let mut drive: Drive = app.tasks().spawn(async move { runtime.start_run(start).await });
    let narrator = Narrator::new(Run::new(run), run.to_string());
    let ended = loop {
        tokio::select! {
            biased;
            item = watch.next() => match item? {
                // Another agent speaks in the same thread meanwhile.
                WatchItem::Delta { .. } => {}
                item => return Ok(Begun { narrator, watch, seen: [item].into(), drive: Driving::UnderWay(drive) }),
            },
            ended = &mut drive => break ended,
        }
    };
    let seen: VecDeque<WatchItem> = watch.caught_up().await?.into();
    let is_begun = seen.iter().any(|item| matches!(item, WatchItem::Event { run: of, .. } if *of == run));
    match (is_begun, ended) {
        (false, Ok(Err(error))) => Err(error),
        (_, ended) => Ok(Begun { narrator, watch, seen, drive: Driving::Ended(DriveEnd::read(ended)) }),
    }
}

/// Why a run did not start, in this protocol's words.
fn refused(error: RunError) -> Problem {
    match error {
        RunError::Refused(Refusal::SessionNotFound(_)) => refuse::thread_not_found(),
        error => error.into(),
    }
}

/// The agent's newest runs in a thread.
pub(super) async fn runs_in(app: &App, agent: &str, thread: &SessionId, limit: usize) -> Result<Vec<RunId>, Problem> {
    let filter = RunFilter { session: Some(thread.clone()), agent: Some(root(agent)?), limit, ..RunFilter::default() };
    Ok(app.runtime().list_runs(&filter).await?.runs.into_iter().map(|row| row.run).collect())
}
