//! Where in a run's journal a stream begins: at the run's own start, or at somebody's decision.

use holdpoint_core::event::RunEvent;
use holdpoint_core::ids::{ActorId, AgentId, PauseId, RunId, SessionId};
use holdpoint_core::record::Entry;
use holdpoint_core::refusal::Refusal;
use holdpoint_core::run::Run;
use holdpoint_runtime::RunError;

use super::chunks::Narrator;
use super::follow::{AtPause, Follow};
use super::{origin, refuse};
use crate::access::{Action, Caller};
use crate::app::App;
use crate::problem::Problem;
use crate::protocols::driving::Driving;

/// A place in a run's journal.
pub(super) struct Place {
    /// The run as it stood before.
    before: Run,
    /// What clients call it.
    name: String,
    session: SessionId,
    /// The session's number of the first event after it.
    seq: u64,
}

impl Place {
    /// Where the run begins; `None` where it is not there.
    pub(super) async fn start(app: &App, run: RunId) -> Result<Option<Self>, Problem> {
        let Some(entries) = journal(app, run).await? else { return Ok(None) };
        Ok(Self::before_event(run, &entries, |_| true))
    }

    /// Where a pause was decided; where the actor voted, if it still waits.
    pub(super) async fn decision(app: &App, pause: PauseId, actor: &ActorId) -> Result<Self, Problem> {
        let entries = journal(app, pause.run).await?.ok_or_else(refuse::run_not_found)?;
        let is_decision = |event: &RunEvent| matches!(event, RunEvent::PauseDecided(it) if it.number == pause.number);
        let is_vote = |event: &RunEvent| matches!(event, RunEvent::PauseVoted(it) if it.number == pause.number && it.by == *actor);
        Self::before_event(pause.run, &entries, is_decision)
            .or_else(|| Self::before_event(pause.run, &entries, is_vote))
            .ok_or_else(|| Problem::internal("a decision that is not in the journal"))
    }

    /// Where an entry of the run begins.
    pub(super) fn entry(run: RunId, entries: &[Entry], revision: u64) -> Result<Self, Problem> {
        let before = entries.iter().take_while(|entry| entry.revision < revision).map(|entry| entry.events.len()).sum();
        let mut passed = 0_usize;
        let is_reached = |_: &RunEvent| {
            passed += 1;
            passed > before
        };
        Self::before_event(run, entries, is_reached)
            .ok_or_else(|| Problem::internal("an entry that is not in the journal"))
    }

    fn before_event(run: RunId, entries: &[Entry], mut is_it: impl FnMut(&RunEvent) -> bool) -> Option<Self> {
        let name = origin::run_name(&Run::fold(run, entries.iter().flat_map(Entry::timed)));
        let mut before = Run::new(run);
        let session = entries.iter().flat_map(|entry| entry.events.iter()).find_map(|event| match event {
            RunEvent::RunStarted(started) => Some(started.session.clone()),
            _ => None,
        })?;
        for entry in entries {
            for ((event, at), seq) in entry.timed().zip(entry.seq..) {
                if is_it(event) {
                    return Some(Self { before, name, session, seq });
                }
                before.apply(event, at);
            }
        }
        None
    }

    /// A stream from here on. The run is moved, where nobody does yet.
    pub(super) fn follow(self, app: App, caller: Caller, is_repeat: bool, at_pause: AtPause) -> Follow {
        let run = self.before.id();
        let watch = app.runtime().watch_session(&self.session, self.seq);
        let driver = app.clone();
        let drive = app.tasks().spawn(async move { driver.drive(run).await });
        let narrator = Narrator::new(self.before, self.name);
        // Who comes second may have missed the beginning of what is being said.
        let narrator = if is_repeat { narrator.joining() } else { narrator };
        Follow { app, caller, narrator, watch, seen: [].into(), drive: Driving::UnderWay(drive), at_pause }
    }
}

/// A run's journal; `None` where there is no such run.
pub(super) async fn journal(app: &App, run: RunId) -> Result<Option<Vec<Entry>>, Problem> {
    match app.runtime().read_journal(run).await {
        Ok(entries) => Ok(Some(entries)),
        Err(RunError::Refused(Refusal::RunNotFound(_))) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// A run of this agent that the caller may know of. Every other one is not there.
pub(super) async fn run_of(app: &App, caller: &Caller, agent: &str, id: RunId) -> Result<Run, Problem> {
    let entries = journal(app, id).await?;
    let run = entries.map(|entries| Run::fold(id, entries.iter().flat_map(Entry::timed)));
    let is_agents = |run: &Run| run.agent().is_some_and(|brief| brief.id.root_name() == agent);
    let is_seen = |run: &Run| caller.sees(Action::ReadPause, run.started_by());
    match run.filter(|run| is_agents(run) && is_seen(run)) {
        Some(run) => Ok(run),
        None => match app.agents().find(agent) {
            Some(_) => Err(refuse::run_not_found()),
            None => Err(refuse::agent_not_found(agent)),
        },
    }
}

/// The agent's place, where this may be an agent's name.
pub(super) fn root(agent: &str) -> Result<AgentId, Problem> {
    AgentId::root(agent).map_err(|_| refuse::agent_not_found(agent))
}
