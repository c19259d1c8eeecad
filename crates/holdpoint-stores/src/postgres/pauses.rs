//! Pauses: the inbox and the deadlines.

use holdpoint_core::ids::{AgentId, PauseId, SessionId, ToolName};
use holdpoint_core::time::Timestamp;
use holdpoint_runtime::ports::store::{Append, PauseFilter, PauseRow, PauseStatus};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use super::columns;
use super::connection::{Connection, Pipeline, column};
use super::fault::Broken;
use crate::admit;

/// A pause that opens. One that is there already keeps what it was opened with, and only stands otherwise.
const OPEN: &str = "
    INSERT INTO pause (run, number, session, kind, status, agent, tool, opened_at, expires_at, pause_group)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
    ON CONFLICT (run, number) DO UPDATE SET status = excluded.status";

/// A pause that changes: how it stands, and its deadline while it waits. One that is not there opens after all.
const CHANGE: &str = "
    INSERT INTO pause (run, number, session, kind, status, agent, tool, opened_at, expires_at, pause_group)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
    ON CONFLICT (run, number) DO UPDATE SET status = excluded.status,
        expires_at = CASE excluded.status WHEN 0 THEN excluded.expires_at ELSE pause.expires_at END";

/// Writes the rows that an append opens or changes; those that it opens take its number.
pub(super) fn write<'a>(pipeline: &mut Pipeline<'a>, session: i64, append: &'a Append, group: Option<u64>) {
    for row in &append.pauses {
        pipeline.add(
            if admit::opens(append, row) { OPEN } else { CHANGE },
            [
                Box::new(*append.run.uuid()),
                Box::new(i64::from(row.id.number)),
                Box::new(session),
                Box::new(columns::pause_kind(row.kind)),
                Box::new(columns::pause_status(row.status)),
                Box::new(row.agent.as_str()),
                Box::new(row.tool.as_ref().map(ToolName::as_str)),
                Box::new(row.opened_at.as_millis()),
                Box::new(row.expires_at.map(Timestamp::as_millis)),
                Box::new(columns::count(group.unwrap_or_default())),
            ],
        );
    }
}

/// A pause of an append, with what its session gives it.
pub(super) struct Placed<'a> {
    session: i64,
    row: &'a PauseRow,
    opens: bool,
    group: i64,
}

impl<'a> Placed<'a> {
    pub(super) fn new(session: i64, append: &'a Append, row: &'a PauseRow, group: Option<u64>) -> Self {
        Self { session, row, opens: admit::opens(append, row), group: columns::count(group.unwrap_or_default()) }
    }
}

/// Those that are there, as [`OPEN`] and [`CHANGE`] have it.
const CHANGE_ALL: &str = "
    UPDATE pause SET status = new.status,
        expires_at = CASE WHEN new.status = 0 AND NOT new.opens THEN new.expires_at ELSE pause.expires_at END
    FROM unnest($1::uuid[], $2::bigint[], $3::smallint[], $4::bigint[], $5::boolean[])
        AS new (run, number, status, expires_at, opens)
    WHERE pause.run = new.run AND pause.number = new.number";

/// Those that are not there.
const OPEN_ALL: &str = "
    INSERT INTO pause (run, number, session, kind, status, agent, tool, opened_at, expires_at, pause_group)
    SELECT * FROM unnest($1::uuid[], $2::bigint[], $3::bigint[], $4::smallint[], $5::smallint[], $6::text[], $7::text[],
        $8::bigint[], $9::bigint[], $10::bigint[])
    ON CONFLICT (run, number) DO NOTHING";

