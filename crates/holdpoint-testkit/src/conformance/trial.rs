//! What a case is given: an empty store, its clock, and short ways to say what is written.

use std::any::Any;
use std::sync::Arc;

use holdpoint_core::event::RunEvent;
use holdpoint_core::ids::{PauseId, RunId};
use holdpoint_core::record::Entry;
use holdpoint_runtime::ports::clock::Clock;
use holdpoint_runtime::ports::store::{
    Append, AppendError, Appended, LeaseChange, LoadedRun, PauseRow, PauseStatus, RunStatus, Store,
};

use super::sample;
use crate::clock::TestClock;

/// A store to be tested, with what it needs to live: a folder, a database.
pub struct UnderTest {
    store: Arc<dyn Store>,
    guard: Box<dyn Any + Send + Sync>,
}

impl UnderTest {
    /// A store that needs nothing else.
    pub fn new(store: impl Store) -> Self {
        Self { store: Arc::new(store), guard: Box::new(()) }
    }

    /// The store, with something that lives as long as the case does.
    pub fn keeping(self, guard: impl Any + Send + Sync) -> Self {
        Self { guard: Box::new(guard), ..self }
    }
}

/// An empty store and its clock.
pub struct Trial {
    /// The store.
    pub store: Arc<dyn Store>,
    /// The clock that it goes by.
    pub clock: TestClock,
    // Dropped after the store.
    _guard: Box<dyn Any + Send + Sync>,
}

impl Trial {
    /// A trial of the store that `make` makes.
    pub async fn new(make: impl AsyncFnOnce(Arc<dyn Clock>) -> UnderTest) -> Self {
        let clock = TestClock::default();
        let UnderTest { store, guard } = make(clock.shared()).await;
        Self { store, clock, _guard: guard }
    }

    /// A run to write, of the agent `Support` in the session; nothing is written yet.
    pub fn run(&self, number: u64, session: &str) -> RunPen {
        self.run_of(number, session, "Support")
    }

    /// A run to write.
    pub fn run_of(&self, number: u64, session: &str, agent: &str) -> RunPen {
        RunPen { id: sample::run_id(number), session: sample::session(session), agent: sample::agent(agent) }
    }

    /// Writes a run's first entry: one event, and somebody must move it.
    pub async fn begin(&self, run: &RunPen) -> Appended {
        self.ok(self.first(run)).await
    }

    /// What [`Trial::begin`] writes.
    pub fn first(&self, run: &RunPen) -> Append {
        self.append(run, 0, [sample::started(&run.session, &run.agent)])
    }

    /// Writes a run's first entry, which opens so many pauses, numbered from one.
    pub async fn begin_paused(&self, run: &RunPen, pauses: u32) -> Appended {
        let rows = (1..=pauses).map(|number| self.pause(run, number)).collect();
        self.ok(self.opening(run, rows)).await
    }

    /// A run's first entry, which opens these pauses.
    pub fn opening(&self, run: &RunPen, pauses: Vec<PauseRow>) -> Append {
        let events = pauses.iter().map(|row| sample::opened(row.id.number, row.expires_at));
        let events = [sample::started(&run.session, &run.agent)].into_iter().chain(events);
        let append = self.append(run, 0, events);
        Append { status: RunStatus::Waiting, pauses, ..append }
    }

    /// An append of these events at the clock's time, after which somebody must move the run; the lease stays as it is.
    pub fn append(&self, run: &RunPen, expected: u64, events: impl IntoIterator<Item = RunEvent>) -> Append {
        Append {
            run: run.id,
            expected,
            session: run.session.clone(),
            agent: run.agent.clone(),
            at: self.clock.now(),
            events: events.into_iter().collect(),
            status: RunStatus::Working,
            lease: LeaseChange::Keep,
            pauses: Vec::new(),
            rules: Vec::new(),
            definitions: Vec::new(),
            audit: Vec::new(),
            notices: Vec::new(),
            only_owner: false,
        }
    }

    /// An open pause of the run that holds a call of `send_email`, without a deadline.
    pub fn pause(&self, run: &RunPen, number: u32) -> PauseRow {
        PauseRow {
            id: PauseId { run: run.id, number },
            kind: holdpoint_core::pause::PauseKind::Approval,
            status: PauseStatus::Open,
            session: run.session.clone(),
            agent: run.agent.clone(),
            tool: Some(sample::tool("send_email")),
            opened_at: self.clock.now(),
            expires_at: None,
            group: 0,
        }
    }

    /// An append that must succeed.
    pub async fn ok(&self, append: Append) -> Appended {
        let run = append.run;
        self.store
            .append(append)
            .await
            .unwrap_or_else(|error| panic!("an append to {run} was refused: {error} ({error:?})"))
    }

    /// An append that must be refused in exactly this way.
    pub async fn refused(&self, append: Append, expected: AppendError) {
        let answer = self.store.append(append).await;
        assert_eq!(answer.map_err(|error| error.to_string()), Err(expected.to_string()));
    }

    /// A run that must be there.
    pub async fn load(&self, run: RunId) -> LoadedRun {
        self.store.load(run, 0).await.expect("the store works").expect("the run is there")
    }

    /// A session's entries from the beginning.
    pub async fn entries(&self, session: &str) -> Vec<(RunId, Entry)> {
        self.store.session_entries(&sample::session(session), 1, 10_000).await.expect("the store works")
    }
}

/// Who writes a run in a case: its names.
#[derive(Debug, Clone)]
pub struct RunPen {
    /// The run.
    pub id: RunId,
    /// Its session.
    pub session: holdpoint_core::ids::SessionId,
    /// Its agent.
    pub agent: holdpoint_core::ids::AgentId,
}
