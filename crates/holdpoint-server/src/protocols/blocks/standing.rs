//! A session as it stands: its journal, folded from the first event.

use holdpoint_core::ids::SessionId;
use holdpoint_core::refusal::Refusal;
use holdpoint_runtime::RunError;
use holdpoint_runtime::use_cases::WatchItem;

use super::agents;
use super::projection::Projection;
use super::refuse::{Refused, unknown_session};
use super::wire::events::Event;
use crate::access::{Action, Caller};
use crate::app::App;

/// A session as it stands.
pub(super) struct Standing {
    pub(super) truth: Projection,
    /// How many events of the journal it was read from.
    pub(super) events: u64,
}

/// How many events the journal of a session has, where the caller may know of it; `None` where there is none.
pub(super) async fn visible(
    app: &App,
    caller: &Caller,
    action: Action,
    session: &SessionId,
) -> Result<Option<u64>, Refused> {
    match app.runtime().session(session).await {
        Ok(row) if caller.sees(action, Some(&row.owner)) => Ok(Some(row.events)),
        Ok(_) => Err(unknown_session()),
        Err(RunError::Refused(Refusal::SessionNotFound(_))) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

impl Standing {
    /// A session where the caller may know of it.
    pub(super) async fn read(app: &App, caller: &Caller, action: Action, id: &SessionId) -> Result<Self, Refused> {
        let events = visible(app, caller, action, id).await?.ok_or_else(unknown_session)?;
        Ok(Self::of(app, id, events).await?)
    }

    /// A session of which nothing is stored yet.
    pub(super) fn empty(session: &SessionId) -> Self {
        Self { truth: Projection::new(session.clone()), events: 0 }
    }

    /// A session up to this event of its journal.
    pub(super) async fn of(app: &App, session: &SessionId, events: u64) -> Result<Self, RunError> {
        let mut truth = Projection::new(session.clone());
        fold(app, session, events, |agent, item| {
            if let Some((run, agent)) = agent {
                truth.learn(run, agent);
            }
            truth.take(item);
        })
        .await?;
        Ok(Self { truth, events })
    }
}

/// The first event of a session, up to what is stored now, of which this is true.
pub(super) async fn find_event(
    app: &App,
    session: &SessionId,
    is_wanted: impl Fn(&Event) -> bool,
) -> Result<Option<Event>, RunError> {
    let events = app.runtime().session(session).await?.events;
    let mut truth = Projection::new(session.clone());
    let mut found = None;
    fold(app, session, events, |agent, item| {
        if let Some((run, agent)) = agent {
            truth.learn(run, agent);
        }
        let facts = truth.take(item);
        if found.is_none() {
            found = facts.into_iter().flat_map(|fact| fact.into_events()).find(&is_wanted);
        }
    })
    .await?;
    Ok(found)
}

pub(super) type NewRun = Option<(holdpoint_core::ids::RunId, std::sync::Arc<crate::agents::ServedAgent>)>;

/// Takes the events of a session's journal, one by one and never all at once, up to this one.
pub(super) async fn fold(
    app: &App,
    session: &SessionId,
    events: u64,
    mut take: impl FnMut(NewRun, &WatchItem),
) -> Result<(), RunError> {
    let mut watch = app.runtime().watch_session(session, 1);
    let mut taken = 0;
    while taken < events {
        let item = watch.next().await?;
        if let WatchItem::Event { seq, .. } = &item {
            taken = *seq;
            take(agents::of_new_run(app, &item).await, &item);
        }
    }
    Ok(())
}
