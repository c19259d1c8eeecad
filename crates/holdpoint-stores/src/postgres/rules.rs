//! Rules that outlive the run in which they were made, and how often they were used.

use std::collections::BTreeMap;

use holdpoint_core::ids::{RuleId, SessionId};
use holdpoint_core::policy::StandingRule;
use holdpoint_core::time::Timestamp;
use holdpoint_runtime::ports::store::{Append, StoredRule};
use tokio_postgres::Row;
use uuid::Uuid;

use super::columns;
use super::connection::{Connection, Pipeline};
use super::fault::{Broken, WriteError};
use crate::rule_changes::{self, RuleRecord};

/// The rules as an append leaves them, those that it does not touch left out. Asked under the session's lock.
pub(super) async fn check(
    connection: &Connection,
    append: &Append,
    session: i64,
) -> Result<BTreeMap<RuleId, RuleRecord>, WriteError> {
    if append.rules.is_empty() {
        return Ok(BTreeMap::new());
    }
    let runs: Vec<Uuid> = append.rules.iter().map(|change| *rule_changes::id_of(change).run.uuid()).collect();
    let sql = "SELECT body, uses, is_revoked FROM rule WHERE session = $1 AND run = ANY($2)";
    let rows = connection.query(sql, &[&session, &runs]).await?;
    let records = rows.iter().map(record).collect::<Result<Vec<_>, _>>()?;
    let known = records.into_iter().map(|record| (record.rule.id, record)).collect();
    Ok(rule_changes::changed(append, &known)?)
}

/// Writes what [`check`] gave.
pub(super) fn write(
    pipeline: &mut Pipeline<'_>,
    changed: BTreeMap<RuleId, RuleRecord>,
    session: i64,
) -> Result<(), Broken> {
    for (id, record) in changed {
        // Stored like the events that tell of it; our own types have a JSON form.
        let body = serde_json::to_string(&record.rule).map_err(|error| Broken::Unreadable(error.to_string()))?;
        pipeline.add(
            "INSERT INTO rule (run, number, session, uses, is_revoked, body) VALUES ($1, $2, $3, $4, $5, $6)
             ON CONFLICT (run, number) DO UPDATE SET uses = excluded.uses, is_revoked = excluded.is_revoked",
            [
                Box::new(*id.run.uuid()),
                Box::new(i64::from(id.number)),
                Box::new(session),
                Box::new(i64::from(record.uses)),
                Box::new(record.is_revoked),
                Box::new(body),
            ],
        );
    }
    Ok(())
}

/// The rules of a session that may still be used, in the order of their ids.
pub(super) async fn standing(
    connection: &Connection,
    session: &SessionId,
    now: Timestamp,
) -> Result<Vec<StoredRule>, Broken> {
    let sql = "SELECT body, uses, is_revoked FROM rule
               WHERE session = (SELECT key FROM session WHERE name = $1) AND NOT is_revoked ORDER BY run, number";
    let rows = connection.query(sql, &[&session.as_str()]).await?;
    let records = rows.iter().map(record).collect::<Result<Vec<_>, _>>()?;
    let alive = records.into_iter().filter(|record| record.rule.is_alive(now, record.uses));
    Ok(alive.map(|RuleRecord { rule, uses, .. }| StoredRule { rule, uses }).collect())
}

/// The rule in the columns `body` and `uses`, which are the first.
pub(super) fn rule_and_uses(row: &Row) -> Result<(StandingRule, u32), Broken> {
    record(row).map(|record| (record.rule, record.uses))
}

fn record(row: &Row) -> Result<RuleRecord, Broken> {
    let rule = serde_json::from_str(columns::get(row, 0)?).map_err(|error| Broken::Unreadable(error.to_string()))?;
    Ok(RuleRecord { rule, uses: columns::get_number(row, 1)?, is_revoked: columns::get(row, 2)? })
}
