//! The chain of audit records.

use holdpoint_core::audit::AuditRecord;

use crate::memory::tables::Tables;
use crate::ports::store::{Append, PAGE_MAX, StoreFault, StoreFaultKind};

/// The records that an append adds to the chain.
pub(super) fn following(tables: &Tables, append: &Append) -> Result<Vec<AuditRecord>, StoreFault> {
    let mut last = tables.audit.last().map(|record| (record.n, record.hash));
    let add = |note: &holdpoint_core::audit::AuditNote| {
        let unwritable = |problem| StoreFault::because("append", StoreFaultKind::Corrupt, problem);
        let record = AuditRecord::following(last, &note.body().map_err(unwritable)?);
        last = Some((record.n, record.hash));
        Ok(record)
    };
    append.audit.iter().map(add).collect()
}

/// The records after a number, in order.
pub(super) fn page(tables: &Tables, after: u64, limit: usize) -> Vec<AuditRecord> {
    let after = usize::try_from(after).unwrap_or(usize::MAX);
    tables.audit.iter().skip(after).take(limit.min(PAGE_MAX)).cloned().collect()
}
