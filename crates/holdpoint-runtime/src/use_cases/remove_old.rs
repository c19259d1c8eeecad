//! Sessions that need not be kept any more are removed.

use std::time::Duration;

use holdpoint_core::time::Timestamp;

use crate::fault::RunError;
use crate::runtime::Runtime;

impl Runtime {
    /// Removes sessions whole in which nothing has happened for so long, by the store's clock: at most `limit`, the oldest
    /// first. Says how many. A session with an unfinished run is kept, however long it waits; the audit stays.
    ///
    /// # Errors
    /// The store is out of order.
    pub async fn remove_old(&self, keep: Duration, limit: usize) -> Result<u64, RunError> {
        let keep = i64::try_from(keep.as_millis()).unwrap_or(i64::MAX);
        let before = Timestamp::from_millis(self.store().now().as_millis().saturating_sub(keep));
        Ok(self.store().remove_old(before, limit).await?)
    }
}
