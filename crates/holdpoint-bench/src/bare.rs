//! The limit: what no durable cycle can do without, in the same SQLite settings, and nothing around it.
//!
//! The same number of commits with the same bytes as a cycle of the library: a run and its first entry are written, then
//! each further commit reads the run back, moves its revision on if nobody else did, and writes its entry. There is no
//! JSON, no channel, no second thread, no index but the primary keys.

use std::time::{Duration, Instant};

use anyhow::Result;
use rusqlite::{Connection, Transaction};

use crate::cycle::Footprint;

const TABLES: &str = "
    CREATE TABLE run (id INTEGER PRIMARY KEY, revision INTEGER NOT NULL, status INTEGER NOT NULL);
    CREATE TABLE entry (run INTEGER NOT NULL, revision INTEGER NOT NULL, body BLOB NOT NULL,
                        PRIMARY KEY (run, revision)) WITHOUT ROWID;";

/// Cycles per second of a bare loop that commits `group` cycles' rows at a time.
pub(crate) fn cycles(footprint: &Footprint, group: usize, duration: Duration) -> Result<f64> {
    let folder = tempfile::tempdir_in(".")?;
    let mut database = Connection::open(folder.path().join("bare.db"))?;
    database.pragma_update(None, "journal_mode", "WAL")?;
    database.pragma_update(None, "synchronous", "FULL")?;
    database.pragma_update_and_check(None, "wal_autocheckpoint", 4_096, |_| Ok(()))?;
    database.execute_batch(TABLES)?;
    let bodies: Vec<Vec<u8>> = footprint.commits.iter().map(|bytes| vec![b'x'; *bytes]).collect();
    let began = Instant::now();
    let mut done = 0;
    while began.elapsed() < duration {
        for (revision, body) in (0_i64..).zip(&bodies) {
            let transaction = database.transaction()?;
            for run in done..done + group {
                step(&transaction, i64::try_from(run)?, revision, body)?;
            }
            transaction.commit()?;
        }
        done += group;
    }
    Ok(done as f64 / began.elapsed().as_secs_f64())
}

/// One commit's part of one cycle.
fn step(transaction: &Transaction<'_>, run: i64, revision: i64, body: &[u8]) -> Result<()> {
    if revision == 0 {
        transaction.prepare_cached("INSERT INTO run VALUES (?1, 1, 1)")?.execute([run])?;
    } else {
        let mut load = transaction.prepare_cached("SELECT body FROM entry WHERE run = ?1 ORDER BY revision")?;
        let bodies = load.query_map([run], |row| row.get::<_, Vec<u8>>(0))?;
        anyhow::ensure!(bodies.collect::<rusqlite::Result<Vec<_>>>()?.len() as i64 == revision, "entries are missing");
        let moved = transaction
            .prepare_cached("UPDATE run SET revision = ?3, status = 0 WHERE id = ?1 AND revision = ?2")?
            .execute([run, revision, revision + 1])?;
        anyhow::ensure!(moved == 1, "the run did not move on");
    }
    transaction.prepare_cached("INSERT INTO entry VALUES (?1, ?2, ?3)")?.execute((run, revision, body))?;
    Ok(())
}
