//! Who decided what, for those who look later: the store's chain of records, in pages, and whether it is whole.

use std::cmp::Ordering;

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
    /// The hash of the last of them. Kept elsewhere, it shows later whether the whole store was put back or rewritten.
    pub head: Option<Digest>,
    /// The number of the first record that does not follow the one before it, or that is gone; if there is one.
    pub broken_at: Option<u64>,
    /// How many records the store has written.
    pub written: u64,
}

impl AuditCheck {
    /// Whether every record follows the one before it, up to the last that was written.
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

    /// Follows the whole chain, page by page, up to the first record that does not fit, and to the last that was written.
    ///
    /// # Errors
    /// The store is out of order.
    pub async fn verify_audit(&self) -> Result<AuditCheck, RunError> {
        let mut last: Option<(u64, Digest)> = None;
        loop {
            // Read before the page: what is written in between is then on the page, and asks for another look.
            let head = self.store().audit_head().await?;
            let records = self.store().audit(last.map_or(0, |(n, _)| n), PAGE_MAX).await?;
            if records.is_empty() {
                return Ok(found(last, head, broken_end(last, head)));
            }
            for record in &records {
                if !record.follows(last) {
                    return Ok(found(last, head, Some(record.n)));
                }
                last = Some((record.n, record.hash));
            }
        }
    }
}

/// What a check found that came as far as `last`.
fn found(last: Option<(u64, Digest)>, head: Option<(u64, Digest)>, broken_at: Option<u64>) -> AuditCheck {
    let number = |place: Option<(u64, Digest)>| place.map_or(0, |(n, _)| n);
    AuditCheck { records: number(last), head: last.map(|(_, hash)| hash), broken_at, written: number(head) }
}

/// The first record that is missing, too many or another one where a chain ends at `last` and should end at `head`.
fn broken_end(last: Option<(u64, Digest)>, head: Option<(u64, Digest)>) -> Option<u64> {
    let number = |place: Option<(u64, Digest)>| place.map_or(0, |(n, _)| n);
    match number(last).cmp(&number(head)) {
        Ordering::Less => Some(number(last) + 1),
        Ordering::Greater => Some(number(head) + 1),
        Ordering::Equal if last != head => Some(number(head)),
        Ordering::Equal => None,
    }
}