/// Writes the rows of several appends, of which no two are the same pause.
pub(super) fn write_all<'a>(pipeline: &mut Pipeline<'a>, placed: impl Iterator<Item = Placed<'a>>) {
    let mut placed: Vec<Placed<'a>> = placed.collect();
    if placed.is_empty() {
        return;
    }
    let (run, number) = (|one: &Placed<'a>| *one.row.id.run.uuid(), |one: &Placed<'a>| i64::from(one.row.id.number));
    let status = |one: &Placed<'a>| columns::pause_status(one.row.status);
    let expires_at = |one: &Placed<'a>| one.row.expires_at.map(Timestamp::as_millis);
    pipeline.add(
        CHANGE_ALL,
        [
            column(&placed, run),
            column(&placed, number),
            column(&placed, status),
            column(&placed, expires_at),
            column(&placed, |one| one.opens),
        ],
    );
    // The others were opened before: what goes on with a run is written only if the run stands as it was seen.
    placed.retain(|one| one.opens || one.row.status == PauseStatus::Open);
    if placed.is_empty() {
        return;
    }
    pipeline.add(
        OPEN_ALL,
        [
            column(&placed, run),
            column(&placed, number),
            column(&placed, |one| one.session),
            column(&placed, |one| columns::pause_kind(one.row.kind)),
            column(&placed, status),
            column(&placed, |one| one.row.agent.as_str()),
            column(&placed, |one| one.row.tool.as_ref().map(ToolName::as_str)),
            column(&placed, |one| one.row.opened_at.as_millis()),
            column(&placed, expires_at),
            column(&placed, |one| one.group),
        ],
    );
}

/// Open pauses whose time is up, earliest deadline first.
pub(super) async fn due(connection: &Connection, limit: usize, now: Timestamp) -> Result<Vec<PauseId>, Broken> {
    let sql = "SELECT run, number FROM pause WHERE status = 0 AND expires_at IS NOT NULL AND expires_at <= $1
               ORDER BY expires_at, run, number LIMIT $2";
    let rows = connection.query(sql, &[&now.as_millis(), &columns::most(limit)]).await?;
    let read = |row| Ok(PauseId { run: columns::get_run(row, 0)?, number: columns::get_number(row, 1)? });
    rows.iter().map(read).collect()
}

/// The earliest deadline of an open pause.
pub(super) async fn next_deadline(connection: &Connection) -> Result<Option<Timestamp>, Broken> {
    let sql = "SELECT expires_at FROM pause WHERE status = 0 AND expires_at IS NOT NULL ORDER BY expires_at LIMIT 1";
    connection.query_opt(sql, &[]).await?.map(|row| columns::get_time(&row, 0)).transpose()
}

/// A page of one state, in the order of time. What is open is looked for with [`OPEN_OF_AGENT`] and [`OPEN_OF_TOOL`] where
/// an agent or a tool is named.
const LIST: &str = "
    SELECT run, number, kind, status, session.name, agent, tool, opened_at, expires_at, pause_group
    FROM pause JOIN session ON session.key = pause.session
    WHERE status = $1 AND (opened_at, run, number) > ($2, $3, $4)
        AND ($5::text IS NULL OR agent = $5) AND ($6::text IS NULL OR tool = $6)
    ORDER BY opened_at, run, number LIMIT $7";

/// A page of what is open of one agent: its index has nothing else.
const OPEN_OF_AGENT: &str = "
    SELECT run, number, kind, status, session.name, agent, tool, opened_at, expires_at, pause_group
    FROM pause JOIN session ON session.key = pause.session
    WHERE status = 0 AND $1::smallint = 0 AND (opened_at, run, number) > ($2, $3, $4)
        AND agent = $5 AND ($6::text IS NULL OR tool = $6)
    ORDER BY opened_at, run, number LIMIT $7";

/// A page of what is open of one tool.
const OPEN_OF_TOOL: &str = "
    SELECT run, number, kind, status, session.name, agent, tool, opened_at, expires_at, pause_group
    FROM pause JOIN session ON session.key = pause.session
    WHERE status = 0 AND $1::smallint = 0 AND (opened_at, run, number) > ($2, $3, $4)
        AND ($5::text IS NULL OR agent = $5) AND tool = $6
    ORDER BY opened_at, run, number LIMIT $7";

