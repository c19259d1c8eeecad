//! The chain of audit records: written with the append that they tell of, never changed. How far it has come stands
//! beside it; who lengthens it holds that row until the commit, so that records follow one another over all instances.

use holdpoint_core::audit::AuditRecord;
use holdpoint_core::json::{CanonicalJson, Digest};
use holdpoint_runtime::ports::store::{Append, PAGE_MAX, StoreFault};
use tokio_postgres::Row;

use super::columns;
use super::connection::{Connection, Pipeline};
use super::fault::{self, Broken};

/// The notes of an append as they are hashed.
///
/// # Errors
/// A note cannot be written, which none of this program's is.
pub(super) fn bodies(append: &Append) -> Result<Vec<CanonicalJson>, StoreFault> {
    let unwritable = |problem| fault::unwritable(append.run, problem);
    append.audit.iter().map(|note| note.body().map_err(unwritable)).collect()
}

/// Waits for its turn to lengthen the chain.
pub(super) const LOCK: &str = "SELECT n FROM audit_head WHERE key = 1 FOR NO KEY UPDATE";

/// The number and hash of the record that the next one follows: the last that was written, also where it is gone. A
/// chain that somebody meddled with may have later ones; their numbers are taken all the same.
pub(super) const LAST: &str = "
    SELECT n, hash FROM audit_head WHERE hash IS NOT NULL
    UNION ALL SELECT n, hash FROM (SELECT n, hash FROM audit ORDER BY n DESC LIMIT 1) AS last
    ORDER BY n DESC LIMIT 1";

/// Adds records behind the one that [`LAST`] gave.
pub(super) fn write(pipeline: &mut Pipeline<'_>, last: &[Row], bodies: &[CanonicalJson]) -> Result<(), Broken> {
    let mut last = last.first().map(numbered).transpose()?;
    for body in bodies {
        let record = AuditRecord::following(last, body);
        last = Some((record.n, record.hash));
        pipeline.add(
            "INSERT INTO audit (n, body, hash) VALUES ($1, $2, $3)",
            [Box::new(columns::count(record.n)), Box::new(record.body), Box::new(record.hash.as_bytes().to_vec())],
        );
    }
    if let Some((n, hash)) = last {
        pipeline.add(
            "UPDATE audit_head SET n = $1, hash = $2 WHERE key = 1",
            [Box::new(columns::count(n)), Box::new(hash.as_bytes().to_vec())],
        );
    }
    Ok(())
}

/// The number and hash of the last record that was written.
pub(super) async fn head(connection: &Connection) -> Result<Option<(u64, Digest)>, Broken> {
    let row = connection.query_opt("SELECT n, hash FROM audit_head WHERE key = 1 AND hash IS NOT NULL", &[]).await?;
    row.as_ref().map(numbered).transpose()
}

fn numbered(row: &Row) -> Result<(u64, Digest), Broken> {
    Ok((columns::get_count(row, 0)?, columns::get_digest(row, 1)?))
}

/// The records after a number, in order.
pub(super) async fn page(connection: &Connection, after: u64, limit: usize) -> Result<Vec<AuditRecord>, Broken> {
    let sql = "SELECT n, body, hash FROM audit WHERE n > $1 ORDER BY n LIMIT $2";
    let rows = connection.query(sql, &[&columns::count(after), &columns::most(limit.min(PAGE_MAX))]).await?;
    rows.iter()
        .map(|row| {
            let (n, hash) = (columns::get_count(row, 0)?, columns::get_digest(row, 2)?);
            Ok(AuditRecord { n, body: columns::get(row, 1)?, hash })
        })
        .collect()
}
