//! Appends that come together are written together, by one script: the server flushes once for all of them, and the head
//! of the audit is compared once. Each is admitted or refused by itself. What was written here a moment ago is not looked
//! at first: should anything that one of them depends on stand otherwise, nothing is written, and all of them are looked at.

use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use ::redis::aio::ConnectionManager;
use holdpoint_core::ids::RunId;
use holdpoint_core::json::CanonicalJson;
use holdpoint_core::time::Timestamp;
use holdpoint_runtime::ports::store::{Append, AppendError, Appended};
use tokio::sync::{Mutex, MutexGuard, oneshot};

use super::append::{PreparedAppend, Seen};
use super::change::{Change, Tried};
use super::fault::{Broken, WriteError, from_value};
use super::keys::{self, Keys};
use super::load::{self, Loaded};
use super::open::millis;
use super::records::{self, Held};
use super::remembered::Remembered;
use super::{audit, pauses};
use crate::clock::StoreClock;
use crate::raw::RawRun;
use crate::together::{AppendQueues, Turn};

/// How often a group is looked at again before each of it is on its own.
const TRIES_MAX: usize = 8;

/// Where appends wait for each other.
#[derive(Default)]
pub(super) struct Groups(AppendQueues<Waiting>);

struct Waiting {
    append: Arc<PreparedAppend>,
    answer: oneshot::Sender<Answer>,
}

/// What became of an append that was to be written with others.
pub(super) enum Answer {
    Done(Appended),
    Refused(AppendError),
    /// Nothing of it was written; it is for its writer alone.
    Alone,
    /// Whether it was written is not known.
    InDoubt(Broken),
}

/// What a group is written with.
#[derive(Clone)]
pub(super) struct Desk {
    pub(super) connection: ConnectionManager,
    pub(super) keys: Keys,
    pub(super) clock: Arc<StoreClock>,
    pub(super) heads: Arc<Heads>,
    pub(super) remembered: Arc<Remembered>,
    /// How long anything may take.
    pub(super) patience: Duration,
}

impl Desk {
    /// Asks for the server's time, where that was long ago.
    pub(super) async fn look_at_clock(&self) -> Result<(), Broken> {
        if self.clock.is_stale() {
            let asked = Instant::now();
            let time = ::redis::cmd("TIME").query_async(&mut self.connection.clone()).await?;
            self.clock.arbiter(asked, millis(time));
        }
        Ok(())
    }

    /// Runs, each with the entries after a revision. Who reads a run often writes to it next.
    pub(super) async fn load(&self, wanted: &[(RunId, u64)]) -> Result<Vec<Option<RawRun>>, Broken> {
        self.look_at_clock().await?;
        let found = load::runs(&mut self.connection.clone(), &self.keys, wanted, self.clock.now()).await?;
        let read = wanted.iter().zip(found).map(|((id, _), found)| {
            found.map(|Loaded { raw, run, session }| {
                self.remembered.keep_read(*id, run, session);
                raw
            })
        });
        Ok(read.collect())
    }
}

/// The head of the audit as this process knows it. Those with something for the audit add to it one after the other, and
/// need not wait for each other's answers: what one of them sends comes after what the one before it sent, and where that
/// was not written, neither is this.
#[derive(Default)]
pub(super) struct Heads(Mutex<Head>);

#[derive(Debug, Clone, Default)]
pub(super) enum Head {
    #[default]
    Unknown,
    /// None where there is no record yet.
    Known(Option<Vec<u8>>),
}

impl Heads {
    pub(super) async fn wait(&self) -> MutexGuard<'_, Head> {
        self.0.lock().await
    }

    async fn set(&self, head: Head) {
        *self.wait().await = head;
    }
}

impl Groups {
    /// Writes an append together with those that come at the same time.
    pub(super) async fn write(&self, append: &Arc<PreparedAppend>, desk: &Desk) -> Answer {
        if !may_join(append) {
            return Answer::Alone;
        }
        let (answer, answered) = oneshot::channel();
        if let Some(turn) = self.0.of(&append.append).add(Waiting { append: Arc::clone(append), answer }) {
            // A task of its own: whoever begins it may go away before the others are answered.
            tokio::spawn(write_all(turn, desk.clone()));
        }
        // It ends without an answer only together with the runtime that it ran on. Whoever is alone looks for it first.
        answered.await.unwrap_or(Answer::Alone)
    }
}

