//! What one subscriber is shown of a session: what it missed, and then what happens, each event once and in order.

use std::time::Duration;

use holdpoint_core::ids::SessionId;
use holdpoint_runtime::RunError;
use holdpoint_runtime::use_cases::{WatchItem, WatchSession};

use super::agents;
use super::projection::{Live, Projection};
use super::standing::Standing;
use super::wire::control::Control;
use super::wire::events::Event;
use crate::app::App;

/// How often the store is asked for what other processes wrote.
const GLANCE: Duration = Duration::from_secs(2);

/// How often a subscription tries again when the store is out of order before it ends.
const TRIES_MAX: u32 = 15;

/// A subscription to a session.
pub(super) struct Subscription {
    app: App,
    watch: WatchSession,
    live: Live,
    /// The last event of the journal that was stored when it began; what comes up to there is not new.
    stored: u64,
    /// What is ready before anything happens.
    ready: Vec<Event>,
    is_shared: bool,
    failures: u32,
}

impl Subscription {
    /// Shows what comes after a number; `None` for what is new from now on. A subscriber that has seen all of it is not
    /// read to again.
    pub(super) fn new(app: &App, session: &SessionId, standing: Standing, after: Option<u64>) -> Self {
        let Standing { truth, events } = standing;
        let after = after.unwrap_or_else(|| truth.head_seq());
        let is_up_to_date = after >= truth.head_seq();
        let (truth, from) = match is_up_to_date {
            true => (truth, events.saturating_add(1)),
            false => (Projection::new(session.clone()), 1),
        };
        let mut live = Live::new(truth, after);
        let ready = if is_up_to_date { live.caught_up().into_iter().collect() } else { Vec::new() };
        Self {
            watch: app.runtime().watch_session(session, from),
            live,
            stored: events,
            ready,
            is_shared: app.runtime().store().durability().is_shared,
            failures: 0,
            app: app.clone(),
        }
    }

    /// What is shown next; waits for it.
    ///
    /// # Errors
    /// The store is out of order, and has been for a while.
    pub(super) async fn next(&mut self) -> Result<Vec<Event>, RunError> {
        loop {
            if !self.ready.is_empty() {
                let now = self.app.runtime().store().now();
                self.ready.iter_mut().for_each(|event| event.stamp(now));
                return Ok(std::mem::take(&mut self.ready));
            }
            let seen = tokio::select! {
                item = self.watch.next() => item.map(|item| vec![item]),
                () = tokio::time::sleep(GLANCE), if self.is_shared => self.watch.caught_up().await,
            };
            match seen {
                Ok(items) => {
                    self.failures = 0;
                    for item in items {
                        self.take(&item).await;
                    }
                }
                Err(error) if self.failures < TRIES_MAX => {
                    self.failures += 1;
                    tracing::debug!(%error, "a subscription waits for the store");
                    tokio::time::sleep(GLANCE).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    async fn take(&mut self, item: &WatchItem) {
        if let Some((run, agent)) = agents::of_new_run(&self.app, item).await {
            self.live.learn(run, agent);
        }
        self.ready.extend(self.live.take(item));
        if matches!(item, WatchItem::Event { seq, .. } if *seq == self.stored) {
            self.ready.extend(self.live.caught_up());
        }
    }
}

/// What a subscriber is told first.
pub(super) fn subscribed(session: &SessionId, standing: &Standing, request_id: Option<String>) -> Control {
    let truth = &standing.truth;
    Control::Subscribed {
        session_id: session.to_string(),
        status: truth.status().name(),
        head_seq: truth.head_seq(),
        open: truth.open().map(|request| request.key.clone()).collect(),
        request_id,
    }
}
