//! `POST /chat/stream`: a message starts a run, and the answer is what it says up to its next stop.

use std::collections::VecDeque;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use holdpoint_core::ids::{RunId, SessionId};
use holdpoint_core::message::Content;
use holdpoint_core::run::Run;
use holdpoint_runtime::DriveOptions;
use holdpoint_runtime::use_cases::{StartRun, WatchItem, WatchSession};

use super::follow::Follow;
use super::frames::Narrator;
use super::standing::{Conversation, Standing};
use super::{body, from_wire, refuse};
use crate::access::{Action, Caller, Reach};
use crate::agents::ServedAgent;
use crate::app::App;
use crate::problem::Problem;
use crate::protocols::driving::{Drive, DriveEnd, Driving};

pub(super) async fn stream(State(app): State<App>, caller: Caller, request: Request) -> Result<Response, Problem> {
    from_wire::accept(request.headers())?;
    let mode = from_wire::mode(request.headers(), request.uri())?;
    let asked = from_wire::stream(&body::read(&app, request).await?)?;
    let agent = chosen(&app, asked.agent.as_deref())?;
    caller.check(Action::StartRun)?;
    let permit = app.streams().take(&caller.actor)?;
    check_free(&app, &caller, &asked.session, &agent).await?;
    let start = StartRun {
        graph: agent.graph.clone(),
        content: Content::Text(asked.message),
        session: Some(asked.session.clone()),
        turns_max: agent.turns_max.or(app.runtime().settings().turns_max),
        by: caller.actor.clone(),
        options: DriveOptions { commit_first: true, commit_before_models: true, ..DriveOptions::default() },
        only_owner: caller.reach(Action::ReadRun) != Reach::All,
        run: None,
    };
    let begun = begin(&app, start, &asked.session, &agent).await?;
    let follow = Follow {
        narrator: Narrator::new(Run::new(begun.run), agent.clone()),
        app,
        caller,
        agent,
        session: asked.session,
        watch: begun.watch,
        seen: begun.seen,
        drive: begun.drive,
    };
    Ok(follow.respond(mode, permit))
}

/// The agent that is meant: the one that is named, or the only one there is.
fn chosen(app: &App, name: Option<&str>) -> Result<Arc<ServedAgent>, Problem> {
    match name {
        Some(name) => app.agents().find(name).ok_or_else(|| refuse::agent_not_found(name)),
        None => match &app.agents().list()[..] {
            [only] => Ok(only.clone()),
            agents => Err(refuse::agent_needed(agents.iter().map(|agent| agent.name.as_str()))),
        },
    }
}

/// Refuses a message into a session that waits for a decision or is under way. What only waits because nobody has
/// written its deadline down is settled first.
async fn check_free(app: &App, caller: &Caller, session: &SessionId, agent: &ServedAgent) -> Result<(), Problem> {
    let conversation = Conversation::of(app, session, agent.graph.root()).await?;
    let is_within_reach = conversation.is_within_reach(caller, Action::ReadRun);
    match conversation.standing {
        _ if !is_within_reach => Err(refuse::session_not_found()),
        Standing::Held(held) => Err(refuse::interrupt_pending(&held.key)),
        Standing::Moving(run) => Err(refuse::run_in_progress(run.id())),
        Standing::Idle { overdue: Some(run), .. } => {
            // There may be more that is due than one look takes.
            while !app.runtime().expire_pauses(1_024).await?.is_empty() {}
            match app.runtime().read_run(run).await?.end() {
                Some(_) => Ok(()),
                None => {
                    app.go_on(run);
                    Err(refuse::run_in_progress(run))
                }
            }
        }
        Standing::Idle { overdue: None, .. } => Ok(()),
    }
}

/// A run that was durably started.
struct Begun {
    run: RunId,
    watch: WatchSession,
    seen: VecDeque<WatchItem>,
    drive: Driving,
}

/// Starts a run in a task of its own, and waits until its start is durable: before that, an error is a status.
async fn begin(app: &App, mut start: StartRun, session: &SessionId, agent: &ServedAgent) -> Result<Begun, Problem> {
    let run = *start.run.insert(app.runtime().name_run());
    // Watching begins before the start, so that nothing falls in between.
    let mut watch = app.runtime().watch_run(session, run);
    let runtime = app.runtime().clone();
    let mut drive: Drive = app.tasks().spawn(async move { runtime.start_run(start).await });
    let ended = loop {
        tokio::select! {
            biased;
            item = watch.next() => match item? {
                // Another agent speaks in the same session meanwhile.
                WatchItem::Delta { .. } => {}
                item => return Ok(Begun { run, watch, seen: [item].into(), drive: Driving::UnderWay(drive) }),
            },
            ended = &mut drive => break ended,
        }
    };
    let seen: VecDeque<WatchItem> = watch.caught_up().await?.into();
    let is_begun = seen.iter().any(|item| matches!(item, WatchItem::Event { run: of, .. } if *of == run));
    match (is_begun, DriveEnd::read(ended)) {
        (true, ended) => Ok(Begun { run, watch, seen, drive: Driving::Ended(ended) }),
        (false, DriveEnd::Failed(failure)) => Err(overtaken(app, failure.problem, session, agent).await),
        (false, DriveEnd::Stopped) => Err(Problem::internal("a run came to a stop without having begun")),
    }
}

/// Why a run did not start, in this protocol's words: another message may have been faster.
async fn overtaken(app: &App, problem: Problem, session: &SessionId, agent: &ServedAgent) -> Problem {
    let now = Conversation::of(app, session, agent.graph.root()).await.map(|conversation| conversation.standing);
    match (problem.code(), now) {
        ("run_active", Ok(Standing::Held(held))) => refuse::interrupt_pending(&held.key),
        ("run_active", Ok(Standing::Moving(run))) => refuse::run_in_progress(run.id()),
        ("session_not_found", _) => refuse::session_not_found(),
        _ => problem,
    }
}
