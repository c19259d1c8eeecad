//! The chain of audit records: written with the append that they tell of, never changed. How far it has come stands
//! beside it, and must still stand so when the next are written.

use ::redis::aio::ConnectionManager;
use holdpoint_core::audit::AuditRecord;
use holdpoint_core::json::{CanonicalJson, Digest};
use holdpoint_runtime::ports::store::{Append, PAGE_MAX, StoreFault};

use super::change::Change;
use super::fault::{self, Broken};
use super::keys::Keys;

/// The notes of an append as they are hashed.
///
/// # Errors
/// A note cannot be written, which none of this program's is.
pub(super) fn bodies(append: &Append) -> Result<Vec<CanonicalJson>, StoreFault> {
    let unwritable = |problem| fault::unwritable(append.run, problem);
    append.audit.iter().map(|note| note.body().map_err(unwritable)).collect()
}

/// Adds records behind the head that was read; gives the head after them.
pub(super) fn write<'a>(
    change: &mut Change,
    keys: &Keys,
    head: Option<&[u8]>,
    bodies: impl IntoIterator<Item = &'a CanonicalJson>,
) -> Result<Option<Vec<u8>>, Broken> {
    let mut bodies = bodies.into_iter().peekable();
    if bodies.peek().is_none() {
        return Ok(head.map(<[u8]>::to_vec));
    }
    let mut last = head.map(parse_head).transpose()?;
    change.expect(keys.audit_head(), head);
    for body in bodies {
        let record = AuditRecord::following(last, body);
        last = Some((record.n, record.hash));
        let value = [record.hash.as_bytes().as_slice(), record.body.as_bytes()].concat();
        change.set_field(keys.audit(), record.n.to_string(), value);
    }
    let after = last.map(|(n, hash)| [format!("{n} ").as_bytes(), hash.as_bytes().as_slice()].concat());
    if let Some(after) = &after {
        change.set(keys.audit_head(), after);
    }
    Ok(after)
}

/// Takes back what was added: it stands behind another head.
pub(super) fn take_back(change: &mut Change, keys: &Keys) {
    change.forget(keys.audit_head());
    change.forget(keys.audit());
}

/// The number, a blank, and the hash.
fn parse_head(bytes: &[u8]) -> Result<(u64, Digest), Broken> {
    let broken = || Broken::Unreadable("the head of the audit cannot be read".to_owned());
    let blank = bytes.iter().position(|byte| *byte == b' ').ok_or_else(broken)?;
    let n = std::str::from_utf8(&bytes[..blank]).ok().and_then(|n| n.parse().ok()).ok_or_else(broken)?;
    let hash = <[u8; 32]>::try_from(&bytes[blank + 1..]).map_err(|_| broken())?;
    Ok((n, Digest::from_bytes(hash)))
}

/// The head as it stands, if there is one.
pub(super) async fn find_head(connection: &mut ConnectionManager, keys: &Keys) -> Result<Option<Vec<u8>>, Broken> {
    Ok(::redis::cmd("GET").arg(keys.audit_head()).query_async(connection).await?)
}

/// The number and hash of the last record that was written.
pub(super) async fn head(connection: &mut ConnectionManager, keys: &Keys) -> Result<Option<(u64, Digest)>, Broken> {
    find_head(connection, keys).await?.as_deref().map(parse_head).transpose()
}

/// The records after a number, in order.
pub(super) async fn page(
    connection: &mut ConnectionManager,
    keys: &Keys,
    after: u64,
    limit: usize,
) -> Result<Vec<AuditRecord>, Broken> {
    let Some((last, _)) = head(connection, keys).await? else { return Ok(Vec::new()) };
    let end = last.min(after.saturating_add(limit.min(PAGE_MAX) as u64));
    if after >= end {
        return Ok(Vec::new());
    }
    let mut command = ::redis::cmd("HMGET");
    command.arg(keys.audit());
    (after + 1..=end).for_each(|n| {
        command.arg(n);
    });
    let found: Vec<Option<Vec<u8>>> = command.query_async(connection).await?;
    // Those that somebody took out are missed by whoever checks the chain.
    let there = (after + 1..=end).zip(found).filter_map(|(n, value)| Some((n, value?)));
    there.map(|(n, value)| record(n, &value)).collect()
}

fn record(n: u64, value: &[u8]) -> Result<AuditRecord, Broken> {
    let broken = || Broken::Unreadable(format!("audit record {n} cannot be read"));
    let (hash, body) = value.split_first_chunk::<32>().ok_or_else(broken)?;
    let body = std::str::from_utf8(body).map_err(|_| broken())?.to_owned();
    Ok(AuditRecord { n, body, hash: Digest::from_bytes(*hash) })
}
