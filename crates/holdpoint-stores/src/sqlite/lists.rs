//! Pages of sessions, runs and rules. Times and counts are read from the entries, so that no append keeps them.

use holdpoint_core::ids::{ActorId, RuleId, RunId, SessionId};
use holdpoint_core::time::Timestamp;
use holdpoint_runtime::ports::store::{
    PAGE_MAX, RuleFilter, RuleRow, RunFilter, RunSummary, SessionFilter, SessionRow,
};
use rusqlite::{Connection, OptionalExtension, Row, ToSql, named_params};

use super::columns::{Column, Name};
use super::{keys, rules, sessions};

/// What is read of a session: its first and last entries lie at the ends of its keys.
const SESSION_COLUMNS: &str = "
    name, began_by,
    (SELECT at FROM entry WHERE entry.key BETWEEN session.key << 32 AND (session.key << 32) + 4294967295
     ORDER BY entry.key LIMIT 1),
    (SELECT at FROM entry WHERE entry.key BETWEEN session.key << 32 AND (session.key << 32) + 4294967295
     ORDER BY entry.key DESC LIMIT 1),
    (SELECT count(*) FROM run WHERE run.key BETWEEN session.key << 32 AND (session.key << 32) + 4294967295),
    (SELECT entry.key & 4294967295 FROM entry
     WHERE entry.key BETWEEN session.key << 32 AND (session.key << 32) + 4294967295
     ORDER BY entry.key DESC LIMIT 1)";

/// One session, if it has been used.
pub(super) fn session(connection: &Connection, session: &SessionId) -> rusqlite::Result<Option<SessionRow>> {
    connection
        .prepare_cached(&format!("SELECT {SESSION_COLUMNS} FROM session WHERE name = ?1"))?
        .query_row([session.as_str()], session_row)
        .optional()
}

/// A page of sessions, the one that began last first: keys are given out in that order.
pub(super) fn sessions(connection: &Connection, filter: &SessionFilter) -> rusqlite::Result<Vec<SessionRow>> {
    let before = match &filter.after {
        None => i64::MAX,
        Some(after) => sessions::find(connection, after)?.unwrap_or(0),
    };
    let owner = filter.owner.as_ref().map(ActorId::as_str);
    let from = match owner {
        // Said once more in the query, so that the planner may use an index that leaves the local person out.
        Some(owner) if owner != "local" => {
            "session INDEXED BY session_by_owner WHERE began_by = ?1 AND began_by <> 'local'"
        }
        Some(_) => "session WHERE began_by = ?1",
        None => "session WHERE ?1 IS NULL",
    };
    let sql = format!("SELECT {SESSION_COLUMNS} FROM {from} AND key < ?2 ORDER BY key DESC LIMIT ?3");
    let limit = Column(filter.limit.min(PAGE_MAX));
    connection.prepare_cached(&sql)?.query_map((owner, before, limit), session_row)?.collect()
}

fn session_row(row: &Row<'_>) -> rusqlite::Result<SessionRow> {
    let (Name(session), Name(owner)) = (row.get(0)?, row.get(1)?);
    let (Column(created_at), Column(last_at)) = (row.get(2)?, row.get(3)?);
    let (Column(runs), Column(events)) = (row.get(4)?, row.get(5)?);
    Ok(SessionRow { session, owner, created_at, last_at, runs, events })
}

/// What is read of a run. Its first entry is the first that ends at or behind its first event; its last has the number of
/// its last event.
const RUN_COLUMNS: &str = "
    run.id, session.name, name.text, run.status,
    (SELECT at FROM entry WHERE entry.key >= run.key ORDER BY entry.key LIMIT 1),
    (SELECT at FROM entry WHERE entry.key = (run.key >> 32 << 32) + run.last_seq)";

/// From runs to their sessions.
const RUN_AND_SESSION: &str = "run CROSS JOIN session ON session.key = run.key >> 32";

/// From sessions to their runs.
const SESSION_AND_RUN: &str =
    "session CROSS JOIN run ON run.key BETWEEN session.key << 32 AND (session.key << 32) + 4294967295";

