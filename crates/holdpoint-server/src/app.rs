//! What all handlers share: the runtime, the agents, who may come in, the bounds, the tasks under way.

use std::sync::Arc;

use holdpoint_runtime::Runtime;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::access::Access;
use crate::agents::Catalogue;
use crate::health::LastAnswer;
use crate::limits::{Limits, RateLimiter, StreamSlots};
use crate::metrics::Metrics;
use crate::notifiers::slack::Slack;
use crate::protocols::blocks;
use crate::protocols::mastra::Prefix;
use crate::requests::{Callbacks, Desk};
use crate::unreadable::Unreadable;

/// The server's state. Cheap to clone; clones share everything.
#[derive(Clone)]
pub struct App(Arc<Parts>);

struct Parts {
    runtime: Runtime,
    agents: Catalogue,
    access: Access,
    limits: Limits,
    rate: RateLimiter,
    streams: StreamSlots,
    metrics: Metrics,
    desk: Desk,
    last_answer: LastAnswer,
    unreadable: Unreadable,
    mastra_prefix: Prefix,
    slack: Vec<Arc<Slack>>,
    blocks: blocks::Shared,
    tasks: TaskTracker,
    stop: CancellationToken,
}

/// Builds an [`App`]. What is not given keeps its default.
pub struct AppBuilder {
    runtime: Runtime,
    agents: Catalogue,
    access: Access,
    limits: Limits,
    metrics: Metrics,
    callbacks: Option<Callbacks>,
    mastra_prefix: Prefix,
    slack: Vec<Arc<Slack>>,
}

impl App {
    /// Begins the state of a server over a runtime, for these agents and these callers.
    pub fn builder(runtime: Runtime, agents: Catalogue, access: Access) -> AppBuilder {
        AppBuilder {
            runtime,
            agents,
            access,
            limits: Limits::default(),
            metrics: Metrics::default(),
            callbacks: None,
            mastra_prefix: Prefix::default(),
            slack: Vec::new(),
        }
    }

    /// Moves runs: the only door to them.
    pub fn runtime(&self) -> &Runtime {
        &self.0.runtime
    }

    /// The agents that are served.
    pub fn agents(&self) -> &Catalogue {
        &self.0.agents
    }

    /// Who may come in.
    pub fn access(&self) -> &Access {
        &self.0.access
    }

    /// The bounds.
    pub fn limits(&self) -> &Limits {
        &self.0.limits
    }

    /// How fast callers may ask.
    pub fn rate(&self) -> &RateLimiter {
        &self.0.rate
    }

    /// The streams that are open.
    pub fn streams(&self) -> &StreamSlots {
        &self.0.streams
    }

    /// What is counted.
    pub fn metrics(&self) -> &Metrics {
        &self.0.metrics
    }

    /// When the store last answered.
    pub(crate) fn last_answer(&self) -> &LastAnswer {
        &self.0.last_answer
    }

    /// The runs that could not be read.
    pub(crate) fn unreadable(&self) -> &Unreadable {
        &self.0.unreadable
    }

    /// What the connections of the blocks protocol share.
    pub(crate) fn blocks(&self) -> &blocks::Shared {
        &self.0.blocks
    }

    /// Where the routes of Mastra's protocol stand.
    pub(crate) fn mastra_prefix(&self) -> &Prefix {
        &self.0.mastra_prefix
    }

    /// Whether buttons of any channel of Slack are answered here.
    pub(crate) fn has_slack(&self) -> bool {
        !self.0.slack.is_empty()
    }

    /// The channel of Slack of this name.
    pub(crate) fn slack(&self, name: &str) -> Option<Arc<Slack>> {
        self.0.slack.iter().find(|slack| slack.destination().as_str() == name).cloned()
    }

    /// Where requests for approval are taken in.
    pub(crate) fn desk(&self) -> &Desk {
        &self.0.desk
    }

    /// The tasks that a stop waits for: drives of runs and streams.
    pub fn tasks(&self) -> &TaskTracker {
        &self.0.tasks
    }

    /// Ends when the server stops.
    pub fn stopping(&self) -> CancellationToken {
        self.0.stop.clone()
    }
}

impl AppBuilder {
    /// The bounds.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// What is counted, where it is also counted elsewhere (see [`crate::telemetry`]).
    #[must_use]
    pub fn metrics(mut self, metrics: Metrics) -> Self {
        self.metrics = metrics;
        self
    }

    /// Puts the routes of Mastra's protocol under another path.
    #[must_use]
    pub fn mastra_prefix(mut self, prefix: Prefix) -> Self {
        self.mastra_prefix = prefix;
        self
    }

    /// Answers the buttons of these channels of Slack.
    #[must_use]
    pub fn slack(mut self, slack: Vec<Arc<Slack>>) -> Self {
        self.slack = slack;
        self
    }

    /// Lets requests for approval be called back.
    #[must_use]
    pub(crate) fn callbacks(mut self, callbacks: Option<Callbacks>) -> Self {
        self.callbacks = callbacks;
        self
    }

    /// The state.
    pub fn build(self) -> App {
        let limits = self.limits;
        let desk = Desk::new(self.runtime.clone(), self.agents.request_policy(), self.callbacks);
        App(Arc::new(Parts {
            runtime: self.runtime,
            agents: self.agents,
            access: self.access,
            rate: RateLimiter::new(limits.requests_per_second, limits.requests_burst),
            streams: StreamSlots::new(limits.streams_per_caller, limits.streams_max),
            blocks: blocks::Shared::new(&limits),
            limits,
            metrics: self.metrics,
            desk,
            last_answer: LastAnswer::default(),
            unreadable: Unreadable::default(),
            mastra_prefix: self.mastra_prefix,
            slack: self.slack,
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
        }))
    }
}
