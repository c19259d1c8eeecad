//! Watching the inbox: which pauses open and end, while it happens.

use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, watch};

use crate::ports::observer::PauseChange;
use crate::runtime::Runtime;

/// Sees the changes of all pauses that are committed from now on: in this process, and at other instances where the store
/// has a bus between them.
///
/// A feed, not a record: whoever needs every pause lists them first, and lists them again when told that something was
/// missed. Without a bus, or while it is cut, changes that other processes make are seen by listing alone.
pub struct WatchPauses {
    live: broadcast::Receiver<PauseChange>,
    missed: watch::Receiver<u64>,
}

/// What a watcher of pauses sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PauseNews {
    /// A pause changed.
    Changed(PauseChange),
    /// The watcher was too slow, and so many changes are gone; or other instances may have told some that were not heard,
    /// nobody knows how many (0). List the pauses again.
    Missed(u64),
}

impl Runtime {
    /// Watches all pauses, from now on.
    pub fn watch_pauses(&self) -> WatchPauses {
        let _ = self.link();
        WatchPauses { live: self.hub().listen_to_pauses(), missed: self.hub().listen_to_pauses_missed() }
    }
}

impl WatchPauses {
    /// The next thing that happens; waits for it. `None` when the runtime is gone.
    pub async fn next(&mut self) -> Option<PauseNews> {
        let live = tokio::select! {
            biased;
            live = self.live.recv() => live,
            Ok(()) = self.missed.changed() => return Some(PauseNews::Missed(0)),
        };
        match live {
            Ok(change) => Some(PauseNews::Changed(change)),
            Err(RecvError::Lagged(missed)) => Some(PauseNews::Missed(missed)),
            Err(RecvError::Closed) => None,
        }
    }
}