/// Whether all that an append depends on is its run, its session and its pauses.
fn may_join(prepared: &PreparedAppend) -> bool {
    let append = &prepared.append;
    append.rules.is_empty()
        && append.notices.is_empty()
        && prepared.body.len() <= AppendQueues::<Waiting>::ENTRY_BYTES_MAX
}

/// Whether the agent's unfinished run in the session is asked for: another one keeps a run from beginning.
fn asks_for_other(append: &Append) -> bool {
    append.expected == 0
}

async fn write_all(mut turn: Turn<Waiting>, desk: Desk) {
    loop {
        let mut bytes = 0;
        let next = turn.take(|next, group| {
            bytes += next.append.body.len();
            let is_apart = |other: &Waiting| {
                let (one, other) = (&next.append.append, &other.append.append);
                one.session != other.session && one.run != other.run
            };
            bytes <= AppendQueues::<Waiting>::GROUP_BYTES_MAX && group.iter().all(is_apart)
        });
        let group = next.await;
        if group.is_empty() {
            return;
        }
        Group { waiting: group, answers: Vec::new() }.write(&desk).await;
    }
}

/// Appends that are written together.
struct Group {
    waiting: Vec<Waiting>,
    /// What is known of each of them.
    answers: Vec<Option<Answer>>,
}

impl Group {
    /// Writes the group and answers everybody in it.
    async fn write(mut self, desk: &Desk) {
        self.answers = self.waiting.iter().map(|_| None).collect();
        let mut tries = 0;
        let in_doubt = loop {
            tries += 1;
            match tokio::time::timeout(desk.patience, self.write_once(desk)).await {
                Ok(Ok(())) => break None,
                Ok(Err(WriteError::Overtaken)) if tries < TRIES_MAX => {
                    self.waiting.iter().for_each(|waiting| desk.remembered.forget(&waiting.append.append));
                }
                Ok(Err(WriteError::InDoubt(broken))) => break Some(broken.to_string()),
                Err(_) => break Some("Redis did not answer in time".to_owned()),
                // Whoever is alone is told what is wrong.
                Ok(Err(WriteError::Overtaken | WriteError::NotWritten(_) | WriteError::Refused(_))) => break None,
            }
        };
        for (waiting, answer) in self.waiting.into_iter().zip(self.answers) {
            let answer = answer.unwrap_or_else(|| match &in_doubt {
                Some(why) => Answer::InDoubt(Broken::Unreadable(why.clone())),
                None => Answer::Alone,
            });
            // Whoever went away is told nothing.
            let _ = waiting.answer.send(answer);
        }
    }

    /// One try: looks, checks and writes.
    async fn write_once(&mut self, desk: &Desk) -> Result<(), WriteError> {
        let (seen, now) = self.look(desk).await?;
        let (mut change, mut planned) = (Change::default(), Vec::new());
        for (place, (waiting, seen)) in self.waiting.iter().zip(&seen).enumerate() {
            let is_settled = self.answers[place].is_some() || waiting.answer.is_closed();
            // Who begins a run again is rare, and looks at more.
            let is_unknown = !asks_for_other(&waiting.append.append)
                && waiting.append.may_begin(seen.run.as_ref().map(|run| &run.record));
            if is_settled || is_unknown {
                continue;
            }
            match waiting.append.plan(&mut change, &desk.keys, seen, now) {
                Ok(plan) => planned.push((place, plan)),
                // What refuses it must be so, and not only remembered.
                Err(WriteError::Refused(_)) if seen.is_remembered() => return Err(WriteError::Overtaken),
                Err(WriteError::Refused(refusal)) => self.answers[place] = Some(Answer::Refused(refusal)),
                Err(error) => return Err(error),
            }
        }
        if planned.is_empty() {
            return Ok(());
        }
        let bodies: Vec<_> = planned.iter().flat_map(|(place, _)| &self.waiting[*place].append.audit).collect();
        match bodies.is_empty() {
            true => change.commit(&desk.connection).await?,
            false => write_audited(change, &bodies, desk).await?,
        }
        for (place, planned) in planned {
            self.answers[place] = Some(Answer::Done(planned.appended));
            desk.remembered.keep(&self.waiting[place].append.append, planned);
        }
        Ok(())
    }

