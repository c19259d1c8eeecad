//! Tells this process's listeners what was committed, after it was committed. A listener that lags reads the store. What
//! other instances commit is passed on by the link between them.

mod link;
mod listener;
mod news;
mod speech;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use holdpoint_core::ids::{FramePath, RunId, SessionId};
use holdpoint_core::record::Entry;
use tokio::sync::{Notify, broadcast, watch};

use crate::ports::model::Delta;
use crate::ports::observer::PauseChange;

pub(crate) use link::Link;
use listener::Queue;
pub(crate) use listener::{Lagged, Listener};
#[cfg(test)]
pub(crate) use news::Part;
pub(crate) use news::Said;
pub(crate) use speech::{Place, Speech};

/// What is told to listeners.
#[derive(Debug, Clone)]
pub(crate) enum Live {
    /// An entry was committed.
    Committed { run: RunId, entry: Entry },
    /// A model said more. Not stored.
    Delta { run: RunId, frame: FramePath, delta: Delta },
    /// Another instance committed up to this number, or so it is told: the store knows.
    More { seq: u64 },
    /// A model says more at another instance.
    Said(Said),
}

/// Who listens to what.
pub(crate) struct Hub {
    sessions: Mutex<HashMap<SessionId, Vec<Arc<Queue>>>>,
    runs: Mutex<HashMap<RunId, Mover>>,
    pauses: broadcast::Sender<PauseChange>,
    /// Counts how often changes of pauses may have been missed that other instances made.
    pauses_missed: watch::Sender<u64>,
    work: Notify,
}

/// Who moves a run in this process.
#[derive(Default)]
struct Mover {
    notify: Arc<Notify>,
    /// Known once something was committed, or from the beginning.
    session: Option<SessionId>,
}

impl Default for Hub {
    fn default() -> Self {
        Self {
            sessions: Mutex::default(),
            runs: Mutex::default(),
            pauses: broadcast::channel(LAG_MAX).0,
            pauses_missed: watch::Sender::new(0),
            work: Notify::new(),
        }
    }
}

/// How far a listener may lag before it has to read the store.
const LAG_MAX: usize = 1_024;

impl Hub {
    /// Listens to a session.
    pub(crate) fn listen(self: &Arc<Self>, session: &SessionId) -> Listener {
        let queue = Arc::<Queue>::default();
        lock(&self.sessions).entry(session.clone()).or_default().push(queue.clone());
        Listener::new(self.clone(), session.clone(), queue)
    }

    /// Tells a session's listeners; nobody listening is no error.
    pub(crate) fn tell(&self, session: &SessionId, live: impl FnOnce() -> Live) {
        let listening = lock(&self.sessions).get(session).cloned();
        if let Some(listening) = listening {
            let live = Arc::new(live());
            listening.iter().for_each(|queue| queue.push(live.clone(), LAG_MAX));
        }
    }

    /// A listener is gone.
    fn forget(&self, session: &SessionId, gone: &Arc<Queue>) {
        let mut sessions = lock(&self.sessions);
        if let Some(listening) = sessions.get_mut(session) {
            listening.retain(|queue| !Arc::ptr_eq(queue, gone));
            if listening.is_empty() {
                sessions.remove(session);
            }
        }
    }

    /// Listens to the changes of all pauses.
    pub(crate) fn listen_to_pauses(&self) -> broadcast::Receiver<PauseChange> {
        self.pauses.subscribe()
    }

    /// Whether anybody listens to the changes of pauses.
    pub(crate) fn has_pause_listeners(&self) -> bool {
        self.pauses.receiver_count() > 0
    }

    /// Tells that a pause changed; nobody listening is no error.
    pub(crate) fn tell_pause(&self, change: PauseChange) {
        let _ = self.pauses.send(change);
    }

    /// Listens to changes of pauses being missed.
    pub(crate) fn listen_to_pauses_missed(&self) -> watch::Receiver<u64> {
        self.pauses_missed.subscribe()
    }

    /// Tells that changes of pauses may have been missed.
    fn tell_pauses_missed(&self) {
        self.pauses_missed.send_modify(|count| *count = count.wrapping_add(1));
    }

    /// Waits until another instance tells that there is a run to go on with.
    pub(crate) async fn work_elsewhere(&self) {
        self.work.notified().await;
    }

    fn tell_work(&self) {
        self.work.notify_one();
    }

    /// Wakes whoever moves this run in this process.
    pub(crate) fn nudge(&self, run: RunId) {
        if let Some(mover) = lock(&self.runs).get(&run) {
            mover.notify.notify_one();
        }
    }

    /// Wakes whoever moves a run of this session in this process.
    fn nudge_in(&self, session: &SessionId) {
        let runs = lock(&self.runs);
        runs.values()
            .filter(|mover| mover.session.as_ref() == Some(session))
            .for_each(|mover| mover.notify.notify_one());
    }

    /// Registers the one who moves a run, as long as the guard lives.
    pub(crate) fn moving(self: &Arc<Self>, run: RunId, session: Option<&SessionId>) -> Moving {
        let mut runs = lock(&self.runs);
        let mover = runs.entry(run).or_default();
        mover.session = session.cloned().or_else(|| mover.session.take());
        let notify = mover.notify.clone();
        drop(runs);
        Moving { hub: self.clone(), run, notify }
    }

    /// A run that is moved here was written in this session.
    pub(crate) fn is_in(&self, run: RunId, session: &SessionId) {
        if let Some(mover) = lock(&self.runs).get_mut(&run)
            && mover.session.is_none()
        {
            mover.session = Some(session.clone());
        }
    }

    /// The sessions that somebody listens to.
    fn listened_to(&self) -> Vec<SessionId> {
        lock(&self.sessions).keys().cloned().collect()
    }

    /// The sessions that somebody listens to, or in which a run is moved.
    fn sessions(&self) -> HashSet<SessionId> {
        let mut sessions: HashSet<SessionId> = self.listened_to().into_iter().collect();
        sessions.extend(lock(&self.runs).values().filter_map(|mover| mover.session.clone()));
        sessions
    }
}

/// Says that a run is moved in this process.
pub(crate) struct Moving {
    hub: Arc<Hub>,
    run: RunId,
    pub(crate) notify: Arc<Notify>,
}

impl Drop for Moving {
    fn drop(&mut self) {
        let mut runs = lock(&self.hub.runs);
        // The map and this guard hold one each; a third is another mover.
        if Arc::strong_count(&self.notify) <= 2 {
            runs.remove(&self.run);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