/// A page of one session, in the order of time.
const LIST_OF_SESSION: &str = "
    SELECT run, number, kind, status, session.name, agent, tool, opened_at, expires_at, pause_group
    FROM pause JOIN session ON session.key = pause.session
    WHERE session.name = $1 AND ($2::smallint IS NULL OR status = $2) AND (opened_at, run, number) > ($3, $4, $5)
        AND ($6::text IS NULL OR agent = $6) AND ($7::text IS NULL OR tool = $7)
    ORDER BY opened_at, run, number LIMIT $8";

/// A page of pauses, oldest first.
pub(super) async fn list(connection: &Connection, filter: &PauseFilter) -> Result<Vec<PauseRow>, Broken> {
    let most = filter.limit.min(PauseFilter::LIMIT_MAX);
    let limit = columns::most(most);
    // Before the first of all: no time is negative.
    let (opened_at, run, number) = filter.after.map_or((-1, Uuid::nil(), -1), |after| {
        (after.opened_at.as_millis(), *after.id.run.uuid(), i64::from(after.id.number))
    });
    let agent = filter.agent.as_ref().map(AgentId::as_str);
    let tool = filter.tool.as_ref().map(ToolName::as_str);
    if let Some(session) = filter.session.as_ref().map(SessionId::as_str) {
        let status = filter.status.map(columns::pause_status);
        let params: [&(dyn ToSql + Sync); 8] = [&session, &status, &opened_at, &run, &number, &agent, &tool, &limit];
        return connection.query(LIST_OF_SESSION, &params).await?.iter().map(row).collect();
    }
    let all = [PauseStatus::Open, PauseStatus::Decided, PauseStatus::Expired, PauseStatus::Withdrawn];
    let statuses = filter.status.as_ref().map_or(all.as_slice(), std::slice::from_ref);
    // Each status is a stretch of the index in the order of time; a page of all is merged from a page of each.
    let mut pipeline = Pipeline::default();
    pipeline.text("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
    for status in statuses {
        let sql = match (status, agent, tool) {
            // A tool belongs to few agents: it is the narrower of the two.
            (PauseStatus::Open, _, Some(_)) => OPEN_OF_TOOL,
            (PauseStatus::Open, Some(_), None) => OPEN_OF_AGENT,
            _ => LIST,
        };
        pipeline.add(
            sql,
            [
                Box::new(columns::pause_status(*status)),
                Box::new(opened_at),
                Box::new(run),
                Box::new(number),
                Box::new(agent),
                Box::new(tool),
                Box::new(limit),
            ],
        );
    }
    pipeline.text("END");
    let found = pipeline.run(connection).await?;
    let mut rows = found.iter().flatten().map(row).collect::<Result<Vec<_>, _>>()?;
    if statuses.len() > 1 {
        rows.sort_unstable_by_key(PauseRow::cursor);
        rows.truncate(most);
    }
    Ok(rows)
}

fn row(row: &Row) -> Result<PauseRow, Broken> {
    let tool: Option<&str> = columns::get(row, 6)?;
    let tool = tool.map(str::parse).transpose();
    let expires_at: Option<i64> = columns::get(row, 8)?;
    Ok(PauseRow {
        id: PauseId { run: columns::get_run(row, 0)?, number: columns::get_number(row, 1)? },
        kind: columns::get_pause_kind(row, 2)?,
        status: columns::get_pause_status(row, 3)?,
        session: columns::get_name(row, 4)?,
        agent: columns::get_name(row, 5)?,
        tool: tool.map_err(|error: <ToolName as std::str::FromStr>::Err| Broken::Unreadable(error.to_string()))?,
        opened_at: columns::get_time(row, 7)?,
        expires_at: expires_at.map(Timestamp::from_millis),
        group: columns::get_count(row, 9)?,
    })
}
