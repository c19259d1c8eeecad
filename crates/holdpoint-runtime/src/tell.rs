//! What was committed is told: to those who watch the session or the pauses, to the observer, and to the log.

use std::panic::AssertUnwindSafe;

use holdpoint_core::record::Entry;
use holdpoint_core::run::Run;
use holdpoint_core::step::Step;

use crate::hub::Live;
use crate::log;
use crate::ports::observer::{Committed, Observer, PauseChange};
use crate::runtime::Runtime;

impl Runtime {
    /// Tells what was committed by whoever moves the run, or nobody does yet; `run` is the run right after it.
    pub(crate) fn tell_committed(&self, run: &Run, entry: Entry) {
        self.tell_here_and_elsewhere(run, entry, false);
    }

    /// Tells what was committed by somebody who does not move the run, and wakes whoever does. Where nobody did, another
    /// instance may go on with it.
    pub(crate) fn tell_changed(&self, run: &Run, entry: Entry, is_free: bool) {
        self.tell_here_and_elsewhere(run, entry, is_free);
        self.hub().nudge(run.id());
    }

    /// `is_free` where nobody moves the run, so that somebody must if there is something to do.
    fn tell_here_and_elsewhere(&self, run: &Run, entry: Entry, is_free: bool) {
        let Some(session) = run.session() else { return };
        if let Some(link) = self.link() {
            self.hub().is_in(run.id(), session);
            let needs_somebody = || is_free && matches!(run.next_step(), Step::Work(_));
            link.committed(session, run.id(), &entry, needs_somebody);
        }
        let (id, at) = (run.id(), entry.at);
        if log::is_read() || self.hub().has_pause_listeners() || self.observes() {
            for event in entry.events.iter() {
                log::happened(id, session, event);
                let Some(change) = PauseChange::of(run, event, at) else { continue };
                log::pause_changed(&change);
                self.observe(|observer| observer.pause_changed(&change));
                self.hub().tell_pause(change);
            }
        }
        self.observe(|observer| observer.committed(&Committed { session, run: id, at, events: &entry.events }));
        self.hub().tell(session, || Live::Committed { run: id, entry });
    }

    /// Tells the observer, if there is one. Its panics are its own.
    pub(crate) fn observe(&self, tell: impl FnOnce(&dyn Observer)) {
        let Some(observer) = self.observer() else { return };
        if std::panic::catch_unwind(AssertUnwindSafe(|| tell(&**observer))).is_err() {
            tracing::warn!("the observer panicked");
        }
    }

    fn observes(&self) -> bool {
        self.observer().is_some()
    }
}
