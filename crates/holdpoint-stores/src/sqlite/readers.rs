//! Connections that read. A read takes microseconds, mostly from the page cache, so it is done where it is asked for.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use holdpoint_runtime::ports::store::StoreFault;
use rusqlite::Connection;

use super::fault;
use super::open::{self, SqliteOptions};
use super::writer::Health;

pub(super) struct Readers {
    path: PathBuf,
    options: SqliteOptions,
    health: Health,
    idle: Mutex<Vec<Connection>>,
}

impl Readers {
    pub(super) fn new(path: &Path, options: &SqliteOptions, health: Health) -> Self {
        Self { path: path.to_owned(), options: options.clone(), health, idle: Mutex::default() }
    }

    /// Reads a state of the file: one that was committed, and the same for the whole of `read`.
    pub(super) fn read<T>(
        &self,
        doing: &'static str,
        read: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StoreFault> {
        self.read_once(doing, |connection| in_one_state(connection, read))
    }

    /// Reads by a single statement, or by several that need not agree.
    pub(super) fn read_once<T>(
        &self,
        doing: &'static str,
        read: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StoreFault> {
        self.health.check(doing)?;
        let idle = self.idle().pop();
        let connection = idle
            .map_or_else(|| open::reader(&self.path, &self.options), Ok)
            .map_err(|error| fault::of(doing, error))?;
        // A connection that a read failed on is not used again.
        let value = read(&connection).map_err(|error| fault::of(doing, error))?;
        let mut idle = self.idle();
        if idle.len() < self.options.readers_max {
            idle.push(connection);
        }
        Ok(value)
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn in_one_state<T>(
    connection: &Connection,
    read: impl FnOnce(&Connection) -> rusqlite::Result<T>,
) -> rusqlite::Result<T> {
    connection.prepare_cached("BEGIN")?.execute([])?;
    let value = read(connection)?;
    connection.prepare_cached("COMMIT")?.execute([])?;
    Ok(value)
}
