//! Appends that come together are written together, in one transaction: it is flushed once, and whoever adds to the audit
//! waits for the head of the chain once for all of them. Each is admitted or refused by itself, and none waits for
//! another's lock: what cannot be had at once, or is out of the ordinary, is left to be written alone.

use std::sync::Arc;
use std::time::{Duration, Instant};

use holdpoint_core::time::Timestamp;
use holdpoint_runtime::ports::store::{Append, AppendError, Appended};
use tokio::sync::oneshot;
use tokio_postgres::Row;
use tokio_postgres::error::SqlState;

use super::append::{Numbers, PreparedAppend};
use super::connection::{Connection, Pipeline, column};
use super::fault::{Broken, WriteError};
use super::open::Pools;
use super::sessions::Locked;
use super::{audit, columns, leases, notices, pauses};
use crate::admit::{self, Found, LeaseSlot, Mover};
use crate::clock::StoreClock;
use crate::together::{AppendQueues, Turn};

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
    /// Whether this was written is not known.
    InDoubt(Appended),
    /// Nothing can be written now.
    Broken(Broken),
}

/// What a group is written with.
#[derive(Clone)]
pub(super) struct Desk {
    pub(super) pools: Arc<Pools>,
    pub(super) clock: Arc<StoreClock>,
    /// How long anything may take.
    pub(super) patience: Duration,
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
        // It ends without an answer only together with the runtime that it ran on.
        answered.await.unwrap_or(Answer::Alone)
    }
}

/// Whether an append only goes on with a run: it begins nothing, and brings nothing that others may bring as well.
fn may_join(prepared: &PreparedAppend) -> bool {
    let append = &prepared.append;
    let is_once = |index: usize| append.pauses[..index].iter().all(|row| row.id != append.pauses[index].id);
    append.expected > 0
        && append.rules.is_empty()
        && append.definitions.is_empty()
        && prepared.body.len() <= AppendQueues::<Waiting>::ENTRY_BYTES_MAX
        && (0..append.pauses.len()).all(is_once)
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

/// An append that was admitted.
struct Admitted<'a> {
    /// Its place in the group.
    place: usize,
    prepared: &'a PreparedAppend,
    session: i64,
    numbers: Numbers,
    lease: LeaseSlot,
    appended: Appended,
}

impl Group {
    /// Writes the group and answers everybody in it.
    async fn write(mut self, desk: &Desk) {
        self.answers = self.waiting.iter().map(|_| None).collect();
        let broken = match tokio::time::timeout(desk.patience, self.write_once(desk)).await {
            Ok(Ok(())) => None,
            Ok(Err(broken)) => Some(broken),
            Err(_) => Some(Broken::TimedOut),
        };
        for (waiting, answer) in self.waiting.into_iter().zip(self.answers) {
            let answer = answer.unwrap_or_else(|| match &broken {
                Some(Broken::TimedOut) => Answer::Broken(Broken::TimedOut),
                Some(Broken::NoConnection(why)) => Answer::Broken(Broken::NoConnection(why.clone())),
                Some(Broken::Server(error)) if error.code().is_some_and(is_waiting) => Answer::Broken(Broken::TimedOut),
                // One of them may be to blame: each by itself shows which.
                Some(Broken::Server(_) | Broken::Unreadable(_) | Broken::SessionGone) | None => Answer::Alone,
            });
            // Whoever went away is told nothing.
            let _ = waiting.answer.send(answer);
        }
    }

    async fn write_once(&mut self, desk: &Desk) -> Result<(), Broken> {
        let connection = desk.pools.writer().await?;
        let asked = Instant::now();
        let found = self.lock().run(&connection).await?;
        let now = found.get(2).and_then(|rows| rows.first()).map_or(Ok(0), |row| columns::get(row, 0))?;
        let now = desk.clock.arbiter(asked, now);
        let admitted = admit(&self.waiting, found.get(1).map_or(&[][..], Vec::as_slice), now, &mut self.answers)?;
        if admitted.is_empty() {
            connection.roll_back().await;
            return Ok(());
        }
        let mut pipeline = Pipeline::default();
        write(&mut pipeline, &admitted);
        audit::write(&mut pipeline, admitted.iter().flat_map(|one| &one.prepared.audit));
        let places: Vec<(usize, Appended)> = admitted.iter().map(|one| (one.place, one.appended)).collect();
        // From here on nobody knows until the answer is there.
        set(&mut self.answers, &places, Answer::InDoubt);
        match commit(connection, pipeline).await {
            Ok(()) => set(&mut self.answers, &places, Answer::Done),
            Err(WriteError::NotWritten(broken)) => {
                places.iter().for_each(|(place, _)| self.answers[*place] = None);
                return Err(broken);
            }
            Err(WriteError::InDoubt(_) | WriteError::Refused(_)) => {}
        }
        Ok(())
    }

    /// Locks what can be had at once, and looks at the clock.
    fn lock(&self) -> Pipeline<'static> {
        let mut pipeline = Pipeline::default();
        let appends = || self.waiting.iter().map(|waiting| &waiting.append.append);
        let sessions: Vec<String> = appends().map(|append| append.session.to_string()).collect();
        let runs: Vec<uuid::Uuid> = appends().map(|append| *append.run.uuid()).collect();
        pipeline.text("BEGIN ISOLATION LEVEL READ COMMITTED");
        pipeline.add(LOCK, [Box::new(sessions), Box::new(runs)]);
        pipeline.add(columns::CLOCK, []);
        pipeline
    }
}

