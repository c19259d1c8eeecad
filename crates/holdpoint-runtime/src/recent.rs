//! Runs that were seen a moment ago, so that a decision and the drive that follows it need not fold them again.
//!
//! A copy is only a head start. Whoever writes on top of one is told by the store when others have gone on since; whoever
//! needs to know how the run stands reads what came after it. Small runs are kept, and so many of them; a run that waits
//! while many others do is forgotten.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use holdpoint_core::ids::RunId;
use holdpoint_core::run::Run;

/// How many runs are kept: about as many as somebody answers who works through a full inbox.
const RUNS_MAX: usize = 2_048;
/// The largest run that is kept, by the bytes of its conversation.
const BYTES_MAX: usize = 16 << 10;
/// How many bytes the conversations of all of them have.
const TOTAL_MAX: usize = 8 << 20;

/// Runs that were seen a moment ago.
#[derive(Default)]
pub(crate) struct Recent(Mutex<Kept>);

/// A run as it was seen.
pub(crate) struct Seen {
    pub(crate) run: Arc<Run>,
    /// Its revision in the store.
    pub(crate) revision: u64,
    /// Whether it was written a moment ago by somebody who does not move it, and nobody moved it then.
    pub(crate) is_free: bool,
}

#[derive(Default)]
struct Kept {
    runs: HashMap<RunId, KeptRun>,
    /// In which order they were kept, each by its number. Those that were handed over are still in it.
    order: VecDeque<(u64, RunId)>,
    number: u64,
    /// The bytes of all.
    bytes: usize,
}

/// One that is kept.
struct KeptRun {
    number: u64,
    bytes: usize,
    seen: Seen,
}

impl Recent {
    /// Keeps a run as it stands at this revision of the store.
    pub(crate) fn keep(&self, run: Arc<Run>, revision: u64, is_free: bool) {
        let bytes = run.conversation_bytes();
        if run.end().is_some() || bytes > BYTES_MAX {
            return;
        }
        self.kept().add(Seen { run, revision, is_free }, bytes);
    }

    /// Hands over the copy of a run, if there is one.
    pub(crate) fn take(&self, run: RunId) -> Option<Seen> {
        self.kept().take(run)
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn add(&mut self, seen: Seen, bytes: usize) {
        let run = seen.run.id();
        self.take(run);
        self.number += 1;
        self.order.push_back((self.number, run));
        self.runs.insert(run, KeptRun { number: self.number, bytes, seen });
        self.bytes += bytes;
        while self.order.len() > RUNS_MAX || self.bytes > TOTAL_MAX {
            let Some((number, oldest)) = self.order.pop_front() else { return };
            if self.runs.get(&oldest).is_some_and(|copy| copy.number == number) {
                self.take(oldest);
            }
        }
    }

    fn take(&mut self, run: RunId) -> Option<Seen> {
        let KeptRun { bytes, seen, .. } = self.runs.remove(&run)?;
        self.bytes -= bytes;
        Some(seen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(number: usize, revision: u64) -> Seen {
        Seen { run: Arc::new(Run::new(id(number))), revision, is_free: true }
    }

    fn id(number: usize) -> RunId {
        RunId::new(uuid::Uuid::from_u128(number as u128))
    }

    #[test]
    fn the_newest_copy_of_a_run_stays_when_an_older_one_of_it_is_due() {
        let mut kept = Kept::default();
        kept.add(seen(0, 1), 10);
        kept.add(seen(0, 2), 10);
        for number in 1..RUNS_MAX {
            kept.add(seen(number, 1), 10);
        }
        assert_eq!(kept.take(id(0)).map(|seen| seen.revision), Some(2));
        assert!(kept.take(id(0)).is_none());
    }

    #[test]
    fn so_many_runs_and_so_many_bytes_are_kept() {
        let mut kept = Kept::default();
        for number in 0..=RUNS_MAX {
            kept.add(seen(number, 1), 1);
        }
        assert_eq!((kept.runs.len(), kept.order.len(), kept.bytes), (RUNS_MAX, RUNS_MAX, RUNS_MAX));
        assert!(kept.take(id(0)).is_none());
        for number in 0..=TOTAL_MAX / BYTES_MAX {
            kept.add(seen(number, 2), BYTES_MAX);
        }
        assert!(kept.bytes <= TOTAL_MAX, "{}", kept.bytes);
        assert_eq!(kept.runs.values().map(|copy| copy.bytes).sum::<usize>(), kept.bytes);
    }
}
