//! One input from outside into a stored run: load, ask the core, append; when somebody was faster, once more.

use std::sync::Arc;

use holdpoint_core::ids::RunId;
use holdpoint_core::input::Input;
use holdpoint_core::record::Entry;
use holdpoint_core::refusal::Refusal;
use holdpoint_core::run::Run;
use holdpoint_core::time::Timestamp;

use crate::fault::{Fault, RunError};
use crate::hub::Live;
use crate::ports::store::{Append, AppendError, LeaseChange};
use crate::projection::{self, Projection};
use crate::runtime::Runtime;

/// How often an input is tried on top of other writers' commits.
const TRIES_MAX: usize = 1_024;

/// A run as it stands in the store.
pub(super) struct Stored {
    pub(super) run: Run,
    pub(super) revision: u64,
    pub(super) lease: Option<crate::ports::store::Lease>,
}

impl Runtime {
    pub(super) async fn stored_run(&self, run: RunId) -> Result<Stored, RunError> {
        let (known, after) = self.recent().take(run).unwrap_or_else(|| (Run::new(run), 0));
        let loaded = self.store().load(run, after).await?.ok_or(Refusal::RunNotFound(run))?;
        let mut folded = known;
        for (event, at) in loaded.entries.iter().flat_map(Entry::timed) {
            folded.apply(event, at);
        }
        Ok(Stored { run: folded, revision: loaded.revision, lease: loaded.lease })
    }

    /// Feeds one input to a stored run, durably. An input that leads to nothing writes nothing.
    pub(super) async fn change(&self, run: RunId, input: Input) -> Result<Run, RunError> {
        let mut stored = self.stored_run(run).await?;
        for _ in 0..TRIES_MAX {
            let now = self.store().now();
            let events = stored.run.advance(input.clone(), now)?;
            if events.is_empty() {
                return Ok(stored.run);
            }
            match self.append_change(&stored, events, now).await {
                Ok(()) => {
                    self.recent().keep(&stored.run, stored.revision + 1);
                    return Ok(stored.run);
                }
                Err(AppendError::Conflict { .. }) => stored = self.stored_run(run).await?,
                Err(AppendError::Fault(fault)) => return Err(fault.into()),
                Err(AppendError::NoRun(run)) => return Err(Refusal::RunNotFound(run).into()),
                Err(_) => break,
            }
        }
        Err(Fault::Contended { run }.into())
    }

    async fn append_change(
        &self,
        stored: &Stored,
        events: Vec<holdpoint_core::event::RunEvent>,
        at: Timestamp,
    ) -> Result<(), AppendError> {
        let run = &stored.run;
        let id = run.id();
        let (Some(session), Some(agent)) = (run.session(), run.agent()) else { return Err(AppendError::NoRun(id)) };
        let mut rows = Projection::default();
        rows.add(run, &events);
        let events: Arc<[_]> = events.into();
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
        };
        let appended = self.store().append(append).await?;
        self.hub().tell(session, || Live::Committed {
            run: id,
            entry: Entry {
                revision: appended.revision,
                seq: appended.seq,
                pause_group: appended.pause_group,
                at,
                events,
            },
        });
        self.hub().nudge(id);
        Ok(())
    }
}
