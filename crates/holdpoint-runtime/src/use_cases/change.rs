//! One input from outside into a stored run: load, ask the core, append; when somebody was faster, once more.

use std::sync::Arc;

use holdpoint_core::event::RunEvent;
use holdpoint_core::ids::RunId;
use holdpoint_core::input::Input;
use holdpoint_core::record::Entry;
use holdpoint_core::refusal::Refusal;
use holdpoint_core::run::Run;
use holdpoint_core::step::Step;
use holdpoint_core::time::Timestamp;

use crate::fault::{Fault, RunError};
use crate::ports::store::{Append, AppendError, LeaseChange};
use crate::projection::{self, Projection};
use crate::recent::Seen;
use crate::runtime::Runtime;

/// How often an input is tried on top of other writers' commits.
const TRIES_MAX: usize = 1_024;

/// A run as it stands in the store.
pub(super) struct Stored {
    pub(super) run: Run,
    pub(super) revision: u64,
    pub(super) lease: Option<crate::ports::store::Lease>,
}

/// A run after an input.
pub(super) struct Changed {
    pub(super) run: Arc<Run>,
    /// What the input led to; empty where it led to nothing that was not there before.
    pub(super) events: Arc<[RunEvent]>,
}

impl Runtime {
    pub(super) async fn stored_run(&self, run: RunId) -> Result<Stored, RunError> {
        let seen = self.recent().take(run);
        self.brought_up_to_date(run, seen).await
    }

    /// A run about to be driven. One that was decided here a moment ago, when nobody moved it, is not read again as long as
    /// it has something to do: should somebody have been faster after all, the first commit tells.
    pub(super) async fn run_to_drive(&self, run: RunId) -> Result<Stored, RunError> {
        match self.recent().take(run) {
            Some(Seen { run, revision, is_free: true }) if matches!(run.next_step(), Step::Work(_)) => {
                Ok(Stored { run: Arc::unwrap_or_clone(run), revision, lease: None })
            }
            seen => self.brought_up_to_date(run, seen).await,
        }
    }

    /// What was seen of a run, and on top of it what the store has since.
    async fn brought_up_to_date(&self, run: RunId, seen: Option<Seen>) -> Result<Stored, RunError> {
        let (mut folded, after) = match seen {
            Some(seen) => (Arc::unwrap_or_clone(seen.run), seen.revision),
            None => (Run::new(run), 0),
        };
        let loaded = self.store().load(run, after).await?.ok_or(Refusal::RunNotFound(run))?;
        for (event, at) in loaded.entries.iter().flat_map(Entry::timed) {
            folded.apply(event, at);
        }
        Ok(Stored { run: folded, revision: loaded.revision, lease: loaded.lease })
    }

    /// Feeds one input to a stored run, durably. An input that leads to nothing writes nothing.
    pub(super) async fn change(&self, run: RunId, input: Input) -> Result<Changed, RunError> {
        if let Some(changed) = self.change_seen(run, &input).await? {
            return Ok(changed);
        }
        let mut stored = self.stored_run(run).await?;
        for _ in 0..TRIES_MAX {
            let now = self.store().now();
            let events: Arc<[_]> = stored.run.advance(input.clone(), now)?.into();
            if events.is_empty() {
                return Ok(Changed { run: Arc::new(stored.run), events });
            }
            match self.append_change(&stored, events.clone(), now).await {
                Ok(()) => {
                    let run = Arc::new(stored.run);
                    self.recent().keep(run.clone(), stored.revision + 1, stored.lease.is_none());
                    return Ok(Changed { run, events });
                }
                Err(AppendError::Conflict { .. }) => stored = self.stored_run(run).await?,
                Err(AppendError::Fault(fault)) => return Err(fault.into()),
                Err(AppendError::NoRun(run)) => return Err(Refusal::RunNotFound(run).into()),
                Err(_) => break,
            }
        }
        Err(Fault::Contended { run }.into())
    }

    /// Feeds an input to a run as it was seen a moment ago, without reading it again. The store refuses what others have
    /// overtaken; and where the core refuses, it may be because of what it does not know yet. Both are for a second look.
    async fn change_seen(&self, run: RunId, input: &Input) -> Result<Option<Changed>, RunError> {
        let Some(Seen { run, revision, is_free: true }) = self.recent().take(run) else { return Ok(None) };
        let mut stored = Stored { run: Arc::unwrap_or_clone(run), revision, lease: None };
        let now = self.store().now();
        let Ok(events) = stored.run.advance(input.clone(), now) else { return Ok(None) };
        if events.is_empty() {
            return Ok(None);
        }
        let events: Arc<[_]> = events.into();
        match self.append_change(&stored, events.clone(), now).await {
            Ok(()) => {
                let run = Arc::new(stored.run);
                self.recent().keep(run.clone(), stored.revision + 1, true);
                Ok(Some(Changed { run, events }))
            }
            Err(AppendError::Fault(fault)) => Err(fault.into()),
            Err(_) => Ok(None),
        }
    }

    async fn append_change(&self, stored: &Stored, events: Arc<[RunEvent]>, at: Timestamp) -> Result<(), AppendError> {
        let run = &stored.run;
        let id = run.id();
        let (Some(session), Some(agent)) = (run.session(), run.agent()) else { return Err(AppendError::NoRun(id)) };
        let mut rows = Projection::default();
        rows.add(run, &events, at, &self.settings().notify);
        let append = Append {
            run: id,
            expected: stored.revision,
            session: session.clone(),
            agent: agent.id.clone(),
            at,
            events: events.clone(),
            status: projection::status(run),
            lease: LeaseChange::Keep,
            pauses: rows.pauses,
            rules: rows.rules,
            definitions: Vec::new(),
            audit: rows.audit,
            notices: rows.notices,
            only_owner: false,
        };
        let appended = self.append(append).await?;
        let (revision, seq, pause_group) = (appended.revision, appended.seq, appended.pause_group);
        self.tell_changed(run, Entry { revision, seq, pause_group, at, events }, stored.lease.is_none());
        Ok(())
    }
}
