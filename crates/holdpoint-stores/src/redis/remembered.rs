//! Records as they stood when this process last wrote them, so that the next append need not look first. They are only a
//! guess: the script compares the records of the session and the run, on which all hangs that an append depends on, and
//! whoever guessed wrong looks, and tries again.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use holdpoint_core::ids::{RunId, SessionId};
use holdpoint_runtime::ports::store::{Append, LeaseChange, RunStatus};

use super::append::{Planned, Seen};
use super::pauses;
use super::records::{Held, RunRecord, SessionRecord};

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

impl Remembered {
    /// What an append depends on, where all of it is remembered and it needs nothing else: it goes on with a run, and no
    /// lease is taken, which is for the database's clock to decide.
    pub(super) fn seen(&self, append: &Append) -> Option<Seen> {
        let takes_lease = matches!(append.lease, LeaseChange::Take { .. });
        if append.expected == 0 || takes_lease || pauses::names_asked_for(append).next().is_some() {
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
}
