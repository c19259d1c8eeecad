//! Which runs could not be read, so that each is logged once and not with every look at the inbox.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use holdpoint_core::ids::RunId;

/// How many runs are kept in mind. Beyond these, runs are logged again.
const RUNS_MAX: usize = 1_024;

/// The runs that could not be read.
#[derive(Debug, Default)]
pub(crate) struct Unreadable(Mutex<BTreeSet<RunId>>);

impl Unreadable {
    /// Keeps a run in mind; says whether it was not yet.
    pub(crate) fn is_new(&self, run: RunId) -> bool {
        let mut runs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if runs.len() >= RUNS_MAX && !runs.contains(&run) {
            runs.clear();
        }
        runs.insert(run)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_new_once_and_no_more_are_kept_than_fit() {
        let unreadable = Unreadable::default();
        let run = |n: usize| format!("run_{n:032x}").parse::<RunId>().unwrap();
        for n in 0..RUNS_MAX {
            assert!(unreadable.is_new(run(n)));
            assert!(!unreadable.is_new(run(n)));
        }
        assert!(unreadable.is_new(run(RUNS_MAX)));
        assert_eq!(unreadable.0.lock().unwrap().len(), 1);
    }
}
