//! Records as they stood when this process last wrote them, so that the next append need not look first. They are only a
//! guess: the script compares the records of the session and the run, on which all hangs that an append depends on, and
//! whoever guessed wrong looks, and tries again.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use holdpoint_core::ids::{PauseId, RunId, SessionId};
use holdpoint_runtime::ports::store::{Append, LeaseChange, PauseStatus, RunStatus};

use super::append::{Planned, Seen};
use super::records::{Held, PauseRecord, RunRecord, SessionRecord};

/// How many bytes of a kind are remembered before the older ones are forgotten.
const BYTES_MAX: usize = 3 << 20;

/// What was written here.
#[derive(Default)]
pub(super) struct Remembered(Mutex<Records>);

#[derive(Default)]
struct Records {
    sessions: Kind<SessionId, Arc<Held<SessionRecord>>>,
    runs: Kind<RunId, KnownRun>,
}

/// A run, and those of its open pauses that stood as they do here when it stood so. Whatever changes a pause changes the
/// record of its run: where the one still stands, so does the other.
#[derive(Clone)]
struct KnownRun {
    run: Arc<Held<RunRecord>>,
    pauses: Vec<(PauseId, Arc<Held<PauseRecord>>)>,
}

/// The records of a kind; when the newer ones are too many, they become the older ones.
struct Kind<N, V> {
    newer: HashMap<N, V>,
    older: HashMap<N, V>,
    /// Of the newer ones.
    bytes: usize,
}

impl Remembered {
    /// What an append depends on, where all of it is remembered and it needs nothing else: it goes on with a run, and no
    /// lease is taken, which is for the database's clock to decide.
    pub(super) fn seen(&self, append: &Append) -> Option<Seen> {
        if append.expected == 0 || matches!(append.lease, LeaseChange::Take { .. }) {
            return None;
        }
        let records = self.records();
        let session = records.sessions.get(&append.session)?.clone();
        let KnownRun { run, pauses } = records.runs.get(&append.run)?;
        // Written alone since, perhaps: one that surely is not so would make a whole group look.
        if run.record.revision != append.expected {
            return None;
        }
        let known = |id| pauses.iter().find(|(known, _)| *known == id).map(|(_, pause)| pause.clone());
        let pauses = append.pauses.iter().map(|row| known(row.id).map(Some));
        Some(Seen {
            session: Some(session),
            run: Some(run.clone()),
            entry: None,
            under_way: None,
            audit_head: None,
            pauses: pauses.collect::<Option<_>>()?,
            rules: Vec::new(),
            time: None,
        })
    }

    /// Takes note of an append that was written upon what was seen.
    pub(super) fn keep(&self, append: &Append, seen: &Seen, planned: Planned) {
        let mut records = self.records();
        let size = planned.session.size();
        records.sessions.set(append.session.clone(), planned.session, size);
        if append.status == RunStatus::Finished {
            records.runs.remove(&append.run);
            return;
        }
        let before = seen.run.as_ref().map(|run| run.bytes.as_slice());
        let mut pauses = records.pauses_beside(append.run, before);
        for (row, pause) in append.pauses.iter().zip(planned.pauses) {
            pauses.retain(|(id, _)| *id != row.id);
            if row.status == PauseStatus::Open {
                pauses.push((row.id, pause));
            }
        }
        records.set_run(append.run, KnownRun { run: planned.run, pauses });
    }

    /// Takes note of a run's record that was written where these bytes stood before; its pauses are as they were.
    pub(super) fn keep_run(&self, id: RunId, before: &[u8], run: Arc<Held<RunRecord>>) {
        let mut records = self.records();
        let pauses = records.pauses_beside(id, Some(before));
        records.set_run(id, KnownRun { run, pauses });
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
    /// The pauses that are known to stand beside a run whose record has these bytes.
    fn pauses_beside(&self, run: RunId, bytes: Option<&[u8]>) -> Vec<(PauseId, Arc<Held<PauseRecord>>)> {
        let known = self.runs.get(&run).filter(|known| Some(known.run.bytes.as_slice()) == bytes);
        known.map(|known| known.pauses.clone()).unwrap_or_default()
    }

    fn set_run(&mut self, id: RunId, known: KnownRun) {
        let size = known.run.size() + known.pauses.iter().map(|(_, pause)| pause.size()).sum::<usize>();
        self.runs.set(id, known, size);
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
    use holdpoint_core::ids::AgentId;

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
    fn the_oldest_are_forgotten_and_so_many_bytes_are_kept() {
        let mut kind = Kind::default();
        let last = 3 * BYTES_MAX / 1_000;
        (0..=last).for_each(|number| kind.set(number, (), 1_000));
        assert_eq!(kind.get(&0), None);
        assert!(kind.get(&last).is_some());
        assert!((kind.newer.len() + kind.older.len()) * 1_000 <= 2 * BYTES_MAX + 2_000);
    }

    fn record(revision: u64) -> Arc<Held<RunRecord>> {
        let record = RunRecord {
            session: SessionId::new("s").unwrap(),
            agent: AgentId::root("a").unwrap(),
            first_seq: 1,
            revision,
            status: 1,
            started_at: 0,
            last_at: 0,
            epoch: 0,
            owner: None,
            since: 0,
        };
        Held::new(record).unwrap()
    }

    #[test]
    fn pauses_are_forgotten_with_the_record_that_they_stood_beside() {
        let pause = PauseRecord {
            session: SessionId::new("s").unwrap(),
            kind: 0,
            status: 0,
            agent: AgentId::root("a").unwrap(),
            tool: None,
            opened_at: 0,
            expires_at: None,
            group: 1,
        };
        let id: RunId = "run_0198c0ffee007000800000000000beef".parse().unwrap();
        let remembered = Remembered::default();
        let numbers =
            || remembered.records().runs.get(&id).unwrap().pauses.iter().map(|(id, _)| id.number).collect::<Vec<_>>();
        let pauses = vec![(PauseId { run: id, number: 1 }, Held::new(pause).unwrap())];
        remembered.records().set_run(id, KnownRun { run: record(1), pauses });
        // A lease was taken: the run is otherwise as it was.
        remembered.keep_run(id, &record(1).bytes, record(2));
        assert_eq!(numbers(), [1]);
        // Somebody else wrote in between.
        remembered.keep_run(id, &record(3).bytes, record(4));
        assert!(numbers().is_empty());
    }
}
