//! Waiting for a run to rest: until a person must answer, or until it is over.

use std::time::Duration;

use holdpoint_core::ids::RunId;
use holdpoint_core::step::Step;
use holdpoint_runtime::use_cases::WatchItem;
use tokio::time::Instant;

use super::dossier::Dossier;
use crate::access::Caller;
use crate::app::App;
use crate::limits::{Params, StreamPermit};
use crate::problem::Problem;

/// How often the store is asked, where another process may have written.
const GLANCE: Duration = Duration::from_secs(1);

/// For how long a client wants to wait, and its right to.
pub(super) struct Wait {
    until: Instant,
    _permit: StreamPermit,
}

impl Wait {
    /// Reads `?wait=`; `None` where nothing is to be waited for.
    pub(super) fn read(app: &App, caller: &Caller, params: &Params) -> Result<Option<Self>, Problem> {
        let seconds = params.number("wait", 0..=app.limits().wait_max.as_secs())?.unwrap_or(0);
        if seconds == 0 {
            return Ok(None);
        }
        let permit = app.streams().take(&caller.actor)?;
        Ok(Some(Self { until: Instant::now() + Duration::from_secs(seconds), _permit: permit }))
    }

    /// The run once it is as is wanted, or when the time is up. A server that stops waits no longer.
    pub(super) async fn until(
        self,
        app: &App,
        run: RunId,
        is_wanted: impl Fn(&Dossier) -> bool,
    ) -> Result<Dossier, Problem> {
        let stop = app.stopping();
        let mut dossier = Dossier::read(app.runtime(), run).await?;
        let Some(session) = dossier.run.session().cloned() else { return Ok(dossier) };
        let mut watch = app.runtime().watch_run(&session, run);
        while !is_wanted(&dossier) && !stop.is_cancelled() && Instant::now() < self.until {
            tokio::select! {
                changed = next_change(&mut watch, run) => changed?,
                () = tokio::time::sleep(GLANCE) => {}
                () = tokio::time::sleep_until(self.until) => {}
                () = stop.cancelled() => {}
            }
            dossier = Dossier::read(app.runtime(), run).await?;
        }
        Ok(dossier)
    }
}

/// Ends when something was written about the run that may matter to who waits. Words and inner steps do not.
async fn next_change(watch: &mut holdpoint_runtime::use_cases::WatchSession, run: RunId) -> Result<(), Problem> {
    use holdpoint_core::event::RunEvent;
    loop {
        if let WatchItem::Event { run: of, event, .. } = watch.next().await?
            && of == run
            && matches!(
                event,
                RunEvent::PauseOpened(_)
                    | RunEvent::PauseDecided(_)
                    | RunEvent::PauseExpired(_)
                    | RunEvent::PauseWithdrawn(_)
                    | RunEvent::CallAnswered(_)
                    | RunEvent::CallAllowed(_)
                    | RunEvent::CallDenied(_)
                    | RunEvent::RunFinished(_)
            )
        {
            return Ok(());
        }
    }
}

/// Whether nothing happens by itself any more.
pub(super) fn rests(dossier: &Dossier) -> bool {
    matches!(dossier.run.next_step(), Step::AwaitDecisions { .. } | Step::Finished(_))
}
