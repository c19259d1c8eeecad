//! Records as they stood when this process last wrote or read them, so that the next append need not look first. They are
//! only a guess: the script compares the records of the session and the run, on which all hangs that an append depends on,
//! and whoever guessed wrong looks, and tries again.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use holdpoint_core::ids::{RunId, SessionId};
use holdpoint_runtime::ports::store::{Append, LeaseChange, RunStatus};

use super::append::{Planned, Seen};
use super::pauses;
use super::records::{self, Held, RunRecord, SessionRecord};

/// How many bytes of a kind are remembered before the older ones are forgotten.
const BYTES_MAX: usize = 3 << 20;

/// What was written here.
#[derive(Default)]
pub(super) struct Remembered(Mutex<Records>);

#[derive(Default)]
struct Records {
    sessions: Kind<SessionId, Arc<Held<SessionRecord>>>,
    runs: Kind<RunId, Arc<Held<RunRecord>>>,
}

/// The records of a kind; when the newer ones are too many, they become the older ones.
struct Kind<N, V> {
    newer: HashMap<N, V>,
    older: HashMap<N, V>,
    /// Of the newer ones.
    bytes: usize,
}

/// Whether an append needs nothing that is not remembered as a rule: it goes on with a run, and no lease is taken, which is for
/// the database's clock to decide.
fn is_enough(append: &Append) -> bool {
    let takes_lease = matches!(append.lease, LeaseChange::Take { .. });
    append.expected > 0 && !takes_lease && pauses::names_asked_for(append).next().is_none()
}

impl Remembered {
    /// What an append depends on, where all of it is remembered and it needs nothing else.
    pub(super) fn seen(&self, append: &Append) -> Option<Seen> {
        if !is_enough(append) {
            return None;
        }
        let records = self.records();
        let session = records.sessions.get(&append.session)?.clone();
        let run = records.runs.get(&append.run)?;
        // Written alone since, perhaps: one that surely is not so would make a whole group look.
        if run.record.revision != append.expected {
            return None;
        }
        Some(Seen {
            session: Some(session),
            run: Some(run.clone()),
            entry: None,
            under_way: None,
            audit_head: None,
            pauses: Vec::new(),
            rules: Vec::new(),
            time: None,
        })
    }

    /// Takes note of an append that was written.
    pub(super) fn keep(&self, append: &Append, planned: Planned) {
        let mut records = self.records();
        let size = planned.session.size();
        records.sessions.set(append.session.clone(), planned.session, size);
        match append.status {
            RunStatus::Finished => records.runs.remove(&append.run),
            _ => records.set_run(append.run, planned.run),
        }
    }

    /// Takes note of a run's record that was written.
    pub(super) fn keep_run(&self, id: RunId, run: Arc<Held<RunRecord>>) {
        self.records().set_run(id, run);
    }

    /// Takes note of records that were read; what is known to be newer is kept, and a run that is over is not.
    pub(super) fn keep_read(&self, id: RunId, run: Arc<Held<RunRecord>>, session: Option<Arc<Held<SessionRecord>>>) {
        if run.record.status == records::status_code(RunStatus::Finished) {
            return;
        }
        let mut records = self.records();
        if let Some(session) = session {
            let (name, size) = (&run.record.session, session.size());
            let known = records.sessions.get(name);
            if known.is_none_or(|known| known.record.events <= session.record.events) {
                records.sessions.set(name.clone(), session, size);
            }
        }
        let known = records.runs.get(&id);
        if known.is_none_or(|known| known.record.revision <= run.record.revision) {
            records.set_run(id, run);
        }
    }

    /// Forgets what an append depends on: it was not so.
    pub(super) fn forget(&self, append: &Append) {
        let mut records = self.records();
        records.sessions.remove(&append.session);
        records.runs.remove(&append.run);
    }

    fn records(&self) -> MutexGuard<'_, Records> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Records {
    fn set_run(&mut self, id: RunId, run: Arc<Held<RunRecord>>) {
        let size = run.size();
        self.runs.set(id, run, size);
    }
}

impl<T> Held<T> {
    /// About as many bytes as it takes.
    fn size(&self) -> usize {
        self.bytes.len() + size_of::<Self>()
    }
}

impl<N, V> Default for Kind<N, V> {
    fn default() -> Self {
        Self { newer: HashMap::new(), older: HashMap::new(), bytes: 0 }
    }
}

impl<N: Eq + Hash, V> Kind<N, V> {
    fn get(&self, name: &N) -> Option<&V> {
        self.newer.get(name).or_else(|| self.older.get(name))
    }

    fn set(&mut self, name: N, value: V, size: usize) {
        self.older.remove(&name);
        self.bytes += size;
        self.newer.insert(name, value);
        if self.bytes > BYTES_MAX {
            self.older = std::mem::take(&mut self.newer);
            self.bytes = 0;
        }
    }

    fn remove(&mut self, name: &N) {
        self.newer.remove(name);
        self.older.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use holdpoint_core::ids::{ActorId, AgentId};

    use super::*;

    #[test]
    fn what_was_set_last_is_there_until_it_is_removed() {
        let mut kind = Kind::default();
        kind.set(1, "one", 3);
        kind.set(1, "two", 3);
        assert_eq!(kind.get(&1), Some(&"two"));
        kind.older = std::mem::take(&mut kind.newer);
        assert_eq!(kind.get(&1), Some(&"two"));
        kind.remove(&1);
        assert_eq!(kind.get(&1), None);
    }

    #[test]
    fn what_was_read_does_not_take_the_place_of_what_is_newer_and_a_run_that_is_over_is_not_kept() {
        let (session, id) = (SessionId::new("s").unwrap(), "run_0198c0ffee007000800000000000beef".parse().unwrap());
        let remembered = Remembered::default();
        let read = |revision, status, events| {
            let run = RunRecord {
                session: session.clone(),
                agent: AgentId::root("a").unwrap(),
                first_seq: 1,
                revision,
                status,
                started_at: 0,
                last_at: 0,
                epoch: 0,
                owner: None,
                since: 0,
            };
            let owner = ActorId::local();
            let record = SessionRecord { owner, created_at: 0, last_at: 0, runs: 1, events, pause_groups: 0 };
            remembered.keep_read(id, Held::new(run).unwrap(), Some(Held::new(record).unwrap()));
            let records = remembered.records();
            let run = records.runs.get(&id).map(|run| run.record.revision);
            (run, records.sessions.get(&session).map(|session| session.record.events))
        };
        assert_eq!(read(9, 2, 90), (None, None));
        assert_eq!(read(3, 1, 30), (Some(3), Some(30)));
        assert_eq!(read(2, 1, 20), (Some(3), Some(30)));
        assert_eq!(read(4, 0, 40), (Some(4), Some(40)));
    }

    #[test]
    fn the_oldest_are_forgotten_and_so_many_bytes_are_kept() {
        let mut kind = Kind::default();
        let last = 3 * BYTES_MAX / 1_000;
        (0..=last).for_each(|number| kind.set(number, (), 1_000));
        assert_eq!(kind.get(&0), None);
        assert!(kind.get(&last).is_some());
        assert!((kind.newer.len() + kind.older.len()) * 1_000 <= 2 * BYTES_MAX + 2_000);
    }
}
