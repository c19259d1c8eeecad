//! The only way to write a run. What an append depends on is read, it is checked by the rules that every store shares, and
//! one script writes all of it if what was read still stands. If it does not, everything begins again.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Instant;

use ::redis::aio::ConnectionManager;
use holdpoint_core::ids::ActorId;
use holdpoint_core::json::CanonicalJson;
use holdpoint_core::record;
use holdpoint_core::time::Timestamp;
use holdpoint_runtime::ports::store::{Append, AppendError, Appended, RunStatus, StoreFault};
use uuid::Uuid;

use super::change::Change;
use super::fault::{self, Broken, WriteError};
use super::keys::{self, Keys};
use super::leases::place_work;
use super::open::millis;
use super::records::{self, EntryRecord, Held, PauseRecord, RunRecord, SessionRecord};
use super::{audit, definitions, notices, pauses, rules, sessions};
use crate::admit::{self, Found};
use crate::clock::StoreClock;

/// An append with its entry as bytes.
pub(super) struct PreparedAppend {
    pub(super) append: Append,
    pub(super) body: Vec<u8>,
    pub(super) audit: Vec<CanonicalJson>,
    /// By which its entry is found again where its writing was in doubt.
    token: String,
}

/// A token that nobody else has, without asking the system for chance each time.
fn new_token() -> String {
    static PROCESS: LazyLock<Uuid> = LazyLock::new(Uuid::now_v7);
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    format!("{}-{}", PROCESS.simple(), NUMBER.fetch_add(1, Ordering::Relaxed))
}

/// What an append depends on, as it stood. Whatever changes any of it changes the record of the session or of the run, or
/// the head of the audit: these are compared when it is written.
pub(super) struct Seen {
    pub(super) session: Option<Arc<Held<SessionRecord>>>,
    pub(super) run: Option<Arc<Held<RunRecord>>>,
    /// The entry that stands where this one is to.
    pub(super) entry: Option<Vec<u8>>,
    /// The agent's unfinished run in the session, where that is asked for: it matters to those that begin.
    pub(super) under_way: Option<String>,
    pub(super) audit_head: Option<Vec<u8>>,
    /// The records of its pauses that are asked for, in their order.
    pub(super) pauses: Vec<Option<PauseRecord>>,
    pub(super) rules: Vec<Option<Vec<u8>>>,
    /// When it stood so by the server's clock, in seconds and microseconds beside them; none where it is only remembered.
    pub(super) time: Option<(i64, i64)>,
}

/// What the server answers to whoever looks at all of it.
type Looked = (
    Option<Vec<u8>>,
    Option<Vec<u8>>,
    Option<Vec<u8>>,
    Option<String>,
    Option<Vec<u8>>,
    Vec<Option<Vec<u8>>>,
    Vec<Option<Vec<u8>>>,
    (i64, i64),
);

impl Seen {
    /// Whether it was not looked at.
    pub(super) fn is_remembered(&self) -> bool {
        self.time.is_none()
    }
}

/// An append that was admitted, and the records after it.
pub(super) struct Planned {
    pub(super) appended: Appended,
    pub(super) session: Arc<Held<SessionRecord>>,
    pub(super) run: Arc<Held<RunRecord>>,
}

impl PreparedAppend {
    /// # Errors
    /// The append has no events, or a note that cannot be written.
    pub(super) fn new(append: Append) -> Result<Self, StoreFault> {
        if append.events.is_empty() {
            return Err(fault::no_events(append.run));
        }
        let (body, audit) = (record::encode(&append.events), audit::bodies(&append)?);
        Ok(Self { append, body, audit, token: new_token() })
    }

