//! Commit first, then act, then tell. Somebody else's commit in between is taken in, and ours is tried again on top.

use std::sync::Arc;

use holdpoint_core::event::RunEvent;
use holdpoint_core::ids::RuleId;
use holdpoint_core::input::Input;
use holdpoint_core::policy::{Screening, Verdict};
use holdpoint_core::record::Entry;
use holdpoint_core::refusal::Refusal;
use holdpoint_core::run::Run;
use holdpoint_core::time::Timestamp;
use tokio_util::sync::CancellationToken;

use crate::driver::{Drive, Pending};
use crate::fault::{Fault, RunError};
use crate::ports::store::{Append, AppendError, Appended, Lease, LeaseChange};
use crate::projection;

/// How often a commit is tried on top of other writers' commits.
const TRIES_MAX: usize = 256;

impl Drive {
    /// Makes durable what is pending, and keeps (or takes) the lease.
    pub(super) async fn commit(&mut self) -> Result<(), RunError> {
        self.write(false).await
    }

    /// Makes durable what is pending, and gives the lease back.
    pub(super) async fn commit_and_release(&mut self) -> Result<(), RunError> {
        self.write(true).await
    }

    async fn write(&mut self, is_last: bool) -> Result<(), RunError> {
        for _ in 0..TRIES_MAX {
            if self.pending.events.is_empty() {
                return if is_last { self.release_lease().await } else { Ok(()) };
            }
            // A run that is over has nobody who moves it, whatever its tools still have to say.
            let is_last = is_last || self.run.end().is_some();
            let append = self.append(is_last)?;
            let (events, at) = (append.events.clone(), append.at);
            match self.runtime.append(append).await {
                Ok(appended) => {
                    self.written(appended, is_last, events, at);
                    return Ok(());
                }
                Err(AppendError::Conflict { .. }) => self.catch_up().await?,
                Err(AppendError::RuleSpent(rule)) => self.forget_rule(rule).await?,
                Err(AppendError::Fenced { .. }) if self.has_ended().await? => self.lease = None,
                Err(error) => return Err(self.lost(error)),
            }
        }
        Err(Fault::Contended { run: self.run_id() }.into())
    }

    fn append(&mut self, is_last: bool) -> Result<Append, RunError> {
        let at = self.runtime.store().now();
        self.date_pending(at);
        let (Some(session), Some(agent)) = (self.run.session(), self.run.agent()) else {
            return Err(Refusal::RunNotFound(self.run_id()).into());
        };
        let settings = self.runtime.settings();
        let lease = match (&self.lease, is_last) {
            (Some(lease), true) => LeaseChange::Release { epoch: lease.epoch },
            (Some(lease), false) => LeaseChange::Hold { epoch: lease.epoch },
            (None, true) => LeaseChange::Keep,
            (None, false) => LeaseChange::Take { owner: self.owner.clone(), duration: settings.lease },
        };
        Ok(Append {
            run: self.run_id(),
            expected: self.revision,
            session: session.clone(),
            agent: agent.id.clone(),
            at,
            events: self.pending.events.as_slice().into(),
            // Should we die, somebody else must go on: unless nothing is left to do but to wait for a person.
            status: projection::status(&self.run),
            lease,
            pauses: self.pending.rows.pauses.clone(),
            rules: self.pending.rows.rules.clone(),
            definitions: self.runtime.new_definitions(&self.graph, &self.pending.events),
            audit: self.pending.rows.audit.clone(),
            notices: self.pending.rows.notices.clone(),
            only_owner: self.only_owner && self.revision == 0,
        })
    }

    /// What is told here must be what is stored, to the millisecond.
    fn date_pending(&mut self, at: Timestamp) {
        for event in &self.pending.events {
            self.run.date(event, at);
        }
        for row in &mut self.pending.rows.pauses {
            row.opened_at = self.run.pause(row.id).map_or(at, |pause| pause.opened_at);
        }
        for note in &mut self.pending.rows.audit {
            note.at = at;
        }
    }

    fn written(&mut self, appended: Appended, is_last: bool, events: Arc<[RunEvent]>, at: Timestamp) {
        self.revision = appended.revision;
        self.pending = Pending::default();
        self.started_here.extend(events.iter().filter_map(|event| match event {
            RunEvent::CallStarted(started) => Some(started.call.clone()),
            _ => None,
        }));
        self.runtime.remember_definitions(&self.graph, &events);
        let settings = self.runtime.settings();
        self.grace = None;
        let taken = appended.epoch.filter(|_| !is_last).map(|epoch| Lease {
            run: self.run_id(),
            epoch,
            owner: self.owner.clone(),
            until: at.after(settings.lease),
        });
        match (&self.lease, &taken) {
            (Some(held), Some(taken)) if held.epoch == taken.epoch => {}
            // Kept from when there is something to wait for.
            _ => self.keeper = None,
        }
        self.lease = taken;
        let (revision, seq, pause_group) = (appended.revision, appended.seq, appended.pause_group);
        self.runtime.tell_committed(&self.run, Entry { revision, seq, pause_group, at, events });
    }

    /// Takes in what others committed, and puts what is pending on top of it.
    pub(super) async fn catch_up(&mut self) -> Result<(), RunError> {
        let (run, revision) = self.stored().await?;
        if revision > self.revision {
            self.put_on_top(run, revision);
        }
        Ok(())
    }

