//! `cancel`: ends what is under way in a session, held or at work.

use holdpoint_core::ids::{RunId, SessionId};
use holdpoint_runtime::ports::store::{RunFilter, RunStatus};

use super::Done;
use crate::access::{Action, Caller};
use crate::app::App;
use crate::protocols::blocks::refuse::{Refused, unknown_session};
use crate::protocols::blocks::standing::visible;

/// How many of a session's latest runs are looked at: each agent has one under way at most.
const RUNS_MAX: usize = 100;

/// Ends every run that is under way in the session. Where none is, the last one is told of once more; where the same command
/// ended one before, that one, whatever is under way now.
pub(in crate::protocols::blocks) async fn cancel(
    app: &App,
    caller: &Caller,
    session: SessionId,
    before: Option<RunId>,
) -> Result<Done, Refused> {
    caller.check(Action::CancelRun)?;
    visible(app, caller, Action::CancelRun, &session).await?.ok_or_else(unknown_session)?;
    if let Some(run) = before {
        return Ok(Done::Cancelled { session, run, is_repeat: true });
    }
    let filter = RunFilter { session: Some(session.clone()), limit: RUNS_MAX, ..RunFilter::default() };
    let page = app.runtime().list_runs(&filter).await?;
    let mut ended: Option<RunId> = None;
    for row in page.runs.iter().filter(|row| row.status != RunStatus::Finished) {
        match app.cancel_run(row.run, caller.actor.clone(), "cancelled by the client".to_owned()).await {
            Ok(_) => ended = ended.or(Some(row.run)),
            // It came to its end a moment before.
            Err(problem) if problem.code() == "run_finished" => {}
            Err(problem) => return Err(problem.into()),
        }
    }
    let last = page.runs.first().map(|row| row.run).ok_or_else(unknown_session)?;
    Ok(Done::Cancelled { session, run: ended.unwrap_or(last), is_repeat: ended.is_none() })
}
