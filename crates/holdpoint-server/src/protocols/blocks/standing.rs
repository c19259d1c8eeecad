//! A session as it stands: its journal, folded from the first event, or from where it was left.

use holdpoint_core::ids::SessionId;
use holdpoint_core::refusal::Refusal;
use holdpoint_runtime::RunError;

use super::kept::{Told, fold};
use super::projection::Projection;
use super::refuse::{Refused, unknown_session};
use super::wire::events::Event;
use crate::access::{Action, Caller};
use crate::app::App;

/// A session as it stands, for somebody who goes on from there.
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

/// Looks at a session where the caller may know of it.
pub(super) async fn look<T>(
    app: &App,
    caller: &Caller,
    action: Action,
    session: &SessionId,
    look: impl FnOnce(&Told) -> T,
) -> Result<T, Refused> {
    let events = visible(app, caller, action, session).await?.ok_or_else(unknown_session)?;
    Ok(app.blocks().kept().look(app, session, events, look).await?)
}

impl Standing {
    /// A session where the caller may know of it.
    pub(super) async fn read(app: &App, caller: &Caller, action: Action, id: &SessionId) -> Result<Self, Refused> {
        look(app, caller, action, id, Self::of).await
    }

    /// A session of which nothing is stored yet.
    pub(super) fn empty(session: &SessionId) -> Self {
        Self { truth: Projection::new(session.clone()), events: 0 }
    }

    /// A session as it was told so far.
    pub(super) fn of(told: &Told) -> Self {
        Self { truth: told.truth.clone(), events: told.events }
    }
}

/// The event of a session that answers a command: among the latest, or else the first in all that is stored.
pub(super) async fn find_answer(
    app: &App,
    session: &SessionId,
    is_wanted: impl Fn(&Event) -> bool,
) -> Result<Option<Event>, RunError> {
    let events = app.runtime().session(session).await?.events;
    let latest = app.blocks().kept().look(app, session, events, |told| told.answer(&is_wanted)).await?;
    if latest.is_some() {
        return Ok(latest);
    }
    let mut truth = Projection::new(session.clone());
    let mut found = None;
    fold(app, session, 0, events, |agent, item| {
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
