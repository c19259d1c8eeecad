//! The schema, as numbered steps that are applied once, in order, and never edited. The database notes which it has,
//! with a checksum of each: one that is further than this program, or that went another way, is refused and left alone.
//! Of several instances that start at once one applies the steps; the others wait for it and find them done.

use holdpoint_core::json::Digest;
use holdpoint_runtime::ports::store::{StoreFault, StoreFaultKind};
use tokio_postgres::Row;

use super::columns;
use super::connection::Connection;
use super::fault::Broken;

const CHECKING: &str = "check the schema";
const MIGRATING: &str = "bring the schema up to date";

/// The steps, numbered from one.
const MIGRATIONS: [&str; 3] = [
    include_str!("migrations/0001_runs.sql"),
    include_str!("migrations/0002_notices.sql"),
    include_str!("migrations/0003_inbox.sql"),
];

const CREATE_NOTES: &str = "
    CREATE TABLE IF NOT EXISTS holdpoint_migration (
        number     BIGINT PRIMARY KEY,
        sha256     BYTEA NOT NULL,
        applied_at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp()
    )";

/// One at a time, for each schema of the database. A name that hashes alike only waits.
const LOCK: &str = "
    SELECT pg_advisory_xact_lock(hashtextextended('holdpoint migration of ' || coalesce(current_schema(), ''), 0))";

/// Applies the steps that the database does not have yet.
pub(super) async fn migrate(connection: &Connection) -> Result<(), StoreFault> {
    // Mostly there is nothing to do, and then nothing is locked.
    if applied(connection).await? == MIGRATIONS.len() {
        return Ok(());
    }
    let broken = |error| Broken::from(error).fault(MIGRATING);
    connection.batch("BEGIN").await.map_err(broken)?;
    let migrated = apply_missing(connection).await;
    let end = if migrated.is_ok() { "COMMIT" } else { "ROLLBACK" };
    let ended = connection.batch(end).await.map_err(broken);
    migrated.and(ended)
}

async fn apply_missing(connection: &Connection) -> Result<(), StoreFault> {
    let broken = |error| Broken::from(error).fault(MIGRATING);
    // Whoever comes first may take its time: the lock's own patience would be too short for a large step.
    connection.batch("SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0").await.map_err(broken)?;
    connection.query(LOCK, &[]).await.map_err(broken)?;
    let done = applied(connection).await?;
    connection.batch(CREATE_NOTES).await.map_err(broken)?;
    for (index, text) in MIGRATIONS.iter().enumerate().skip(done) {
        connection.batch(text).await.map_err(broken)?;
        let (number, sha256) = (index as i64 + 1, Digest::of(text.as_bytes()));
        let note = "INSERT INTO holdpoint_migration (number, sha256) VALUES ($1, $2)";
        connection.query(note, &[&number, &sha256.as_bytes().as_slice()]).await.map_err(broken)?;
    }
    Ok(())
}

/// How many of our steps the database has, and no others.
pub(super) async fn applied(connection: &Connection) -> Result<usize, StoreFault> {
    let broken = |error| Broken::from(error).fault(CHECKING);
    match tables(connection).await.map_err(|broken| broken.fault(CHECKING))? {
        Tables::None => return Ok(0),
        Tables::Nowhere => {
            let why = "no schema of the search path is there to keep tables in";
            return Err(refused(StoreFaultKind::Unavailable, why.to_owned()));
        }
        Tables::Foreign(table) => {
            let why = format!("the schema already has a table named {table} that is not ours; use a schema of its own");
            return Err(refused(StoreFaultKind::Corrupt, why));
        }
        Tables::Ours => {}
    }
    let notes = "SELECT number, sha256 FROM holdpoint_migration ORDER BY number";
    let notes = connection.query(notes, &[]).await.map_err(broken)?;
    check(&notes.iter().map(note).collect::<Result<Vec<_>, _>>().map_err(|broken| broken.fault(CHECKING))?)
}

fn note(row: &Row) -> Result<(i64, Vec<u8>), Broken> {
    Ok((columns::get(row, 0)?, columns::get(row, 1)?))
}

/// How many steps are noted, all of them ours.
fn check(notes: &[(i64, Vec<u8>)]) -> Result<usize, StoreFault> {
    for (index, (number, sha256)) in notes.iter().enumerate() {
        let Some(text) = MIGRATIONS.get(index) else {
            let why = format!("the database has migration {number}, this program knows {}", MIGRATIONS.len());
            return Err(refused(StoreFaultKind::Newer, why));
        };
        if *number != index as i64 + 1 || sha256 != Digest::of(text.as_bytes()).as_bytes() {
            let why = format!("migration {number} of the database is not the one that this program knows");
            return Err(refused(StoreFaultKind::Corrupt, why));
        }
    }
    Ok(notes.len())
}

/// Whose tables the schema has.
enum Tables {
    None,
    Ours,
    /// One with a name that we need.
    Foreign(String),
    /// There is no schema.
    Nowhere,
}

const FIND_TABLES: &str = "
    SELECT current_schema() IS NULL,
           EXISTS (SELECT 1 FROM pg_tables WHERE schemaname = current_schema() AND tablename = 'holdpoint_migration'),
           (SELECT min(tablename::text) FROM pg_tables WHERE schemaname = current_schema() AND tablename IN
               ('session', 'run', 'entry', 'pause', 'rule', 'definition', 'audit', 'audit_head', 'notice'))";

async fn tables(connection: &Connection) -> Result<Tables, Broken> {
    let rows = connection.query(FIND_TABLES, &[]).await?;
    let Some(row) = rows.first() else { return Ok(Tables::Nowhere) };
    let (is_nowhere, is_ours, taken): (bool, bool, Option<String>) =
        (columns::get(row, 0)?, columns::get(row, 1)?, columns::get(row, 2)?);
    Ok(match (is_nowhere, is_ours, taken) {
        (true, ..) => Tables::Nowhere,
        (_, true, _) => Tables::Ours,
        (_, false, Some(table)) => Tables::Foreign(table),
        (_, false, None) => Tables::None,
    })
}

fn refused(kind: StoreFaultKind, why: String) -> StoreFault {
    StoreFault::because(CHECKING, kind, why)
}