/// The sessions and runs that nobody else writes to at this moment, by their places in the group.
const LOCK: &str = "
    SELECT key, began_by, session.events, session.pause_groups,
           session.key = run.session, run.revision, run.status, run.epoch, run.owner, run.since, place
    FROM unnest($1::text[], $2::uuid[]) WITH ORDINALITY AS wanted (session, run, place)
        JOIN session ON session.name = wanted.session COLLATE \"C\"
        JOIN run ON run.id = wanted.run
    FOR NO KEY UPDATE OF session, run SKIP LOCKED";

/// Those that are admitted; what the others are told stands in `answers`.
fn admit<'a>(
    waiting: &'a [Waiting],
    found: &[Row],
    now: Timestamp,
    answers: &mut [Option<Answer>],
) -> Result<Vec<Admitted<'a>>, Broken> {
    let mut admitted = Vec::with_capacity(found.len());
    for row in found {
        let place = columns::get_count(row, 10)?.saturating_sub(1) as usize;
        let Some(Waiting { append: prepared, answer }) = waiting.get(place) else { continue };
        let append = &prepared.append;
        let session = Locked::read(row)?;
        let run = Found {
            is_here: columns::get(row, 4)?,
            revision: columns::get_count(row, 5)?,
            status: columns::get_status(row, 6)?,
            lease: leases::slot(row, 7)?,
        };
        let begins = admit::begins(append, Some(&run));
        match begins.and_then(|begins| Ok((begins, admit::lease_after(append, Some(&run), now)?))) {
            Err(refusal) => answers[place] = Some(Answer::Refused(refusal)),
            // It begins again: whether the session is free for it is asked by whoever is alone.
            Ok((true, _)) => {}
            // Nobody waits for it any more.
            Ok(_) if answer.is_closed() => {}
            Ok((false, lease)) => {
                let numbers = prepared.numbers(&session);
                let appended = Appended {
                    revision: append.expected + 1,
                    seq: numbers.seq,
                    pause_group: numbers.pause_group(),
                    epoch: admit::epoch_of(append, &lease),
                };
                admitted.push(Admitted { place, prepared, session: session.key, numbers, lease, appended });
            }
        }
    }
    Ok(admitted)
}

impl Admitted<'_> {
    fn append(&self) -> &Append {
        &self.prepared.append
    }
}

fn set(answers: &mut [Option<Answer>], places: &[(usize, Appended)], answer: fn(Appended) -> Answer) {
    for (place, appended) in places {
        answers[*place] = Some(answer(*appended));
    }
}

fn write<'a>(pipeline: &mut Pipeline<'a>, group: &'a [Admitted<'a>]) {
    pipeline.add(
        "UPDATE session SET events = new.events, pause_groups = new.pause_groups, last_at = new.last_at
         FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[])
             AS new (key, events, pause_groups, last_at)
         WHERE session.key = new.key",
        [
            column(group, |one| one.session),
            column(group, |one| columns::count(one.numbers.last_seq)),
            column(group, |one| columns::count(one.numbers.pause_groups)),
            column(group, |one| one.append().at.as_millis()),
        ],
    );
    pipeline.add(
        "UPDATE run SET revision = new.revision, status = new.status, epoch = new.epoch, owner = new.owner,
             since = new.since, last_at = new.last_at
         FROM unnest($1::uuid[], $2::bigint[], $3::smallint[], $4::bigint[], $5::text[], $6::bigint[], $7::bigint[])
             AS new (id, revision, status, epoch, owner, since, last_at)
         WHERE run.id = new.id",
        [
            column(group, |one| *one.append().run.uuid()),
            column(group, |one| columns::count(one.appended.revision)),
            column(group, |one| columns::status(one.append().status)),
            column(group, |one| columns::count(one.lease.epoch)),
            column(group, |one| match &one.lease.mover {
                Mover::Holder { owner, .. } => Some(owner.as_str()),
                Mover::Nobody { .. } => None,
            }),
            column(group, |one| match &one.lease.mover {
                Mover::Holder { until, .. } => until.as_millis(),
                Mover::Nobody { since } => since.as_millis(),
            }),
            column(group, |one| one.append().at.as_millis()),
        ],
    );
    pipeline.add(
        "INSERT INTO entry (session, last_seq, run, revision, pause_groups, at, token, body)
         SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::uuid[], $4::bigint[], $5::bigint[], $6::bigint[],
             $7::uuid[], $8::bytea[])",
        [
            column(group, |one| one.session),
            column(group, |one| columns::count(one.numbers.last_seq)),
            column(group, |one| *one.append().run.uuid()),
            column(group, |one| columns::count(one.appended.revision)),
            column(group, |one| columns::count(one.numbers.pause_groups)),
            column(group, |one| one.append().at.as_millis()),
            column(group, |one| one.prepared.token),
            column(group, |one| one.prepared.body.as_slice()),
        ],
    );
    group.iter().for_each(|one| notices::write(pipeline, one.append()));
    pauses::write_all(
        pipeline,
        group.iter().flat_map(|one| {
            let group = one.numbers.pause_group();
            one.append().pauses.iter().map(move |row| pauses::Placed::new(one.session, one.append(), row, group))
        }),
    );
}

async fn commit(connection: Connection, pipeline: Pipeline<'_>) -> Result<(), WriteError> {
    pipeline.commit(&connection).await?;
    connection.give_back();
    Ok(())
}

/// Whether the server gave up waiting for somebody else.
fn is_waiting(state: &SqlState) -> bool {
    [SqlState::LOCK_NOT_AVAILABLE, SqlState::QUERY_CANCELED].contains(state)
}
