//! Definitions of agents, named by what they say, so that each is kept once.

use std::sync::Arc;

use ::redis::aio::ConnectionManager;
use holdpoint_core::json::Digest;

use super::change::Change;
use super::fault::Broken;
use super::keys::Keys;

pub(super) fn write(change: &mut Change, keys: &Keys, definitions: &[(Digest, Arc<[u8]>)]) {
    for (digest, bytes) in definitions {
        change.add_field(keys.definitions(), digest.as_bytes(), bytes);
    }
}

pub(super) async fn find(
    connection: &mut ConnectionManager,
    keys: &Keys,
    digest: &Digest,
) -> Result<Option<Arc<[u8]>>, Broken> {
    let mut command = ::redis::cmd("HGET");
    command.arg(keys.definitions()).arg(digest.as_bytes().as_slice());
    let found: Option<Vec<u8>> = command.query_async(connection).await?;
    Ok(found.map(Arc::from))
}
