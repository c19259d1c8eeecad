//! The only way to write a run. What an append depends on is read, it is checked by the rules that every store shares, and
//! one script writes all of it if what was read still stands. If it does not, everything begins again.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
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
use super::records::{self, EntryRecord, RunRecord, SessionRecord};
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
    pub(super) session: Option<Vec<u8>>,
    pub(super) run: Option<Vec<u8>>,
    /// The entry that stands where this one is to.
    pub(super) entry: Option<Vec<u8>>,
    /// The agent's unfinished run in the session, where that is asked for: it matters to those that begin.
    pub(super) under_way: Option<String>,
    pub(super) audit_head: Option<Vec<u8>>,
    pub(super) pauses: Vec<Option<Vec<u8>>>,
    pub(super) rules: Vec<Option<Vec<u8>>>,
    /// When it stood so by the server's clock, in seconds and microseconds beside them; none where it is only remembered.
    pub(super) time: Option<(i64, i64)>,
}

impl Seen {
    /// Whether it was not looked at.
    pub(super) fn is_remembered(&self) -> bool {
        self.time.is_none()
    }
}

/// An append that was admitted, and the records after it.
pub(super) struct Planned {
    pub(super) appended: Appended,
    pub(super) session: Vec<u8>,
    pub(super) run: Vec<u8>,
    /// In the order of the append's rows.
    pub(super) pauses: Vec<Vec<u8>>,
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
        let name = keys::run_name(append.run);
        let mut pipe = ::redis::pipe();
        pipe.atomic();
        pipe.cmd("HGET").arg(keys.sessions()).arg(append.session.as_str());
        pipe.cmd("HGET").arg(keys.runs()).arg(name);
        pipe.cmd("HGET").arg(keys.journal(append.run)).arg(append.expected.saturating_add(1));
        pipe.cmd("HGET").arg(keys.under_way(&append.session)).arg(append.agent.as_str());
        pipe.cmd("GET").arg(keys.audit_head());
        let hmget = |pipe: &mut ::redis::Pipeline, key: &str, names: Vec<String>| {
            // One name at least, which nothing has.
            pipe.cmd("HMGET").arg(key).arg(names).arg("");
        };
        let pauses = append.pauses.iter().map(|row| keys::pause_name(row.id)).collect();
        hmget(&mut pipe, keys.pauses(), pauses);
        let rules = append.rules.iter().map(|change| keys::rule_name(crate::rule_changes::id_of(change))).collect();
        hmget(&mut pipe, &keys.rules(), rules);
        pipe.cmd("TIME");
        let (session, run, entry, under_way, audit_head, pauses, rules, time) =
            pipe.query_async(&mut connection.clone()).await?;
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
        audit::write(&mut change, keys, seen.audit_head, &self.audit)?;
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
        let session: Option<SessionRecord> = seen.session.as_deref().map(records::decode).transpose()?;
        let known: Option<RunRecord> = seen.run.as_deref().map(records::decode).transpose()?;
        let found = known.as_ref().map(|run| self.found(run)).transpose()?;
        let before = found.as_ref().map(|found| found.status);

        if admit::begins(append, found.as_ref())? {
            let owner = session.as_ref().map(|session| session.owner.as_str());
            let is_owner = owner.is_none_or(|owner| append.starter().is_some_and(|by| by.as_str() == owner));
            if known.is_none() && append.only_owner && !is_owner {
                return Err(AppendError::SessionForeign { session: append.session.clone() }.into());
            }
            if let Some(busy) = seen.under_way.as_deref().and_then(keys::parse_run) {
                return Err(AppendError::SessionBusy { run: busy }.into());
            }
        }
        let lease = admit::lease_after(append, found.as_ref(), now)?;
        let changed_rules = rules::check(append, &seen.rules)?;

        // Nothing is refused from here on.
        change.expect_field(keys.sessions(), append.session.to_string(), seen.session.clone());
        change.expect_field(keys.runs(), keys::run_name(append.run), seen.run.clone());
        if seen.is_remembered() {
            // They were not looked at together with their run, and may be of another time.
            for (row, before) in append.pauses.iter().zip(&seen.pauses) {
                change.expect_field(keys.pauses(), keys::pause_name(row.id), before.clone());
            }
        }
        let (session, session_bytes) = self.write_session(change, keys, session, known.is_none(), seen.time)?;
        let seq = session.events + 1 - append.events.len() as u64;
        let run = known.unwrap_or_else(|| RunRecord {
            session: append.session.to_string(),
            agent: append.agent.to_string(),
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
            pause_group: append.opens_pauses().then_some(session.pause_groups),
            epoch: admit::epoch_of(append, &lease),
        };
        let run_bytes = self.write_run(change, keys, &run, &session, before)?;
        self.write_entry(change, keys, &session, appended.epoch);
        let pauses = pauses::write(change, keys, append, &seen.pauses, appended.pause_group)?;
        rules::write(change, keys, &append.session, changed_rules)?;
        definitions::write(change, keys, &append.definitions);
        Ok(Planned { appended, session: session_bytes, run: run_bytes, pauses })
    }