/// A page of runs, in the order of their ids from the last one on.
pub(super) fn runs(connection: &Connection, filter: &RunFilter) -> rusqlite::Result<Vec<RunSummary>> {
    let keys = match &filter.session {
        None => None,
        Some(session) => match keys::keys_of_name(connection, session)? {
            None => return Ok(Vec::new()),
            keys => keys,
        },
    };
    let owner = filter.owner.as_ref().map(ActorId::as_str);
    // By the index of ids, by the keys of one session, or by those of an owner's sessions; the plus sign keeps the planner
    // to it.
    let (from, of) = match (keys, owner) {
        (None, None) => (RUN_AND_SESSION, ":first IS NULL AND :last IS NULL AND :owner IS NULL AND run.id < :before"),
        (Some(_), None) => {
            (RUN_AND_SESSION, "run.key BETWEEN :first AND :last AND :owner IS NULL AND +run.id < :before")
        }
        (Some(_), Some(_)) => {
            (RUN_AND_SESSION, "run.key BETWEEN :first AND :last AND began_by = :owner AND +run.id < :before")
        }
        (None, Some("local")) => {
            (SESSION_AND_RUN, "began_by = :owner AND :first IS NULL AND :last IS NULL AND +run.id < :before")
        }
        (None, Some(_)) => (
            SESSION_AND_RUN,
            "began_by = :owner AND began_by <> 'local' AND :first IS NULL AND :last IS NULL AND +run.id < :before",
        ),
    };
    let order = if keys.is_some() || owner.is_some() { "+run.id" } else { "run.id" };
    let sql = format!(
        "SELECT {RUN_COLUMNS} FROM {from} CROSS JOIN name ON name.key = run.agent
         WHERE {of} AND (:agent IS NULL OR name.text = :agent) AND (:status IS NULL OR run.status = :status)
         ORDER BY {order} DESC LIMIT :limit"
    );
    // Behind every id: one byte longer than they are, and of the largest.
    let end: &[u8] = &[0xff; 17];
    let before = filter.after.map(Column);
    connection
        .prepare_cached(&sql)?
        .query_map(
            named_params! {
                ":first": keys.map(|(first, _)| first),
                ":last": keys.map(|(_, last)| last),
                ":before": before.as_ref().map_or(&end as &dyn ToSql, |before| before),
                ":owner": owner,
                ":agent": filter.agent.as_ref().map(|agent| agent.as_str()),
                ":status": filter.status.map(Column),
                ":limit": Column(filter.limit.min(PAGE_MAX)),
            },
            run_row,
        )?
        .collect()
}

fn run_row(row: &Row<'_>) -> rusqlite::Result<RunSummary> {
    let (Column(run), Name(session), Name(agent)) = (row.get(0)?, row.get(1)?, row.get(2)?);
    let (Column(status), Column(started_at), Column(last_at)) = (row.get(3)?, row.get(4)?, row.get(5)?);
    Ok(RunSummary { run, session, agent, status, started_at, last_at })
}

/// A page of the rules that may still be used, in the order of their ids.
pub(super) fn rules(connection: &Connection, filter: &RuleFilter, now: Timestamp) -> rusqlite::Result<Vec<RuleRow>> {
    let limit = filter.limit.min(PAGE_MAX);
    let (mut page, mut after) = (Vec::with_capacity(limit.min(100)), filter.after);
    // Whether a rule's time is up stands in its body: read on until the page is full or nothing is left.
    while page.len() < limit {
        let rows = rules_after(connection, filter.session.as_ref(), after)?;
        let Some(last) = rows.last() else { break };
        after = Some(last.rule.id);
        let alive = rows.into_iter().filter(|row| row.rule.is_alive(now, row.uses));
        page.extend(alive.take(limit - page.len()));
    }
    Ok(page)
}

fn rules_after(
    connection: &Connection,
    session: Option<&SessionId>,
    after: Option<RuleId>,
) -> rusqlite::Result<Vec<RuleRow>> {
    let of = match session {
        None => "?1 IS NULL",
        Some(_) => "rule.session = (SELECT key FROM session WHERE name = ?1)",
    };
    let sql = format!(
        "SELECT body, uses, is_revoked, session.name FROM rule JOIN session ON session.key = rule.session
         WHERE {of} AND NOT is_revoked AND (run, number) > (?2, ?3) ORDER BY run, number LIMIT {PAGE_MAX}"
    );
    // Before every id: one that is shorter.
    let start: &[u8] = &[];
    let run = after.map(|after| Column(after.run));
    let run = run.as_ref().map_or(&start as &dyn ToSql, |run: &Column<RunId>| run);
    let number = after.map_or(0, |after| after.number);
    connection
        .prepare_cached(&sql)?
        .query_map(rusqlite::params![session.map(SessionId::as_str), run, number], |row| {
            let Name(session) = row.get(3)?;
            let (rule, uses) = rules::rule_and_uses(row)?;
            Ok(RuleRow { session, rule, uses })
        })?
        .collect()
}
