//! The schema, as numbered steps that are applied once, in order, and never edited. A file notes which it has, with a
//! checksum of each: one that is further than this program, or that went another way, is refused and left alone.

use holdpoint_core::json::Digest;
use holdpoint_core::time::Timestamp;
use holdpoint_runtime::ports::store::{StoreFault, StoreFaultKind};
use rusqlite::Connection;

use super::fault;

const CHECKING: &str = "check the schema";
const MIGRATING: &str = "bring the schema up to date";

/// The steps, numbered from one.
const MIGRATIONS: [&str; 5] = [
    include_str!("migrations/0001_runs.sql"),
    include_str!("migrations/0002_owners_and_audit.sql"),
    include_str!("migrations/0003_entries_as_they_come.sql"),
    include_str!("migrations/0004_audit_head.sql"),
    include_str!("migrations/0005_notices.sql"),
];

const CREATE_NOTES: &str = "
    CREATE TABLE IF NOT EXISTS migration (
        number     INTEGER PRIMARY KEY,
        sha256     BLOB NOT NULL,
        applied_at INTEGER NOT NULL
    ) STRICT";

/// Refuses a file that is no store, or one that a newer version wrote. Only reads.
pub(super) fn check(connection: &Connection) -> Result<(), StoreFault> {
    applied(connection).map(|_| ())
}

/// Applies the steps that the file does not have yet.
pub(super) fn migrate(connection: &Connection, now: Timestamp) -> Result<(), StoreFault> {
    let broken = |error| fault::of(MIGRATING, error);
    // Immediate, so that of several processes that open a new file one applies the steps.
    connection.execute_batch("BEGIN IMMEDIATE").map_err(broken)?;
    let migrated = apply_missing(connection, now);
    let ended = connection.execute_batch(if migrated.is_ok() { "COMMIT" } else { "ROLLBACK" }).map_err(broken);
    migrated.and(ended)
}

fn apply_missing(connection: &Connection, now: Timestamp) -> Result<(), StoreFault> {
    let done = applied(connection)?;
    let apply = |number: usize, text: &str| -> rusqlite::Result<()> {
        connection.execute_batch(CREATE_NOTES)?;
        connection.execute_batch(text)?;
        connection.execute(
            "INSERT INTO migration (number, sha256, applied_at) VALUES (?1, ?2, ?3)",
            (number as i64, Digest::of(text.as_bytes()).as_bytes(), now.as_millis()),
        )?;
        Ok(())
    };
    for (index, text) in MIGRATIONS.iter().enumerate().skip(done) {
        apply(index + 1, text).map_err(|error| fault::of(MIGRATING, error))?;
    }
    Ok(())
}

/// How many of our steps the file has, and no others.
fn applied(connection: &Connection) -> Result<usize, StoreFault> {
    let tables = tables(connection).map_err(|error| fault::of(CHECKING, error))?;
    match tables {
        Tables::None => return Ok(0),
        Tables::Foreign => {
            return Err(refused(StoreFaultKind::Corrupt, "the file belongs to another program".to_owned()));
        }
        Tables::Ours => {}
    }
    let notes = notes(connection).map_err(|error| fault::of(CHECKING, error))?;
    for (index, (number, sha256)) in notes.iter().enumerate() {
        let Some(text) = MIGRATIONS.get(index) else {
            let why = format!("the file has migration {number}, this program knows {}", MIGRATIONS.len());
            return Err(refused(StoreFaultKind::Newer, why));
        };
        if *number != index as i64 + 1 || sha256 != Digest::of(text.as_bytes()).as_bytes() {
            let why = format!("migration {number} of the file is not the one that this program knows");
            return Err(refused(StoreFaultKind::Corrupt, why));
        }
    }
    Ok(notes.len())
}

/// Whose tables a file has.
enum Tables {
    None,
    Ours,
    Foreign,
}

fn tables(connection: &Connection) -> rusqlite::Result<Tables> {
    let sql = "SELECT max(name = 'migration') FROM sqlite_schema WHERE type = 'table'";
    Ok(match connection.query_row(sql, [], |row| row.get(0))? {
        None => Tables::None,
        Some(true) => Tables::Ours,
        Some(false) => Tables::Foreign,
    })
}

/// The steps that the file notes, in order.
fn notes(connection: &Connection) -> rusqlite::Result<Vec<(i64, Vec<u8>)>> {
    let mut notes = connection.prepare("SELECT number, sha256 FROM migration ORDER BY number")?;
    notes.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
}

fn refused(kind: StoreFaultKind, why: String) -> StoreFault {
    StoreFault::because(CHECKING, kind, why)
}
