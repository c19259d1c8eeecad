//! Runs and entries as they stand in a database. They are copied out of it first and decoded afterwards, so that a
//! connection is held only for as long as the database works.

use holdpoint_core::event::RunEvent;
use holdpoint_core::ids::{AgentId, RunId, SessionId};
use holdpoint_core::record::{self, Entry};
use holdpoint_core::time::Timestamp;
use holdpoint_runtime::ports::store::{Lease, LoadedRun, StoreFault};

use crate::admit::{LeaseSlot, Mover};
use crate::faults;

/// A run, with the entries that were asked for.
pub(crate) struct RawRun {
    pub(crate) revision: u64,
    pub(crate) session: SessionId,
    pub(crate) agent: AgentId,
    pub(crate) lease: Option<Lease>,
    pub(crate) entries: Vec<RawEntry>,
}

/// An entry.
pub(crate) struct RawEntry {
    pub(crate) revision: u64,
    pub(crate) last_seq: u64,
    /// How many times pauses have opened in the session, this time included.
    pub(crate) pause_groups: u64,
    pub(crate) at: Timestamp,
    pub(crate) body: Vec<u8>,
}

/// The lease of a run, unless it has ended.
pub(crate) fn lease_at(run: RunId, slot: LeaseSlot, now: Timestamp) -> Option<Lease> {
    match slot.mover {
        Mover::Holder { owner, until } if now < until => Some(Lease { run, epoch: slot.epoch, owner, until }),
        Mover::Holder { .. } | Mover::Nobody { .. } => None,
    }
}

impl RawRun {
    /// # Errors
    /// What the database holds cannot be read, or is not all there.
    pub(crate) fn decode(self, id: RunId, after: u64) -> Result<LoadedRun, StoreFault> {
        let expected = after.saturating_add(1)..=self.revision;
        if !self.entries.iter().map(|entry| entry.revision).eq(expected) {
            return Err(faults::incomplete(id));
        }
        let entries = self.entries.into_iter().map(|entry| entry.decode(id)).collect::<Result<_, _>>()?;
        Ok(LoadedRun { revision: self.revision, session: self.session, agent: self.agent, entries, lease: self.lease })
    }
}

impl RawEntry {
    /// # Errors
    /// What the database holds cannot be read.
    pub(crate) fn decode(self, run: RunId) -> Result<Entry, StoreFault> {
        let events = record::decode(&self.body).map_err(|refusal| faults::unreadable(run, self.revision, &refusal))?;
        let opens = events.iter().any(|event| matches!(event, RunEvent::PauseOpened(_)));
        Ok(Entry {
            revision: self.revision,
            seq: (self.last_seq + 1).saturating_sub(events.len() as u64),
            pause_group: opens.then_some(self.pause_groups),
            at: self.at,
            events: events.into(),
        })
    }
}
