//! Runs that were seen a moment ago, so that a decision and the drive that follows it need not fold them again.
//!
//! A copy is only a head start. Whoever writes on top of one is told by the store when others have gone on since; whoever
//! needs to know how the run stands reads what came after it. Few and small runs are kept; a run that waits long is soon
//! forgotten.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use holdpoint_core::ids::RunId;
use holdpoint_core::message::Item;
use holdpoint_core::run::Run;

/// How many runs are kept.
const RUNS_MAX: usize = 256;
/// The largest run that is kept, by the bytes of its conversation.
const BYTES_MAX: usize = 16 << 10;

/// Runs that were seen a moment ago.
#[derive(Default)]
pub(crate) struct Recent(Mutex<Kept>);

/// A run as it was seen.
pub(crate) struct Seen {
    pub(crate) run: Run,
    /// Its revision in the store.
    pub(crate) revision: u64,
    /// Whether it was written a moment ago by somebody who does not move it, and nobody moved it then.
    pub(crate) is_free: bool,
}

#[derive(Default)]
struct Kept {
    runs: HashMap<RunId, Seen>,
    order: VecDeque<RunId>,
}

impl Recent {
    /// Keeps a run as it stands at this revision of the store.
    pub(crate) fn keep(&self, run: &Run, revision: u64, is_free: bool) {
        if run.end().is_some() || size(run) > BYTES_MAX {
            return;
        }
        let run = run.clone();
        let mut kept = self.kept();
        kept.order.push_back(run.id());
        kept.runs.insert(run.id(), Seen { run, revision, is_free });
        while kept.order.len() > RUNS_MAX {
            if let Some(oldest) = kept.order.pop_front() {
                kept.runs.remove(&oldest);
            }
        }
    }

    /// Hands over the copy of a run, if there is one.
    pub(crate) fn take(&self, run: RunId) -> Option<Seen> {
        self.kept().runs.remove(&run)
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn size(run: &Run) -> usize {
    let of_item = |item: &Item| match item {
        Item::User(content) | Item::ToolResult { output: content, .. } => content.size(),
        Item::Assistant { text, calls } => {
            let arguments: usize = calls.iter().map(|call| call.arguments.as_str().len()).sum();
            text.as_ref().map_or(0, String::len) + arguments
        }
    };
    run.frames().map(|(path, _)| run.model_items(path).iter().map(|item| of_item(item)).sum::<usize>()).sum()
}