    /// Whether the append begins a run, or begins it again, for all that is known of it.
    pub(super) fn may_begin(&self, run: Option<&[u8]>) -> Result<bool, Broken> {
        #[derive(serde::Deserialize)]
        struct Status {
            status: u8,
        }
        let before: Option<Status> = run.map(records::decode).transpose()?;
        let over = records::status_code(RunStatus::Finished);
        Ok(self.append.status != RunStatus::Finished && before.is_none_or(|before| before.status == over))
    }

    /// The run as a writer finds it.
    fn found(&self, run: &RunRecord) -> Result<Found, Broken> {
        Ok(Found {
            is_here: run.session == self.append.session.as_str(),
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
    fn write_session(
        &self,
        change: &mut Change,
        keys: &Keys,
        before: Option<SessionRecord>,
        begins_run: bool,
        time: Option<(i64, i64)>,
    ) -> Result<(SessionRecord, Vec<u8>), Broken> {
        let append = &self.append;
        let at = append.at.as_millis();
        let before = match before {
            Some(before) => before,
            None => {
                let owner = append.starter().cloned().unwrap_or_else(ActorId::local);
                let (seconds, micros) = time.unwrap_or_default();
                for order in [keys.session_order(None), keys.session_order(Some(&owner))] {
                    change.place_member(order, seconds * 1_000_000 + micros, append.session.as_str());
                }
                let (owner, created_at) = (owner.to_string(), at);
                SessionRecord { owner, created_at, last_at: at, runs: 0, events: 0, pause_groups: 0 }
            }
        };
        let after = SessionRecord {
            last_at: at,
            runs: before.runs + u64::from(begins_run),
            events: before.events + append.events.len() as u64,
            pause_groups: before.pause_groups + u64::from(append.opens_pauses()),
            ..before
        };
        let bytes = records::encode(&after)?;
        change.set_field(keys.sessions(), append.session.as_str(), bytes.clone());
        Ok((after, bytes))
    }

    fn write_run(
        &self,
        change: &mut Change,
        keys: &Keys,
        run: &RunRecord,
        session: &SessionRecord,
        before: Option<RunStatus>,
    ) -> Result<Vec<u8>, Broken> {
        let append = &self.append;
        let name = keys::run_name(append.run);
        if append.expected == 0 {
            let owner: ActorId = records::parse(&session.owner)?;
            for order in [keys.run_order(None), keys.run_order(Some(&owner))] {
                change.place_member(order, 0, name.clone());
            }
            let first_seq = i64::try_from(run.first_seq).unwrap_or(i64::MAX);
            change.place_member(keys.runs_of(&append.session), first_seq, name.clone());
        }
        let under = keys.under_way(&append.session);
        let is_over = |status: RunStatus| status == RunStatus::Finished;
        match (before.is_none_or(is_over), is_over(append.status)) {
            (true, false) => change.set_field(under, run.agent.as_str(), name.clone()),
            (false, true) => change.remove_field(under, run.agent.as_str()),
            // It goes on; or it was over at once, or got a word in while another one of its agent is under way.
            (false, false) | (true, true) => {}
        }
        place_work(change, keys, append.run, run);
        let bytes = records::encode(run)?;
        change.set_field(keys.runs(), name, bytes.clone());
        Ok(bytes)
    }

    fn write_entry(&self, change: &mut Change, keys: &Keys, session: &SessionRecord, epoch: Option<u64>) {
        let append = &self.append;
        let revision = append.expected + 1;
        let entry = EntryRecord {
            last_seq: session.events,
            pause_groups: session.pause_groups,
            at: append.at.as_millis(),
            epoch: epoch.unwrap_or_default(),
            token: self.token.clone(),
            body: self.body.clone(),
        };
        change.set_field(keys.journal(append.run), revision.to_string(), entry.to_bytes());
        let last_seq = i64::try_from(session.events).unwrap_or(i64::MAX);
        change.place_member(keys.log(&append.session), last_seq, sessions::entry_name(append.run, revision));
    }
}
