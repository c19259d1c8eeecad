//! What all use cases share: the store, the clock, the settings, and those who listen.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use holdpoint_core::event::RunEvent;
use holdpoint_core::ids::{RunId, SessionId};
use holdpoint_core::json::Digest;
use holdpoint_core::message::Item;
use holdpoint_core::policy::StandingRule;
use holdpoint_core::record::Entry;
use holdpoint_core::run::{Run, answered_items};
use holdpoint_core::time::Timestamp;
use tokio_util::sync::CancellationToken;

use crate::agent::AgentGraph;
use crate::fault::RunError;
use crate::hub::{Hub, Link};
use crate::ports::clock::{Clock, SystemClock};
use crate::ports::ids::{Ids, TimeOrderedIds};
use crate::ports::model::Model;
use crate::ports::observer::Observer;
use crate::ports::store::Store;
use crate::recent::Recent;
use crate::settings::Settings;

/// Moves runs over one store. Cheap to clone; clones share everything.
#[derive(Clone)]
pub struct Runtime(Arc<Parts>);

struct Parts {
    store: Arc<dyn Store>,
    model: Option<Arc<dyn Model>>,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn Ids>,
    settings: Settings,
    hub: Arc<Hub>,
    link: OnceLock<Option<Link>>,
    known_definitions: Mutex<HashSet<Digest>>,
    recent: Recent,
    observer: Option<Arc<dyn Observer>>,
    /// How many drives there were.
    drives: AtomicU64,
    /// Cancelled when runs are left.
    leaving: CancellationToken,
}

/// Builds a [`Runtime`].
pub struct RuntimeBuilder {
    store: Arc<dyn Store>,
    model: Option<Arc<dyn Model>>,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn Ids>,
    settings: Settings,
    observer: Option<Arc<dyn Observer>>,
}

impl Runtime {
    /// Begins a runtime over a store.
    pub fn builder(store: Arc<dyn Store>) -> RuntimeBuilder {
        RuntimeBuilder {
            store,
            model: None,
            clock: SystemClock::shared(),
            ids: Arc::new(TimeOrderedIds),
            settings: Settings::default(),
            observer: None,
        }
    }

