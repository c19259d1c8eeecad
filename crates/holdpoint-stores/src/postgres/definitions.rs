//! Definitions of agents, named by what they say, so that each is kept once.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use holdpoint_core::json::Digest;

use super::columns;
use super::connection::{Connection, Pipeline};
use super::fault::Broken;

/// How many digests are remembered.
const REMEMBERED_MAX: usize = 4_096;

/// Definitions that are known to be in the database: they are not sent again. None is ever taken out of it.
#[derive(Default)]
pub(super) struct Known(Mutex<HashSet<Digest>>);

impl Known {
    fn has(&self, digest: &Digest) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(digest)
    }

    /// Takes note of what was committed.
    pub(super) fn keep(&self, definitions: &[(Digest, Arc<[u8]>)]) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (digest, _) in definitions {
            if known.len() >= REMEMBERED_MAX {
                known.clear();
            }
            known.insert(*digest);
        }
    }
}

pub(super) fn write<'a>(pipeline: &mut Pipeline<'a>, known: &Known, definitions: &'a [(Digest, Arc<[u8]>)]) {
    // In one order, so that two appends that bring the same ones never wait for each other.
    let new: BTreeMap<&[u8], &'a [u8]> = definitions
        .iter()
        .filter(|(digest, _)| !known.has(digest))
        .map(|(digest, bytes)| (digest.as_bytes().as_slice(), &**bytes))
        .collect();
    for (digest, bytes) in new {
        pipeline.add(
            "INSERT INTO definition (digest, body) VALUES ($1, $2) ON CONFLICT DO NOTHING",
            [Box::new(digest.to_vec()), Box::new(bytes)],
        );
    }
}

pub(super) async fn find(connection: &Connection, digest: &Digest) -> Result<Option<Arc<[u8]>>, Broken> {
    let sql = "SELECT body FROM definition WHERE digest = $1";
    let row = connection.query_opt(sql, &[&digest.as_bytes().as_slice()]).await?;
    row.map(|row| columns::get::<&[u8]>(&row, 0).map(Arc::from)).transpose()
}
