//! Rules that outlive the run in which they were made, and how often they were used.

use std::collections::BTreeMap;

use holdpoint_core::ids::{RuleId, SessionId};
use holdpoint_core::policy::StandingRule;
use holdpoint_core::time::Timestamp;
use holdpoint_runtime::ports::store::{Append, AppendError, RuleChange, StoredRule};
use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension, Row};

use super::columns::Column;
use super::fault::WriteError;

/// A rule's row, but for its session.
#[derive(Clone)]
pub(super) struct RuleRecord {
    rule: StandingRule,
    uses: u32,
    is_revoked: bool,
}

/// The rules as an append leaves them, those that it does not touch left out.
pub(super) fn check(
    connection: &Connection,
    append: &Append,
    session: Option<i64>,
) -> Result<BTreeMap<RuleId, RuleRecord>, WriteError> {
    let mut changed: BTreeMap<RuleId, RuleRecord> = BTreeMap::new();
    for change in &append.rules {
        let id = match change {
            RuleChange::Made(rule) => rule.id,
            RuleChange::Used(id) | RuleChange::Revoked(id) => *id,
        };
        let known = match (changed.get(&id), session) {
            (Some(rule), _) => Some(rule.clone()),
            (None, Some(session)) => find(connection, id, session)?,
            (None, None) => None,
        };
        let rule = match (change, known) {
            // A rule is made once; the run's revision sees to that.
            (RuleChange::Made(_), Some(rule)) => rule,
            (RuleChange::Made(rule), None) => RuleRecord { rule: rule.clone(), uses: 0, is_revoked: false },
            (RuleChange::Used(_), Some(rule)) if !rule.is_revoked && rule.rule.is_alive(append.at, rule.uses) => {
                RuleRecord { uses: rule.uses.saturating_add(1), ..rule }
            }
            (RuleChange::Used(_), _) => return Err(AppendError::RuleSpent(id).into()),
            (RuleChange::Revoked(_), Some(rule)) => RuleRecord { is_revoked: true, ..rule },
            (RuleChange::Revoked(_), None) => continue,
        };
        changed.insert(id, rule);
    }
    Ok(changed)
}

/// Writes what [`check`] gave.
pub(super) fn write(
    connection: &Connection,
    changed: &BTreeMap<RuleId, RuleRecord>,
    session: i64,
) -> rusqlite::Result<()> {
    for (id, record) in changed {
        // Stored like the events that tell of it; our own types have a JSON form.
        let body = serde_json::to_string(&record.rule)
            .map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
        connection
            .prepare_cached(
                "INSERT INTO rule (run, number, session, uses, is_revoked, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
                 ON CONFLICT (run, number) DO UPDATE SET uses = excluded.uses, is_revoked = excluded.is_revoked",
            )?
            .execute((Column(id.run), id.number, session, record.uses, record.is_revoked, body))?;
    }
    Ok(())
}

fn find(connection: &Connection, id: RuleId, session: i64) -> rusqlite::Result<Option<RuleRecord>> {
    connection
        .prepare_cached("SELECT body, uses, is_revoked FROM rule WHERE run = ?1 AND number = ?2 AND session = ?3")?
        .query_row((Column(id.run), id.number, session), record)
        .optional()
}

/// The rules of a session that may still be used, in the order of their ids.
pub(super) fn standing(
    connection: &Connection,
    session: &SessionId,
    now: Timestamp,
) -> rusqlite::Result<Vec<StoredRule>> {
    let mut of_session = connection.prepare_cached(
        "SELECT body, uses, is_revoked FROM rule
         WHERE session = (SELECT key FROM session WHERE name = ?1) AND NOT is_revoked ORDER BY run, number",
    )?;
    let records = of_session.query_map([session.as_str()], record)?.collect::<rusqlite::Result<Vec<_>>>()?;
    let alive = records.into_iter().filter(|record| record.rule.is_alive(now, record.uses));
    Ok(alive.map(|RuleRecord { rule, uses, .. }| StoredRule { rule, uses }).collect())
}

/// The rule in the columns `body` and `uses`, which are the first.
pub(super) fn rule_and_uses(row: &Row<'_>) -> rusqlite::Result<(StandingRule, u32)> {
    record(row).map(|record| (record.rule, record.uses))
}

fn record(row: &Row<'_>) -> rusqlite::Result<RuleRecord> {
    let body = row.get_ref(0)?.as_str()?;
    let rule = serde_json::from_str(body)
        .map_err(|error| rusqlite::Error::FromSqlConversionFailure(0, Type::Text, error.into()))?;
    Ok(RuleRecord { rule, uses: row.get(1)?, is_revoked: row.get(2)? })
}
