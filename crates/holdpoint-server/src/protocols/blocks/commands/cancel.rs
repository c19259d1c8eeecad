//! `cancel`: ends what is under way in a session, held or at work.

use holdpoint_core::ids::{RunId, SessionId};
use holdpoint_runtime::ports::store::{RunFilter, RunStatus};

use super::Done;
use crate::access::{Action, Caller};
use crate::app::App;
use crate::protocols::blocks::projection::Use;
use crate::protocols::blocks::refuse::{Refused, request_id_reused, unknown_session};
use crate::protocols::blocks::standing::look;

/// How many of a session's latest runs are looked at: each agent has one under way at most.
const RUNS_MAX: usize = 100;

/// Ends every run that is under way in the session. Where none is, the last one is told of once more; where the same command
/// ended one before, that one, whatever is under way now, also after a restart.
pub(in crate::protocols::blocks) async fn cancel(
    app: &App,
    caller: &Caller,
    name: Option<&str>,
    session: SessionId,
    before: Option<RunId>,
) -> Result<Done, Refused> {
    caller.check(Action::CancelRun)?;
    let used = look(app, caller, Action::CancelRun, &session, |told| {
        name.and_then(|name| told.truth.named(&caller.actor, name)).cloned()
    });
    match (used.await?, before) {
        (Some(Use::Cancel(run)), _) | (None, Some(run)) => {
            return Ok(Done::Cancelled { session, run, is_repeat: true });
        }
        (Some(Use::Message(_) | Use::Approval(_)), _) => return Err(request_id_reused()),
        (None, None) => {}
    }
    let filter = RunFilter { session: Some(session.clone()), limit: RUNS_MAX, ..RunFilter::default() };
    let page = app.runtime().list_runs(&filter).await?;
    let mut ended: Option<RunId> = None;
    for row in page.runs.iter().filter(|row| row.status != RunStatus::Finished) {
        let reason = "cancelled by the client".to_owned();
        match app.cancel_run(row.run, caller.actor.clone(), reason, name.map(str::to_owned)).await {
            Ok(_) => ended = ended.or(Some(row.run)),
            // It came to its end a moment before.
            Err(problem) if problem.code() == "run_finished" => {}
            Err(problem) => return Err(problem.into()),
        }
    }
    let last = page.runs.first().map(|row| row.run).ok_or_else(unknown_session)?;
    Ok(Done::Cancelled { session, run: ended.unwrap_or(last), is_repeat: ended.is_none() })
}
