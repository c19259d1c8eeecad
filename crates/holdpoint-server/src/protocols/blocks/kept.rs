//! Sessions as they stand, kept at hand: what a command needs to know of its session costs no more than what happened there
//! since somebody last looked. What is kept is bounded, and is read again where it is not kept.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use holdpoint_core::ids::SessionId;
use holdpoint_runtime::RunError;
use holdpoint_runtime::use_cases::WatchItem;

use super::agents;
use super::projection::Projection;
use super::wire::events::{Body, Event};
use crate::app::App;

/// How much is kept.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// Sessions.
    pub(super) sessions_max: usize,
    /// Bytes of all of them, as far as they can be told.
    pub(super) bytes_max: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { sessions_max: 512, bytes_max: 64 << 20 }
    }
}

/// The latest answers to commands that are kept of a session; an older one is found by reading the session again.
const ANSWERS_MAX: usize = 64;

/// What a session weighs that nothing happened in, and what an answer weighs.
const SESSION_BYTES: usize = 1 << 10;
const ANSWER_BYTES: usize = 512;

/// Sessions that somebody looked at, up to the bounds; those that were looked at last.
#[derive(Default)]
pub(super) struct Kept {
    bounds: Bounds,
    shelf: Mutex<Shelf>,
    /// How many events of journals were read so far.
    events_read: AtomicU64,
}

#[derive(Default)]
struct Shelf {
    sessions: HashMap<SessionId, Place>,
    bytes: usize,
    /// Counts looks, so that the oldest is known.
    looks: u64,
}

struct Place {
    told: Arc<tokio::sync::Mutex<Told>>,
    bytes: usize,
    looked_at: u64,
}

/// A session, told up to some event of its journal.
pub(super) struct Told {
    pub(super) truth: Projection,
    /// How many events of the journal it was told from.
    pub(super) events: u64,
    /// The latest events that answer commands.
    answers: VecDeque<Event>,
}

impl Kept {
    #[cfg(test)]
    pub(super) fn within(bounds: Bounds) -> Self {
        Self { bounds, ..Self::default() }
    }

    /// Looks at a session as it stands at this event of its journal, or later. One at a time reads on in a session; the
    /// others find what it read.
    pub(super) async fn look<T>(
        &self,
        app: &App,
        session: &SessionId,
        events: u64,
        look: impl FnOnce(&Told) -> T,
    ) -> Result<T, RunError> {
        let place = self.place(session);
        let mut told = place.lock().await;
        told.read_on(app, session, events).await?;
        let (seen, bytes) = (look(&told), told.bytes());
        drop(told);
        self.weigh(session, &place, bytes);
        Ok(seen)
    }

    /// How many events of journals were read so far, by whoever folds them.
    #[cfg(test)]
    pub(super) fn events_read(&self) -> u64 {
        self.events_read.load(Ordering::Relaxed)
    }

    /// How many sessions are kept, and what they weigh.
    #[cfg(test)]
    pub(super) fn size(&self) -> (usize, usize) {
        let shelf = self.lock();
        assert_eq!(shelf.bytes, shelf.sessions.values().map(|place| place.bytes).sum::<usize>());
        (shelf.sessions.len(), shelf.bytes)
    }

    fn place(&self, session: &SessionId) -> Arc<tokio::sync::Mutex<Told>> {
        let mut shelf = self.lock();
        shelf.looks += 1;
        let looks = shelf.looks;
        if let Some(place) = shelf.sessions.get_mut(session) {
            place.looked_at = looks;
            return place.told.clone();
        }
        let told = Arc::new(tokio::sync::Mutex::new(Told::new(session)));
        shelf.sessions.insert(session.clone(), Place { told: told.clone(), bytes: 0, looked_at: looks });
        shelf.make_room(self.bounds);
        told
    }

    /// Notes what a session weighs now. One that would leave little room for others is not kept.
    fn weigh(&self, session: &SessionId, told: &Arc<tokio::sync::Mutex<Told>>, bytes: usize) {
        let mut shelf = self.lock();
        // It may have been put away meanwhile, and taken out again by somebody else.
        if let Some(place) = shelf.sessions.get_mut(session).filter(|place| Arc::ptr_eq(&place.told, told)) {
            let before = std::mem::replace(&mut place.bytes, bytes);
            shelf.bytes = shelf.bytes - before + bytes;
            if bytes > self.bounds.bytes_max / 2 {
                shelf.put_away(session);
            }
        }
        shelf.make_room(self.bounds);
    }

    fn lock(&self) -> MutexGuard<'_, Shelf> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shelf {
    /// Puts away what was not looked at for longest, until the rest is within the bounds.
    fn make_room(&mut self, bounds: Bounds) {
        while self.sessions.len() > bounds.sessions_max || self.bytes > bounds.bytes_max {
            let oldest = self.sessions.iter().min_by_key(|(_, place)| place.looked_at);
            let Some(session) = oldest.map(|(session, _)| session.clone()) else { return };
            self.put_away(&session);
        }
    }

    fn put_away(&mut self, session: &SessionId) {
        if let Some(place) = self.sessions.remove(session) {
            self.bytes -= place.bytes;
        }
    }
}

impl Told {
    fn new(session: &SessionId) -> Self {
        Self { truth: Projection::new(session.clone()), events: 0, answers: VecDeque::new() }
    }

    /// The event that answers a command, where it is among the latest.
    pub(super) fn answer(&self, is_wanted: impl Fn(&Event) -> bool) -> Option<Event> {
        self.answers.iter().find(|event| is_wanted(event)).cloned()
    }

    /// Reads on up to this event. Who stops waiting leaves it as far as it came.
    async fn read_on(&mut self, app: &App, session: &SessionId, events: u64) -> Result<(), RunError> {
        let from = self.events;
        fold(app, session, from, events, |agent, item| {
            if let Some((run, agent)) = agent {
                self.truth.learn(run, agent);
            }
            let facts = self.truth.take(item);
            if let WatchItem::Event { seq, .. } = item {
                self.events = *seq;
            }
            self.answers.extend(facts.into_iter().flat_map(|fact| fact.into_events()).filter(is_answer));
            let excess = self.answers.len().saturating_sub(ANSWERS_MAX);
            self.answers.drain(..excess);
        })
        .await
    }

    fn bytes(&self) -> usize {
        SESSION_BYTES + self.truth.bytes() + self.answers.len() * ANSWER_BYTES
    }
}

/// Whether an event can answer a command.
fn is_answer(event: &Event) -> bool {
    matches!(event.body, Body::MessageStart { .. } | Body::MessageStop { .. } | Body::ApprovalResolved { .. })
}

pub(super) type NewRun = Option<(holdpoint_core::ids::RunId, Arc<crate::agents::ServedAgent>)>;

/// Takes the events of a session's journal after one and up to another, one by one and never all at once.
pub(super) async fn fold(
    app: &App,
    session: &SessionId,
    after: u64,
    events: u64,
    mut take: impl FnMut(NewRun, &WatchItem),
) -> Result<(), RunError> {
    if after >= events {
        return Ok(());
    }
    let mut watch = app.runtime().watch_session(session, after + 1);
    let mut taken = after;
    while taken < events {
        let item = watch.next().await?;
        if let WatchItem::Event { seq, .. } = &item {
            let agent = agents::of_new_run(app, &item).await;
            taken = *seq;
            take(agent, &item);
            app.blocks().kept().events_read.fetch_add(1, Ordering::Relaxed);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