    async fn look(&self, connection: &ConnectionManager, keys: &Keys) -> Result<Seen, Broken> {
        let append = &self.append;
        let mut pipe = ::redis::pipe();
        pipe.atomic();
        pipe.cmd("HGET").arg(keys.sessions()).arg(append.session.as_str());
        pipe.cmd("HGET").arg(keys.runs()).arg(&*keys::run_name(append.run));
        pipe.cmd("HGET").arg(keys.journal(append.run)).arg(append.expected.saturating_add(1));
        pipe.cmd("HGET").arg(keys.under_way(&append.session)).arg(append.agent.as_str());
        pipe.cmd("GET").arg(keys.audit_head());
        records::hmget(&mut pipe, keys.pauses(), pauses::names_asked_for(append).collect());
        let rule_name = |change| keys::rule_name(crate::rule_changes::id_of(change)).to_string();
        let rules = append.rules.iter().map(rule_name).collect();
        records::hmget(&mut pipe, &keys.rules(), rules);
        pipe.cmd("TIME");
        let (session, run, entry, under_way, audit_head, pauses, rules, time): Looked =
            pipe.query_async(&mut connection.clone()).await?;
        let (session, run) = (session.map(Held::read).transpose()?, run.map(Held::read).transpose()?);
        let pauses = records::decode_all(pauses)?;
        Ok(Seen { session, run, entry, under_way, audit_head, pauses, rules, time: Some(time) })
    }

    /// One try: reads, checks and writes.
    pub(super) async fn write(
        &self,
        connection: &ConnectionManager,
        keys: &Keys,
        clock: &StoreClock,
    ) -> Result<Appended, WriteError> {
        let asked = Instant::now();
        let seen = self.look(connection, keys).await?;
        let now = seen.time.map_or_else(|| clock.now(), |time| clock.arbiter(asked, millis(time)));
        if let Some(appended) = self.written_before(&seen)? {
            return Ok(appended);
        }
        let mut change = Change::default();
        let planned = self.plan(&mut change, keys, &seen, now)?;
        notices::write(&mut change, connection, keys, &self.append).await?;
        audit::write(&mut change, keys, seen.audit_head.as_deref(), &self.audit)?;
        change.commit(connection).await?;
        Ok(planned.appended)
    }

    /// What is written of an append that is admitted, its part of the audit and its notices aside. One that is refused adds nothing.
    pub(super) fn plan(
        &self,
        change: &mut Change,
        keys: &Keys,
        seen: &Seen,
        now: Timestamp,
    ) -> Result<Planned, WriteError> {
        let append = &self.append;
        let known = seen.run.as_deref().map(|run| &run.record);
        let found = known.map(|run| self.found(run)).transpose()?;
        let before = found.as_ref().map(|found| found.status);

        if admit::begins(append, found.as_ref())? {
            let owner = seen.session.as_ref().map(|session| &session.record.owner);
            let is_owner = owner.is_none_or(|owner| append.starter() == Some(owner));
            if known.is_none() && append.only_owner && !is_owner {
                return Err(AppendError::SessionForeign { session: append.session.clone() }.into());
            }
            if let Some(busy) = seen.under_way.as_deref().and_then(keys::parse_run) {
                return Err(AppendError::SessionBusy { run: busy }.into());
            }
        }
        let lease = admit::lease_after(append, found.as_ref(), now)?;
        let changed_rules = rules::check(append, &seen.rules)?;

        // Nothing is refused from here on. Pauses are not compared: whatever changes one changes its run.
        let session = self.write_session(change, keys, seen)?;
        let seq = session.record.events + 1 - append.events.len() as u64;
        let run = known.cloned().unwrap_or_else(|| RunRecord {
            session: append.session.clone(),
            agent: append.agent.clone(),
            first_seq: seq,
            revision: 0,
            status: 0,
            started_at: append.at.as_millis(),
            last_at: 0,
            epoch: 0,
            owner: None,
            since: 0,
        });
        let run = RunRecord {
            revision: append.expected + 1,
            status: records::status_code(append.status),
            last_at: append.at.as_millis(),
            ..run.with_lease(&lease)
        };
        let appended = Appended {
            revision: run.revision,
            seq,
            pause_group: append.opens_pauses().then_some(session.record.pause_groups),
            epoch: admit::epoch_of(append, &lease),
        };
        let run = Held::new(run)?;
        let before_bytes = seen.run.as_ref().map(|run| run.bytes.as_slice());
        change.replace_field(keys.runs(), keys::run_name(append.run), before_bytes, &run.bytes);
        self.place_run(change, keys, &run.record, &session.record.owner, before);
        self.write_entry(change, keys, &session.record, appended.epoch);
        pauses::write(change, keys, append, &seen.pauses, appended.pause_group)?;
        rules::write(change, keys, &append.session, changed_rules)?;
        definitions::write(change, keys, &append.definitions);
        Ok(Planned { appended, session, run })
    }

