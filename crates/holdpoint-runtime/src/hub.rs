//! Tells this process's listeners what was committed, after it was committed. A listener that lags reads the store.

mod listener;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use holdpoint_core::ids::{FramePath, RunId, SessionId};
use holdpoint_core::record::Entry;
use tokio::sync::{Notify, broadcast};

use crate::ports::model::Delta;
use crate::ports::observer::PauseChange;

use listener::Queue;
pub(crate) use listener::{Lagged, Listener};

/// What is told to listeners.
#[derive(Debug, Clone)]
pub(crate) enum Live {
    /// An entry was committed.
    Committed { run: RunId, entry: Entry },
    /// A model said more. Not stored.
    Delta { run: RunId, frame: FramePath, delta: Delta },
}

/// Who listens to what.
pub(crate) struct Hub {
    sessions: Mutex<HashMap<SessionId, Vec<Arc<Queue>>>>,
    runs: Mutex<HashMap<RunId, Arc<Notify>>>,
    pauses: broadcast::Sender<PauseChange>,
}

impl Default for Hub {
    fn default() -> Self {
        Self { sessions: Mutex::default(), runs: Mutex::default(), pauses: broadcast::channel(LAG_MAX).0 }
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

    /// Wakes whoever moves this run in this process.
    pub(crate) fn nudge(&self, run: RunId) {
        if let Some(notify) = lock(&self.runs).get(&run) {
            notify.notify_one();
        }
    }

    /// Registers the one who moves a run, as long as the guard lives.
    pub(crate) fn moving(self: &Arc<Self>, run: RunId) -> Moving {
        let notify = lock(&self.runs).entry(run).or_default().clone();
        Moving { hub: self.clone(), run, notify }
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
