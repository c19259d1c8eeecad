//! Watching the inbox: which pauses open and end in this process, while it happens.

use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use crate::ports::observer::PauseChange;
use crate::runtime::Runtime;

/// Sees the changes of all pauses that are committed in this process from now on.
///
/// A feed, not a record: whoever needs every pause lists them first, and lists them again when told that something was
/// missed. Changes that other processes make are seen by listing alone.
pub struct WatchPauses {
    live: broadcast::Receiver<PauseChange>,
}

/// What a watcher of pauses sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PauseNews {
    /// A pause changed.
    Changed(PauseChange),
    /// The watcher was too slow, and so many changes are gone: list the pauses again.
    Missed(u64),
}

impl Runtime {
    /// Watches all pauses, from now on.
    pub fn watch_pauses(&self) -> WatchPauses {
        WatchPauses { live: self.hub().listen_to_pauses() }
    }
}

impl WatchPauses {
    /// The next thing that happens; waits for it. `None` when the runtime is gone.
    pub async fn next(&mut self) -> Option<PauseNews> {
        match self.live.recv().await {
            Ok(change) => Some(PauseNews::Changed(change)),
            Err(RecvError::Lagged(missed)) => Some(PauseNews::Missed(missed)),
            Err(RecvError::Closed) => None,
        }
    }
}
