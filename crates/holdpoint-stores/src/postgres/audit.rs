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
const LOCK: &str = "SELECT n FROM audit_head WHERE key = 1 FOR NO KEY UPDATE";

/// Adds records to the chain: each is hashed together with the hash before it, as [`AuditRecord::follows`] asks, by the
/// server, so that whoever waits for the head of the chain waits for no answer to travel. The first follows the last that
/// was written, also where that is gone. A chain that somebody meddled with may have later ones; their numbers are taken
/// all the same.
const ADD: &str = r"
    WITH RECURSIVE last AS (
        SELECT n, hash FROM audit_head WHERE hash IS NOT NULL
        UNION ALL SELECT n, hash FROM (SELECT n, hash FROM audit ORDER BY n DESC LIMIT 1) AS written
        UNION ALL SELECT 0, decode(repeat('00', 32), 'hex')
        ORDER BY n DESC LIMIT 1
    ), chain (place, n, body, hash) AS (
        SELECT 1, n + 1, ($1::text[])[1], sha256(hash || convert_to(($1::text[])[1], 'UTF8')) FROM last
        UNION ALL
        SELECT place + 1, n + 1, ($1::text[])[place + 1], sha256(hash || convert_to(($1::text[])[place + 1], 'UTF8'))
        FROM chain WHERE place < cardinality($1::text[])
    ), added AS (
        INSERT INTO audit (n, body, hash) SELECT n, body, hash FROM chain RETURNING n, hash
    )
    UPDATE audit_head SET (n, hash) = (SELECT n, hash FROM added ORDER BY n DESC LIMIT 1) WHERE key = 1";

/// Adds records behind the last one. Comes after everything else, because everybody who has something for the audit
/// waits here until the commit.
pub(super) fn write<'a>(pipeline: &mut Pipeline<'_>, bodies: impl IntoIterator<Item = &'a CanonicalJson>) {
    let bodies: Vec<String> = bodies.into_iter().map(|body| body.as_str().to_owned()).collect();
    if !bodies.is_empty() {
        pipeline.add(LOCK, []);
        pipeline.add(ADD, [Box::new(bodies)]);
    }
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
