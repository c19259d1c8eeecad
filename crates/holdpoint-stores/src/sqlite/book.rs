//! The file as the writing thread has it before it: the connection, and what it remembers of what stands in the file.
//!
//! Most appends go to a run that was written a moment ago. What the thread wrote then it need not read again, as long as
//! nobody else has written since: SQLite tells, inside the transaction, whether another connection has.

use std::collections::{HashMap, HashSet};

use holdpoint_core::ids::{RunId, SessionId};
use holdpoint_core::json::Digest;
use rusqlite::Connection;

use super::append::RunRecord;

/// The connection that writes, and what is remembered of the file.
pub(super) struct Book {
    pub(super) connection: Connection,
    pub(super) memory: Memory,
}

/// Rows as they stand in the file. Everything here can be read again, so all of it may be forgotten at any time.
#[derive(Default)]
pub(super) struct Memory {
    /// Changes when another connection has written.
    data_version: i64,
    runs: HashMap<RunId, RunRecord>,
    sessions: HashMap<SessionId, i64>,
    counters: HashMap<i64, Counters>,
    names: HashMap<String, i64>,
    definitions: HashSet<Digest>,
    /// The number and hash of the last audit record.
    audited: Option<(u64, Digest)>,
}

/// How far a session has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counters {
    /// How many events it has.
    pub(super) events: u64,
    /// How many times pauses opened in it.
    pub(super) pause_groups: u64,
}

/// How many of each are remembered.
const REMEMBERED_MAX: usize = 4_096;

impl Book {
    pub(super) fn new(connection: Connection) -> Self {
        Self { connection, memory: Memory::default() }
    }

    /// At the beginning of a transaction: forgets everything if somebody else has written since.
    pub(super) fn catch_up(&mut self) -> rusqlite::Result<()> {
        let version = self.connection.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))?;
        if self.memory.data_version != version {
            self.memory = Memory { data_version: version, ..Memory::default() };
        }
        Ok(())
    }

    /// Forgets everything, because what was written was rolled back.
    pub(super) fn forget_all(&mut self) {
        self.memory = Memory::default();
    }
}

impl Memory {
    pub(super) fn run(&self, run: RunId) -> Option<&RunRecord> {
        self.runs.get(&run)
    }

    pub(super) fn keep_run(&mut self, run: RunId, record: RunRecord) {
        make_room(&mut self.runs);
        self.runs.insert(run, record);
    }

    /// Forgets a run that was changed elsewhere, or that nothing more is expected of.
    pub(super) fn forget_run(&mut self, run: RunId) {
        self.runs.remove(&run);
    }

    pub(super) fn session(&self, session: &SessionId) -> Option<i64> {
        self.sessions.get(session).copied()
    }

    pub(super) fn keep_session(&mut self, session: &SessionId, key: i64) {
        make_room(&mut self.sessions);
        self.sessions.insert(session.clone(), key);
    }

    pub(super) fn counters(&self, session: i64) -> Option<Counters> {
        self.counters.get(&session).copied()
    }

    pub(super) fn keep_counters(&mut self, session: i64, counters: Counters) {
        make_room(&mut self.counters);
        self.counters.insert(session, counters);
    }

    pub(super) fn name(&self, text: &str) -> Option<i64> {
        self.names.get(text).copied()
    }

    pub(super) fn keep_name(&mut self, text: &str, key: i64) {
        make_room(&mut self.names);
        self.names.insert(text.to_owned(), key);
    }

    pub(super) fn audited(&self) -> Option<(u64, Digest)> {
        self.audited
    }

    pub(super) fn keep_audited(&mut self, n: u64, hash: Digest) {
        self.audited = Some((n, hash));
    }

    pub(super) fn has_definition(&self, digest: &Digest) -> bool {
        self.definitions.contains(digest)
    }

    pub(super) fn keep_definition(&mut self, digest: Digest) {
        if self.definitions.len() >= REMEMBERED_MAX {
            self.definitions.clear();
        }
        self.definitions.insert(digest);
    }
}

fn make_room<K, V>(remembered: &mut HashMap<K, V>) {
    if remembered.len() >= REMEMBERED_MAX {
        remembered.clear();
    }
}