    /// Where runs are kept.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.0.store
    }

    /// How it behaves.
    pub fn settings(&self) -> &Settings {
        &self.0.settings
    }

    pub(crate) fn clock(&self) -> &Arc<dyn Clock> {
        &self.0.clock
    }

    pub(crate) fn model(&self) -> Option<Arc<dyn Model>> {
        self.0.model.clone()
    }

    pub(crate) fn hub(&self) -> &Arc<Hub> {
        &self.0.hub
    }

    /// The connection with other instances over the same store, where it has a bus. It begins when it is first needed.
    pub(crate) fn link(&self) -> Option<&Link> {
        if let Some(link) = self.0.link.get() {
            return link.as_ref();
        }
        // Outside of a runtime for tasks nobody could listen; it is tried again when somebody does.
        tokio::runtime::Handle::try_current().ok()?;
        self.0.link.get_or_init(|| Link::start(&self.0.hub, &self.0.store, self.0.settings.watch_poll)).as_ref()
    }

    /// How many other instances are at work over the same store, as far as they are heard; 0 where they cannot be.
    pub fn instances_elsewhere(&self) -> usize {
        self.link().map_or(0, Link::peers)
    }

    /// How many pieces of news for other instances were dropped here. They find out later, by looking at the store.
    pub fn news_dropped(&self) -> u64 {
        self.link().map_or(0, Link::dropped)
    }

    /// How many sessions are watched at other instances, as far as they are heard. Only their words are told there.
    #[doc(hidden)]
    pub fn sessions_watched_elsewhere(&self) -> usize {
        self.link().map_or(0, Link::watched_elsewhere)
    }

    /// Begins nothing more in any run, for good: this process stops. Tools that run are waited for and what they did is written
    /// down; what a model is about to say is not waited for, and is asked for again by whoever goes on, who may do so at once.
    /// Whoever moves such a run is told [`Fault::Left`](crate::Fault::Left). Decisions are taken as before.
    pub fn leave_runs(&self) {
        self.0.leaving.cancel();
    }

    /// Whether runs are left here.
    pub fn is_leaving(&self) -> bool {
        self.0.leaving.is_cancelled()
    }

    /// Ends when runs are left here.
    pub(crate) fn leaving(&self) -> impl Future<Output = ()> + Send + use<> {
        self.0.leaving.clone().cancelled_owned()
    }

    pub(crate) fn observer(&self) -> Option<&Arc<dyn Observer>> {
        self.0.observer.as_ref()
    }

    pub(crate) fn recent(&self) -> &Recent {
        &self.0.recent
    }

    /// A name for whoever is about to move a run: this process, and a number that no other drive of it has.
    pub(crate) fn new_owner(&self) -> String {
        let number = self.0.drives.fetch_add(1, Ordering::Relaxed) + 1;
        format!("{}#{number}", self.settings().owner)
    }

    pub(crate) fn new_run_id(&self) -> RunId {
        self.0.ids.new_run()
    }

    /// The session that a run has when its caller named none.
    pub fn own_session(run: RunId) -> SessionId {
        let name = format!("ses_{}", run.uuid().simple());
        SessionId::new(name).unwrap_or_else(|bad| unreachable!("{bad}"))
    }

    /// What earlier runs of the same agent said in the session, oldest first.
    ///
    /// # Errors
    /// The store is out of order.
    pub async fn read_history(&self, run: &Run) -> Result<Arc<[Arc<Item>]>, RunError> {
        let (Some(session), Some(agent)) = (run.session(), run.agent()) else { return Ok(Arc::from([])) };
        if *session == Self::own_session(run.id()) {
            return Ok(Arc::from([]));
        }
        let earlier = self.earlier_runs(session, run).await?;
        let mut items = Vec::new();
        for id in earlier {
            let Some(loaded) = self.store().load(id, 0).await? else { continue };
            if loaded.agent == agent.id {
                let earlier = Run::fold(id, loaded.entries.iter().flat_map(Entry::timed));
                items.extend(answered_items(&earlier.items()));
            }
        }
        Ok(items.into())
    }

    /// The session's runs of this agent before this one, oldest first, as many as a model is shown.
    async fn earlier_runs(&self, session: &SessionId, run: &Run) -> Result<Vec<RunId>, RunError> {
        let limit = self.settings().history_runs_max;
        let rows = self.store().session_runs(session, limit.saturating_add(1)).await?;
        let is_same_agent = |agent| run.agent().is_some_and(|own| own.id == agent);
        let after_this = rows.iter().position(|row| row.run == run.id()).map_or(0, |index| index + 1);
        let mut earlier: Vec<RunId> = rows
            .into_iter()
            .skip(after_this)
            .filter(|row| is_same_agent(row.agent.clone()))
            .map(|row| row.run)
            .collect();
        earlier.truncate(limit);
        earlier.reverse();
        Ok(earlier)
    }

    /// The rules of other runs that stand in the run's session now.
    pub(crate) async fn rules_beside(&self, run: &Run, now: Timestamp) -> Result<Vec<StandingRule>, RunError> {
        let Some(session) = run.session() else { return Ok(Vec::new()) };
        if *session == Self::own_session(run.id()) {
            return Ok(Vec::new());
        }
        let stored = self.store().session_rules(session).await?;
        Ok(stored
            .into_iter()
            .filter(|stored| stored.rule.is_alive(now, stored.uses))
            .map(|stored| stored.rule)
            .collect())
    }

    /// The definitions that events refer to and that this process has not written yet.
    pub(crate) fn new_definitions(&self, graph: &AgentGraph, events: &[RunEvent]) -> Vec<(Digest, Arc<[u8]>)> {
        if !events.iter().any(refers_to_agents) {
            return Vec::new();
        }
        let known = self.0.known_definitions.lock().unwrap_or_else(PoisonError::into_inner);
        graph.definitions().filter(|(digest, _)| !known.contains(digest)).collect()
    }

    /// These definitions are in the store now.
    pub(crate) fn remember_definitions(&self, graph: &AgentGraph, events: &[RunEvent]) {
        if events.iter().any(refers_to_agents) {
            let mut known = self.0.known_definitions.lock().unwrap_or_else(PoisonError::into_inner);
            known.extend(graph.definitions().map(|(digest, _)| digest));
        }
    }
}

fn refers_to_agents(event: &RunEvent) -> bool {
    match event {
        RunEvent::RunStarted(_) | RunEvent::AgentSet(_) => true,
        RunEvent::ModelReplied(replied) => {
            replied.calls.iter().any(|call| call.kind != holdpoint_core::tool::ToolKind::Function)
        }
        _ => false,
    }
}

impl RuntimeBuilder {
    /// The model of agents that have none of their own.
    #[must_use]
    pub fn model(mut self, model: Arc<dyn Model>) -> Self {
        self.model = Some(model);
        self
    }

    /// What the runtime waits by. The store has a clock of its own, which arbitrates.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Where new names come from.
    #[must_use]
    pub fn ids(mut self, ids: Arc<dyn Ids>) -> Self {
        self.ids = ids;
        self
    }

    /// How it behaves.
    #[must_use]
    pub fn settings(mut self, settings: Settings) -> Self {
        self.settings = settings;
        self
    }

    /// Who counts and times what happens here.
    #[must_use]
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observer = Some(observer);
        self
    }

    /// The runtime.
    pub fn build(self) -> Runtime {
        Runtime(Arc::new(Parts {
            store: self.store,
            model: self.model,
            clock: self.clock,
            ids: self.ids,
            settings: self.settings,
            hub: Arc::default(),
            link: OnceLock::new(),
            known_definitions: Mutex::default(),
            recent: Recent::default(),
            observer: self.observer,
            drives: AtomicU64::new(0),
            leaving: CancellationToken::new(),
        }))
    }
}
