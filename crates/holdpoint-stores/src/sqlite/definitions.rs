//! Definitions of agents, named by what they say, so that each is kept once.

use std::sync::Arc;

use super::book::Book;
use holdpoint_core::json::Digest;
use rusqlite::{Connection, OptionalExtension};

pub(super) fn write(book: &mut Book, definitions: &[(Digest, Arc<[u8]>)]) -> rusqlite::Result<()> {
    for (digest, bytes) in definitions {
        if book.memory.has_definition(digest) {
            continue;
        }
        book.connection
            .prepare_cached("INSERT INTO definition (digest, body) VALUES (?1, ?2) ON CONFLICT DO NOTHING")?
            .execute((digest.as_bytes(), &**bytes))?;
        book.memory.keep_definition(*digest);
    }
    Ok(())
}

pub(super) fn find(connection: &Connection, digest: &Digest) -> rusqlite::Result<Option<Arc<[u8]>>> {
    connection
        .prepare_cached("SELECT body FROM definition WHERE digest = ?1")?
        .query_row([digest.as_bytes()], |row| Ok(Arc::from(row.get_ref(0)?.as_blob()?)))
        .optional()
}
