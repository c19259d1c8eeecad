//! A run that its keeper carried in a file comes (back) into the store. What the store knows better is never overwritten.

use std::sync::Arc;

use holdpoint_core::ids::RunId;
use holdpoint_core::json::Digest;
use holdpoint_core::pause::Pause;
use holdpoint_core::record::{Entry, replay};
use holdpoint_core::refusal::Refusal;
use holdpoint_core::run::Run;

use crate::agent::AgentGraph;
use crate::fault::RunError;
use crate::ports::notifier::{NoticeKey, NoticeKind};
use crate::ports::store::{Append, AppendError, LeaseChange, RuleChange};
use crate::projection::{self, Projection};
use crate::runtime::Runtime;

/// A run before anything of it is taken in, and after.
#[derive(Clone, Copy)]
struct Ends<'a> {
    before: &'a Run,
    after: &'a Run,
}

impl Ends<'_> {
    /// Whether people are to be told: of what is open when everything is in, and of the end of what was open here before.
    /// What opened and ended elsewhere is history.
    fn is_news(self, notice: &NoticeKey) -> bool {
        match notice.kind {
            NoticeKind::Opened => self.after.pause(notice.pause).is_ok_and(Pause::is_open),
            NoticeKind::Settled => self.before.pause(notice.pause).is_ok(),
        }
    }
}

impl Runtime {
    /// Takes a run's entries into the store, those that it does not have yet.
    ///
    /// # Errors
    /// The entries contradict themselves, or the store's run has moved on in another way.
    pub async fn import_run(
        &self,
        run: RunId,
        entries: &[Entry],
        definitions: &[(Digest, Arc<[u8]>)],
        graph: &AgentGraph,
    ) -> Result<(), RunError> {
        let last = replay(run, entries)?;
        let known = self.store().load(run, 0).await?.map_or(Vec::new(), |loaded| loaded.entries);
        let given = entries.len() as u64;
        let stale = || Refusal::StateStale { run, stored: known.len() as u64, given };
        let is_prefix = known.len() <= entries.len()
            && known.iter().zip(entries).all(|(stored, given)| stored.events == given.events);
        if !is_prefix {
            return Err(stale().into());
        }
        let mut state = Run::fold(run, known.iter().flat_map(Entry::timed));
        let before = state.clone();
        for (index, entry) in entries.iter().enumerate().skip(known.len()) {
            let ends = Ends { before: &before, after: &last };
            self.import_entry(&mut state, index as u64, entry, definitions, graph, ends).await.map_err(|error| {
                match error {
                    AppendError::Fault(fault) => RunError::from(fault),
                    AppendError::SessionBusy { run: active } => match state.agent() {
                        Some(agent) => Refusal::RunActive { run: active, agent: agent.id.clone() }.into(),
                        None => stale().into(),
                    },
                    _ => stale().into(),
                }
            })?;
        }
        Ok(())
    }

    async fn import_entry(
        &self,
        state: &mut Run,
        expected: u64,
        entry: &Entry,
        definitions: &[(Digest, Arc<[u8]>)],
        graph: &AgentGraph,
        ends: Ends<'_>,
    ) -> Result<(), AppendError> {
        let mut rows = Projection::default();
        for (event, at) in entry.timed() {
            state.apply(event, at);
            rows.add(state, std::slice::from_ref(event), at, &self.settings().notify);
        }
        // What another run's rule settled is history here; the store that counts its uses may be another one.
        rows.rules.retain(|change| !matches!(change, RuleChange::Used(rule) if rule.run != state.id()));
        rows.notices.retain(|notice| ends.is_news(notice));
        let (Some(session), Some(agent)) = (state.session().cloned(), state.agent().cloned()) else {
            return Err(AppendError::NoRun(state.id()));
        };
        let append = Append {
            run: state.id(),
            expected,
            session,
            agent: agent.id,
            at: entry.at,
            events: Arc::clone(&entry.events),
            status: projection::status(state),
            lease: LeaseChange::Keep,
            pauses: rows.pauses,
            rules: rows.rules,
            definitions: self
                .new_definitions(graph, &entry.events)
                .into_iter()
                .chain(definitions.iter().cloned())
                .collect(),
            audit: rows.audit,
            notices: rows.notices,
            only_owner: false,
        };
        let (at, events) = (append.at, Arc::clone(&append.events));
        let appended = self.append(append).await?;
        let (revision, seq, pause_group) = (appended.revision, appended.seq, appended.pause_group);
        self.tell_committed(state, Entry { revision, seq, pause_group, at, events });
        Ok(())
    }
}
