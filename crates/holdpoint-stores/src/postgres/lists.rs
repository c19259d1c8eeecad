//! Pages of sessions, runs and rules.

use holdpoint_core::ids::{ActorId, AgentId, RuleId, SessionId};
use holdpoint_core::time::Timestamp;
use holdpoint_runtime::ports::store::{
    PAGE_MAX, RuleFilter, RuleRow, RunFilter, RunSummary, SessionFilter, SessionRow,
};
use tokio_postgres::Row;
use uuid::Uuid;

use super::connection::Connection;
use super::fault::Broken;
use super::{columns, rules};

/// One session, if it has been used.
pub(super) async fn session(connection: &Connection, session: &SessionId) -> Result<Option<SessionRow>, Broken> {
    let sql = "SELECT name, began_by, created_at, last_at, runs, events FROM session WHERE name = $1";
    connection.query_opt(sql, &[&session.as_str()]).await?.as_ref().map(session_row).transpose()
}

/// A page of sessions, the one that began last first: keys are given out in that order. After a session that is not
/// there comes none, since nothing is less than a key that is not there.
pub(super) async fn sessions(connection: &Connection, filter: &SessionFilter) -> Result<Vec<SessionRow>, Broken> {
    let sql = "SELECT name, began_by, created_at, last_at, runs, events FROM session
               WHERE ($1::text IS NULL OR began_by = $1)
                   AND ($2::text IS NULL OR key < (SELECT key FROM session WHERE name = $2))
               ORDER BY key DESC LIMIT $3";
    let owner = filter.owner.as_ref().map(ActorId::as_str);
    let after = filter.after.as_ref().map(SessionId::as_str);
    let rows = connection.query(sql, &[&owner, &after, &columns::most(filter.limit.min(PAGE_MAX))]).await?;
    rows.iter().map(session_row).collect()
}

fn session_row(row: &Row) -> Result<SessionRow, Broken> {
    Ok(SessionRow {
        session: columns::get_name(row, 0)?,
        owner: columns::get_name(row, 1)?,
        created_at: columns::get_time(row, 2)?,
        last_at: columns::get_time(row, 3)?,
        runs: columns::get_count(row, 4)?,
        events: columns::get_count(row, 5)?,
    })
}

/// A page of runs, in the order of their ids from the last one on.
pub(super) async fn runs(connection: &Connection, filter: &RunFilter) -> Result<Vec<RunSummary>, Broken> {
    let sql = "SELECT run.id, session.name, run.agent, run.status, run.started_at, run.last_at
               FROM run JOIN session ON session.key = run.session
               WHERE ($1::text IS NULL OR session.name = $1) AND ($2::text IS NULL OR session.began_by = $2)
                   AND ($3::text IS NULL OR run.agent = $3) AND ($4::smallint IS NULL OR run.status = $4)
                   AND ($5::uuid IS NULL OR run.id < $5)
               ORDER BY run.id DESC LIMIT $6";
    let rows = connection
        .query(
            sql,
            &[
                &filter.session.as_ref().map(SessionId::as_str),
                &filter.owner.as_ref().map(ActorId::as_str),
                &filter.agent.as_ref().map(AgentId::as_str),
                &filter.status.map(columns::status),
                &filter.after.map(|after| *after.uuid()),
                &columns::most(filter.limit.min(PAGE_MAX)),
            ],
        )
        .await?;
    rows.iter().map(run_row).collect()
}

fn run_row(row: &Row) -> Result<RunSummary, Broken> {
    Ok(RunSummary {
        run: columns::get_run(row, 0)?,
        session: columns::get_name(row, 1)?,
        agent: columns::get_name(row, 2)?,
        status: columns::get_status(row, 3)?,
        started_at: columns::get_time(row, 4)?,
        last_at: columns::get_time(row, 5)?,
    })
}

/// A page of the rules that may still be used, in the order of their ids.
pub(super) async fn rules(
    connection: &Connection,
    filter: &RuleFilter,
    now: Timestamp,
) -> Result<Vec<RuleRow>, Broken> {
    let limit = filter.limit.min(PAGE_MAX);
    let (mut page, mut after) = (Vec::with_capacity(limit.min(100)), filter.after);
    // Whether a rule's time is up stands in its body: read on until the page is full or nothing is left.
    while page.len() < limit {
        let rows = rules_after(connection, filter.session.as_ref(), after).await?;
        let Some(last) = rows.last() else { break };
        after = Some(last.rule.id);
        let alive = rows.into_iter().filter(|row| row.rule.is_alive(now, row.uses));
        page.extend(alive.take(limit - page.len()));
    }
    Ok(page)
}

async fn rules_after(
    connection: &Connection,
    session: Option<&SessionId>,
    after: Option<RuleId>,
) -> Result<Vec<RuleRow>, Broken> {
    let sql = "SELECT body, uses, is_revoked, session.name FROM rule JOIN session ON session.key = rule.session
               WHERE ($1::text IS NULL OR session.name = $1) AND NOT is_revoked AND (run, number) > ($2, $3)
               ORDER BY run, number LIMIT $4";
    // Before every rule: numbers begin at zero, and no run has the least of all ids.
    let (run, number) = after.map_or((Uuid::nil(), -1), |after| (*after.run.uuid(), i64::from(after.number)));
    let params: [&(dyn tokio_postgres::types::ToSql + Sync); 4] =
        [&session.map(SessionId::as_str), &run, &number, &columns::most(PAGE_MAX)];
    let read = |row| {
        let (rule, uses) = rules::rule_and_uses(row)?;
        Ok(RuleRow { session: columns::get_name(row, 3)?, rule, uses })
    };
    connection.query(sql, &params).await?.iter().map(read).collect()
}
