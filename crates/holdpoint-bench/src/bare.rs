//! The limit: the same number of commits with the same bytes through the same SQLite settings, and nothing around it.

use std::time::{Duration, Instant};

use anyhow::Result;
use rusqlite::Connection;

use crate::cycle::Footprint;

/// Cycles per second of a bare loop that commits `group` cycles' rows at a time.
pub(crate) fn cycles(footprint: &Footprint, group: usize, duration: Duration) -> Result<f64> {
    let folder = tempfile::tempdir_in(".")?;
    let mut database = Connection::open(folder.path().join("bare.db"))?;
    database.pragma_update(None, "journal_mode", "WAL")?;
    database.pragma_update(None, "synchronous", "FULL")?;
    database.execute_batch("CREATE TABLE rows (id INTEGER PRIMARY KEY, body BLOB NOT NULL)")?;
    let bodies: Vec<Vec<u8>> = footprint.commits.iter().map(|bytes| vec![b'x'; *bytes]).collect();
    let began = Instant::now();
    let mut done = 0;
    while began.elapsed() < duration {
        for body in &bodies {
            let transaction = database.transaction()?;
            {
                let mut insert = transaction.prepare_cached("INSERT INTO rows (body) VALUES (?)")?;
                for _ in 0..group {
                    insert.execute([body])?;
                }
            }
            transaction.commit()?;
        }
        done += group;
    }
    Ok(done as f64 / began.elapsed().as_secs_f64())
}
