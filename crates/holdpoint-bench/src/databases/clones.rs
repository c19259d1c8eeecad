//! Many paused runs in PostgreSQL, quickly: one is paused in earnest, and its rows are copied within the database under
//! new ids. A copy differs in nothing but its ids, so that it can be read, decided and driven like any other.

use anyhow::{Context as _, Result};
use holdpoint::{PauseId, RunId, RunOutcome};
use tokio_postgres::{Client, NoTls};
use uuid::Uuid;

/// How many are copied by one statement.
const AT_ONCE: usize = 50_000;

/// A connection of one's own.
pub(super) async fn connect(address: &str) -> Result<Client> {
    let (client, connection) = tokio_postgres::connect(address, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

/// An empty schema in this database, by its address.
pub(super) async fn schema(address: &str, name: &str) -> Result<String> {
    let client = connect(address).await?;
    client.batch_execute(&format!("DROP SCHEMA IF EXISTS {name} CASCADE; CREATE SCHEMA {name}")).await?;
    let more = if address.contains('?') { '&' } else { '?' };
    Ok(format!("{address}{more}options=-csearch_path%3D{name}"))
}

/// Copies a paused run under ids that begin with these eight hexadecimal digits; gives the copies' pauses. Each opens a
/// millisecond after the one before it.
pub(super) async fn copy(client: &Client, paused: &RunOutcome, prefix: u32, count: usize) -> Result<Vec<PauseId>> {
    let number = paused.pauses().first().context("the run did not pause")?.pause.id.number;
    let (run, hex) = (*paused.run_id().uuid(), paused.run_id().uuid().simple().to_string());
    let prefix_hex = format!("{prefix:08x}");
    for from in (0..count).step_by(AT_ONCE) {
        let (first, last) = (i64::try_from(from)?, i64::try_from(count.min(from + AT_ONCE) - 1)?);
        for sql in [SESSIONS, RUNS, ENTRIES, PAUSES] {
            client.execute(sql, &[&prefix_hex, &first, &last, &run, &hex]).await?;
        }
    }
    let id = |index: usize| Uuid::from_u128(u128::from(prefix) << 96 | index as u128);
    Ok((0..count).map(|index| PauseId { run: RunId::new(id(index)), number }).collect())
}

/// The new ids, one for each copy: `hex`, and `n` to tell the copies apart. Every statement uses all five parameters.
macro_rules! copies {
    ($insert:literal, $from:literal) => {
        concat!(
            "WITH new AS MATERIALIZED (
                 SELECT n, $1::text || lpad(to_hex(n), 24, '0') AS hex FROM generate_series($2::bigint, $3::bigint) AS n
             ), old AS (SELECT $4::uuid AS run, $5::text AS hex) ",
            $insert,
            " FROM new CROSS JOIN old ",
            $from
        )
    };
}

const SESSIONS: &str = copies!(
    "INSERT INTO session (name, began_by, created_at, last_at, runs, events, pause_groups)
     SELECT replace(session.name, old.hex, new.hex), began_by, created_at + n, session.last_at + n, runs, events,
         pause_groups",
    "JOIN run ON run.id = old.run JOIN session ON session.key = run.session ORDER BY n"
);

const RUNS: &str = copies!(
    "INSERT INTO run (id, session, agent, first_seq, revision, status, started_at, last_at, epoch, owner, since)
     SELECT new.hex::uuid, session.key, agent, first_seq, revision, status, started_at + n, run.last_at + n, epoch, owner,
         since",
    "JOIN run ON run.id = old.run JOIN session ON session.name = 'ses_' || new.hex ORDER BY n"
);

const ENTRIES: &str = copies!(
    "INSERT INTO entry (session, last_seq, run, revision, pause_groups, at, token, body)
     SELECT session.key, last_seq, new.hex::uuid, revision, entry.pause_groups, at + n, gen_random_uuid(),
         convert_to(replace(convert_from(body, 'UTF8'), old.hex, new.hex), 'UTF8')",
    "JOIN entry ON entry.run = old.run JOIN session ON session.name = 'ses_' || new.hex ORDER BY n, revision"
);

const PAUSES: &str = copies!(
    "INSERT INTO pause (run, number, session, kind, status, agent, tool, opened_at, expires_at, pause_group)
     SELECT new.hex::uuid, number, session.key, kind, status, agent, tool, opened_at + n, expires_at + n, pause_group",
    "JOIN pause ON pause.run = old.run JOIN session ON session.name = 'ses_' || new.hex ORDER BY n, number"
);
