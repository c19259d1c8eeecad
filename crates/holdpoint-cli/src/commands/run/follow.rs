//! Moves a run to its next stop and shows it meanwhile; where another process moves it, looks on.

use std::time::Duration;

use anyhow::Result;
use holdpoint_core::ids::RunId;
use holdpoint_core::refusal::Refusal;
use holdpoint_core::run::Run;
use holdpoint_core::step::Step;
use holdpoint_runtime::use_cases::{StartRun, WatchSession};
use holdpoint_runtime::{Fault, RunError, Runtime};

use super::show::Show;
use crate::world::World;

/// How a drive came to its end.
pub enum Stopped {
    /// The run waits for a person, or is over.
    At(Box<Run>),
    /// Ctrl-C: the person wants to leave.
    Interrupted,
}

/// How often a run is looked at that another process moves.
const LOOK: Duration = Duration::from_millis(200);

/// Starts a run and shows it up to its first stop.
///
/// # Errors
/// The start is refused, or the world failed.
pub async fn start(world: &World, start: StartRun, watch: &mut WatchSession, show: &mut Show) -> Result<Stopped> {
    let run = start.run;
    let started = async {
        match (world.runtime.start_run(start).await, run) {
            // Another process was faster at an answer that came in between: it moves the run now.
            (Err(RunError::Refused(Refusal::RunBusy { .. })), Some(run)) => drive(world, run).await,
            (started, _) => started,
        }
    };
    along(world, watch, show, started).await
}

/// Goes on with a stored run and shows it up to its next stop.
///
/// # Errors
/// The run cannot go on, or the world failed.
pub async fn go_on(world: &World, run: RunId, watch: &mut WatchSession, show: &mut Show) -> Result<Stopped> {
    along(world, watch, show, drive(world, run)).await
}

/// Drives a run; as long as somebody else does, waits until it stands or is left.
async fn drive(world: &World, run: RunId) -> Result<Run, RunError> {
    loop {
        match world.resume(run).await {
            Err(RunError::Refused(Refusal::RunBusy { .. })) => {}
            done => return done,
        }
        let stands = world.runtime.read_run(run).await?;
        if is_at_rest(&stands) {
            return Ok(stands);
        }
        if world.runtime.is_leaving() {
            return Err(Fault::Left { run }.into());
        }
        tokio::time::sleep(LOOK).await;
    }
}

fn is_at_rest(run: &Run) -> bool {
    matches!(run.next_step(), Step::AwaitDecisions { .. } | Step::Finished(_))
}

/// Shows what happens while `moving` is under way, and everything that it led to.
async fn along(
    world: &World,
    watch: &mut WatchSession,
    show: &mut Show,
    moving: impl Future<Output = Result<Run, RunError>>,
) -> Result<Stopped> {
    tokio::pin!(moving);
    // Kept from one round to the next: a key that is pressed in between counts.
    let interrupted = tokio::signal::ctrl_c();
    tokio::pin!(interrupted);
    // Entries of another process make no sound here.
    let mut look = tokio::time::interval(LOOK);
    loop {
        if world.runtime.is_leaving() && show.has_tools_under_way() {
            show.wait("a tool is at work and is waited for; Ctrl-C once more leaves at once");
        }
        tokio::select! {
            biased;
            pressed = &mut interrupted => {
                pressed?;
                interrupted.set(tokio::signal::ctrl_c());
                if world.runtime.is_leaving() {
                    show.rest();
                    return Ok(Stopped::Interrupted);
                }
                // A tool that began a moment ago, or is about to, comes to its end: else what it did would be in doubt.
                world.runtime.leave_runs();
                show_all(watch, show).await?;
            }
            item = watch.next() => show.take(item?)?,
            ended = &mut moving => {
                show_all(watch, show).await?;
                show.rest();
                return match (ended, world.runtime.is_leaving()) {
                    (Ok(_) | Err(RunError::Fault(Fault::Left { .. })), true) => Ok(Stopped::Interrupted),
                    (Ok(run), false) => Ok(Stopped::At(Box::new(run))),
                    (Err(error), _) => Err(error.into()),
                };
            }
            _ = look.tick() => show_all(watch, show).await?,
        }
    }
}

/// Shows what has happened and was not shown yet.
async fn show_all(watch: &mut WatchSession, show: &mut Show) -> Result<()> {
    Ok(watch.caught_up().await?.into_iter().try_for_each(|item| show.take(item))?)
}

/// A watch on a stored run's session from now on.
///
/// # Errors
/// There is no such run.
pub async fn watch_from_now(runtime: &Runtime, run: &Run) -> Result<WatchSession> {
    let session = run.session().ok_or(RunError::Refused(Refusal::RunNotFound(run.id())))?;
    let mut watch = runtime.watch_session(session, 1);
    watch.caught_up().await?;
    Ok(watch)
}
