//! Who decided what, for those who look later: the store's chain of records, in pages, and whether it is whole.

use holdpoint_core::audit::AuditRecord;
use holdpoint_core::json::Digest;

use crate::fault::RunError;
use crate::ports::store::PAGE_MAX;
use crate::runtime::Runtime;
use crate::use_cases::lists::check_page;

/// A page of the chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditPage {
    /// The records, oldest first.
    pub records: Vec<AuditRecord>,
    /// The number after which the next page begins; `None` after the last one.
    pub next: Option<u64>,
}

/// What a check of the chain found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditCheck {
    /// How many records are whole, counted from the first.
    pub records: u64,
    /// The hash of the last of them. Kept elsewhere, it shows later whether anything was cut off.
    pub head: Option<Digest>,
    /// The number of the first record that does not follow the one before it, if there is one.
    pub broken_at: Option<u64>,
}

impl AuditCheck {
    /// Whether every record follows the one before it.
    pub fn is_whole(&self) -> bool {
        self.broken_at.is_none()
    }
}

impl Runtime {
    /// The audit records after a number (0 for the first).
    ///
    /// # Errors
    /// The page is larger than one may be, or the store is out of order.
    pub async fn audit(&self, after: u64, limit: usize) -> Result<AuditPage, RunError> {
        check_page("audit records on a page", limit)?;
        let records = self.store().audit(after, limit).await?;
        let next = records.last().filter(|_| records.len() == limit).map(|record| record.n);
        Ok(AuditPage { records, next })
    }

    /// Follows the whole chain, page by page, up to the first record that does not fit.
    ///
    /// # Errors
    /// The store is out of order.
    pub async fn verify_audit(&self) -> Result<AuditCheck, RunError> {
        let mut last: Option<(u64, Digest)> = None;
        loop {
            let records = self.store().audit(last.map_or(0, |(n, _)| n), PAGE_MAX).await?;
            for record in &records {
                if !record.follows(last) {
                    let (records, head) = (last.map_or(0, |(n, _)| n), last.map(|(_, hash)| hash));
                    return Ok(AuditCheck { records, head, broken_at: Some(record.n) });
                }
                last = Some((record.n, record.hash));
            }
            if records.len() < PAGE_MAX {
                let (records, head) = (last.map_or(0, |(n, _)| n), last.map(|(_, hash)| hash));
                return Ok(AuditCheck { records, head, broken_at: None });
            }
        }
    }
}
