//! Rules that outlive the run in which they were made, and how often they were used.

use std::collections::BTreeMap;

use ::redis::aio::ConnectionManager;
use holdpoint_core::ids::{RuleId, SessionId};
use holdpoint_core::time::Timestamp;
use holdpoint_runtime::ports::store::{Append, AppendError, StoredRule};

use super::change::Change;
use super::fault::{Broken, WriteError};
use super::keys::{self, Keys};
use super::records::{self, StoredRuleRecord};
use crate::rule_changes::{self, RuleRecord};

/// The rules as an append leaves them. `before` has what stands there for each of its changes.
pub(super) fn check(append: &Append, before: &[Option<Vec<u8>>]) -> Result<BTreeMap<RuleId, RuleRecord>, WriteError> {
    let mut known = BTreeMap::new();
    for (change, bytes) in append.rules.iter().zip(before) {
        let Some(bytes) = bytes else { continue };
        let record: StoredRuleRecord = records::decode(bytes)?;
        // Those of other sessions are not there for this one.
        if record.session == append.session.as_str() {
            let StoredRuleRecord { rule, uses, is_revoked, .. } = record;
            known.insert(rule_changes::id_of(change), RuleRecord { rule, uses, is_revoked });
        }
    }
    rule_changes::changed(append, &known).map_err(|refusal: AppendError| refusal.into())
}

/// Writes what [`check`] gave.
pub(super) fn write(
    change: &mut Change,
    keys: &Keys,
    session: &SessionId,
    changed: BTreeMap<RuleId, RuleRecord>,
) -> Result<(), Broken> {
    for (id, RuleRecord { rule, uses, is_revoked }) in changed {
        let name = keys::rule_name(id);
        for order in [keys.rule_order(None), keys.rule_order(Some(session))] {
            match is_revoked {
                true => change.remove_member(order, name),
                false => change.place_member(order, 0, name),
            }
        }
        let record = StoredRuleRecord { session: session.to_string(), uses, is_revoked, rule };
        change.set_field(keys.rules(), name, records::encode(&record)?);
    }
    Ok(())
}

/// The records of these rules, as far as they are there.
pub(super) async fn find_all(
    connection: &mut ConnectionManager,
    keys: &Keys,
    names: &[String],
) -> Result<Vec<StoredRuleRecord>, Broken> {
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let mut command = ::redis::cmd("HMGET");
    command.arg(keys.rules()).arg(names);
    let found: Vec<Option<Vec<u8>>> = command.query_async(connection).await?;
    found.into_iter().flatten().map(|bytes| records::decode(&bytes)).collect()
}

/// The rules of a session that may still be used, in the order of their ids.
pub(super) async fn standing(
    connection: &mut ConnectionManager,
    keys: &Keys,
    session: &SessionId,
    now: Timestamp,
) -> Result<Vec<StoredRule>, Broken> {
    let mut command = ::redis::cmd("ZRANGE");
    command.arg(keys.rule_order(Some(session))).arg(0).arg(-1);
    let names: Vec<String> = command.query_async(connection).await?;
    let found = find_all(connection, keys, &names).await?;
    let alive = found.into_iter().filter(|record| !record.is_revoked && record.rule.is_alive(now, record.uses));
    Ok(alive.map(|record| StoredRule { rule: record.rule, uses: record.uses }).collect())
}
