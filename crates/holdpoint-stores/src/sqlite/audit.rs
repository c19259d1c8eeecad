//! The chain of audit records: written with the append that they tell of, never changed. How far it has come stands
//! beside it, so that records which are cut off at its end are missed.

use holdpoint_core::audit::AuditRecord;
use holdpoint_core::json::{CanonicalJson, Digest};
use holdpoint_runtime::ports::store::{Append, PAGE_MAX, StoreFault};
use rusqlite::{Connection, OptionalExtension, Row};

use super::book::Book;
use super::columns::Column;
use super::fault;

/// The notes of an append as they are hashed.
///
/// # Errors
/// A note cannot be written, which none of this program's is.
pub(super) fn bodies(append: &Append) -> Result<Vec<CanonicalJson>, StoreFault> {
    let unwritable = |problem| fault::unwritable(append.run, problem);
    append.audit.iter().map(|note| note.body().map_err(unwritable)).collect()
}

/// Adds records to the chain.
pub(super) fn write(book: &mut Book, bodies: &[CanonicalJson]) -> rusqlite::Result<()> {
    if bodies.is_empty() {
        return Ok(());
    }
    let mut last = last(book)?;
    for body in bodies {
        let record = AuditRecord::following(last, body);
        book.connection.prepare_cached("INSERT INTO audit (n, body, hash) VALUES (?1, ?2, ?3)")?.execute((
            Column(record.n),
            &record.body,
            Column(record.hash),
        ))?;
        last = Some((record.n, record.hash));
    }
    if let Some((n, hash)) = last {
        book.connection
            .prepare_cached(
                "INSERT INTO audit_head (key, n, hash) VALUES (1, ?1, ?2)
                 ON CONFLICT (key) DO UPDATE SET n = excluded.n, hash = excluded.hash",
            )?
            .execute((Column(n), Column(hash)))?;
        book.memory.keep_audited(n, hash);
    }
    Ok(())
}

/// The number and hash of the record that the next one follows: the last that was written, also where it is gone. A
/// file that somebody meddled with may have later ones; their numbers are taken all the same.
fn last(book: &Book) -> rusqlite::Result<Option<(u64, Digest)>> {
    if let Some(last) = book.memory.audited() {
        return Ok(Some(last));
    }
    book.connection
        .prepare_cached(
            "SELECT n, hash FROM audit_head
             UNION ALL SELECT n, hash FROM (SELECT n, hash FROM audit ORDER BY n DESC LIMIT 1)
             ORDER BY n DESC LIMIT 1",
        )?
        .query_row([], numbered)
        .optional()
}

/// The number and hash of the last record that was written.
pub(super) fn head(connection: &Connection) -> rusqlite::Result<Option<(u64, Digest)>> {
    connection.prepare_cached("SELECT n, hash FROM audit_head")?.query_row([], numbered).optional()
}

fn numbered(row: &Row<'_>) -> rusqlite::Result<(u64, Digest)> {
    let (Column(n), Column(hash)) = (row.get(0)?, row.get(1)?);
    Ok((n, hash))
}

/// The records after a number, in order.
pub(super) fn page(connection: &Connection, after: u64, limit: usize) -> rusqlite::Result<Vec<AuditRecord>> {
    connection
        .prepare_cached("SELECT n, body, hash FROM audit WHERE n > ?1 ORDER BY n LIMIT ?2")?
        .query_map((Column(after), Column(limit.min(PAGE_MAX))), |row| {
            let (Column(n), Column(hash)) = (row.get(0)?, row.get(2)?);
            Ok(AuditRecord { n, body: row.get(1)?, hash })
        })?
        .collect()
}
