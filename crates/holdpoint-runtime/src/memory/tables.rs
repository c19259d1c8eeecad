//! What the memory store holds.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use holdpoint_core::audit::AuditRecord;
use holdpoint_core::ids::{ActorId, AgentId, PauseId, RuleId, RunId, SessionId};
use holdpoint_core::json::Digest;
use holdpoint_core::policy::StandingRule;
use holdpoint_core::record::Entry;
use holdpoint_core::time::Timestamp;

use crate::ports::notifier::NoticeKey;
use crate::ports::store::{NoticeRow, PauseRow, RunStatus};

/// Everything.
#[derive(Clone, Default)]
pub(super) struct Tables {
    pub(super) runs: HashMap<RunId, Run>,
    pub(super) sessions: HashMap<SessionId, Session>,
    /// The sessions in the order in which they began.
    pub(super) session_order: Vec<SessionId>,
    pub(super) pauses: BTreeMap<PauseId, PauseRow>,
    pub(super) rules: BTreeMap<RuleId, Rule>,
    pub(super) definitions: HashMap<Digest, Arc<[u8]>>,
    pub(super) audit: Vec<AuditRecord>,
    pub(super) notices: BTreeMap<NoticeKey, NoticeRow>,
}

#[derive(Clone)]
pub(super) struct Run {
    pub(super) session: SessionId,
    pub(super) agent: AgentId,
    pub(super) status: RunStatus,
    pub(super) entries: Vec<Entry>,
    pub(super) lease: LeaseSlot,
    /// Since when nobody moves it; means nothing while somebody does.
    pub(super) alone_since: Timestamp,
}

impl Run {
    pub(super) fn revision(&self) -> u64 {
        self.entries.len() as u64
    }

    pub(super) fn is_finished(&self) -> bool {
        self.status == RunStatus::Finished
    }
}

/// Who moves a run, and how many have held the lease so far.
#[derive(Clone, Default)]
pub(super) struct LeaseSlot {
    pub(super) epoch: u64,
    pub(super) holder: Option<Holder>,
}

#[derive(Clone)]
pub(super) struct Holder {
    pub(super) owner: String,
    pub(super) until: Timestamp,
}

impl LeaseSlot {
    /// Who keeps others away at `now`.
    pub(super) fn standing(&self, now: Timestamp) -> Option<&Holder> {
        self.holder.as_ref().filter(|holder| now < holder.until)
    }

    /// Whether `epoch` is that of the current holder, be the time up or not.
    pub(super) fn is_held_at(&self, epoch: u64) -> bool {
        self.holder.is_some() && self.epoch == epoch
    }
}

#[derive(Clone)]
pub(super) struct Session {
    /// Who began the first run.
    pub(super) owner: ActorId,
    /// The runs in the order in which they began.
    pub(super) runs: Vec<RunId>,
    /// Where its entries stand, in the order in which they were written.
    pub(super) entries: Vec<(RunId, u64)>,
    /// How many events it has.
    pub(super) events: u64,
    /// How many times pauses opened.
    pub(super) pause_groups: u64,
}

impl Session {
    /// A session that is about to have its first run.
    pub(super) fn of(owner: ActorId) -> Self {
        Self { owner, runs: Vec::new(), entries: Vec::new(), events: 0, pause_groups: 0 }
    }
}

#[derive(Clone)]
pub(super) struct Rule {
    pub(super) session: SessionId,
    pub(super) rule: StandingRule,
    pub(super) uses: u32,
    pub(super) is_revoked: bool,
}