    /// Goes back to what is stored, without the calls that a spent rule would have settled: they are looked at again.
    async fn forget_rule(&mut self, spent: RuleId) -> Result<(), RunError> {
        self.spent_rules.insert(spent);
        let is_by_rule = |screening: &Screening| matches!(&screening.verdict, Verdict::Ruled(rule) if rule.id == spent);
        self.pending.inputs.retain(|input| match input {
            Input::Screened(screenings) => !screenings.iter().any(is_by_rule),
            _ => true,
        });
        let (run, revision) = self.stored().await?;
        self.put_on_top(run, revision);
        Ok(())
    }

    /// Whether the run was ended by somebody else, which takes the lease from us but not what our tools still say.
    ///
    /// Only what is stored counts: an end that is pending here is not ours to write any more.
    async fn has_ended(&mut self) -> Result<bool, RunError> {
        let (run, revision) = self.stored().await?;
        let has_ended = run.end().is_some();
        if has_ended && revision > self.revision {
            self.put_on_top(run, revision);
        }
        Ok(has_ended)
    }

    /// Forgets starts that were not made durable: nothing ran, and nobody would run what they name.
    pub(super) async fn forget_starts(&mut self) -> Result<(), RunError> {
        let is_start = |input: &Input| matches!(input, Input::StartCalls(_));
        if self.pending.inputs.iter().any(is_start) {
            self.pending.inputs.retain(|input| !is_start(input));
            let (run, revision) = self.stored().await?;
            self.put_on_top(run, revision);
        }
        Ok(())
    }

    async fn stored(&self) -> Result<(Run, u64), RunError> {
        let loaded = self.runtime.store().load(self.run_id(), 0).await?;
        Ok(match loaded {
            None => (Run::new(self.run_id()), 0),
            Some(loaded) => (Run::fold(self.run_id(), loaded.entries.iter().flat_map(Entry::timed)), loaded.revision),
        })
    }

    /// Inputs that no longer fit are dropped: what overtook them counts.
    fn put_on_top(&mut self, run: Run, revision: u64) {
        let pending = std::mem::take(&mut self.pending);
        self.run = run;
        self.revision = revision;
        for input in pending.inputs {
            self.advance_if_welcome(input);
        }
        match self.run.end() {
            Some(_) => self.cancelled.cancel(),
            // An end that was pending here, and was overtaken: tools that begin from now on are not cancelled.
            None if self.cancelled.is_cancelled() => self.cancelled = CancellationToken::new(),
            None => {}
        }
    }

    /// Makes durable what is pending, and holds the lease afterwards also where nothing was.
    pub(super) async fn settle(&mut self) -> Result<(), RunError> {
        self.commit().await?;
        if self.lease.is_none() && self.run.end().is_none() {
            let settings = self.runtime.settings();
            let claimed = self.runtime.claim(self.run_id(), &self.owner, settings.lease).await;
            self.lease = Some(claimed.map_err(|error| self.lost(error))?);
            // Whoever moved the run before may have gone on since it was read.
            self.catch_up().await?;
        }
        Ok(())
    }

    async fn release_lease(&mut self) -> Result<(), RunError> {
        self.keeper = None;
        if let Some(lease) = self.lease.take() {
            self.runtime.release(&lease).await?;
        }
        Ok(())
    }

    /// Who moves the run instead of us.
    pub(super) async fn moved_elsewhere(&self) -> RunError {
        let run = self.run_id();
        let lease = match self.runtime.store().load(run, u64::MAX).await {
            Ok(loaded) => loaded.and_then(|loaded| loaded.lease),
            Err(fault) => return fault.into(),
        };
        let (owner, until) = match lease {
            Some(lease) => (lease.owner, lease.until),
            None => ("another process".to_owned(), self.runtime.store().now()),
        };
        Refusal::RunBusy { run, owner, until }.into()
    }

    /// Why we may not go on with this run.
    fn lost(&mut self, error: AppendError) -> RunError {
        let run = self.run_id();
        match error {
            AppendError::Fault(fault) => fault.into(),
            AppendError::SessionBusy { run: active } => match self.run.agent() {
                Some(agent) => Refusal::RunActive { run: active, agent: agent.id.clone() }.into(),
                None => Refusal::RunNotFound(run).into(),
            },
            AppendError::Leased { owner, until, .. } => {
                // Its holder goes on from what is stored: what was prepared here must not be written behind its back.
                self.pending = Pending::default();
                Refusal::RunBusy { run, owner, until }.into()
            }
            AppendError::NoRun(run) => Refusal::RunNotFound(run).into(),
            AppendError::SessionForeign { session } => {
                self.pending = Pending::default();
                Refusal::SessionNotFound(session).into()
            }
            AppendError::Fenced { .. } | AppendError::Conflict { .. } | AppendError::RuleSpent(_) => {
                // Whoever took the lease has gone on without us: what our tools say is no longer asked for.
                self.pending = Pending::default();
                self.lease = None;
                let until = self.runtime.store().now();
                Refusal::RunBusy { run, owner: "another process".to_owned(), until }.into()
            }
        }
    }
}
