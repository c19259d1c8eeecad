//! Opening the file: the right library, the right settings, the right schema, or a refusal that changes nothing.

use std::path::Path;
use std::time::{Duration, Instant};

use holdpoint_core::time::Timestamp;
use holdpoint_runtime::ports::store::{StoreFault, StoreFaultKind};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::{fault, place, schema};

const DOING: &str = "open the file";

/// The oldest library that is used: those before it may corrupt a log in WAL mode.
const LIBRARY_MIN: i32 = 3_051_003;

/// How many pages the log may have before it is moved to the file: 16 MiB.
const LOG_PAGES: i64 = 4_096;

/// How a file is opened. What it promises is not among the options.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SqliteOptions {
    /// How long to wait for another process that writes to the file.
    pub busy_timeout: Duration,
    /// How many writes may queue; whoever comes then waits for room.
    pub queue_max: usize,
    /// How many reading connections are kept.
    pub readers_max: usize,
}

impl Default for SqliteOptions {
    fn default() -> Self {
        Self { busy_timeout: Duration::from_secs(5), queue_max: 1_024, readers_max: 4 }
    }
}

/// The connection that writes, with the schema in place.
pub(super) fn writer(path: &Path, options: &SqliteOptions, now: Timestamp) -> Result<Connection, StoreFault> {
    check_library(rusqlite::version_number())?;
    place::check(path)?;
    create_private(path);
    let connection = connect(path, options, OpenFlags::SQLITE_OPEN_CREATE).map_err(|error| fault::of(DOING, error))?;
    schema::check(&connection)?;
    patiently(options.busy_timeout, || configure(&connection)).map_err(|error| fault::of(DOING, error))?;
    check_settings(&connection)?;
    schema::migrate(&connection, now)?;
    // The file is ours: from now on closing it may tidy it up.
    connection
        .set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false)
        .map_err(|error| fault::of(DOING, error))?;
    Ok(connection)
}

/// Begins a file that is its owner's alone: conversations and arguments stand in it. SQLite gives its log the same mode.
///
/// A file that is there already keeps its mode, and whatever is wrong is for opening it to report.
fn create_private(path: &Path) {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).ok();
}

/// A connection that only reads.
pub(super) fn reader(path: &Path, options: &SqliteOptions) -> rusqlite::Result<Connection> {
    let connection = connect(path, options, OpenFlags::empty())?;
    connection.pragma_update(None, "query_only", true)?;
    Ok(connection)
}

fn connect(path: &Path, options: &SqliteOptions, more: OpenFlags) -> rusqlite::Result<Connection> {
    // The path is a path, never a URI. Each connection is used by one thread at a time.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | more;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(options.busy_timeout)?;
    connection.set_prepared_statement_cache_capacity(64);
    // Until the schema is known to be ours, not even closing may change the file.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    // A statement keeps its plan whatever is bound to it; otherwise most would be planned anew at every use.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(connection)
}

fn configure(connection: &Connection) -> rusqlite::Result<()> {
    // The answers are read back by `check_settings`.
    connection.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()))?;
    connection.pragma_update(None, "synchronous", "full")?;
    // Rows of a run are written several times within moments: a longer log moves each page to the file less often.
    connection.pragma_update_and_check(None, "wal_autocheckpoint", LOG_PAGES, |_| Ok(()))?;
    connection.pragma_update_and_check(None, "journal_size_limit", 64 * 1_024 * 1_024, |_| Ok(()))
}

/// Tries again while another process has the file locked: to change a file to WAL, SQLite does not wait by itself.
fn patiently(busy_timeout: Duration, action: impl Fn() -> rusqlite::Result<()>) -> rusqlite::Result<()> {
    let begin = Instant::now();
    loop {
        match action() {
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => {
                if begin.elapsed() >= busy_timeout {
                    return Err(error);
                }
                std::thread::sleep(Duration::from_millis(5));
            }
            done => return done,
        }
    }
}

/// Refuses a library with the WAL corruption bug.
fn check_library(version: i32) -> Result<(), StoreFault> {
    if version >= LIBRARY_MIN {
        return Ok(());
    }
    let (found, least) = (dotted(version), dotted(LIBRARY_MIN));
    Err(refused(format!("SQLite {found} may corrupt the file; {least} or later is needed")))
}

/// Refuses a file that will not keep what is acknowledged.
fn check_settings(connection: &Connection) -> Result<(), StoreFault> {
    let journal: String = read_pragma(connection, "journal_mode")?;
    let synchronous: i64 = read_pragma(connection, "synchronous")?;
    match (journal.as_str(), synchronous) {
        ("wal", 2) => Ok(()),
        _ => Err(refused(format!("journal_mode is {journal} and synchronous is {synchronous}, not wal and 2 (full)"))),
    }
}

/// The settings that durability rests on, for people.
pub(super) fn settings(connection: &Connection) -> Result<String, StoreFault> {
    let journal: String = read_pragma(connection, "journal_mode")?;
    let synchronous: i64 = read_pragma(connection, "synchronous")?;
    let level = if synchronous == 2 { "full" } else { "less than full" };
    Ok(format!("SQLite {}, journal_mode={journal}, synchronous={level}", rusqlite::version()))
}

fn read_pragma<T: rusqlite::types::FromSql>(connection: &Connection, name: &str) -> Result<T, StoreFault> {
    connection.pragma_query_value(None, name, |row| row.get(0)).map_err(|error| fault::of(DOING, error))
}

fn refused(why: String) -> StoreFault {
    StoreFault::because(DOING, StoreFaultKind::Unavailable, why)
}

fn dotted(version: i32) -> String {
    format!("{}.{}.{}", version / 1_000_000, version / 1_000 % 1_000, version % 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_that_may_corrupt_the_file_is_refused() {
        for version in [3_007_000, 3_040_001, 3_051_002] {
            let fault = check_library(version).unwrap_err();
            assert_eq!(fault.kind, StoreFaultKind::Unavailable);
        }
        let why = check_library(3_040_001).unwrap_err().source.unwrap().to_string();
        assert_eq!(why, "SQLite 3.40.1 may corrupt the file; 3.51.3 or later is needed");
        for version in [3_051_003, 3_054_001, 4_000_000] {
            assert!(check_library(version).is_ok());
        }
    }

    #[test]
    fn the_bundled_library_is_good_enough() {
        assert!(check_library(rusqlite::version_number()).is_ok());
    }
}