    /// Whether the append begins a run, or begins it again, for all that is known of it.
    pub(super) fn may_begin(&self, run: Option<&RunRecord>) -> bool {
        let over = records::status_code(RunStatus::Finished);
        self.append.status != RunStatus::Finished && run.is_none_or(|run| run.status == over)
    }

    /// The run as a writer finds it.
    fn found(&self, run: &RunRecord) -> Result<Found, Broken> {
        Ok(Found {
            is_here: run.session == self.append.session,
            revision: run.revision,
            status: run.status()?,
            lease: run.lease(),
        })
    }

    /// What an earlier try answered that was written after all, although its answer was lost.
    fn written_before(&self, seen: &Seen) -> Result<Option<Appended>, Broken> {
        let Some(entry) = seen.entry.clone().map(EntryRecord::from_bytes).transpose()? else { return Ok(None) };
        if entry.token != self.token {
            return Ok(None);
        }
        let append = &self.append;
        Ok(Some(Appended {
            revision: append.expected + 1,
            seq: (entry.last_seq + 1).saturating_sub(append.events.len() as u64),
            pause_group: append.opens_pauses().then_some(entry.pause_groups),
            epoch: (entry.epoch > 0).then_some(entry.epoch),
        }))
    }

    /// The session after the append.
    fn write_session(&self, change: &mut Change, keys: &Keys, seen: &Seen) -> Result<Arc<Held<SessionRecord>>, Broken> {
        let append = &self.append;
        let at = append.at.as_millis();
        let before = match &seen.session {
            Some(before) => before.record.clone(),
            None => {
                let owner = append.starter().cloned().unwrap_or_else(ActorId::local);
                let (seconds, micros) = seen.time.unwrap_or_default();
                for order in [keys.session_order(None), keys.session_order(Some(&owner))] {
                    change.place_member(order, seconds * 1_000_000 + micros, append.session.as_str());
                }
                SessionRecord { owner, created_at: at, last_at: at, runs: 0, events: 0, pause_groups: 0 }
            }
        };
        let after = Held::new(SessionRecord {
            last_at: at,
            runs: before.runs + u64::from(seen.run.is_none()),
            events: before.events + append.events.len() as u64,
            pause_groups: before.pause_groups + u64::from(append.opens_pauses()),
            ..before
        })?;
        let before = seen.session.as_ref().map(|session| session.bytes.as_slice());
        change.replace_field(keys.sessions(), append.session.as_str(), before, &after.bytes);
        Ok(after)
    }

    /// Gives the run its places in the lists.
    fn place_run(&self, change: &mut Change, keys: &Keys, run: &RunRecord, owner: &ActorId, before: Option<RunStatus>) {
        let append = &self.append;
        let name = keys::run_name(append.run);
        if append.expected == 0 {
            for order in [keys.run_order(None), keys.run_order(Some(owner))] {
                change.place_member(order, 0, name);
            }
            let first_seq = i64::try_from(run.first_seq).unwrap_or(i64::MAX);
            change.place_member(keys.runs_of(&append.session), first_seq, name);
        }
        let is_over = |status: RunStatus| status == RunStatus::Finished;
        match (before.is_none_or(is_over), is_over(append.status)) {
            (true, false) => change.set_field(keys.under_way(&append.session), run.agent.as_str(), name),
            (false, true) => change.remove_field(keys.under_way(&append.session), run.agent.as_str()),
            // It goes on; or it was over at once, or got a word in while another one of its agent is under way.
            (false, false) | (true, true) => {}
        }
        place_work(change, keys, append.run, run);
    }

    fn write_entry(&self, change: &mut Change, keys: &Keys, session: &SessionRecord, epoch: Option<u64>) {
        let append = &self.append;
        let revision = append.expected + 1;
        let entry = EntryRecord {
            last_seq: session.events,
            pause_groups: session.pause_groups,
            at: append.at.as_millis(),
            epoch: epoch.unwrap_or_default(),
            token: self.token.as_str(),
            body: self.body.as_slice(),
        };
        // A change has one append of a run and of a session, so that these keys are for it alone.
        change.set_own_field(&keys.journal(append.run), revision.to_string(), entry.to_bytes());
        let last_seq = i64::try_from(session.events).unwrap_or(i64::MAX);
        change.place_own_member(&keys.log(&append.session), last_seq, sessions::entry_name(append.run, revision));
    }
}
