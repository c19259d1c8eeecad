//! Records as they stood when this process last wrote them, so that the next append need not look first. They are only a
//! guess: the script compares all that an append depends on, and whoever guessed wrong looks, and tries again.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};

use holdpoint_core::ids::{PauseId, RunId, SessionId};
use holdpoint_runtime::ports::store::{Append, LeaseChange, RunStatus};

use super::append::{Planned, Seen};

/// How many bytes of records of a kind are remembered before the older ones are forgotten.
const BYTES_MAX: usize = 2 << 20;

/// What was written here.
#[derive(Default)]
pub(super) struct Remembered(Mutex<Records>);

#[derive(Default)]
struct Records {
    sessions: Kind<SessionId>,
    runs: Kind<RunId>,
    pauses: Kind<PauseId>,
}

/// The records of a kind; when the newer ones are too many, they become the older ones.
struct Kind<N> {
    newer: HashMap<N, Vec<u8>>,
    older: HashMap<N, Vec<u8>>,
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
        let (session, run) = (records.sessions.get(&append.session)?, records.runs.get(&append.run)?);
        let pauses = append.pauses.iter().map(|row| records.pauses.get(&row.id).map(Some));
        Some(Seen {
            session: Some(session),
            run: Some(run),
            entry: None,
            under_way: None,
            audit_head: None,
            pauses: pauses.collect::<Option<_>>()?,
            rules: Vec::new(),
            time: None,
        })
    }

    /// Takes note of an append that was written.
    pub(super) fn keep(&self, append: &Append, planned: Planned) {
        let mut records = self.records();
        records.sessions.set(append.session.clone(), planned.session);
        let is_over = append.status == RunStatus::Finished;
        match is_over {
            true => records.runs.remove(&append.run),
            false => records.runs.set(append.run, planned.run),
        }
        for (row, bytes) in append.pauses.iter().zip(planned.pauses) {
            match is_over {
                true => records.pauses.remove(&row.id),
                false => records.pauses.set(row.id, bytes),
            }
        }
    }

    /// Takes note of a run's record that was written.
    pub(super) fn keep_run(&self, run: RunId, bytes: Vec<u8>) {
        self.records().runs.set(run, bytes);
    }

    /// Forgets what an append depends on: it was not so.
    pub(super) fn forget(&self, append: &Append) {
        let mut records = self.records();
        records.sessions.remove(&append.session);
        records.runs.remove(&append.run);
        append.pauses.iter().for_each(|row| records.pauses.remove(&row.id));
    }

    fn records(&self) -> MutexGuard<'_, Records> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<N> Default for Kind<N> {
    fn default() -> Self {
        Self { newer: HashMap::new(), older: HashMap::new(), bytes: 0 }
    }
}

impl<N: Eq + Hash> Kind<N> {
    fn get(&self, name: &N) -> Option<Vec<u8>> {
        self.newer.get(name).or_else(|| self.older.get(name)).cloned()
    }

    fn set(&mut self, name: N, value: Vec<u8>) {
        self.older.remove(&name);
        self.bytes += value.len();
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
        kind.set(1, b"one".to_vec());
        kind.set(1, b"two".to_vec());
        assert_eq!(kind.get(&1).as_deref(), Some(&b"two"[..]));
        kind.older = std::mem::take(&mut kind.newer);
        assert_eq!(kind.get(&1).as_deref(), Some(&b"two"[..]));
        kind.remove(&1);
        assert_eq!(kind.get(&1), None);
    }

    #[test]
    fn the_oldest_are_forgotten_and_so_many_bytes_are_kept() {
        let mut kind = Kind::default();
        let last = 3 * BYTES_MAX / 1_000;
        (0..=last).for_each(|number| kind.set(number, vec![0; 1_000]));
        assert_eq!(kind.get(&0), None);
        assert!(kind.get(&last).is_some());
        assert!((kind.newer.len() + kind.older.len()) * 1_000 <= 2 * BYTES_MAX + 2_000);
    }
}
