//! Sends what is in the outbox. A notice is written with the pause that it tells of, so nothing is told of what was not
//! committed, and what was committed is told at least once: after a crash perhaps twice, with the same key.
//!
//! Each destination has a lane of its own, so that one that hangs, fails or panics holds up nobody else. Several processes
//! may send over one store; each attempt is claimed first, and whoever dies with one loses nothing.

mod attempt;
mod backoff;
mod lane;

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::ports::notifier::{Destination, NoticeKey, Notifier};
use crate::ports::observer::AttemptEnd;
use crate::ports::store::StoreFault;
use crate::runtime::Runtime;

use attempt::Desk;
pub use backoff::ATTEMPTS_MAX;
use lane::Lane;

/// Sends what people are to be told.
pub struct Dispatcher {
    desk: Desk,
    lanes: Vec<(Destination, Arc<dyn Notifier>)>,
    parallel_max: usize,
    poll: Duration,
}

/// What came of a sweep's attempts.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Dispatched {
    /// They know.
    pub delivered: Vec<NoticeKey>,
    /// Tried again later.
    pub retried: Vec<NoticeKey>,
    /// Not tried any more.
    pub failed: Vec<NoticeKey>,
    /// Overtaken by another attempt, or not written down because the store was out of order: it counts for nothing.
    pub late: Vec<NoticeKey>,
}

impl Dispatcher {
    /// A dispatcher over a runtime's store, for these destinations. Of two for one destination the first counts.
    pub fn new(runtime: Runtime, notifiers: impl IntoIterator<Item = (Destination, Arc<dyn Notifier>)>) -> Self {
        let mut lanes: Vec<(Destination, Arc<dyn Notifier>)> = Vec::new();
        for (destination, notifier) in notifiers {
            if lanes.iter().all(|(known, _)| *known != destination) {
                lanes.push((destination, notifier));
            }
        }
        let desk = Desk { runtime, hold: Duration::from_secs(60) };
        Self { desk, lanes, parallel_max: 8, poll: Duration::from_secs(1) }
    }

    /// How many attempts one destination may have under way at once.
    #[must_use]
    pub fn parallel_max(mut self, parallel_max: usize) -> Self {
        self.parallel_max = parallel_max.max(1);
        self
    }

    /// How long it rests when nothing was due. What is committed in this process wakes it at once.
    #[must_use]
    pub fn poll(mut self, poll: Duration) -> Self {
        self.poll = poll;
        self
    }

    /// How long others leave an attempt alone that was begun here. An attempt that takes three quarters of it is broken off,
    /// however long its notifier would have waited, and made again later.
    #[must_use]
    pub fn hold(mut self, hold: Duration) -> Self {
        self.desk.hold = hold.max(Duration::from_secs(1));
        self
    }

    /// Sends once what is due now, until nothing is.
    ///
    /// # Errors
    /// The store is out of order. What a single notice runs into is told in the answer.
    pub async fn sweep(&self) -> Result<Dispatched, StoreFault> {
        let lanes = self.lanes().map(|lane| async move { lane.sweep().await });
        let mut dispatched = Dispatched::default();
        for lane in futures_util::future::join_all(lanes).await {
            lane?.into_iter().for_each(|attempted| dispatched.add(attempted));
        }
        Ok(dispatched)
    }

    /// Sends until it is stopped.
    pub fn spawn(self) -> DispatcherHandle {
        let stop = CancellationToken::new();
        let mut tasks = JoinSet::new();
        for lane in self.lanes() {
            tasks.spawn(lane.run(stop.clone()));
        }
        DispatcherHandle { stop, tasks }
    }

    fn lanes(&self) -> impl Iterator<Item = Lane> {
        self.lanes.iter().map(|(destination, notifier)| Lane {
            desk: self.desk.clone(),
            destination: destination.clone(),
            notifier: notifier.clone(),
            parallel_max: self.parallel_max,
            poll: self.poll,
        })
    }
}

impl Dispatched {
    fn add(&mut self, (key, end): (NoticeKey, AttemptEnd)) {
        match end {
            AttemptEnd::Delivered => self.delivered.push(key),
            AttemptEnd::Retried => self.retried.push(key),
            AttemptEnd::Failed => self.failed.push(key),
            AttemptEnd::Late => self.late.push(key),
        }
    }
}

/// A dispatcher that sends by itself. Dropping it breaks off what is under way; that is sent again later.
pub struct DispatcherHandle {
    stop: CancellationToken,
    tasks: JoinSet<()>,
}

impl DispatcherHandle {
    /// Begins nothing more, lets what is under way come to its end for a few seconds, and breaks off the rest: it is sent
    /// again later.
    pub async fn stop(mut self) {
        self.stop.cancel();
        // A panic of a lane was its own; there is nothing left to wait for.
        while self.tasks.join_next().await.is_some() {}
    }
}