    /// Looks at what the group depends on, as far as it is not remembered; and at the clock.
    async fn look(&self, desk: &Desk) -> Result<(Vec<Seen>, Timestamp), Broken> {
        let appends = self.waiting.iter().map(|waiting| &waiting.append.append);
        let mut seen: Vec<Option<Seen>> = appends.clone().map(|append| desk.remembered.seen(append)).collect();
        let unknown: Vec<&Append> =
            appends.zip(&seen).filter(|(_, seen)| seen.is_none()).map(|(append, _)| append).collect();
        let now = match unknown.is_empty() && !desk.clock.is_stale() {
            true => desk.clock.now(),
            false => {
                let asked = Instant::now();
                let (time, found) = look_at(&unknown, desk).await?;
                seen.iter_mut().filter(|seen| seen.is_none()).zip(found).for_each(|(seen, found)| *seen = Some(found));
                desk.clock.arbiter(asked, millis(time))
            }
        };
        Ok((seen.into_iter().flatten().collect(), now))
    }
}

/// Writes a change with its records for the audit behind the head that is known; where that is no longer the head, behind
/// the one that is.
async fn write_audited(mut change: Change, bodies: &[&CanonicalJson], desk: &Desk) -> Result<(), WriteError> {
    let mut found = None;
    for _ in 0..TRIES_MAX {
        let mut turn = desk.heads.wait().await;
        let head = match (found.take(), &*turn) {
            (Some(found), _) => found,
            (None, Head::Known(head)) => head.clone(),
            (None, Head::Unknown) => audit::find_head(&mut desk.connection.clone(), &desk.keys).await?,
        };
        let after = audit::write(&mut change, &desk.keys, head.as_deref(), bodies.iter().copied())?;
        let mut sending = pin!(change.try_commit(&desk.connection));
        // Sent before the next one's turn, who goes by the head as it will be.
        let first = futures_util::poll!(&mut sending);
        *turn = Head::Known(after);
        drop(turn);
        let tried = match first {
            Poll::Ready(tried) => tried,
            Poll::Pending => sending.await,
        };
        match tried {
            Ok(Tried::Done) => return Ok(()),
            Ok(Tried::FoundInstead(head)) => {
                audit::take_back(&mut change, &desk.keys);
                found = Some(head);
            }
            other => {
                desk.heads.set(Head::Unknown).await;
                return Err(other.err().unwrap_or(WriteError::Overtaken));
            }
        }
    }
    desk.heads.set(Head::Unknown).await;
    Err(WriteError::Overtaken)
}

/// Looks at what appends depend on, and at the time. Sessions and runs come first: whatever changes the rest changes these,
/// and they are compared when it is written.
async fn look_at(appends: &[&Append], desk: &Desk) -> Result<((i64, i64), Vec<Seen>), Broken> {
    let keys = &desk.keys;
    let mut pipe = ::redis::pipe();
    records::hmget(&mut pipe, keys.sessions(), appends.iter().map(|append| append.session.to_string()).collect());
    records::hmget(
        &mut pipe,
        keys.runs(),
        appends.iter().map(|append| keys::run_name(append.run).to_string()).collect(),
    );
    records::hmget(
        &mut pipe,
        keys.pauses(),
        appends.iter().flat_map(|append| pauses::names_asked_for(append)).collect(),
    );
    pipe.cmd("TIME");
    for append in appends.iter().filter(|append| asks_for_other(append)) {
        pipe.cmd("HGET").arg(keys.under_way(&append.session)).arg(append.agent.as_str());
    }
    let answers: Vec<::redis::Value> = pipe.query_async(&mut desk.connection.clone()).await?;
    let mut answers = answers.into_iter();
    let mut next = || answers.next().unwrap_or(::redis::Value::Nil);
    let (sessions, runs) = (Held::read_all(from_value(next())?)?, Held::read_all(from_value(next())?)?);
    let mut pauses = records::decode_all(from_value(next())?)?.into_iter();
    let time: (i64, i64) = from_value(next())?;
    let mut seen = Vec::with_capacity(appends.len());
    for ((append, session), run) in appends.iter().zip(sessions).zip(runs) {
        let pauses = pauses.by_ref().take(pauses::names_asked_for(append).count()).collect();
        let under_way = match asks_for_other(append) {
            true => from_value(next())?,
            false => None,
        };
        let (entry, audit_head, rules, time) = (None, None, Vec::new(), Some(time));
        seen.push(Seen { session, run, entry, under_way, audit_head, pauses, rules, time });
    }
    Ok((time, seen))
}
