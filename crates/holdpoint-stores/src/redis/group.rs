//! Appends that come together are written together, by one script: the server flushes once for all of them, and the head
//! of the audit is compared once. Each is admitted or refused by itself. When anything that one of them depends on has
//! changed meanwhile, all of them are looked at again.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ::redis::aio::ConnectionManager;
use holdpoint_runtime::ports::store::{AppendError, Appended};
use tokio::sync::{Mutex, MutexGuard, oneshot};

use super::append::{PreparedAppend, Seen};
use super::audit;
use super::change::Change;
use super::fault::{Broken, WriteError};
use super::keys::{self, Keys};
use super::open::millis;
use crate::clock::StoreClock;
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
    /// How long anything may take.
    pub(super) patience: Duration,
}

/// Within one process those with something for the audit wait for each other here, rather than overtake each other; and
/// each finds the head that the one before it left, which it need not ask for.
#[derive(Default)]
pub(super) struct Heads {
    turn: Mutex<Option<Vec<u8>>>,
    /// Counts the heads that were left here.
    left: AtomicU64,
}

impl Heads {
    pub(super) async fn wait(&self) -> MutexGuard<'_, Option<Vec<u8>>> {
        self.turn.lock().await
    }

    fn left(&self) -> u64 {
        self.left.load(Ordering::Acquire)
    }

    /// Takes note that the head changed, or may have.
    pub(super) fn leave(&self, mut turn: MutexGuard<'_, Option<Vec<u8>>>, head: Option<Vec<u8>>) {
        *turn = head;
        self.left.fetch_add(1, Ordering::Release);
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

async fn write_all(mut turn: Turn<Waiting>, desk: Desk) {
    loop {
        let mut bytes = 0;
        let group = turn.take(|next, group| {
            bytes += next.append.body.len();
            let session = &next.append.append.session;
            bytes <= AppendQueues::<Waiting>::GROUP_BYTES_MAX
                && group.iter().all(|other| other.append.append.session != *session)
        });
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

/// What a group depends on, as it stood.
struct Look {
    seen: Vec<Seen>,
    head: Option<Vec<u8>>,
    /// How many heads had been left when it was looked.
    left: u64,
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
                Ok(Err(WriteError::Overtaken)) if tries < TRIES_MAX => {}
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
        let asked = Instant::now();
        let Look { seen, head, left } = self.look(desk).await?;
        let now = desk.clock.arbiter(asked, seen.first().map_or(0, |seen| millis(seen.time)));
        let (mut change, mut planned) = (Change::default(), Vec::new());
        for (place, (waiting, seen)) in self.waiting.iter().zip(&seen).enumerate() {
            if self.answers[place].is_some() || waiting.answer.is_closed() {
                continue;
            }
            match waiting.append.plan(&mut change, &desk.keys, seen, now) {
                Ok(appended) => planned.push((place, appended)),
                Err(WriteError::Refused(refusal)) => self.answers[place] = Some(Answer::Refused(refusal)),
                Err(error) => return Err(error),
            }
        }
        if planned.is_empty() {
            return Ok(());
        }
        let bodies: Vec<_> = planned.iter().flat_map(|(place, _)| &self.waiting[*place].append.audit).collect();
        if bodies.is_empty() {
            change.commit(&desk.connection).await?;
        } else {
            let turn = desk.heads.wait().await;
            // The head that the one before left is the newest, unless another instance was faster.
            let head = if desk.heads.left() == left { head } else { turn.clone() };
            let head = audit::write(&mut change, &desk.keys, head, bodies)?;
            let committed = change.commit(&desk.connection).await;
            let head = match committed.is_ok() {
                true => head,
                // Who goes by one that is not true is refused by the script.
                false => audit::find_head(&mut desk.connection.clone(), &desk.keys).await.unwrap_or_default(),
            };
            desk.heads.leave(turn, head);
            committed?;
        }
        for (place, appended) in planned {
            self.answers[place] = Some(Answer::Done(appended));
        }
        Ok(())
    }

    /// Looks at what the group depends on. Sessions and runs come first: whatever changes the rest changes these, and they
    /// are compared when it is written.
    async fn look(&self, desk: &Desk) -> Result<Look, Broken> {
        let (keys, left) = (&desk.keys, desk.heads.left());
        let appends = || self.waiting.iter().map(|waiting| &waiting.append.append);
        let mut pipe = ::redis::pipe();
        let sessions: Vec<&str> = appends().map(|append| append.session.as_str()).collect();
        pipe.cmd("HMGET").arg(keys.sessions()).arg(sessions);
        pipe.cmd("HMGET").arg(keys.runs()).arg(appends().map(|append| keys::run_name(append.run)).collect::<Vec<_>>());
        // One name at least, which nothing has.
        let pauses = appends().flat_map(|append| &append.pauses).map(|row| keys::pause_name(row.id));
        pipe.cmd("HMGET").arg(keys.pauses()).arg(pauses.collect::<Vec<_>>()).arg("");
        pipe.cmd("GET").arg(keys.audit_head());
        pipe.cmd("TIME");
        for append in appends() {
            pipe.cmd("HGET").arg(keys.under_way(&append.session)).arg(append.agent.as_str());
        }
        let answers: Vec<::redis::Value> = pipe.query_async(&mut desk.connection.clone()).await?;
        let mut answers = answers.into_iter();
        let mut next = || answers.next().unwrap_or(::redis::Value::Nil);
        let (sessions, runs, pauses) = (many(next())?, many(next())?, many(next())?);
        let head = ::redis::from_redis_value(next()).map_err(unreadable)?;
        let time: (i64, i64) = ::redis::from_redis_value(next()).map_err(unreadable)?;
        let mut pauses = pauses.into_iter();
        let mut seen = Vec::with_capacity(self.waiting.len());
        for ((append, session), run) in appends().zip(sessions).zip(runs) {
            let pauses = pauses.by_ref().take(append.pauses.len()).collect();
            let under_way = ::redis::from_redis_value(next()).map_err(unreadable)?;
            seen.push(Seen { session, run, entry: None, under_way, audit_head: None, pauses, rules: Vec::new(), time });
        }
        Ok(Look { seen, head, left })
    }
}

fn many(value: ::redis::Value) -> Result<Vec<Option<Vec<u8>>>, Broken> {
    ::redis::from_redis_value(value).map_err(unreadable)
}

fn unreadable(error: ::redis::ParsingError) -> Broken {
    Broken::Unreadable(error.to_string())
}
